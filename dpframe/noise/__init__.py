"""Exact integer samplers on the operating system's randomness. Nothing here knows about privacy."""
