"""One page a paper: citation, notation, settings, and the paper's model in NumPyro."""
