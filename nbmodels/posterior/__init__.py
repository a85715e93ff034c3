"""Posterior draws, their convergence checks and their plots."""

from nbmodels.posterior.convergence import convergence_checks
from nbmodels.posterior.datatree import for_loo_pit
from nbmodels.posterior.sampling import sample
from nbmodels.posterior.sandwich import open_faced_sandwich

__all__ = ["convergence_checks", "for_loo_pit", "open_faced_sandwich", "sample"]
