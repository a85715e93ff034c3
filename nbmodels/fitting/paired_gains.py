"""Whether one of two answers is surely better, by what it gains on each item."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def surely(gains: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"], errors: float) -> bool:
    """Whether the mean of paired gains is more than so many standard errors above zero."""
    gain = np.average(gains, weights=weights)
    variance = np.average(np.square(gains - gain), weights=weights)
    count = weights.sum() ** 2 / np.square(weights).sum()
    return bool(gain > errors * np.sqrt(variance / count))
