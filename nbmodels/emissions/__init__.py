"""Emissions: what the features say about the true class. One file a family."""

from nbmodels.emissions.bernoulli import Bernoulli
from nbmodels.emissions.categorical import Categorical
from nbmodels.emissions.gaussian import DiagonalGaussian
from nbmodels.emissions.gaussian_full import FullGaussian
from nbmodels.emissions.multinomial import Multinomial
from nbmodels.emissions.student import DiagonalStudent, FullStudent
from nbmodels.emissions.users import Users

__all__ = [
    "Bernoulli",
    "Categorical",
    "DiagonalGaussian",
    "DiagonalStudent",
    "FullGaussian",
    "FullStudent",
    "Multinomial",
    "Users",
]
