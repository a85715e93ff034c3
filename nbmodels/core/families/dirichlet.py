"""Dirichlet and Beta distributions: conjugate to categorical and binary observations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from inference.arrays import on_device
from inference.gamma import loggamma
from inference.pytree import register_dataclass
from inference.special import digamma, elementwise, gammaln
from nbmodels.core.families.base import LEAST, DrawKey, Family, Rule, floor, no_nan_divide, static


def _divergence(posterior: Array, prior: Array) -> Array:
    """What an entry adds to KL(posterior || prior) of a Dirichlet, less terms of the totals."""
    return (posterior - prior) * digamma(posterior) - gammaln(posterior)


@register_dataclass
@dataclass(frozen=True)
class Dirichlet(Family):
    """A batch of Dirichlet distributions inside one array.

    Args:
        concentration: any shape.
        axis: the axis along which probabilities sum to one.
        sizes: where given, ``axis`` holds several simplices one after the other, of these sizes
            (the values of one attribute after those of another).
    """

    concentration: Float[Array, "*shape"]
    axis: int = static(default=-1)
    sizes: tuple[int, ...] | None = static(default=None)

    @property
    def _ids(self) -> np.ndarray:
        assert self.sizes is not None
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def _reduce(self, x: Array, whole: Any, by_segment: Any) -> Array:
        if self.sizes is None:
            # sums stand alone: what is fused with them is computed number by number
            out = whole(jax.lax.optimization_barrier(x), self.axis, keepdims=True)
            return jax.lax.optimization_barrier(out)
        moved = jnp.moveaxis(x, self.axis, 0)
        reduced = by_segment(moved, self._ids, len(self.sizes), indices_are_sorted=True)
        return jnp.moveaxis(reduced, 0, self.axis)

    def _totals(self, x: Array) -> Array:
        """Sum over each simplex; the axis then counts simplices."""
        return self._reduce(x, jnp.sum, jax.ops.segment_sum)

    def _spread(self, totals: Array) -> Array:
        """Back from one number a simplex to one an entry."""
        return totals if self.sizes is None else jnp.take(totals, self._ids, self.axis)

    def posterior(self, counts: Float[Array, "*shape"], rule: Rule) -> Dirichlet:
        prior = jnp.ones_like(self.concentration) if rule == "ml" else self.concentration
        return replace(self, concentration=prior + counts)

    @property
    def mean(self) -> Float[Array, "*shape"]:
        return self.concentration / self._spread(self._totals(self.concentration))

    @property
    def centred(self) -> Dirichlet:
        """With one less in every cell: its posterior mean is the posterior mode of this one.

        Not inside of compiled code: it is computed on the host, without a program.
        """
        least = np.maximum(np.asarray(self.concentration) - 1, LEAST)
        return replace(self, concentration=on_device(least))

    @property
    def mode(self) -> Float[Array, "*shape"]:
        """Mode on the simplex; uniform where all concentrations are one."""
        x = jnp.maximum(self.concentration - 1, 0)
        size: Any = x.shape[self.axis]
        if self.sizes is not None:
            size = self._spread(self._totals(jnp.ones_like(x)))
        return no_nan_divide(x, jnp.broadcast_to(self._spread(self._totals(x)), x.shape), 1 / size)

    def likelihood_params(self, rule: Rule, key: DrawKey = None) -> Float[Array, "*shape"]:
        """Log-probabilities: of the mode, their expectation, of a draw, or of the mean."""
        if rule == "mean":
            return jnp.log(floor(self.mean))
        if rule == "vb":
            total = self._spread(self._totals(self.concentration))
            return digamma(self.concentration) - digamma(total)
        if rule == "draw":
            assert key is not None
            logs = loggamma(key, self.concentration)
            logs = logs - self._spread(self._reduce(logs, jnp.max, jax.ops.segment_max))
            logs = logs - self._spread(jnp.log(self._totals(jnp.exp(logs))))
            return jnp.maximum(logs, jnp.log(jnp.finfo(logs.dtype).tiny))
        return jnp.log(floor(self.mode))

    def log_normaliser(self) -> Array:
        """Logarithm of the multivariate beta function of each simplex."""
        return self._totals(gammaln(self.concentration)) - gammaln(self._totals(self.concentration))

    def divergence(self, prior: Dirichlet) -> Array:
        inside = elementwise(_divergence, self.concentration, prior.concentration)
        total, before = self._totals(self.concentration), self._totals(prior.concentration)
        return self._totals(inside) - (total - before) * digamma(total) + gammaln(total)

    def negative_log_prior(self, prior: Dirichlet) -> Array:
        return -self._totals((prior.concentration - 1) * self.likelihood_params("map"))

    def free(self, rule: Rule) -> Any:
        """Unconstrained coordinates, square roots of counts: their distance is Fisher's."""
        return jnp.sqrt(jnp.maximum(self.concentration - (rule != "vb"), 0))

    def constrain(self, free: Any, rule: Rule) -> Dirichlet:
        least = jnp.asarray(LEAST if rule == "vb" else 0.0, free.dtype)
        return replace(self, concentration=jnp.maximum(jnp.square(free), least) + (rule != "vb"))


def beta(ones: Float[np.ndarray, "*shape"], zeros: Float[np.ndarray, "*shape"]) -> Dirichlet:
    """Beta distributions as Dirichlet ones over the values (0, 1), stacked on a new first axis."""
    return Dirichlet(on_device(np.stack(np.broadcast_arrays(zeros, ones))), axis=0)
