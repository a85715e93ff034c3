"""scikit-learn's own checks of an estimator, without an exception."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from nbmodels import (
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyMixedNB,
    NoisyMultinomialNB,
    PartialLabelNB,
)

# the default of NoisyBernoulliNB refuses data that are not binary, as most of these are
OTHERS = [
    NoisyBernoulliNB(binarize=0.0),
    NoisyMultinomialNB(),
    NoisyCategoricalNB(),
    NoisyMixedNB(),
    NoisyGaussianNB(covariance="full"),
    NoisyGaussianNB(covariance="tied"),
    PartialLabelNB(),
    PartialLabelNB(estimator="L2"),
]


@parametrize_with_checks([NoisyGaussianNB()])
def test_gaussian(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHERS)
def test_others(estimator, check):
    check(estimator)
