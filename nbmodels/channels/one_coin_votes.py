"""Draws of annotators' accuracies, of the matrices around them and of the crowd they are from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.special import gammaln
from jaxtyping import Float, Key

from inference.gamma import loggamma
from inference.pytree import register_dataclass
from nbmodels.channels.annotators import right_labels
from nbmodels.channels.one_coin_matrices import MARGIN, one_coin
from nbmodels.core.families import Dirichlet, Family, Rule

#: Standard deviation, in draws, of the logarithm of the pseudo-votes that hold accuracies near each
#: other; their median is that of the pseudo-votes of an accuracy.
SPREAD = 1.0

#: Metropolis steps to each draw of the accuracies, and the range of their sizes in logits.
_STEPS, _SIZES = 6, (0.05, 2.0)


@register_dataclass
@dataclass(frozen=True)
class OneCoinVotes(Family):
    """Noise matrices of annotators, each around a one-coin matrix of unknown accuracy.

    A draw moves the crowd given the accuracies, and the accuracies given the counts, by Metropolis
    steps, the matrices integrated out (Dirichlet-multinomial), and then draws the matrices.

    Args:
        counts: ``(annotators, observed, K)`` votes.
        logit: ``(annotators,)`` log-odds of the accuracies.
        crowd: ``(2,)`` log-odds of the mean of the Beta distribution that accuracies are from, and
            the logarithm of its pseudo-votes.
        strength: pseudo-votes of each row.
        pseudo: ``(2,)`` right and wrong pseudo-votes of the crowd's mean.
        errors: ``(observed, K)`` distribution of a wrong vote; None for all wrong labels alike.
    """

    counts: Array
    logit: Array
    crowd: Array
    strength: Array
    pseudo: Array
    errors: Any = None

    def posterior(self, stats: tuple[Array, Array, Array], rule: Rule) -> OneCoinVotes:
        return replace(self, counts=stats[0], logit=stats[1], crowd=stats[2])

    def likelihood_params(self, rule: Rule, key: Key[Array, ""] | None = None) -> dict[str, Array]:
        at, crowd, how = self.logit, self.crowd, None
        if rule == "draw":
            assert key is not None
            first, second, how = jax.random.split(key, 3)
            crowd = self._moved_crowd(first)
            at = self._moved(second, crowd)
        whole = Dirichlet(self._concentration(at) + self.counts, axis=1)
        logs = whole.likelihood_params("draw" if rule == "draw" else "mean", how)
        return {"logs": logs, "logit": at, "crowd": crowd}

    @property
    def _empty(self) -> Array:
        return jnp.sum(self.counts, (1, 2)) == 0

    def _concentration(self, logit: Array) -> Array:
        accuracy = jnp.clip(jax.nn.sigmoid(logit), MARGIN, 1 - MARGIN)
        right = right_labels(*self.counts.shape[1:])
        return self.strength * one_coin(accuracy, right, self.errors)

    def _log_density(self, logit: Array, crowd: Array) -> Float[Array, " w"]:
        """Of each annotator's log-odds given the counts and the crowd."""
        at = self._concentration(logit)
        inside = jnp.sum(gammaln(self.counts + at) - gammaln(at), (1, 2))
        return inside + _log_beta(logit, crowd)

    def _log_density_of_crowd(self, crowd: Array) -> Float[Array, ""]:
        """Of the crowd given the accuracies of annotators with votes."""
        each = jnp.where(self._empty, 0, _log_beta(self.logit, crowd))
        mean, size = crowd
        prior = self.pseudo[0] * jax.nn.log_sigmoid(mean)
        prior += self.pseudo[1] * jax.nn.log_sigmoid(-mean)
        centre = jnp.log(jnp.sum(self.pseudo))
        return jnp.sum(each) + prior - jnp.square((size - centre) / SPREAD) / 2

    def _moved_crowd(self, key: Key[Array, ""]) -> Float[Array, " 2"]:
        # its mean and its size in turn
        directions = jnp.eye(2, dtype=self.crowd.dtype)
        return _walked(key, self.crowd, self._log_density_of_crowd, directions)

    def _moved(self, key: Key[Array, ""], crowd: Array) -> Array:
        dtype, n = self.logit.dtype, len(self.logit)
        first, other = jax.random.split(key)
        shapes = jnp.broadcast_to(_beta_shapes(crowd).astype(dtype)[:, None], (2, n))
        gammas = loggamma(first, shapes)
        # without votes an independent draw from the crowd
        begin = jnp.where(self._empty, gammas[0] - gammas[1], self.logit)
        every = jnp.ones((1, n), dtype)
        return _walked(other, begin, lambda at: self._log_density(at, crowd), every)


def _beta_shapes(crowd: Array) -> Float[Array, " 2"]:
    """Shapes of the Beta distribution of accuracies, by the crowd's log-odds and log-size."""
    return jnp.exp(crowd[1]) * jax.nn.sigmoid(jnp.stack([crowd[0], -crowd[0]]))


def _log_beta(logit: Float[Array, " w"], crowd: Array) -> Float[Array, " w"]:
    """Log-density of log-odds whose inverse has that Beta distribution."""
    right, wrong = shapes = _beta_shapes(crowd)
    sides = right * jax.nn.log_sigmoid(logit) + wrong * jax.nn.log_sigmoid(-logit)
    return sides + gammaln(jnp.sum(shapes)) - jnp.sum(gammaln(shapes))


def _walked(
    key: Key[Array, ""],
    begin: Array,
    log_density: Callable[[Array], Array],
    directions: Float[Array, "d n"],
) -> Array:
    """After Metropolis steps of random sizes along each direction in turn.

    Args:
        key: of the steps.
        begin: ``(n,)`` where they begin.
        log_density: of all numbers, or ``(n,)`` of each alone, which are then accepted by each.
        directions: masks of the numbers that a step moves.
    """

    def step(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        at, density = state
        keys = jax.random.split(jax.random.fold_in(key, i), 3)
        shape, dtype = density.shape, at.dtype
        size = jnp.exp(jax.random.uniform(keys[0], shape, dtype, *np.log(_SIZES)))
        moves = size * jax.random.normal(keys[1], at.shape, dtype)
        to = at + moves * directions[i % len(directions)]
        there = log_density(to)
        accepted = jnp.log(jax.random.uniform(keys[2], shape, dtype)) < there - density
        return jnp.where(accepted, to, at), jnp.where(accepted, there, density)

    steps = _STEPS * len(directions)
    return lax.fori_loop(0, steps, step, (begin, log_density(begin)))[0]
