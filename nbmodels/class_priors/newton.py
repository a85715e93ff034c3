"""Class priors whose coefficients are fitted by Newton's steps and drawn by Metropolis-Hastings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, Key

from inference.pytree import register_dataclass
from inference.triangular import solve_positive
from nbmodels.core.component import LogLikelihood
from nbmodels.core.families import FullNormal, MultivariateT
from nbmodels.core.roles import ClassPrior

#: Growth of the curvature at which a step is short enough, whatever it does.
_SHORTEST = 4.0**10


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class NewtonPrior(ClassPrior):
    """``P(y | covariates)`` by coefficients that have no conjugate family.

    ``q`` is normal, centred where a Newton step leads, one step an iteration, and its precision is
    the curvature there (Laplace). All rules read the centre, but a draw. A subclass has
    ``log_probs``, ``(N, K)`` log-probabilities of the classes, and ``stats``, the curvature ``H``
    and ``H theta + gradient``.

    Attributes:
        prior: normal of the coefficients, ``(P,)``.
    """

    prior: FullNormal | MultivariateT

    def log_probs(
        self, likelihood_params: Float[Array, " p"], data: Array | None
    ) -> Float[Array, "n k"]:
        """Log-probabilities of the classes."""
        raise NotImplementedError  # every subclass has its own

    def log_likelihood(
        self, likelihood_params: Float[Array, " p"], data: Array | None
    ) -> LogLikelihood:
        return LogLikelihood(
            self.log_probs(likelihood_params, data), jnp.zeros((1,), likelihood_params.dtype)
        )

    def shortening(
        self,
        at: Float[Array, " p"],
        curvature: Float[Array, "p p"],
        gradient: Float[Array, " p"],
        gain_of: Callable[[Array], Array],
        size: Array,
    ) -> Array:
        """Least power of four by which the curvature is to grow so that the step does not fall.

        Args:
            at: where the step begins.
            curvature, gradient: of the items' part of the objective.
            gain_of: what a step adds to that part.
            size: magnitude of the part, by which its rounding is judged.
        """
        rounding = jnp.finfo(at.dtype).eps * size
        gap = at - self.prior.mean
        own = self.prior.precision_at(at)
        pull = own @ gap
        uphill = self.weight * gradient - pull

        def falls(scale: Array) -> Array:
            precision = self.weight * scale * curvature + own
            step = solve_positive(precision, uphill)
            gain = self.weight * gain_of(step)
            gain = gain - step @ pull - 0.5 * step @ own @ step
            return (gain < -self.weight * rounding) & (scale < _SHORTEST)

        return lax.while_loop(falls, lambda scale: 4 * scale, jnp.ones((), at.dtype))

    def accept(
        self,
        old: Float[Array, " p"],
        new: Float[Array, " p"],
        proposal: Any,
        resp: Float[Array, "n k"],
        data: Array,
        key: Key[Array, ""],
    ) -> Float[Array, " p"]:
        """Metropolis and Hastings: the proposal is Laplace's normal about a Newton step."""

        def target(at: Array) -> Array:
            likelihood = jnp.sum(resp * self.log_probs(at, data))
            here: Any = replace(self.prior, mean=at)
            return self.weight * likelihood - here.negative_log_prior(self.prior)[0]

        def proposed(at: Array, q: Any) -> Array:
            gap = at - q.mean
            return -0.5 * gap @ q.precision @ gap - q.constant("map")[0]

        counts = self.stats(new, resp, data)
        back = self.update(jax.tree.map(lambda s: self.weight * s, counts), "draw")
        gain = target(new) + proposed(old, back) - target(old) - proposed(new, proposal)
        return jnp.where(jnp.log(jax.random.uniform(key, (), gain.dtype)) < gain, new, old)
