"""Multivariate normal distribution of coefficients (Laplace's approximation)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jax import Array
from jaxtyping import Float

from inference.pytree import register_dataclass
from inference.triangular import factor, log_diagonal, solve_positive
from nbmodels.core.families.base import LOG_2PI, DrawKey, PointNormal, Rule


@register_dataclass
@dataclass(frozen=True)
class FullNormal(PointNormal):
    """A multivariate normal distribution of coefficients that have no conjugate family.

    As posterior it is centred at the last Newton step, and its precision is the curvature there
    (Laplace's approximation). ``"vb"`` reads the centre, as ``"map"`` does: a point, not a bound.

    Args:
        mean: ``(P,)``.
        precision: ``(P, P)``.
    """

    mean: Float[Array, " p"]
    precision: Float[Array, "p p"]

    def precision_at(self, at: Float[Array, " p"]) -> Float[Array, "p p"]:
        """Curvature of minus the log-density, the same everywhere."""
        return self.precision

    def posterior(self, stats: tuple[Array, Array], rule: Rule) -> FullNormal:
        """Add ``H`` and ``H theta + gradient``, of a quadratic model of the log-likelihood."""
        curvature, right = stats
        if rule != "ml":
            right = right + self.precision @ self.mean
            curvature = curvature + self.precision
        return FullNormal(solve_positive(curvature, right), curvature)

    def likelihood_params(self, rule: Rule, key: DrawKey = None) -> Float[Array, " p"]:
        if rule != "draw":
            return self.mean
        assert key is not None
        inverse = factor(self.precision)[1]
        return self.mean + inverse.T @ jax.random.normal(key, self.mean.shape, self.mean.dtype)

    def negative_log_prior(self, prior: FullNormal) -> Float[Array, " 1"]:
        gap = self.mean - prior.mean
        return 0.5 * (gap @ prior.precision @ gap)[None]

    def log_normaliser(self) -> Float[Array, " 1"]:
        log_det = 2 * log_diagonal(factor(self.precision)[0])
        return 0.5 * (len(self.mean) * LOG_2PI - log_det)[None]
