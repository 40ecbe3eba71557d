"""Sessions: budgets that releases are charged to, who pays, and what a session says of itself."""
