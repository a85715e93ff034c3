"""Whether other predictions of labels that would be changed side with the given or the new ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int
from scipy.special import betainc

#: Share of changed labels that are predicted as given, of those predicted as given or as suggested,
#: from which on changes are more likely to harm. It errs together with the fit, whose features and
#: labels it shares: in simulated worlds of 60 to 2,000 rows it predicted 0 to 24 % as given where
#: labels were rightly changed, and mostly 25 to 40 % where more than half of changes were wrong.
_HARMFUL = 0.25

#: The same share where neighbours' labels are asked, which err less often together with a fit: they
#: predicted 0 to 15 % as given where labels were rightly changed, and mostly 20 to 35 % elsewhere.
HARMFUL_BY_NEIGHBOURS = 0.2


class Sides(NamedTuple):
    """What reference predictions are of labels that would be changed.

    Attributes:
        changed: number of labels that would be changed.
        given: number of them that are predicted as given.
        suggested: number of them that are predicted as suggested.
        harmful: share predicted as given from which on changes do harm.
    """

    changed: int
    given: int
    suggested: int
    harmful: float = _HARMFUL

    @property
    def belief(self) -> float:
        """How far changes are to be believed: 1 where they are more likely to help than not.

        Twice the posterior probability (Jeffreys' prior) that the share of labels predicted as
        given is below that at which changes do harm, which few labels leave near one: caution rises
        smoothly from where harm is likelier.
        """
        if not self.given:
            return 1.0
        about = self.given + 0.5, self.suggested + 0.5
        return min(1.0, 2 * float(betainc(*about, self.harmful)))

    @property
    def z(self) -> float:
        """Predictions as given beyond those as suggested, in standard errors (sign test)."""
        return (self.given - self.suggested) / max(np.sqrt(self.given + self.suggested), 1.0)


def sides_of(
    reference: Int[np.ndarray, " n"],
    codes: Int[np.ndarray, " n"],
    suggested: Int[np.ndarray, " n"],
    harmful: float = _HARMFUL,
) -> Sides:
    """Whether reference predictions side with given labels or with others.

    Args:
        reference: ``(n,)`` predicted classes, -1 where there is none.
        codes: ``(n,)`` given labels, -1 where there is none.
        suggested: ``(n,)`` likeliest classes.
        harmful: see :class:`Sides`.
    """
    changed = (reference >= 0) & (suggested != codes)
    given = int(np.count_nonzero(reference[changed] == codes[changed]))
    other = int(np.count_nonzero(reference[changed] == suggested[changed]))
    return Sides(int(np.count_nonzero(changed)), given, other, harmful)
