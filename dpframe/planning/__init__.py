"""From questions to a plan: what a unit counts for, sensitivity, noise, price. No data."""
