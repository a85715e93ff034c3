"""Normal coefficients of one unknown scale: multivariate Student's t."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from inference.pytree import register_dataclass
from inference.special import gammaln
from inference.triangular import factor, log_diagonal, solve_positive
from nbmodels.core.families.base import DrawKey, PointNormal, Rule, no_nan_divide


@register_dataclass
@dataclass(frozen=True)
class MultivariateT(PointNormal):
    """Coefficients that are normal given a scale, which is summed out.

    As prior, ``theta ~ N(mean, scale^2 / precision)`` with ``scale^2 ~ InverseGamma(df / 2,
    df / 2)``. As posterior it is normal, as
    :class:`~nbmodels.core.families.full_normal.FullNormal`: centred at the last Newton step, for
    which the prior is replaced by the normal that touches it from below (Lange, Little and Taylor
    1989, *JASA* 84).

    Args:
        mean: ``(P,)``.
        precision: ``(P, P)``.
        tail: ``1 / df``, 0 of a normal distribution.
    """

    mean: Float[Array, " p"]
    precision: Float[Array, "p p"]
    tail: Float[Array, ""]

    def precision_at(self, at: Float[Array, " p"]) -> Float[Array, "p p"]:
        """Precision of the normal that touches the density from below."""
        gap = at - self.mean
        tail = self.tail
        return self.precision * (1 + tail * len(at)) / (1 + tail * (gap @ self.precision @ gap))

    def posterior(self, stats: tuple[Array, Array, Array, Array], rule: Rule) -> MultivariateT:
        """Add statistics.

        Args:
            stats: ``H`` and ``H theta + gradient``, of a quadratic model of the log-likelihood
                about ``theta``; the items' weight times ``theta``, and that weight.
            rule: see the package.
        """
        curvature, right, weighted, weight = stats
        if rule != "ml":
            at = no_nan_divide(weighted, weight, self.mean)
            own = self.precision_at(at)
            right = right + own @ self.mean
            curvature = curvature + own
        return MultivariateT(solve_positive(curvature, right), curvature, jnp.zeros_like(self.tail))

    def likelihood_params(self, rule: Rule, key: DrawKey = None) -> Float[Array, " p"]:
        if rule != "draw":
            return self.mean
        assert key is not None
        first, second = jax.random.split(key)
        noise = jax.random.normal(first, self.mean.shape, self.mean.dtype)
        some = jnp.where(self.tail > 0, self.tail, 1.0)
        gamma = jax.random.gamma(second, 0.5 / some, dtype=self.mean.dtype)
        scale = jnp.where(self.tail > 0, jnp.sqrt(0.5 / (some * gamma)), 1.0)
        return self.mean + scale * (factor(self.precision)[1].T @ noise)

    def negative_log_prior(self, prior: MultivariateT) -> Float[Array, " 1"]:
        gap = self.mean - prior.mean
        square = gap @ prior.precision @ gap
        some = jnp.where(prior.tail > 0, prior.tail, 1.0)
        heavy = 0.5 * (1 / some + len(gap)) * jnp.log1p(some * square)
        return jnp.where(prior.tail > 0, heavy, 0.5 * square)[None]

    def log_normaliser(self) -> Float[Array, " 1"]:
        p = len(self.mean)
        some = jnp.where(self.tail > 0, self.tail, 1.0)
        half = 0.5 / some
        heavy = (
            gammaln(half)
            - gammaln(half + 0.5 * p)
            + 0.5 * p * np.log(np.pi)
            - 0.5 * p * jnp.log(some)
        )
        normal = 0.5 * p * np.log(2 * np.pi)
        log_det = 2 * log_diagonal(factor(self.precision)[0])
        return (jnp.where(self.tail > 0, heavy, normal) - 0.5 * log_det)[None]
