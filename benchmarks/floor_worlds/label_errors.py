"""Label errors to plant, by their kind."""

from __future__ import annotations

import numpy as np

from nbmodels.datasets import corrupt, flip_noise, uniform_noise


def uniform(
    true: np.ndarray, k: int, evidence: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Any other class alike."""
    return corrupt(true, uniform_noise(k, share), rng)


def pair(
    true: np.ndarray, k: int, evidence: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
    """The next class."""
    return corrupt(true, flip_noise(k, {(j, (j + 1) % k): share for j in range(k)}), rng)


def by_features(
    true: np.ndarray, k: int, evidence: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
    """The class that the features name next, the oftener the nearer an item is to it.

    The probability falls linearly in the rank of the margin, from twice the share to none.
    """
    item = np.arange(len(true))
    others = np.array(evidence, float)
    others[item, true] = -np.inf
    margin = evidence[item, true] - others.max(1)
    rank = np.empty(len(true))
    rank[np.lexsort((rng.random(len(true)), margin))] = (item + 0.5) / len(true)
    wrong = rng.random(len(true)) < 2 * share * (1 - rank)
    return np.where(wrong, others.argmax(1), true)


BY_NAME = {"uniform": uniform, "pair": pair, "features": by_features}
