"""Noise matrices of annotators from few votes: each is drawn to the annotator's one accuracy."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

#: Right and wrong pseudo-votes of an accuracy; pseudo-votes by which a matrix is drawn to it.
_PSEUDO, _STRENGTH = (2.0, 1.0), 5.0


def of_one_accuracy(counts: Float[np.ndarray, "... k k"]) -> Float[np.ndarray, "... k k"]:
    """Matrices ``[observed, true]`` of each annotator's smoothed accuracy, alike in all classes.

    Args:
        counts: expected votes for each label by true class.
    """
    k = counts.shape[-1]
    hits, number = np.trace(counts, axis1=-2, axis2=-1), counts.sum((-2, -1))
    right = ((hits + _PSEUDO[0]) / (number + sum(_PSEUDO)))[..., None, None]
    return np.where(np.eye(k, dtype=bool), right, (1 - right) / max(k - 1, 1))


def drawn_to(
    counts: Float[np.ndarray, "... observed k"], centre: Float[np.ndarray, "... observed k"]
) -> Float[np.ndarray, "... observed k"]:
    """Matrices of these votes, each drawn to another one by pseudo-votes.

    Args:
        counts: expected votes for each label by true class.
        centre: matrices whose columns sum to one.
    """
    found = counts + _STRENGTH * centre
    return np.asarray(found / found.sum(-2, keepdims=True))


def drawn_to_accuracy(counts: Float[np.ndarray, "... k k"]) -> Float[np.ndarray, "... k k"]:
    """Matrices ``[observed, true]`` of these votes, drawn to each annotator's one accuracy."""
    return drawn_to(counts, of_one_accuracy(counts))
