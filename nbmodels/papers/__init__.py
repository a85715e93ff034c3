"""Reference models, one file a paper: citation, notation, and the paper's model in NumPyro."""
