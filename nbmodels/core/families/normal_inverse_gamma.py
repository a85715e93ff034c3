"""Normal-inverse-gamma distribution: conjugate to normal observations, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from inference.pytree import register_dataclass
from inference.special import digamma, gammaln
from nbmodels.core.families.base import (
    LOG_2PI,
    VARIANCE_FLOOR,
    DrawKey,
    Family,
    Rule,
    floor,
    no_nan_divide,
)


class DiagonalGaussianParams(NamedTuple):
    """What a diagonal Gaussian likelihood reads.

    ``E log N(x) = (log_precision - log 2 pi - spread - precision (x - mean)^2) / 2``.
    """

    mean: Float[Array, "*shape"]
    precision: Float[Array, "*shape"]
    log_precision: Float[Array, "*shape"]
    spread: Float[Array, "*shape"]


@register_dataclass
@dataclass(frozen=True)
class NormalInverseGamma(Family):
    """``sigma^2 ~ InverseGamma(shape, rate)``, ``mu | sigma^2 ~ N(mean, sigma^2 / kappa)``."""

    mean: Float[Array, "*shape"]
    kappa: Float[Array, "*shape"]
    shape: Float[Array, "*shape"]
    rate: Float[Array, "*shape"]

    def posterior(
        self, stats: tuple[Array, Array, Array], rule: Rule, items: Array | None = None
    ) -> NormalInverseGamma:
        """Add statistics.

        Args:
            stats: ``(n, sum x, sum x^2)``, each of the batch's shape.
            rule: see the module.
            items: number of items, where ``n`` and the sums weigh each by its precision.
        """
        n, first, second = stats
        items = n if items is None else items
        average = no_nan_divide(first, n, self.mean)
        scatter = jnp.maximum(second - n * jnp.square(average), 0)
        if rule == "ml":
            shape = items / 2 - 1.5
            rate = jnp.maximum(scatter / 2, VARIANCE_FLOOR * items / 2)
            rate = jnp.where(n > 0, rate, self.rate / self.shape * (shape + 1.5))
            return NormalInverseGamma(average, n, shape, rate)
        kappa = self.kappa + n
        mean = (self.kappa * self.mean + first) / kappa
        shrunk = self.kappa * n / kappa * jnp.square(average - self.mean)
        return NormalInverseGamma(
            mean, kappa, self.shape + items / 2, self.rate + (scatter + shrunk) / 2
        )

    @property
    def mode(self) -> tuple[Array, Array]:
        """Joint mode ``(mu, sigma^2)``."""
        variance = no_nan_divide(self.rate, self.shape + 1.5, 1.0)
        return self.mean, jnp.maximum(variance, jnp.finfo(variance.dtype).tiny)

    def likelihood_params(self, rule: Rule, key: DrawKey = None) -> DiagonalGaussianParams:
        if rule == "vb":
            precision = self.shape / self.rate
            return DiagonalGaussianParams(
                self.mean, precision, digamma(self.shape) - jnp.log(self.rate), 1 / self.kappa
            )
        mean, variance = self.mode
        if rule == "mean":
            variance = self.rate / jnp.maximum(self.shape - 1, 1e-3)
        if rule == "draw":
            assert key is not None
            first, second = jax.random.split(key)
            gamma = jax.random.gamma(first, self.shape, dtype=self.shape.dtype)
            variance = self.rate / floor(gamma)
            noise = jax.random.normal(second, self.mean.shape, self.mean.dtype)
            mean = self.mean + noise * jnp.sqrt(variance / self.kappa)
        return DiagonalGaussianParams(mean, 1 / variance, -jnp.log(variance), jnp.zeros_like(mean))

    def log_normaliser(self) -> Array:
        gamma = gammaln(self.shape) - self.shape * jnp.log(self.rate)
        return gamma + 0.5 * (LOG_2PI - jnp.log(self.kappa))

    def divergence(self, prior: NormalInverseGamma) -> Array:
        a0, b0, gap = prior.shape, prior.rate, self.mean - prior.mean
        a, b = self.shape, self.rate
        gamma = (a - a0) * digamma(a) + a0 * jnp.log(b) + a * (b0 - b) / b
        normal = prior.kappa / self.kappa - 1 + prior.kappa * a / b * jnp.square(gap)
        return gamma - gammaln(a) + 0.5 * (normal + jnp.log(self.kappa) - LOG_2PI)

    def negative_log_prior(self, prior: NormalInverseGamma) -> Array:
        a0, b0, gap = prior.shape, prior.rate, self.mean - prior.mean
        variance = self.mode[1]
        square = prior.kappa * jnp.square(gap) / variance
        return (a0 + 1.5) * jnp.log(variance) + b0 / variance + 0.5 * square

    def free(self, rule: Rule) -> Any:
        root = jnp.sqrt(self.kappa)
        shape = jnp.sqrt(self.shape + 1.5)
        variance = no_nan_divide(self.rate, self.shape + 1.5, 1.0)
        return self.mean * root, root, shape, shape * jnp.log(variance)

    def constrain(self, free: Any, rule: Rule) -> NormalInverseGamma:
        moved, root, shape, log_variance = free
        shape = jnp.maximum(shape, 1e-6 if rule == "ml" else 1.23)
        root = jnp.maximum(root, 1e-6)
        rate = jnp.exp(log_variance / shape) * jnp.square(shape)
        return NormalInverseGamma(moved / root, jnp.square(root), jnp.square(shape) - 1.5, rate)
