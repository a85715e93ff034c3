"""Tables of model checks, by what they look at: labels, an emission's columns, the outcome."""

from nbmodels.diagnostics.checks.features import CHECKS as FEATURE_CHECKS
from nbmodels.diagnostics.checks.features import EmissionEvidence
from nbmodels.diagnostics.checks.labels import CHECKS as LABEL_CHECKS
from nbmodels.diagnostics.checks.labels import LabelEvidence
from nbmodels.diagnostics.checks.outcome import CHECKS as OUTCOME_CHECKS
from nbmodels.diagnostics.checks.outcome import Outcome

__all__ = [
    "FEATURE_CHECKS",
    "LABEL_CHECKS",
    "OUTCOME_CHECKS",
    "EmissionEvidence",
    "LabelEvidence",
    "Outcome",
]
