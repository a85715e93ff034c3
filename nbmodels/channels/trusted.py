"""Trusted labels: items whose true class somebody has checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from nbmodels.channels.transition import pack_labels
from nbmodels.component import Evidence, Given
from nbmodels.families import Rule

#: Weight of a trusted label against a noisy one in the first guess.
_ANCHOR_WEIGHT = 1e6


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class TrustedLabels(Given):
    """Rules out every class but the checked one; says nothing of unchecked items.

    Attributes:
        prior: ``(K,)`` zeros; there is nothing to learn, only K to know.
    """

    @classmethod
    def of(cls, n_classes: int) -> TrustedLabels:
        return cls(prior=jnp.zeros(n_classes))

    pack = staticmethod(pack_labels)

    def natural(self, q: Array, rule: Rule, key: Array | None = None) -> Array:
        return q

    def _allowed(self, data: Array) -> Array:
        k = self.prior.shape[0]
        return (data[:, None] == jnp.arange(k)) | (data == k)[:, None]

    def evidence(self, natural: Array, data: Array) -> Evidence:
        table = jnp.where(self._allowed(data), natural, -jnp.inf)
        return Evidence(table, jnp.zeros((1,), natural.dtype))

    def anchor(self, data: Array) -> Array:
        return _ANCHOR_WEIGHT * jax.nn.one_hot(data, self.prior.shape[0])

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Any) -> None:
        import numpyro

        unknown = data == self.prior.shape[0]
        numpyro.factor(name, jnp.where((y == data) | unknown, 0.0, -jnp.inf))

    def simulate(self, key: Array, values: dict[str, Array], y: Array) -> Array:
        """Checks about a third of the items."""
        return jnp.where(jax.random.bernoulli(key, 1 / 3, y.shape), y, -1)
