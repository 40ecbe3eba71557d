"""What is known of a frame without reading a cell: columns, keys, bins; and what an engine must answer."""
