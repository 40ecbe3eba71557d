"""Plans of many queries under one budget, and the release files that hold them."""
