"""Class priors: how common each true class is, perhaps given what is known of an item."""

from nbmodels.priors.calibration import Calibration
from nbmodels.priors.logistic import Logistic
from nbmodels.priors.proportions import FixedProportions, Proportions

__all__ = ["Calibration", "FixedProportions", "Logistic", "Proportions"]
