"""The scikit-learn face."""

from nbmodels.estimators.annotators import DawidSkene
from nbmodels.estimators.naive_bayes import (
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyMixedNB,
    NoisyMultinomialNB,
)
from nbmodels.estimators.partial import PartialLabelNB

__all__ = [
    "DawidSkene",
    "NoisyBernoulliNB",
    "NoisyCategoricalNB",
    "NoisyGaussianNB",
    "NoisyMixedNB",
    "NoisyMultinomialNB",
    "PartialLabelNB",
]
