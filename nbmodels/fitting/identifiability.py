"""Identifiability: diagonal dominance of the noise matrix.

Any renaming of the true classes fits as well as any other (Zeng 2022, section 3.3). The model is
identified by ``rho_kk > max over k' of rho_k'k``: every class is labelled as itself more often than
as any other one. A fit that breaks this is renamed where a renaming restores it, and otherwise
reported, with the classes that are confused.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment


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


def confused_classes(transition: Float[np.ndarray, "k k"]) -> tuple[tuple[int, int], ...]:
    """Pairs ``(k, j)`` with ``P(j | k) >= P(k | k)`` for the likeliest other label ``j``.

    Args:
        transition: ``(K, K)``, ``[true, observed]``, rows summing to one.
    """
    others = np.array(transition, float)
    np.fill_diagonal(others, -np.inf)
    worst = np.argmax(others, 1)
    rows = np.arange(len(others))
    bad = others[rows, worst] >= np.diag(transition)
    return tuple((int(k), int(worst[k])) for k in rows[bad])


def diagnose(transition: Float[np.ndarray, "k k"]) -> Diagnosis:
    """Whether a transition is diagonally dominant, and which renaming would make it so."""
    identity = np.arange(len(transition))
    confused = confused_classes(transition)
    if not confused:
        return Diagnosis(identity, ())
    # the assignment of names to classes under which the labels are most often right
    logs = np.log(np.maximum(transition, np.finfo(float).tiny))
    classes, names = linear_sum_assignment(-logs)
    order = np.empty_like(identity)
    order[names] = classes
    if confused_classes(transition[order]):
        return Diagnosis(identity, confused)
    return Diagnosis(order, confused)


def vanished(
    given: Float[np.ndarray, " k"], kept: Float[np.ndarray, " k"]
) -> Int[np.ndarray, " classes"]:
    """Classes that a fit has all but dissolved, a sign that it follows something else than labels.

    Args:
        given: ``(K,)`` numbers of items labelled as each class.
        kept: ``(K,)`` numbers of the same items assigned to it, or their expectations.

    Returns:
        indices of the classes of 10 labels or more with less than a fifth of them left.
    """
    return np.flatnonzero((given >= 10) & (kept < 0.2 * given))
