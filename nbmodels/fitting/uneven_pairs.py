"""How unevenly pairs of annotators agree, and what that says of groups among them.

Pairs of independent annotators agree as often as their matrices and the classes have it, but for
what difficult items add to the agreement of all. Members of a group agree too often, and others
then too seldom. Of pairs that share few items, and of few pairs, that is not seen either way, which
the Bayes factor says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from nbmodels.fitting.vote_dependence import LEAST

#: Standard deviations of the correlation of a pair, where there are groups.
_WITHIN = LEAST * np.array([1.0, 2.0, 4.0])


@dataclass(frozen=True)
class UnevenPairs:
    """Agreement of pairs beyond what is expected and usual.

    Attributes:
        surprise: ``(P,)`` in standard errors.
        per_unit: ``(P,)`` standard errors that a correlation of one would add.
    """

    surprise: Float[np.ndarray, " p"]
    per_unit: Float[np.ndarray, " p"]

    @property
    def unevenness(self) -> float:
        """Mean square of the surprises less its standard error: about 1 of independent votes.

        0 where pairs were not compared.
        """
        if not len(self.surprise):
            return 0.0
        return float(np.mean(self.surprise**2) - np.sqrt(2 / len(self.surprise)))

    @property
    def log_factor(self) -> float:
        """Logarithm of the Bayes factor of groups against independent votes; 0 without pairs."""
        more = (_WITHIN[:, None] * self.per_unit) ** 2
        each = self.surprise**2 * more / (1 + more) - np.log1p(more)
        return float(logsumexp(each.sum(1) / 2) - np.log(len(_WITHIN)))
