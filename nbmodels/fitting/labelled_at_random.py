"""Are labels missing at random? A test by the class shares of the items without one.

Where a class is labelled more often than others, items without a label are of other classes than
those with one. A fit that takes labels for missing at random draws them to the shares of the others
(Rubin 1976), the more so the more classes overlap. The shares that the features of unlabelled items
alone suggest are found by EM (Saerens, Latinne and Decaestecker 2002), and a likelihood ratio tests
whether they are those of the fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from nbmodels.fitting.fitted_model import FittedModel

#: Level of the test, the one from which rates by class are fitted, and least difference of a class
#: share that matters.
LEVEL, _LOOK, _LEAST = 0.01, 0.3, 0.03

#: Fewest items without a label, and with one.
_FEWEST = 30

#: Steps of EM at most, and their end in shares.
_STEPS, _END = 500, 1e-6

_TINY = 1e-12


class UnlabelledShares(NamedTuple):
    """Class shares of the items without a label.

    Attributes:
        fitted: ``(K,)`` as the fit has them.
        own: ``(K,)`` as their features alone suggest.
        p_value: of the hypothesis that the fit's prior shares are theirs.
    """

    fitted: Float[np.ndarray, " k"]
    own: Float[np.ndarray, " k"]
    p_value: float

    @property
    def matter(self) -> bool:
        """Whether a share differs by as much as matters."""
        return bool(np.abs(self.own - self.fitted).max() >= _LEAST)

    @property
    def may_differ(self) -> bool:
        """Whether a model of both is worth fitting."""
        return self.p_value < _LOOK and self.matter

    @property
    def differ(self) -> bool:
        """Surely, and by as much as matters."""
        return self.p_value < LEVEL and self.matter


def unlabelled_shares(
    fitted: FittedModel, known: Bool[np.ndarray, " n"]
) -> UnlabelledShares | None:
    """Shares of items of which no label is known; None with too few of them or of the others.

    Args:
        fitted: a fit that takes labels for missing at random.
        known: ``(N,)`` whether something is known of an item's class.
    """
    n = len(known)
    weights = np.asarray(fitted.data.weights, float)[:n]
    rows = np.flatnonzero(~known & (weights > 0))
    if min(len(rows), (known & (weights > 0)).sum()) < _FEWEST:
        return None
    resp, weights = np.asarray(fitted.fit.resp, float)[:n][rows], weights[rows]
    resp = resp / resp.sum(1, keepdims=True)
    shares = _prior_shares(fitted)
    ratio = resp / np.maximum(shares, _TINY)
    for _ in range(_STEPS):
        moved = ratio * shares
        now = np.average(moved / moved.sum(1, keepdims=True), 0, weights)
        done = np.abs(now - shares).max() < _END
        shares = now
        if done:
            break
    gain = float(weights @ np.log(np.maximum(ratio @ shares, _TINY)))
    p_value = float(stats.chi2.sf(2 * max(gain, 0.0), len(shares) - 1))
    return UnlabelledShares(np.average(resp, 0, weights), shares, p_value)


def _prior_shares(fitted: FittedModel) -> Float[np.ndarray, " k"]:
    """Class shares under which the posteriors of a fit are, or its scores were learned."""
    learned = fitted.learned_from
    if learned is None:
        return fitted.class_shares
    shares = np.asarray(fitted.data.weights, float)[: len(learned)] @ learned
    return shares / shares.sum()
