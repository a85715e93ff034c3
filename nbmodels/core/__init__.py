"""Components, models made of them, and their NumPyro programs."""
