"""Gibbs sampling from the host: several chains, progress, and an interrupt that keeps the draws.

A sweep is ``sweep(state, data, key) -> (state, stored, summed)``: ``stored`` is returned draw by
draw, ``summed`` only as a mean over draws (label posteriors would not fit in memory otherwise).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Key, PRNGKeyArray, PyTree

from inference.compilation import host_jit

Sweep: TypeAlias = Callable[[PyTree, PyTree, PRNGKeyArray], tuple[PyTree, PyTree, PyTree]]

_CHUNK = 20


class Draws(NamedTuple):
    """Draws of several Markov chains, from :func:`sample`.

    Attributes:
        stored: leaves of shape ``(chains, draws, ...)``.
        mean: mean of ``summed`` over the draws of each chain; leaves ``(chains, ...)``.
        interrupted: whether ``KeyboardInterrupt`` ended it before all draws were taken.
    """

    stored: PyTree
    mean: PyTree
    interrupted: bool


@partial(host_jit, static_argnames=("sweep", "thin"))
def _chunk(
    sweep: Sweep, state: PyTree, data: PyTree, keys: Key[Array, " sweeps"], thin: int
) -> tuple[PyTree, PyTree, PyTree]:
    def skip(state: PyTree, key: PRNGKeyArray) -> tuple[PyTree, None]:
        return sweep(state, data, key)[0], None

    def body(
        carry: tuple[PyTree, PyTree], key: PRNGKeyArray
    ) -> tuple[tuple[PyTree, PyTree], PyTree]:
        state, total = carry
        here = jax.random.split(key, thin)
        state, _ = lax.scan(skip, state, here[1:])
        state, stored, summed = sweep(state, data, here[0])
        return (state, jax.tree.map(jnp.add, total, summed)), stored

    shapes = jax.eval_shape(lambda s, k: sweep(s, data, k)[2], state, keys[0])
    zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    (state, total), stored = lax.scan(body, (state, zeros), keys)
    return state, stored, total


def sample(
    sweep: Sweep,
    states: Sequence[PyTree],
    data: PyTree,
    key: PRNGKeyArray,
    *,
    draws: int = 500,
    warmup: int = 200,
    thin: int = 1,
    report: Callable[[int], None] | None = None,
) -> Draws:
    """Run a Markov chain from each state, in turns of a few sweeps.

    Args:
        sweep: must be the same object from call to call to be compiled once.
        states: initial state of each chain; overdispersed, or R-hat cannot detect a lack of mixing.
        data: passed through to ``sweep``.
        key: JAX random key; every chain and every draw gets its own.
        draws: kept draws of each chain.
        warmup: discarded sweeps of each chain, rounded up to whole chunks.
        thin: sweeps for each kept draw.
        report: called with the number of sweeps since the last call.

    Raises:
        KeyboardInterrupt: interrupted before every chain had some draws; after that, the draws that
            all chains have are returned.
    """
    # whole chunks only, so that one program serves warm-up and sampling
    discard, keep = -(-warmup // (_CHUNK * thin)), -(-draws // _CHUNK)
    chains = list(states)
    rounds: list[Any] = []
    total: Any = None
    chain_keys = [jax.random.split(k, discard + keep) for k in jax.random.split(key, len(chains))]
    interrupted = False
    try:
        for i in range(discard + keep):
            done = []
            for c, state in enumerate(chains):
                keys = jax.random.split(chain_keys[c][i], _CHUNK)
                chains[c], part, summed = _chunk(sweep, state, data, keys, thin)
                done.append((jax.tree.map(np.asarray, part), summed))
                if report is not None:
                    report(_CHUNK * thin)
            if i < discard:
                continue
            # a round that was interrupted counts for no chain
            sums = [summed for _, summed in done]
            total = sums if total is None else jax.tree.map(jnp.add, total, sums)
            rounds.append([part for part, _ in done])
    except KeyboardInterrupt:
        interrupted = True
        if not rounds:
            raise
    stored = [
        jax.tree.map(lambda *x: np.concatenate(x)[:draws], *one)
        for one in zip(*rounds, strict=True)
    ]
    taken = len(rounds) * _CHUNK
    return Draws(
        jax.tree.map(lambda *x: np.stack(x), *stored),
        jax.tree.map(lambda *x: np.stack([np.asarray(one) / taken for one in x]), *total),
        interrupted,
    )
