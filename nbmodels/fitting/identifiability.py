"""Identifiability: diagonal dominance of the noise matrix.

Any renaming of the true classes fits as well as any other (Zeng 2022, section 3.3). The model is
identified by ``rho_kk > max over k' of rho_k'k``: every class is labelled as itself more often than
as any other one. A fit that breaks this is renamed where a renaming restores it, and otherwise
reported, with the classes that are confused.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment

#: Labels from which on a class may vanish, and the share of them that must be left.
_FEW, _LEFT = 10, 0.2

#: Bound of the surplus of right labels, by which numbers of items are found from those of labels.
_LEAST_RIGHT = 0.05

#: Probability of another form of the noise, and difference of the shares of right labels, from
#: which on a warning says that the noise is hardly identified.
POSSIBLE, APART = 0.1, 0.1


class Diagnosis(NamedTuple):
    """How a transition violates diagonal dominance, and whether a renaming mends it.

    Attributes:
        order: ``(K,)`` where true class ``order[k]`` should be called ``k``; the identity if
            nothing is to be done or nothing can be.
        confused: pairs ``(k, j)``: class ``k`` is labelled ``j`` at least as often as ``k``.
    """

    order: Int[np.ndarray, " k"]
    confused: tuple[tuple[int, int], ...]

    @property
    def renames(self) -> bool:
        """Whether another order of the classes restores dominance."""
        return bool(np.any(self.order != np.arange(len(self.order))))


def confused_classes(
    transition: Float[np.ndarray, "k k"], named: Bool[np.ndarray, " k"] | None = None
) -> tuple[tuple[int, int], ...]:
    """Pairs ``(k, j)`` with ``P(j | k) >= P(k | k)`` for the likeliest other label ``j``.

    Args:
        transition: ``(K, K)``, ``[true, observed]``, rows summing to one.
        named: ``(K,)`` classes whose names are known otherwise, as by checked rows, and which are
            left out; None for no class.
    """
    others = np.array(transition, float)
    np.fill_diagonal(others, -np.inf)
    worst = np.argmax(others, 1)
    rows = np.arange(len(others))
    bad = others[rows, worst] >= np.diag(transition)
    if named is not None:
        bad &= ~named
    return tuple((int(k), int(worst[k])) for k in rows[bad])


def diagnose(
    transition: Float[np.ndarray, "k k"], named: Bool[np.ndarray, " k"] | None = None
) -> Diagnosis:
    """Whether a transition is diagonally dominant, and which renaming would make it so.

    Args:
        transition, named: see :func:`confused_classes`.
    """
    identity = np.arange(len(transition))
    confused = confused_classes(transition, named)
    if not confused:
        return Diagnosis(identity, ())
    # the assignment of names to classes under which the labels are most often right
    logs = np.log(np.maximum(transition, np.finfo(float).tiny))
    classes, names = linear_sum_assignment(-logs)
    order = np.empty_like(identity)
    order[names] = classes
    if confused_classes(transition[order], named):
        return Diagnosis(identity, confused)
    return Diagnosis(order, confused)


def vanished(
    given: Float[np.ndarray, "n k"],
    resp: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " n"] | None = None,
) -> Int[np.ndarray, " classes"]:
    """Classes that a fit has all but dissolved, a sign that it follows something else than labels.

    A rare class may keep few of its labels and be right: errors of the other classes, spread
    evenly, bring it more labels than it has items. What is left is then held to what errors of the
    fit's rate leave, and must be items of which the fit is sure and most of which are labelled so.
    A class that was dissolved has none, or has items whose labels are others.

    Args:
        given: ``(N, K)`` the given labels, a one in each row, or rows that sum to one; rows of
            zeros are left out.
        resp: ``(N, K)`` what a fit takes the items for.
        weights: row weights; None where all are one.

    Returns:
        indices of the classes of 10 labels or more with less than a fifth of them left.
    """
    n, k = given.shape
    rows = given.sum(1) * (np.ones(n) if weights is None else weights)
    labels, kept = rows @ given, rows @ resp
    gone = (labels >= _FEW) & (kept < _LEFT * labels)
    if not gone.any():
        return np.flatnonzero(gone)
    sure = resp > 0.5
    items, own = rows @ sure, rows @ (sure * given)
    wrong = 1 - float(rows @ np.sum(given * resp, 1)) / labels.sum()
    spread = wrong / max(k - 1, 1)
    due = (labels - spread * labels.sum()) / max(1 - wrong - spread, _LEAST_RIGHT)
    alive = (items >= _FEW) & (own > items / 2) & (kept >= _LEFT * due)
    return np.flatnonzero(gone & ~alive)
