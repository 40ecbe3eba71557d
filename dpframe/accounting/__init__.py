"""Adding up what was spent: conversions between guarantees, and filters that grant or refuse."""
