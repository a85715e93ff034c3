"""Every table and figure of the five papers by one command: ``python -m benchmarks.reproduce``."""
