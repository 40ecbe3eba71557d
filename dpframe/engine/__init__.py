"""The exact side: three integers per group from one pass over the data. Knows no statistics, no noise."""
