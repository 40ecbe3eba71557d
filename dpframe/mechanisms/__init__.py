"""Laws of noise on the integers, each with its guarantee. One file per law."""
