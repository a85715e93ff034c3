"""The scikit-learn face."""

from nbmodels.estimators.naive_bayes import (
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyMixedNB,
    NoisyMultinomialNB,
)

__all__ = [
    "NoisyBernoulliNB",
    "NoisyCategoricalNB",
    "NoisyGaussianNB",
    "NoisyMixedNB",
    "NoisyMultinomialNB",
]
