"""Posterior draws, their checks and their plots."""

from nbmodels.posterior.datatree import complaints
from nbmodels.posterior.sampling import sample
from nbmodels.posterior.sandwich import open_faced_sandwich

__all__ = ["complaints", "open_faced_sandwich", "sample"]
