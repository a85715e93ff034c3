"""Input: validation, and conversion of labels, features, annotations and graphs to arrays."""
