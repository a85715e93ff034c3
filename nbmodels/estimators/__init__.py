"""Estimators with the interface of scikit-learn; each is loaded when its name is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# what a type checker sees; at run time each name is imported on first use
if TYPE_CHECKING:
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

#: Modules of the names.
_MODULES = {
    "AutoNoisyClassifier": "auto",
    "ClassConditionalNB": "two_class",
    "CollaborativeClassifier": "graph",
    "CrossFit": "options",
    "DawidSkene": "annotators",
    "Joint": "options",
    "JointGraph": "options",
    "JointNB": "joint",
    "NoisyBernoulliNB": "naive_bayes",
    "NoisyCategoricalNB": "naive_bayes",
    "NoisyGaussianNB": "discriminant",
    "NoisyLabelClassifier": "any_classifier",
    "NoisyLogisticRegression": "logistic_regression",
    "NoisyMixedNB": "mixed",
    "NoisyMultinomialNB": "naive_bayes",
    "NoisyNeighbours": "neighbours",
    "PartialLabelNB": "partial",
    "PositiveUnlabelledNB": "positive_unlabelled",
    "Priors": "options",
    "RobustNDA": "discriminant",
    "Solver": "options",
    "UnlabelledNB": "unlabelled",
}

# a type checker would take any name for known
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
