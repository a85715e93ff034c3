"""Independent normal distributions of coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from inference.pytree import register_dataclass
from nbmodels.core.families.base import LOG_2PI, DrawKey, PointNormal, Rule, no_nan_divide


@register_dataclass
@dataclass(frozen=True)
class DiagonalNormal(PointNormal):
    """Independent normal distributions of many coefficients that have no conjugate family.

    As posterior they are centred where a step led that climbs a quadratic bound of the objective
    from below, and the precision is the bound's: no less than the curvature, so that draws spread
    too little. ``"vb"`` reads the centre, as ``"map"`` does: a point, not a bound.

    Args:
        mean: any shape.
        precision: of the same shape.
    """

    mean: Float[Array, "*shape"]
    precision: Float[Array, "*shape"]

    def posterior(self, stats: tuple[Array, Array], rule: Rule) -> DiagonalNormal:
        """Add ``H`` and ``H theta + gradient``; ``H`` is the diagonal of the bound's curvature."""
        curvature, right = stats
        if rule != "ml":
            right = right + self.precision * self.mean
            curvature = curvature + self.precision
        curvature = jnp.broadcast_to(curvature, self.mean.shape)
        return DiagonalNormal(no_nan_divide(right, curvature, self.mean), curvature)

    def likelihood_params(self, rule: Rule, key: DrawKey = None) -> Float[Array, "*shape"]:
        if rule != "draw":
            return self.mean
        assert key is not None
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + noise / jnp.sqrt(self.precision)

    def negative_log_prior(self, prior: DiagonalNormal) -> Float[Array, "*shape"]:
        return 0.5 * prior.precision * jnp.square(self.mean - prior.mean)

    def log_normaliser(self) -> Float[Array, "*shape"]:
        return 0.5 * (LOG_2PI - jnp.log(self.precision))
