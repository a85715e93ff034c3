"""Dirichlet-multinomial: a Dirichlet prior shared by many proportions (empirical Bayes)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from inference import Coordinates, Total, add, solve, total
from inference.special import digamma, gammaln
from nbmodels.core.families import Dirichlet, Rule

#: A concentration is kept between these: where all proportions are equal, or each is pure, the
#: likelihood rises towards a bound that is never reached.
_LEAST, _MOST = 1e-4, 1e4


def _log(point: Any, data: Any) -> Any:
    return jnp.log(point)


def _exp(free: Any, point: Any, data: Any) -> Any:
    return jnp.clip(jnp.exp(free), _LEAST, _MOST)


_POSITIVE = Coordinates(_log, _exp)

#: Whether all entries are one number, or all ``"others"`` than the first along the axis.
Tied = bool | Literal["others"]


def _map(axis: int, tied: Tied) -> Any:
    def step(shared: Array, data: tuple[Array, Array, Array]) -> tuple[Array, Total]:
        counts, shape, rate = data
        whole = jnp.sum(shared, axis, keepdims=True)
        sums = jnp.sum(counts, axis + 1, keepdims=True)
        gain = jnp.sum(gammaln(counts + shared) - gammaln(shared), axis + 1, keepdims=True)
        value = add(
            total(gain - gammaln(sums + whole) + gammaln(whole)),
            total(shape * jnp.log(shared) - rate * shared),
        )
        above = jnp.sum(digamma(counts + shared) - digamma(shared), 0)
        below = jnp.sum(digamma(sums + whole) - digamma(whole), 0)
        if tied is True:
            above = jnp.full_like(above, jnp.sum(above))
            below = jnp.full_like(above, jnp.sum(below) * shared.shape[axis])
        if tied == "others":
            first, others = jnp.split(above, [1], axis)
            others = jnp.broadcast_to(jnp.mean(others, axis, keepdims=True), others.shape)
            above = jnp.concatenate([first, others], axis)
        below = jnp.maximum(below, jnp.finfo(below.dtype).tiny)
        return jnp.clip((shared * above + shape) / (below + rate), _LEAST, _MOST), value

    return step


_TIED: tuple[Tied, ...] = (False, True, "others")
_step = {(axis, tied): _map(axis, tied) for axis in (0, 1) for tied in _TIED}


@partial(jax.jit, static_argnames=("axis", "tied"))
def shared_concentration(
    counts: Float[Array, "m ..."],
    begin: Float[Array, "*shape"],
    shape: Any = 0.0,
    rate: Any = 0.0,
    *,
    axis: int = 0,
    tied: Tied = False,
) -> Float[Array, "*shape"]:
    """Concentration of the Dirichlet from which the proportions behind many counts were drawn.

    Maximises the sum of Dirichlet-multinomial log-likelihoods by Minka's fixed point (Minka 2000,
    *Estimating a Dirichlet distribution*, eq. (55)). At a variational fit this is the maximum of
    the evidence bound over the prior, with the responsibilities held. A gamma prior of the
    concentrations, as a density of their logarithms, adds to both sides of the fixed point.

    Args:
        counts: ``(M, ...)`` expected counts, not negative, not necessarily whole.
        begin: ``(...)`` concentration to begin from.
        shape: ``(...)`` of the gamma prior of each entry; entries that are tied share theirs.
        rate: ``(...)`` of that prior.
        axis: of ``begin``, along which proportions sum to one: 0 or 1.
        tied: one number for all entries, or for all ``"others"`` than the first along ``axis``.

    Returns:
        ``(...)`` concentration, entries between 1e-4 and 1e4.
    """
    result = solve(
        _step[axis, tied],
        jnp.clip(begin, _LEAST, _MOST),
        (counts, jnp.broadcast_to(shape, begin.shape), jnp.broadcast_to(rate, begin.shape)),
        max_steps=300,
        tol=1e-6,
        coordinates=_POSITIVE,
    )
    return result.params


def learned(
    prior: Dirichlet,
    q: Dirichlet,
    rule: Rule,
    shape: Any = 0.0,
    rate: Any = 0.0,
    *,
    axis: int,
    tied: Tied = False,
) -> Dirichlet:
    """The prior with the one concentration that all entries of its first axis share, learned.

    Under ``"map"`` a concentration is one more than pseudo-counts, so that the mode under the
    learned prior stands where the posterior mean does.

    Args:
        prior: as it is; ``(M, ...)``.
        q: posterior under it.
        rule: ``"map"`` or ``"vb"``.
        shape: of the concentrations' gamma prior, as for :func:`shared_concentration`.
        rate: of that prior.
        axis: of one of the ``M`` entries, along which proportions sum to one.
        tied: as for :func:`shared_concentration`, within an entry.
    """
    extra = 1.0 if rule == "map" else 0.0
    counts = jnp.maximum(q.concentration - prior.concentration, 0)
    begin = jnp.maximum(prior.concentration[0] - extra, _LEAST)
    shared = shared_concentration(counts, begin, shape, rate, axis=axis, tied=tied)
    return replace(prior, concentration=jnp.broadcast_to(shared + extra, counts.shape))
