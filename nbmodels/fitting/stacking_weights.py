"""Weights of candidates under whose average held-out labels are likeliest: stacking.

Where candidates tie, a choice of one hangs on the folds; the average hardly does (Wolpert 1992; Yao
et al. 2018, Bayesian Analysis 13).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

#: Steps of EM for the weights, few enough to leave tied candidates near equal weights.
_STEPS = 100

#: Weight that no candidate begins below.
_SMALLEST = 1e-6

#: Weight below which a candidate is left out.
_LEAST = 0.01


def stacking_weights(
    log_likelihoods: Float[np.ndarray, "c n"], weights: Float[np.ndarray, "*f n"]
) -> Float[np.ndarray, "*f c"]:
    """Weights of candidates under whose average labels are likeliest; they sum to one.

    The steps begin at pseudo-BMA weights, by which a much worse candidate counts nothing.

    Args:
        log_likelihoods: log-probability of each label under each candidate that has not seen it.
        weights: row weights, or several sets of them, each with an average of its own.
    """
    many = np.atleast_2d(weights)
    probs = np.exp(log_likelihoods - log_likelihoods.max(0))
    total = many @ log_likelihoods.T
    share = np.maximum(np.exp(total - total.max(1, keepdims=True)), _SMALLEST)
    share = share / share.sum(1, keepdims=True)
    size = many.sum(1, keepdims=True)
    some = size[:, 0] > 0
    if some.any():
        relative = many[some] / size[some]
        at = share[some]
        for _ in range(_STEPS):
            at = at * ((relative / (at @ probs)) @ probs.T)
        share[some] = at
    least = np.minimum(_LEAST, share.max(1, keepdims=True))
    share = np.where(some[:, None] & (share < least), 0.0, share)
    share = share / share.sum(1, keepdims=True)
    return share.reshape(*np.shape(weights)[:-1], -1)
