"""Annotators who grade on an ordered scale, as posterior draws take them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, Key

from inference.products import Matrix
from inference.pytree import register_dataclass
from nbmodels.channels.annotators import Annotators
from nbmodels.channels.drawn_annotators import DrawnAnnotators
from nbmodels.channels.graded_response import Scale, log_likelihood, log_rates
from nbmodels.core.component import LogLikelihood
from nbmodels.core.families import Dirichlet, Family, Rule
from nbmodels.core.lazy import dist, numpyro

#: Metropolis steps to each draw, and the range of their sizes in standard deviations.
_STEPS, _SIZES = 8, (0.2, 2.5)


@register_dataclass
@dataclass(frozen=True)
class OrderedVotes(Family):
    """Parameters of annotators given their votes on items of known scores.

    A draw moves each annotator's parameters by Metropolis steps along the ellipsoid of the
    fitted mode.

    Args:
        counts: ``(W, L, C)`` votes.
        theta: ``(W, 4)`` parameters, see :mod:`nbmodels.channels.graded_response`.
        root: ``(W, 4, 4)`` of the steps' covariance.
        mean, spread: ``(4,)`` of the normal prior.
        log_widths: ``(L,)`` of the classes.
    """

    counts: Array
    theta: Array
    root: Array
    mean: Array
    spread: Array
    log_widths: Array

    @property
    def scale(self) -> Scale:
        """Thresholds and scores."""
        return Scale.of(self.log_widths, self.counts.shape[2] // self.counts.shape[1])

    def posterior(self, stats: tuple[Array, Array], rule: Rule) -> OrderedVotes:
        return replace(self, counts=stats[0], theta=stats[1])

    def likelihood_params(self, rule: Rule, key: Key[Array, ""] | None = None) -> Array:
        if rule != "draw":
            return self.theta
        assert key is not None
        return self._moved(key)

    def _log_density(self, theta: Float[Array, "w 4"]) -> Float[Array, " w"]:
        """Of each annotator's parameters given the counts."""
        prior = 0.5 * jnp.sum(jnp.square((theta - self.mean) / self.spread), 1)
        return log_likelihood(theta, self.counts, self.scale) - prior

    def _moved(self, key: Key[Array, ""]) -> Float[Array, "w 4"]:
        dtype, n = self.theta.dtype, len(self.theta)

        def step(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            at, density = state
            keys = jax.random.split(jax.random.fold_in(key, i), 3)
            size = jnp.exp(jax.random.uniform(keys[0], (n, 1), dtype, *np.log(_SIZES)))
            normal = jax.random.normal(keys[1], at.shape, dtype)
            to = at + size * jnp.einsum("wij,wj->wi", self.root, normal)
            there = self._log_density(to)
            accepted = jnp.log(jax.random.uniform(keys[2], (n,), dtype)) < there - density
            return jnp.where(accepted[:, None], to, at), jnp.where(accepted, there, density)

        return lax.fori_loop(0, _STEPS, step, (self.theta, self._log_density(self.theta)))[0]


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class DrawnOrdered(DrawnAnnotators):
    """Annotators with severity, scale, range and lapses as parameters, for draws.

    ``severity ~ Normal``, ``scale`` and ``range ~ LogNormal`` and ``logit(lapse) ~ Normal``, with
    the means, variances and widths of classes that the fit has learned: draws condition on these.

    Attributes:
        prior: the prior, its counts zero.
    """

    prior: OrderedVotes

    @property
    def _annotators(self) -> Annotators:
        return Annotators(prior=Dirichlet(jnp.ones_like(self.prior.counts), axis=1))

    def _logs(self, theta: Float[Array, "w 4"]) -> Float[Array, "w l c"]:
        return log_rates(theta, self.prior.scale)

    def log_likelihood(self, likelihood_params: Float[Array, "w 4"], data: Matrix) -> LogLikelihood:
        return self._annotators.log_likelihood(self._logs(likelihood_params), data)

    def stats(
        self,
        likelihood_params: Float[Array, "w 4"],
        resp: Float[Array, "n c"],
        data: Matrix,
        key: Key[Array, ""] | None = None,
    ) -> tuple[Array, Array]:
        # the parameters are the chain's state, and no statistic that the weight multiplies
        return self._annotators.stats(None, resp, data), likelihood_params / self.weight

    def relabel(self, q: OrderedVotes, order: Int[Array, " c"]) -> OrderedVotes:
        return q

    def values(self, likelihood_params: Float[Array, "w 4"]) -> dict[str, Array]:
        own = self._annotators.values(self._logs(likelihood_params))
        severity, log_scale, log_range, lapse = likelihood_params.T
        natural = {"scale": jnp.exp(log_scale), "range": jnp.exp(log_range)}
        return {**own, "severity": severity, **natural, "lapse": jax.nn.sigmoid(lapse)}

    def sites(self, name: str) -> dict[str, Any]:
        n_annotators = len(self.prior.counts)
        lapse = dist.TransformedDistribution(
            dist.Normal(self.prior.mean[3], self.prior.spread[3]),
            dist.transforms.SigmoidTransform(),
        )
        own = {
            "severity": dist.Normal(self.prior.mean[0], self.prior.spread[0]),
            "scale": dist.LogNormal(self.prior.mean[1], self.prior.spread[1]),
            "range": dist.LogNormal(self.prior.mean[2], self.prior.spread[2]),
            "lapse": lapse,
        }
        return {
            one: numpyro.sample(f"{name}_{one}", each.expand([n_annotators]).to_event(1))
            for one, each in own.items()
        }

    # of samplers on the program, values are those of its sites alone

    def transition(self, values: dict[str, Any]) -> Float[Array, "c l"]:
        return jnp.mean(self._transitions(values), 0)

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Matrix) -> None:
        super().likelihood(name, {"transitions": self._transitions(values)}, y, data)

    def _transitions(self, values: dict[str, Any]) -> Float[Array, "w c l"]:
        """P(label | score), as NumPyro's ordered logistic distribution has it."""
        thresholds, scores = self.prior.scale
        size, middle = values["scale"][:, None], jnp.mean(thresholds)
        seen = (scores - values["severity"][:, None]) / size
        own = middle + values["range"][:, None] * (thresholds - middle)
        plain = dist.OrderedLogistic(seen, (own / size)[:, None]).probs
        lapse = values["lapse"][:, None, None]
        return (1 - lapse) * plain + lapse / plain.shape[2]

    def dims(self) -> dict[str, list[str]]:
        own = {name: ["annotator"] for name in ("severity", "scale", "range", "lapse")}
        return {**self._annotators.dims(), **own}
