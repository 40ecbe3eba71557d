"""Small faults that are planted in a copy of the package, to see which test finds each."""
