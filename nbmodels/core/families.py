"""Conjugate families: the only place that knows ML from MAP from VB from a Gibbs draw.

Each family is a pytree that holds the parameters of a conjugate distribution. The same class serves
as prior and as posterior: ``posterior(stats, rule)`` adds sufficient statistics to a prior,
``natural(rule, key)`` gives what a likelihood reads (log-probabilities, or means and precisions),
``penalty(prior, rule)`` is what the objective subtracts, less the part ``prior.constant(rule)``
that no iteration changes. Under the four rules:

========  ==========================  ===============================  =======================
rule      ``posterior``               ``likelihood_params``                      penalty and constant
========  ==========================  ===============================  =======================
``ml``    flat prior + statistics     at the mode                      0
``map``   prior + statistics          at the mode                      -log prior at the mode
``vb``    prior + statistics          expectation                      KL(posterior || prior)
``draw``  prior + statistics          at a draw (``key`` is required)  0
========  ==========================  ===============================  =======================

``natural("mean")`` reads the posterior mean, for reports.

Modes are those of the densities that NumPyro writes: of probabilities on the simplex, of
(mean, variance) and of (mean, covariance matrix).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import multigammaln

from inference.gamma import loggamma
from inference.special import digamma, elementwise, gammaln
from inference.triangular import factor, log_diagonal, lower_inverse

Rule = Literal["ml", "map", "vb", "draw", "mean"]
RULES: tuple[Rule, ...] = ("ml", "map", "vb")

#: Smallest variance that maximum likelihood may reach; features come standardised.
VARIANCE_FLOOR = 1e-6

#: Smallest concentration that is left where a step, or one less in a cell, leads below it.
_LEAST = 1e-3

_LOG_2PI = 1.8378770664093453

static = partial(field, metadata={"static": True})


def _floor(x: Array) -> Array:
    return jnp.maximum(x, jnp.finfo(x.dtype).tiny)


def _no_nan_divide(a: Array, b: Array, otherwise: Any) -> Array:
    safe = b > 0
    return jnp.where(safe, a / jnp.where(safe, b, 1), otherwise)


def _divergence(posterior: Array, prior: Array) -> Array:
    """What an entry adds to KL(posterior || prior) of a Dirichlet, less terms of the totals."""
    return (posterior - prior) * digamma(posterior) - gammaln(posterior)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Dirichlet:
    """A batch of Dirichlet distributions inside one array.

    Args:
        concentration: any shape.
        axis: the axis along which probabilities sum to one.
        sizes: where given, ``axis`` holds several simplices one after the other, of these sizes
            (the values of one attribute after those of another).
    """

    concentration: Array
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

    def posterior(self, counts: Array, rule: Rule) -> Dirichlet:
        prior = jnp.ones_like(self.concentration) if rule == "ml" else self.concentration
        return replace(self, concentration=prior + counts)

    @property
    def mean(self) -> Array:
        return self.concentration / self._spread(self._totals(self.concentration))

    @property
    def centred(self) -> Dirichlet:
        """With one less in every cell: its posterior mean is the posterior mode of this one."""
        return replace(self, concentration=jnp.maximum(self.concentration - 1, _LEAST))

    @property
    def mode(self) -> Array:
        """Mode on the simplex; uniform where all concentrations are one."""
        x = jnp.maximum(self.concentration - 1, 0)
        size = self._spread(self._totals(jnp.ones_like(x)))
        return _no_nan_divide(x, jnp.broadcast_to(self._spread(self._totals(x)), x.shape), 1 / size)

    def likelihood_params(self, rule: Rule, key: Array | None = None) -> Array:
        """Log-probabilities: of the mode, their expectation, of a draw, or of the mean."""
        if rule == "mean":
            return jnp.log(_floor(self.mean))
        if rule == "vb":
            total = self._spread(self._totals(self.concentration))
            return digamma(self.concentration) - digamma(total)
        if rule == "draw":
            assert key is not None
            logs = loggamma(key, self.concentration)
            logs = logs - self._spread(self._reduce(logs, jnp.max, jax.ops.segment_max))
            logs = logs - self._spread(jnp.log(self._totals(jnp.exp(logs))))
            return jnp.maximum(logs, jnp.log(jnp.finfo(logs.dtype).tiny))
        return jnp.log(_floor(self.mode))

    def log_normaliser(self) -> Array:
        """Logarithm of the multivariate beta function of each simplex."""
        return self._totals(gammaln(self.concentration)) - gammaln(self._totals(self.concentration))

    def penalty(self, prior: Dirichlet, rule: Rule) -> Array:
        if rule == "vb":
            inside = elementwise(_divergence, self.concentration, prior.concentration)
            total, before = self._totals(self.concentration), self._totals(prior.concentration)
            return self._totals(inside) - (total - before) * digamma(total) + gammaln(total)
        if rule == "map":
            return -self._totals((prior.concentration - 1) * self.likelihood_params("map"))
        return jnp.zeros((1,), self.concentration.dtype)

    def constant(self, rule: Rule) -> Array:
        """Part of the penalty that depends on this prior alone."""
        if rule in ("map", "vb"):
            return self.log_normaliser()
        return jnp.zeros((1,), self.concentration.dtype)

    def free(self, rule: Rule) -> Any:
        """Unconstrained coordinates, square roots of counts: their distance is Fisher's."""
        return jnp.sqrt(jnp.maximum(self.concentration - (rule != "vb"), 0))

    def constrain(self, free: Any, rule: Rule) -> Dirichlet:
        least = jnp.asarray(_LEAST if rule == "vb" else 0.0, free.dtype)
        return replace(self, concentration=jnp.maximum(jnp.square(free), least) + (rule != "vb"))


