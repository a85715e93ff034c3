"""Emissions: likelihoods of features given the true class, each with the coding of its columns."""

# built-in families are listed, and blocks of mixed models fitted, in the order of these imports
from nbmodels.emissions.bernoulli import Bernoulli, BernoulliColumns
from nbmodels.emissions.multinomial import Multinomial, MultinomialColumns

# isort: split
from nbmodels.emissions.categorical import Categorical, CategoricalColumns
from nbmodels.emissions.gaussian import DiagonalGaussian
from nbmodels.emissions.gaussian_full import FullGaussian
from nbmodels.emissions.real_columns import RealColumns
from nbmodels.emissions.student import DiagonalStudent, FullStudent
from nbmodels.emissions.users import Users

__all__ = [
    "Bernoulli",
    "BernoulliColumns",
    "Categorical",
    "CategoricalColumns",
    "DiagonalGaussian",
    "DiagonalStudent",
    "FullGaussian",
    "FullStudent",
    "Multinomial",
    "MultinomialColumns",
    "RealColumns",
    "Users",
]
