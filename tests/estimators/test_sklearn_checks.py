"""scikit-learn's own checks of an estimator, without an exception."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from nbmodels import (
    ClassConditionalNB,
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
    NoisyMixedNB,
    NoisyMultinomialNB,
    PartialLabelNB,
    RobustNDA,
)

# the joint models: what is chosen by held-out labels depends on folds, which repeated rows change,
# and on data of chance it warns; the default of NoisyBernoulliNB refuses data that are not binary
ESTIMATORS = [
    NoisyGaussianNB.published(),
    NoisyBernoulliNB.published(binarize=0.0),
    NoisyMultinomialNB.published(),
    NoisyCategoricalNB.published(),
    NoisyMixedNB.published(),
    PartialLabelNB(estimator="em"),
    RobustNDA.published(),
]


# most of these data are of none of the models, and the verdict says so; random numbers are no
# categories that come again; and one check gives a class no weight, which is warned of
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")
@pytest.mark.filterwarnings("ignore:X. training saw none of the categories")
@pytest.mark.filterwarnings("ignore:sample_weight. all rows that are labelled")
@parametrize_with_checks(ESTIMATORS)
def test_checks(estimator, check):
    check(estimator)


# attributes of no use, as most of these checks have, give inadmissible estimates; the closed form
# alone is not here, since its probabilities can be zero, whose logarithm is kept finite
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.ClippedWarning")
@pytest.mark.filterwarnings("ignore::nbmodels.errors.IdentifiabilityWarning")
@pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")
@pytest.mark.filterwarnings("ignore:sample_weight. all rows that are labelled")
@parametrize_with_checks([ClassConditionalNB.published()])
def test_two_classes(estimator, check):
    check(estimator)


# and of evidence from other folds, labels of chance leave nothing; fewer folds, which are squared
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.IdentifiabilityWarning")
@pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")
@pytest.mark.filterwarnings("ignore:sample_weight. all rows that are labelled")
@parametrize_with_checks(
    [NoisyLabelClassifier(cv=2, rounds=0, noise="full"), NoisyLogisticRegression(cv=2)],
)
def test_cross_fitted(estimator, check):
    check(estimator)