def beta(ones: Array, zeros: Array) -> Dirichlet:
    """Beta distributions as Dirichlet ones over the values (0, 1), stacked on a new first axis."""
    return Dirichlet(jnp.stack(jnp.broadcast_arrays(zeros, ones)), axis=0)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FullNormal:
    """A multivariate normal distribution of coefficients that have no conjugate family.

    As posterior it is centred at the last Newton step, and its precision is the curvature there
    (Laplace's approximation). ``"vb"`` reads the centre, as ``"map"`` does: a point, not a bound.

    Args:
        mean: ``(P,)``.
        precision: ``(P, P)``.
    """

    mean: Array
    precision: Array

    def posterior(self, stats: tuple[Array, Array], rule: Rule) -> FullNormal:
        """Add ``H`` and ``H theta + gradient``, of a quadratic model of the log-likelihood."""
        curvature, right = stats
        if rule != "ml":
            right = right + self.precision @ self.mean
            curvature = curvature + self.precision
        # coefficients of very different units would not survive single precision
        unit = 1 / jnp.sqrt(jnp.diag(curvature))
        inverse = factor(curvature * unit[:, None] * unit)[1]
        return FullNormal(unit * (inverse.T @ (inverse @ (unit * right))), curvature)

    def likelihood_params(self, rule: Rule, key: Array | None = None) -> Array:
        if rule != "draw":
            return self.mean
        assert key is not None
        inverse = factor(self.precision)[1]
        return self.mean + inverse.T @ jax.random.normal(key, self.mean.shape, self.mean.dtype)

    def penalty(self, prior: FullNormal, rule: Rule) -> Array:
        if rule == "ml":
            return jnp.zeros((1,), self.mean.dtype)
        gap = self.mean - prior.mean
        return 0.5 * (gap @ prior.precision @ gap)[None]

    def constant(self, rule: Rule) -> Array:
        if rule == "ml":
            return jnp.zeros((1,), self.mean.dtype)
        log_det = 2 * log_diagonal(factor(self.precision)[0])
        return 0.5 * (len(self.mean) * _LOG_2PI - log_det)[None]

    def free(self, rule: Rule) -> Any:
        return self.mean

    def constrain(self, free: Any, rule: Rule) -> FullNormal:
        return replace(self, mean=free)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DiagonalNormal:
    """Independent normal distributions of many coefficients that have no conjugate family.

    As posterior they are centred where a step led that climbs a quadratic bound of the objective
    from below, and the precision is the bound's: no less than the curvature, so that draws spread
    too little. ``"vb"`` reads the centre, as ``"map"`` does: a point, not a bound.

    Args:
        mean: any shape.
        precision: of the same shape.
    """

    mean: Array
    precision: Array

    def posterior(self, stats: tuple[Array, Array], rule: Rule) -> DiagonalNormal:
        """Add ``H`` and ``H theta + gradient``; ``H`` is the diagonal of the bound's curvature."""
        curvature, right = stats
        if rule != "ml":
            right = right + self.precision * self.mean
            curvature = curvature + self.precision
        curvature = jnp.broadcast_to(curvature, self.mean.shape)
        return DiagonalNormal(_no_nan_divide(right, curvature, self.mean), curvature)

    def likelihood_params(self, rule: Rule, key: Array | None = None) -> Array:
        if rule != "draw":
            return self.mean
        assert key is not None
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + noise / jnp.sqrt(self.precision)

    def penalty(self, prior: DiagonalNormal, rule: Rule) -> Array:
        if rule == "ml":
            return jnp.zeros((1,), self.mean.dtype)
        return 0.5 * prior.precision * jnp.square(self.mean - prior.mean)

    def constant(self, rule: Rule) -> Array:
        if rule == "ml":
            return jnp.zeros((1,), self.mean.dtype)
        return 0.5 * (_LOG_2PI - jnp.log(self.precision))

    def free(self, rule: Rule) -> Any:
        return self.mean

    def constrain(self, free: Any, rule: Rule) -> DiagonalNormal:
        return replace(self, mean=free)


