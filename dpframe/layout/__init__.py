"""From a column to the integers that are released, and back to an answer with its interval."""
