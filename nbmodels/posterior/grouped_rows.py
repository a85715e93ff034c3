"""Posterior draws for rows that are not independent: variances multiplied by the design effect.

The likelihood counts each row's label. Where groups of rows share errors
(:mod:`nbmodels.fitting.design_effect`), its draws are too near to each other. Each column of rates
is drawn anew, from a Dirichlet distribution about the draw, so concentrated that the variance is
the design effect times as large: means stay, rates stay between 0 and 1, and a rate that is near
the end of its range gets a skewed interval, as fewer labels would give it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    from xarray import DataTree

    from nbmodels.fitting.design_effect import DesignEffects


def for_groups(tree: DataTree, effects: DesignEffects | None, rng: np.random.Generator) -> DataTree:
    """Draws of class shares and of the noise matrix with the variance that groups of rows leave.

    Args:
        tree: from :func:`nbmodels.posterior.sample`.
        effects: ratios of variances; None where rows are independent.
        rng: NumPy generator.

    Returns:
        a copy, whose ``correction`` among its ``attrs`` names the ratios; the tree itself where
        both are 1.
    """
    if effects is None or max(effects) <= 1:
        return tree
    out = tree.copy()
    posterior = out["posterior"].to_dataset()
    of = {
        "noise_matrix": ("observed_class", effects.noise),
        "class_prior": ("true_class", effects.shares),
        # the items are those that there are: what is unknown is which labels are wrong
        "class_shares": ("true_class", effects.noise),
    }
    shares = effects.noise if "class_shares" in posterior else effects.shares
    for name, (axis, ratio) in of.items():
        if name in posterior and ratio > 1:
            own = posterior[name].transpose("chain", "draw", ..., axis)
            drawn = own.copy(data=spread(own.to_numpy(), ratio, rng))
            posterior[name] = drawn.transpose(*posterior[name].dims)
    out["posterior"].dataset = posterior
    before = tree.attrs.get("correction")
    own_words = (
        f"variances times {effects.noise:.1f} (noise matrix) and {shares:.1f} (class "
        "shares), the design effects of rows in groups"
    )
    out.attrs["correction"] = f"{before}; {own_words}" if before else own_words
    return out


def spread(
    draws: Float[np.ndarray, "chain draw *more k"], ratio: float, rng: np.random.Generator
) -> Float[np.ndarray, "chain draw *more k"]:
    """Probabilities about draws of them, with their mean and a multiple of their variance.

    Args:
        draws: that sum to one along the last axis.
        ratio: of the variances, above 1. It is less where a Dirichlet distribution would have to
            be of fewer than K + 1 pseudo-labels, the number of the noise's usual prior: no
            interval is much wider than the prior's.
        rng: NumPy generator.
    """
    mean, variance = draws.mean((0, 1)), draws.var((0, 1)).sum(-1)
    largest = (mean * (1 - mean)).sum(-1)
    more = np.maximum((ratio - 1) * variance, np.finfo(float).tiny)
    size = np.maximum(largest / more - 1, draws.shape[-1] + 1)[..., None]
    drawn = rng.gamma(size * draws)
    return drawn / drawn.sum(-1, keepdims=True)