class DiagonalGaussianParams(NamedTuple):
    """What a diagonal Gaussian likelihood reads.

    ``E log N(x) = (log_precision - log 2 pi - spread - precision (x - mean)^2) / 2``.
    """

    mean: Array
    precision: Array
    log_precision: Array
    spread: Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NormalInverseGamma:
    """``sigma^2 ~ InverseGamma(shape, rate)``, ``mu | sigma^2 ~ N(mean, sigma^2 / kappa)``."""

    mean: Array
    kappa: Array
    shape: Array
    rate: Array

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
        average = _no_nan_divide(first, n, self.mean)
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
        variance = _no_nan_divide(self.rate, self.shape + 1.5, 1.0)
        return self.mean, jnp.maximum(variance, jnp.finfo(variance.dtype).tiny)

    def likelihood_params(self, rule: Rule, key: Array | None = None) -> DiagonalGaussianParams:
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
            variance = self.rate / _floor(gamma)
            noise = jax.random.normal(second, self.mean.shape, self.mean.dtype)
            mean = self.mean + noise * jnp.sqrt(variance / self.kappa)
        return DiagonalGaussianParams(mean, 1 / variance, -jnp.log(variance), jnp.zeros_like(mean))

    def log_normaliser(self) -> Array:
        gamma = gammaln(self.shape) - self.shape * jnp.log(self.rate)
        return gamma + 0.5 * (_LOG_2PI - jnp.log(self.kappa))

    def penalty(self, prior: NormalInverseGamma, rule: Rule) -> Array:
        a0, b0, gap = prior.shape, prior.rate, self.mean - prior.mean
        if rule == "vb":
            a, b = self.shape, self.rate
            gamma = (a - a0) * digamma(a) + a0 * jnp.log(b) + a * (b0 - b) / b
            normal = prior.kappa / self.kappa - 1 + prior.kappa * a / b * jnp.square(gap)
            return gamma - gammaln(a) + 0.5 * (normal + jnp.log(self.kappa) - _LOG_2PI)
        if rule == "map":
            variance = self.mode[1]
            square = prior.kappa * jnp.square(gap) / variance
            return (a0 + 1.5) * jnp.log(variance) + b0 / variance + 0.5 * square
        return jnp.zeros((1,), self.mean.dtype)

    def constant(self, rule: Rule) -> Array:
        """Part of the penalty that depends on this prior alone."""
        if rule in ("map", "vb"):
            return self.log_normaliser()
        return jnp.zeros((1,), self.mean.dtype)

    def free(self, rule: Rule) -> Any:
        root = jnp.sqrt(self.kappa)
        shape = jnp.sqrt(self.shape + 1.5)
        variance = _no_nan_divide(self.rate, self.shape + 1.5, 1.0)
        return self.mean * root, root, shape, shape * jnp.log(variance)

    def constrain(self, free: Any, rule: Rule) -> NormalInverseGamma:
        moved, root, shape, log_variance = free
        shape = jnp.maximum(shape, 1e-6 if rule == "ml" else 1.23)
        root = jnp.maximum(root, 1e-6)
        rate = jnp.exp(log_variance / shape) * jnp.square(shape)
        return NormalInverseGamma(moved / root, jnp.square(root), jnp.square(shape) - 1.5, rate)


