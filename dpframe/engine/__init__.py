"""Exact integers per group from every kind of frame, in one pass over the data. Knows no statistics, no noise."""
