"""What limits the share of wrong labels that a fit gives, in words: the one place they stand."""

from __future__ import annotations

from dataclasses import dataclass

from nbmodels.core.model import Model, with_role
from nbmodels.core.roles import Emission, LabelChannel
from nbmodels.diagnostics.findings import INDEPENDENT
from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.fitted_model import FittedModel

#: What limits an estimated share: where errors depend on the features, labels and features alone do
#: not distinguish them from classes that overlap. Models of the features take both for overlap,
#: votes of neighbours take both for errors.
LOWER_BOUND = "a lower bound if errors depend on the features"
UPPER_BOUND = "an upper bound if classes overlap"

#: In the place of a share that is not estimated, and why.
NOT_ESTIMATED = "not estimated"
_UNHEARD = "since the features do not surely predict the labels; P(given is wrong) is"


@dataclass(frozen=True)
class ShareLimits:
    """What limits the share of wrong labels by a fit.

    Attributes:
        words: what it is a bound of; or, where there is no estimate, why.
        estimated: whether labels and features say anything of it; if not, it is the prior's, or
            that of checked rows.
    """

    words: str = LOWER_BOUND
    estimated: bool = True

    def contradicted(self, share: float, other: float) -> bool:
        """Whether a share would be named a lower bound beside a lower one, to a tenth of a percent.

        Args:
            share: of wrong labels, by the fit.
            other: the same if classes do not overlap; NaN where it is not known.
        """
        return self.words == LOWER_BOUND and round(100 * other, 1) < round(100 * share, 1)

    def beside(self, share: float, other: float) -> str:
        """What limits a share, beside that if classes do not overlap; arguments as above."""
        return INDEPENDENT if self.contradicted(share, other) else self.words


#: Of models of the features.
BOUNDED_BELOW = ShareLimits()


def share_limits(fitted: FittedModel) -> ShareLimits:
    """What limits the share of wrong labels of a fitted model."""
    if not fitted.as_given:
        return ShareLimits(bounds(fitted.fit.model))
    checked = checked_rows(fitted.fit.model, fitted.data, len(fitted.fit.resp)).any()
    source = "that of checked rows and the prior" if checked else "the prior's"
    return ShareLimits(f"{_UNHEARD} {source}", estimated=False)


def bounds(model: Model) -> str:
    """Which bound the share of wrong labels is by a model of these components."""
    votes = any(c.overlap_is_noise for c in with_role(model, LabelChannel).values())
    if not votes:
        return LOWER_BOUND
    # beside features of other sources both may happen
    return f"{LOWER_BOUND}, and {UPPER_BOUND}" if with_role(model, Emission) else UPPER_BOUND
