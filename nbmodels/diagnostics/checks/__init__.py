"""Tables of model checks, by what they look at: labels, votes, columns, shares, the outcome."""

from nbmodels.diagnostics.checks.checked import CHECKS as CHECKED_CHECKS
from nbmodels.diagnostics.checks.checked import CheckedLabels
from nbmodels.diagnostics.checks.confirmed import CHECKS as CONFIRMED_CHECKS
from nbmodels.diagnostics.checks.confirmed import Confirmed
from nbmodels.diagnostics.checks.ends import CHECKS as END_CHECKS
from nbmodels.diagnostics.checks.ends import Ends
from nbmodels.diagnostics.checks.features import CHECKS as FEATURE_CHECKS
from nbmodels.diagnostics.checks.features import EmissionEvidence
from nbmodels.diagnostics.checks.labels import CHECKS as LABEL_CHECKS
from nbmodels.diagnostics.checks.labels import LabelEvidence
from nbmodels.diagnostics.checks.outcome import CHECKS as OUTCOME_CHECKS
from nbmodels.diagnostics.checks.outcome import Outcome
from nbmodels.diagnostics.checks.shares import CHECKS as SHARE_CHECKS
from nbmodels.diagnostics.checks.shares import KnownShares
from nbmodels.diagnostics.checks.votes import CHECKS as VOTE_CHECKS

__all__ = [
    "CHECKED_CHECKS",
    "CONFIRMED_CHECKS",
    "END_CHECKS",
    "FEATURE_CHECKS",
    "LABEL_CHECKS",
    "OUTCOME_CHECKS",
    "SHARE_CHECKS",
    "VOTE_CHECKS",
    "CheckedLabels",
    "Confirmed",
    "EmissionEvidence",
    "Ends",
    "KnownShares",
    "LabelEvidence",
    "Outcome",
]
