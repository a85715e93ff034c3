"""Evidence of features from items that the features' parameters were not learned from.

A model of features given classes that is refitted with its own responsibilities believes itself
more with every round: where its assumptions fail, it leaves the labels behind and clusters. Here
the parameters come from given responsibilities of other items only (``folds``-fold cross-fitting),
and nothing flows back.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nbmodels.core import model as models
from nbmodels.core.component import Component
from nbmodels.core.families import Rule
from nbmodels.core.model import Data


def folds_of(codes: np.ndarray, n_folds: int, rng: np.random.Generator) -> np.ndarray:
    """``(N,)`` fold of each item, every class spread evenly over them.

    Args:
        codes: ``(N,)`` label codes, any one number where there is no label.
        n_folds: number of folds.
        rng: NumPy generator.
    """
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), np.int32)
    fold[order] = np.arange(len(codes)) % n_folds
    return fold


@partial(jax.jit, static_argnames=("n_folds", "rule"))
def out_of_fold_log_likelihood(
    emissions: Mapping[str, Component],
    data: Data,
    resp: Array,
    fold: Array,
    *,
    n_folds: int,
    rule: Rule = "map",
) -> Array:
    """``(N, K)`` weighted log-evidence of each item under parameters from the other folds' items.

    Components with a private latent (heavy tails) take it as under their prior.

    Args:
        emissions: components of the features, by name.
        data: encoded data of them.
        resp: ``(N, K)`` responsibilities, such as the given labels; rows of zeros where unknown.
        fold: ``(N,)`` fold of each item.
        n_folds: number of folds.
        rule: how parameters are read.
    """

    def one(k: Array) -> Array:
        others = resp * (fold != k)[:, None]
        q = models.start(emissions, others, data, rule)
        return models.log_likelihood(
            emissions, models.likelihood_params(emissions, q, rule), data
        ).table

    def add(k: Array, out: Array) -> Array:
        return jnp.where((fold == k)[:, None], one(k), out)

    return lax.fori_loop(0, n_folds, add, jnp.zeros_like(resp))
