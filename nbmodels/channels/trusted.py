"""Trusted labels: true classes of items that were verified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Int, Key

from nbmodels.channels.candidates import CandidateSets
from nbmodels.channels.transition import pack_labels


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class TrustedLabels(CandidateSets):
    """Verified labels as sets of one candidate, held as codes; zero rows for other items.

    Attributes:
        prior: ``(K,)`` zeros; there is nothing to learn, only K to know.
    """

    pack = staticmethod(pack_labels)

    def possible(self, data: Array) -> Array:
        k = self.prior.shape[0]
        return (data[:, None] == jnp.arange(k)) | (data == k)[:, None]

    def simulate(self, key: Key[Array, ""], values: dict[str, Any], y: Int[Array, " n"]) -> Array:
        """Checks about a third of the items."""
        return jnp.where(jax.random.bernoulli(key, 1 / 3, y.shape), y, -1)
