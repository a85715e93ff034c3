"""What the data say against a fit."""
