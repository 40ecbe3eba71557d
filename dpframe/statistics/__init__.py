"""The questions that can be asked, one kind a file; ``table.py`` has them all."""
