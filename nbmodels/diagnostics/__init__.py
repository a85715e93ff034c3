"""Model checking and model comparison: checks of a fit, confident learning, cross-validation."""
