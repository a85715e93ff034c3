"""Class priors: how common each true class is, perhaps given what is known of an item."""

from nbmodels.class_priors.calibration import Calibration
from nbmodels.class_priors.held_calibration import HeldCalibration
from nbmodels.class_priors.logistic import Logistic
from nbmodels.class_priors.proportions import FixedProportions, HeldProportions, Proportions
from nbmodels.class_priors.scaled_logistic import ScaledLogistic

__all__ = [
    "Calibration",
    "FixedProportions",
    "HeldCalibration",
    "HeldProportions",
    "Logistic",
    "Proportions",
    "ScaledLogistic",
]
