"""Learning from noisy labels: corrected labels and noise matrices with credible intervals.

The estimators are loaded on first use, so that ``import nbmodels`` costs little more than JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# what a type checker sees; at run time each name is imported on first use
if TYPE_CHECKING:
    from nbmodels.audit import AuditPlan, AuditResult
    from nbmodels.core.model import Data
    from nbmodels.core.numpyro_program import program
    from nbmodels.diagnostics.comparison import compare, compare_posteriors
    from nbmodels.errors import (
        ClippedWarning,
        DataError,
        IdentifiabilityWarning,
        Interrupted,
        NbmodelsWarning,
        NotConvergedWarning,
        PosteriorWarning,
        VerdictWarning,
    )
    from nbmodels.estimators import (
        AutoNoisyClassifier,
        ClassConditionalNB,
        CollaborativeClassifier,
        CrossFit,
        DawidSkene,
        Joint,
        JointGraph,
        JointNB,
        NoisyBernoulliNB,
        NoisyCategoricalNB,
        NoisyGaussianNB,
        NoisyLabelClassifier,
        NoisyLogisticRegression,
        NoisyMixedNB,
        NoisyMultinomialNB,
        NoisyNeighbours,
        PartialLabelNB,
        PositiveUnlabelledNB,
        Priors,
        RobustNDA,
        Solver,
        UnlabelledNB,
    )
    from nbmodels.fitting.em import Fit, em, fit

__version__ = "0.1.0"

__all__ = [
    "AuditPlan",
    "AuditResult",
    "AutoNoisyClassifier",
    "ClassConditionalNB",
    "ClippedWarning",
    "CollaborativeClassifier",
    "CrossFit",
    "Data",
    "DataError",
    "DawidSkene",
    "Fit",
    "IdentifiabilityWarning",
    "Interrupted",
    "Joint",
    "JointGraph",
    "JointNB",
    "NbmodelsWarning",
    "NoisyBernoulliNB",
    "NoisyCategoricalNB",
    "NoisyGaussianNB",
    "NoisyLabelClassifier",
    "NoisyLogisticRegression",
    "NoisyMixedNB",
    "NoisyMultinomialNB",
    "NoisyNeighbours",
    "NotConvergedWarning",
    "PartialLabelNB",
    "PositiveUnlabelledNB",
    "PosteriorWarning",
    "Priors",
    "RobustNDA",
    "Solver",
    "UnlabelledNB",
    "VerdictWarning",
    "__version__",
    "compare",
    "compare_posteriors",
    "em",
    "fit",
    "program",
]

#: Modules of the names that are no estimators.
_ELSEWHERE = {
    "AuditPlan": "nbmodels.audit",
    "AuditResult": "nbmodels.audit",
    "ClippedWarning": "nbmodels.errors",
    "Data": "nbmodels.core.model",
    "DataError": "nbmodels.errors",
    "Fit": "nbmodels.fitting.em",
    "IdentifiabilityWarning": "nbmodels.errors",
    "Interrupted": "nbmodels.errors",
    "NbmodelsWarning": "nbmodels.errors",
    "NotConvergedWarning": "nbmodels.errors",
    "PosteriorWarning": "nbmodels.errors",
    "VerdictWarning": "nbmodels.errors",
    "compare": "nbmodels.diagnostics.comparison",
    "compare_posteriors": "nbmodels.diagnostics.comparison",
    "em": "nbmodels.fitting.em",
    "fit": "nbmodels.fitting.em",
    "program": "nbmodels.core.numpyro_program",
}

# a type checker would take any name for known
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "metrics":
            return importlib.import_module("nbmodels.metrics")
        if name in __all__:
            home = _ELSEWHERE.get(name, "nbmodels.estimators")
            return getattr(importlib.import_module(home), name)
        raise AttributeError(f"module 'nbmodels' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
