"""What conjugate families share: the rules, the penalty under each, and safe arithmetic."""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial
from typing import Any, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Key

Rule = Literal["ml", "map", "vb", "draw", "mean"]

#: A random key where parameters are drawn, None elsewhere.
DrawKey = Key[Array, ""] | None
RULES: tuple[Rule, ...] = ("ml", "map", "vb")

#: Smallest variance that maximum likelihood may reach; features come standardised.
VARIANCE_FLOOR = 1e-6

#: Smallest concentration that is left where a step, or one less in a cell, leads below it.
LEAST = 1e-3

LOG_2PI = 1.8378770664093453

static = partial(field, metadata={"static": True})


def floor(x: Array) -> Array:
    """``x``, at least the smallest normal number of its type."""
    return jnp.maximum(x, jnp.finfo(x.dtype).tiny)


def no_nan_divide(a: Array, b: Array, otherwise: Any) -> Array:
    """``a / b`` where ``b`` is above zero, and another value elsewhere; safe to differentiate."""
    safe = b > 0
    return jnp.where(safe, a / jnp.where(safe, b, 1), otherwise)


class Family:
    """A conjugate family; an instance is a prior or a posterior, a pytree of its parameters.

    Subclasses define ``posterior(stats, rule)``, ``likelihood_params``, ``log_normaliser``,
    ``divergence``, ``negative_log_prior``, ``free`` and ``constrain``. Penalties and their
    constants come as arrays of any shape, to be summed by the caller.
    """

    def likelihood_params(self, rule: Rule, key: DrawKey = None) -> Any:
        """What a likelihood reads: of the mode, an expectation, of a draw, or of the mean.

        Args:
            rule: see the package.
            key: required for a draw.
        """
        raise NotImplementedError  # every family has its own

    def log_normaliser(self) -> Float[Array, "*shape"]:
        """Logarithm of the density's normalising constant."""
        raise NotImplementedError  # every family has its own

    def divergence(self, prior: Self) -> Float[Array, "*shape"]:
        """Kullback-Leibler divergence from a prior, less the prior's ``log_normaliser``."""
        raise NotImplementedError  # every family has its own

    def negative_log_prior(self, prior: Self) -> Float[Array, "*shape"]:
        """Minus the log-density of a prior at this mode, less the prior's ``log_normaliser``."""
        raise NotImplementedError  # every family has its own

    def penalty(self, prior: Self, rule: Rule) -> Float[Array, "*shape"]:
        """What the objective subtracts, less :meth:`constant` of the prior."""
        if rule == "vb":
            return self.divergence(prior)
        return self.negative_log_prior(prior) if rule == "map" else self._nothing()

    def constant(self, rule: Rule) -> Float[Array, "*shape"]:
        """Part of the penalty that depends on this prior alone."""
        return self.log_normaliser() if rule in ("map", "vb") else self._nothing()

    def _nothing(self) -> Array:
        return jnp.zeros((1,), jax.tree.leaves(self)[0].dtype)

    def free(self, rule: Rule) -> Any:
        """Unconstrained coordinates, in which the driver may extrapolate."""
        raise NotImplementedError  # every family has its own

    def constrain(self, free: Any, rule: Rule) -> Self:
        """Back from :meth:`free`, with this point's structure."""
        raise NotImplementedError  # every family has its own


class PointNormal(Family):
    """Normal distribution of coefficients without a conjugate family, read at its centre.

    ``"vb"`` penalises the centre as ``"map"`` does: a point, not a bound.
    """

    mean: Array

    def divergence(self, prior: Self) -> Float[Array, "*shape"]:
        return self.negative_log_prior(prior)

    def free(self, rule: Rule) -> Array:
        return self.mean

    def constrain(self, free: Any, rule: Rule) -> Self:
        moved: Any = replace(self, mean=free)  # type: ignore[type-var]  # subclasses are dataclasses
        return moved


def free(q: Any, rule: Rule) -> Any:
    """Unconstrained coordinates of a posterior, in which the driver may extrapolate.

    An array in the place of a posterior is a known constant, which has none.
    """
    return () if isinstance(q, jax.Array | np.ndarray) else q.free(rule)


def constrain(free: Any, q: Any, rule: Rule) -> Any:
    """Back from :func:`free`; ``q`` is any point, for its structure."""
    return q if isinstance(q, jax.Array | np.ndarray) else q.constrain(free, rule)
