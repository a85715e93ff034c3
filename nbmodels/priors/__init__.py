"""Class priors: how common each true class is."""

from nbmodels.priors.proportions import FixedProportions, Proportions

__all__ = ["FixedProportions", "Proportions"]
