"""Normal-inverse-Wishart distribution: conjugate to multivariate normal observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import multigammaln
from jaxtyping import Float

from inference.pytree import register_dataclass
from inference.special import digamma
from inference.triangular import factor, log_diagonal, lower_inverse
from nbmodels.core.families.base import (
    LOG_2PI,
    VARIANCE_FLOOR,
    DrawKey,
    Family,
    Rule,
    no_nan_divide,
)


class FullGaussianParams(NamedTuple):
    """What a full Gaussian likelihood reads.

    ``E log N(x) = (log_det - d log 2 pi - spread - |(x - mean) @ whiten|^2) / 2``, where
    ``whiten @ whiten.T`` is the (expected) precision matrix.
    """

    mean: Float[Array, "k d"]
    whiten: Float[Array, "k_or_1 d d"]
    log_det: Float[Array, " k_or_1"]
    spread: Float[Array, " k"]


def _against(matrix: Array, other: Array, vectors: Array) -> tuple[Array, Array, Array]:
    """``log det matrix``, ``trace(matrix^-1 other)`` and ``vector matrix^-1 vector``, by class."""
    lower, half = factor(matrix)
    trace = jnp.sum((half @ other) * half, (-1, -2))
    square = jnp.sum(jnp.square((half @ vectors[..., None])[..., 0]), -1)
    return 2 * log_diagonal(lower), trace, square


@register_dataclass
@dataclass(frozen=True)
class NormalInverseWishart(Family):
    """``Sigma ~ InverseWishart(dof, scale)``, ``mu_k | Sigma ~ N(mean_k, Sigma / kappa_k)``.

    Args:
        mean: ``(K, d)``.
        kappa: ``(K,)``.
        dof: ``(K,)``, or ``(1,)`` where the classes share one covariance matrix.
        scale: ``(K, d, d)``, or ``(1, d, d)`` where they share one.
    """

    mean: Float[Array, "k d"]
    kappa: Float[Array, " k"]
    dof: Float[Array, " k_or_1"]
    scale: Float[Array, "k_or_1 d d"]

    @property
    def tied(self) -> bool:
        """One covariance matrix for all classes."""
        return self.scale.shape[-3] != self.mean.shape[-2]

    @property
    def _share(self) -> int:
        """How many means share a covariance matrix."""
        return self.mean.shape[-2] if self.tied else 1

    def _pool(self, x: Array) -> Array:
        return jnp.sum(x, 0, keepdims=True) if self.tied else x

    def posterior(
        self, stats: tuple[Array, Array, Array], rule: Rule, items: Array | None = None
    ) -> NormalInverseWishart:
        """Add statistics.

        Args:
            stats: ``(n, sum x, sum x x^T)`` of shapes ``(K,)``, ``(K, d)``, ``(K, d, d)``.
            rule: see the module.
            items: ``(K,)`` number of items, where ``n`` and the sums weigh each by its precision.
        """
        n, first, second = stats
        items = n if items is None else items
        d = first.shape[-1]
        average = no_nan_divide(first, n[:, None], self.mean)
        scatter = second - n[:, None, None] * average[:, :, None] * average[:, None, :]
        if rule == "ml":
            count = self._pool(items)
            # one by one: see :mod:`inference.triangular`
            values, vectors = jax.lax.map(jnp.linalg.eigh, self._pool(scatter))
            values = jnp.maximum(values, VARIANCE_FLOOR * count[:, None])
            scale = jnp.einsum("kij,kj,klj->kil", vectors, values, vectors)
            fallback = self.scale / (self.dof + d + 1 + self._share)[:, None, None]
            scale = jnp.where(count[:, None, None] > 0, scale, fallback)
            return NormalInverseWishart(average, n, count - (d + 1 + self._share), scale)
        kappa = self.kappa + n
        mean = (self.kappa[:, None] * self.mean + first) / kappa[:, None]
        gap = average - self.mean
        weight = self.kappa * n / kappa
        shrunk = weight[:, None, None] * gap[:, :, None] * gap[:, None, :]
        scale = self.scale + self._pool(scatter + shrunk)
        scale = (scale + jnp.swapaxes(scale, -1, -2)) / 2
        return NormalInverseWishart(mean, kappa, self.dof + self._pool(items), scale)

    @property
    def _mode_dof(self) -> Array:
        return self.dof + self.mean.shape[-1] + 1 + self._share

    @property
    def mode(self) -> tuple[Array, Array]:
        """Joint mode ``(mu, Sigma)``."""
        dof = self._mode_dof
        return self.mean, self.scale / jnp.where(dof > 0, dof, 1)[:, None, None]

    def likelihood_params(self, rule: Rule, key: DrawKey = None) -> FullGaussianParams:
        d = self.mean.shape[-1]
        zeros = jnp.zeros_like(self.kappa)
        lower, inverse = factor(self.scale)
        half = jnp.swapaxes(inverse, -1, -2)  # scale^-1 = half @ half.T
        minus_log_det = -2 * log_diagonal(lower)
        if rule == "vb":
            steps = (self.dof[:, None] - jnp.arange(d)) / 2
            log_det = jnp.sum(digamma(steps), -1) + d * jnp.log(2.0) + minus_log_det
            root = jnp.sqrt(self.dof)[:, None, None]
            return FullGaussianParams(self.mean, half * root, log_det, d / self.kappa)
        if rule == "draw":
            assert key is not None
            first, second, third = jax.random.split(key, 3)
            dtype = self.scale.dtype
            steps = (self.dof[:, None] - jnp.arange(d)) / 2
            diagonal = jnp.sqrt(2 * jax.random.gamma(first, steps, dtype=dtype))
            below = jnp.tril(jax.random.normal(second, self.scale.shape, dtype), -1)
            bartlett = below + diagonal[:, :, None] * jnp.eye(d, dtype=dtype)
            whiten = half @ bartlett  # precision = whiten @ whiten.T is Wishart(dof, scale^-1)
            log_det = 2 * jnp.sum(jnp.log(jnp.abs(diagonal)), -1) + minus_log_det
            noise = jax.random.normal(third, self.mean.shape, dtype)
            turned = lower @ jnp.swapaxes(lower_inverse(bartlett), -1, -2)  # whiten.T^-1
            scatter = (turned @ noise[..., None])[..., 0]
            mean = self.mean + scatter / jnp.sqrt(self.kappa)[:, None]
            return FullGaussianParams(mean, whiten, log_det, zeros)
        dof = jnp.where(self._mode_dof > 0, self._mode_dof, 1)
        if rule == "mean":
            dof = jnp.maximum(self.dof - d - 1, 1e-3)
        return FullGaussianParams(
            self.mean,
            half * jnp.sqrt(dof)[:, None, None],
            d * jnp.log(dof) + minus_log_det,
            zeros,
        )

    def log_normaliser(self) -> Array:
        """Of the Wishart parts, then of the normal ones; shared covariances count once."""
        d = self.mean.shape[-1]
        half, log_det = self.dof / 2, 2 * log_diagonal(factor(self.scale)[0])
        wishart = multigammaln(half, d) - half * (log_det - d * jnp.log(2.0))
        return jnp.concatenate([wishart, 0.5 * d * (LOG_2PI - jnp.log(self.kappa))])

    def divergence(self, prior: NormalInverseWishart) -> Array:
        d, n, n0 = self.mean.shape[-1], self.dof, prior.dof
        log_det, trace, square = _against(self.scale, prior.scale, self.mean - prior.mean)
        wishart = 0.5 * (
            n0 * (log_det - d * jnp.log(2.0))
            + n * (trace - d)
            + (n - n0) * jnp.sum(digamma((n[:, None] - jnp.arange(d)) / 2), -1)
        ) - multigammaln(n / 2, d)
        spread = d * (prior.kappa / self.kappa - 1 + jnp.log(self.kappa) - LOG_2PI)
        return jnp.concatenate([wishart, 0.5 * (spread + prior.kappa * n * square)])

    def negative_log_prior(self, prior: NormalInverseWishart) -> Array:
        d, covariance = self.mean.shape[-1], self.mode[1]
        log_det, trace, square = _against(covariance, prior.scale, self.mean - prior.mean)
        wishart = (prior.dof + d + 1) * log_det + trace
        return 0.5 * jnp.concatenate([wishart, log_det + prior.kappa * square])

    def free(self, rule: Rule) -> Any:
        root = jnp.sqrt(self.kappa)
        dof = jnp.sqrt(jnp.maximum(self._mode_dof, 0))
        lower = factor(self.mode[1])[0]
        logs = jnp.log(jnp.diagonal(lower, axis1=-2, axis2=-1))
        packed = jnp.tril(lower, -1) + logs[..., None] * jnp.eye(lower.shape[-1])
        return self.mean * root[:, None], root, dof, packed * dof[:, None, None]

    def constrain(self, free: Any, rule: Rule) -> NormalInverseWishart:
        moved, root, dof, packed = free
        d = moved.shape[-1]
        root = jnp.maximum(root, 1e-6)
        least = 1e-3 if rule == "ml" else (2 * d + self._share) ** 0.5 + 1e-3
        dof = jnp.maximum(dof, least)
        packed = packed / dof[:, None, None]
        diagonal = jnp.exp(jnp.diagonal(packed, axis1=-2, axis2=-1))
        lower = jnp.tril(packed, -1) + diagonal[..., None] * jnp.eye(d)
        covariance = lower @ jnp.swapaxes(lower, -1, -2)
        count = jnp.square(dof)
        return NormalInverseWishart(
            moved / root[:, None],
            jnp.square(root),
            count - (d + 1 + self._share),
            covariance * count[:, None, None],
        )
