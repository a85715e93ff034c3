"""Agreement of two classifications beyond that of independent ones: Cohen's kappa (Cohen 1960)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from nbmodels.fitting.design_effect import of_groups

#: Least part of the items that is taken to disagree by chance; where all are of one class, none is.
_LEAST = 1e-12


class Agreement(NamedTuple):
    """Agreement of two codes beyond that of independent ones (Cohen 1960).

    Attributes:
        kappa: agreement beyond chance, 1 at most.
        error: its standard error where codes are independent.
    """

    kappa: float
    error: float

    @property
    def z(self) -> float:
        """In standard errors."""
        return self.kappa / self.error


def beyond_chance(
    predicted: Int[np.ndarray, " n"],
    given: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    groups: Int[np.ndarray, " n"] | None = None,
) -> Agreement:
    """Agreement beyond that of independent codes.

    Args:
        predicted: codes by a fit that did not see the given ones.
        given: given codes.
        weights: row weights, 0 where there is no label.
        groups: code of each row's group, whose rows may agree alike; None where rows are
            independent.
    """
    share = weights / weights.sum()
    k = int(max(predicted.max(), given.max())) + 1
    chance = float(np.bincount(predicted, share, k) @ np.bincount(given, share, k))
    variance = max(chance * (1 - chance), np.finfo(float).tiny) * np.square(share).sum()
    agree = share @ (predicted == given)
    if groups is not None:
        gaps = of_groups(share * ((predicted == given) - agree), groups)
        variance = max(variance, np.square(gaps).sum())
    return Agreement(_kappa(agree, chance), float(np.sqrt(variance)) / _left(chance))


def kappa_of_shares(
    one: Float[np.ndarray, "n k"],
    other: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " n"],
) -> float:
    """Agreement beyond chance of classes of which only probabilities are known.

    Args:
        one: ``(n, K)`` class probabilities, or shares of votes.
        other: ``(n, K)`` likewise.
        weights: row weights.
    """
    share = weights / weights.sum()
    chance = float((share @ one) @ (share @ other))
    return _kappa(float(share @ (one * other).sum(1)), chance)


def _kappa(agree: float, chance: float) -> float:
    return float((agree - chance) / _left(chance))


def _left(chance: float) -> float:
    """Part of the items on which independent classifications disagree."""
    return max(1 - chance, _LEAST)