class FullGaussianParams(NamedTuple):
    """What a full Gaussian likelihood reads.

    ``E log N(x) = (log_det - d log 2 pi - spread - |(x - mean) @ whiten|^2) / 2``, where
    ``whiten @ whiten.T`` is the (expected) precision matrix.
    """

    mean: Array  # (K, d)
    whiten: Array  # (K or 1, d, d)
    log_det: Array  # (K or 1,)
    spread: Array  # (K,)


def _against(matrix: Array, other: Array, vectors: Array) -> tuple[Array, Array, Array]:
    """``log det matrix``, ``trace(matrix^-1 other)`` and ``vector matrix^-1 vector``, by class."""
    lower, half = factor(matrix)
    trace = jnp.sum((half @ other) * half, (-1, -2))
    square = jnp.sum(jnp.square((half @ vectors[..., None])[..., 0]), -1)
    return 2 * log_diagonal(lower), trace, square


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NormalInverseWishart:
    """``Sigma ~ InverseWishart(dof, scale)``, ``mu_k | Sigma ~ N(mean_k, Sigma / kappa_k)``.

    Args:
        mean: ``(K, d)``.
        kappa: ``(K,)``.
        dof: ``(K,)``, or ``(1,)`` where the classes share one covariance matrix.
        scale: ``(K, d, d)``, or ``(1, d, d)`` where they share one.
    """

    mean: Array
    kappa: Array
    dof: Array
    scale: Array

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
        average = _no_nan_divide(first, n[:, None], self.mean)
        scatter = second - n[:, None, None] * average[:, :, None] * average[:, None, :]
        if rule == "ml":
            count = self._pool(items)
            values, vectors = jnp.linalg.eigh(self._pool(scatter))
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

    def likelihood_params(self, rule: Rule, key: Array | None = None) -> FullGaussianParams:
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
        return jnp.concatenate([wishart, 0.5 * d * (_LOG_2PI - jnp.log(self.kappa))])

    def penalty(self, prior: NormalInverseWishart, rule: Rule) -> Array:
        d = self.mean.shape[-1]
        gap = self.mean - prior.mean
        if rule == "vb":
            n, n0 = self.dof, prior.dof
            log_det, trace, square = _against(self.scale, prior.scale, gap)
            wishart = 0.5 * (
                n0 * (log_det - d * jnp.log(2.0))
                + n * (trace - d)
                + (n - n0) * jnp.sum(digamma((n[:, None] - jnp.arange(d)) / 2), -1)
            ) - multigammaln(n / 2, d)
            spread = d * (prior.kappa / self.kappa - 1 + jnp.log(self.kappa) - _LOG_2PI)
            return jnp.concatenate([wishart, 0.5 * (spread + prior.kappa * n * square)])
        if rule == "map":
            covariance = self.mode[1]
            log_det, trace, square = _against(covariance, prior.scale, gap)
            wishart = (prior.dof + d + 1) * log_det + trace
            return 0.5 * jnp.concatenate([wishart, log_det + prior.kappa * square])
        return jnp.zeros((1,), self.mean.dtype)

    def constant(self, rule: Rule) -> Array:
        """Part of the penalty that depends on this prior alone."""
        if rule in ("map", "vb"):
            return self.log_normaliser()
        return jnp.zeros((1,), self.mean.dtype)

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


def free(q: Any, rule: Rule) -> Any:
    """Unconstrained coordinates of a posterior, in which the driver may extrapolate.

    An array in the place of a posterior is a known constant, which has none.
    """
    return () if isinstance(q, jax.Array | np.ndarray) else q.free(rule)


def constrain(free: Any, q: Any, rule: Rule) -> Any:
    """Back from :func:`free`; ``q`` is any point, for its structure."""
    return q if isinstance(q, jax.Array | np.ndarray) else q.constrain(free, rule)
