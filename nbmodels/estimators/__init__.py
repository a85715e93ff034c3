"""The scikit-learn face."""

from nbmodels.estimators.annotators import DawidSkene
from nbmodels.estimators.any_classifier import NoisyLabelClassifier
from nbmodels.estimators.auto import AutoNoisyClassifier
from nbmodels.estimators.class_conditional import (
    ClassConditionalNB,
    PositiveUnlabelledNB,
    UnlabelledNB,
)
from nbmodels.estimators.collaborative import CollaborativeClassifier
from nbmodels.estimators.joint import JointNB
from nbmodels.estimators.logistic_regression import NoisyLogisticRegression
from nbmodels.estimators.naive_bayes import (
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyMixedNB,
    NoisyMultinomialNB,
)
from nbmodels.estimators.partial import PartialLabelNB
from nbmodels.estimators.robust import RobustNDA

__all__ = [
    "AutoNoisyClassifier",
    "ClassConditionalNB",
    "CollaborativeClassifier",
    "DawidSkene",
    "JointNB",
    "NoisyBernoulliNB",
    "NoisyCategoricalNB",
    "NoisyGaussianNB",
    "NoisyLabelClassifier",
    "NoisyLogisticRegression",
    "NoisyMixedNB",
    "NoisyMultinomialNB",
    "PartialLabelNB",
    "PositiveUnlabelledNB",
    "RobustNDA",
    "UnlabelledNB",
]
