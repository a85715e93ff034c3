"""Sub-types of classes: a class as a mixture, so that votes may depend on each other within it.

EBCC (Li, Rubinstein and Cohn 2019, *Exploiting worker correlation for label aggregation in
crowdsourcing*): the latent variable is a sub-type, and each class has several of them, side by side
in the order of the classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from inference.arrays import random_key
from inference.compilation import host_jit
from nbmodels.core.component import Component
from nbmodels.core.families import Rule
from nbmodels.core.model import Data, Model, initial_responsibilities, start
from nbmodels.fitting.fit import with_arrays
from nbmodels.fitting.label_sources import class_prior
from nbmodels.fitting.scores import Candidate


@dataclass(frozen=True)
class Subtypes:
    """As many sub-types of each class.

    Attributes:
        n_classes: K.
        each: M; 1 for the classes themselves.
    """

    n_classes: int
    each: int

    @property
    def number(self) -> int:
        """K * M."""
        return self.n_classes * self.each

    def names(self, classes: np.ndarray) -> np.ndarray:
        """Names of the sub-types."""
        if self.each == 1:
            return classes
        return np.array([f"{name} ({m + 1})" for name in classes for m in range(self.each)])

    def prior(self, settings: Mapping[str, Any]) -> Component:
        """Their shares: learned, or equal parts of the known share of their class."""
        known = settings["class_prior"]
        if known is not None:
            class_prior(self.n_classes, settings)  # refuses what is no distribution
            known = np.repeat(np.asarray(known, float) / self.each, self.each)
        return class_prior(self.number, {**settings, "class_prior": known})

    def allowed(self, codes: Int[np.ndarray, " n"]) -> Bool[np.ndarray, "n c"]:
        """``(N, K * M)`` sub-types that an item may be of, by its class, -1 where unknown."""
        same = codes[:, None] == np.repeat(np.arange(self.n_classes), self.each)
        return same | (codes < 0)[:, None]

    def summed(self, by_type: Float[np.ndarray, "*shape c"]) -> Float[np.ndarray, "*shape k"]:
        """Sums over the sub-types of each class, along the last axis."""
        return by_type.reshape(*by_type.shape[:-1], self.n_classes, self.each).sum(-1)

    def averaged(
        self, matrices: Float[np.ndarray, "*shape c"], shares: Float[np.ndarray, " c"]
    ) -> Float[np.ndarray, "*shape k"]:
        """``[..., observed, true]`` matrices of the classes, by the shares of their sub-types."""
        return self.summed(matrices * shares) / self.summed(shares)

    def start(self, candidate: Candidate, rule: Rule, seed: int) -> Any:
        """Where a fit begins: None for the votes; sub-types begin at random."""
        if self.each == 1:
            return None
        key = random_key(seed)
        return _divided(with_arrays(candidate.model), candidate.data, key, self.each, rule)


@partial(host_jit, static_argnames=("each", "rule"))
def _divided(model: Model, data: Data, key: Array, each: int, rule: Rule) -> dict[str, Any]:
    """Parameters from initial responsibilities, those of each class divided at random."""
    shared = initial_responsibilities(model, data)
    assert shared is not None
    split = jax.random.dirichlet(key, jnp.full(each, 2.0), shared.shape[:1])
    resp = shared * jnp.tile(split, (1, shared.shape[1] // each))
    size = jnp.sum(resp, 1, keepdims=True)
    resp = jnp.where(size > 0, resp / jnp.maximum(size, 1e-12), 1 / shared.shape[1])
    return start(model, resp, data, rule)
