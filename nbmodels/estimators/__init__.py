"""Estimators with the interface of scikit-learn."""

from nbmodels.estimators.annotators import DawidSkene
from nbmodels.estimators.any_classifier import NoisyLabelClassifier
from nbmodels.estimators.auto import AutoNoisyClassifier
from nbmodels.estimators.discriminant import NoisyGaussianNB, RobustNDA
from nbmodels.estimators.graph import CollaborativeClassifier
from nbmodels.estimators.joint import JointNB
from nbmodels.estimators.logistic_regression import NoisyLogisticRegression
from nbmodels.estimators.mixed import NoisyMixedNB
from nbmodels.estimators.naive_bayes import (
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyMultinomialNB,
)
from nbmodels.estimators.neighbours import NoisyNeighbours
from nbmodels.estimators.options import CrossFit, Joint, JointGraph, Priors, Solver
from nbmodels.estimators.partial import PartialLabelNB
from nbmodels.estimators.positive_unlabelled import PositiveUnlabelledNB
from nbmodels.estimators.two_class import ClassConditionalNB
from nbmodels.estimators.unlabelled import UnlabelledNB

__all__ = [
    "AutoNoisyClassifier",
    "ClassConditionalNB",
    "CollaborativeClassifier",
    "CrossFit",
    "DawidSkene",
    "Joint",
    "JointGraph",
    "JointNB",
    "NoisyBernoulliNB",
    "NoisyCategoricalNB",
    "NoisyGaussianNB",
    "NoisyLabelClassifier",
    "NoisyLogisticRegression",
    "NoisyMixedNB",
    "NoisyMultinomialNB",
    "NoisyNeighbours",
    "PartialLabelNB",
    "PositiveUnlabelledNB",
    "Priors",
    "RobustNDA",
    "Solver",
    "UnlabelledNB",
]
