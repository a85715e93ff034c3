"""Learning from noisy labels: corrected labels and noise matrices with credible intervals.

The estimators are loaded on first use, so that ``import nbmodels`` costs little more than JAX.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "CrossFit": "nbmodels.estimators",
    "Joint": "nbmodels.estimators",
    "JointGraph": "nbmodels.estimators",
    "Priors": "nbmodels.estimators",
    "Solver": "nbmodels.estimators",
    "AutoNoisyClassifier": "nbmodels.estimators",
    "CollaborativeClassifier": "nbmodels.estimators",
    "ClassConditionalNB": "nbmodels.estimators",
    "PositiveUnlabelledNB": "nbmodels.estimators",
    "UnlabelledNB": "nbmodels.estimators",
    "DawidSkene": "nbmodels.estimators",
    "JointNB": "nbmodels.estimators",
    "NoisyBernoulliNB": "nbmodels.estimators",
    "NoisyCategoricalNB": "nbmodels.estimators",
    "NoisyGaussianNB": "nbmodels.estimators",
    "NoisyLabelClassifier": "nbmodels.estimators",
    "NoisyLogisticRegression": "nbmodels.estimators",
    "NoisyMixedNB": "nbmodels.estimators",
    "NoisyMultinomialNB": "nbmodels.estimators",
    "PartialLabelNB": "nbmodels.estimators",
    "RobustNDA": "nbmodels.estimators",
    "ClippedWarning": "nbmodels.errors",
    "DataError": "nbmodels.errors",
    "Interrupted": "nbmodels.errors",
    "IdentifiabilityWarning": "nbmodels.errors",
    "NbmodelsWarning": "nbmodels.errors",
    "NotConvergedWarning": "nbmodels.errors",
    "VerdictWarning": "nbmodels.errors",
    "compare": "nbmodels.diagnostics.comparison",
    "compare_posteriors": "nbmodels.diagnostics.comparison",
    "em": "nbmodels.fitting.em",
    "fit": "nbmodels.fitting.em",
    "Fit": "nbmodels.fitting.em",
    "Data": "nbmodels.core.model",
    "program": "nbmodels.core.program",
}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'nbmodels' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
