"""Posterior draws: ways to take them, checks of them, and the tree they come back in."""

from nbmodels.draws.correction import open_faced_sandwich
from nbmodels.draws.tree import complaints

__all__ = ["complaints", "open_faced_sandwich"]
