"""Gibbs sampling from the host: any sweep, several chains, progress, and Ctrl-C keeps what is done.

A sweep is ``sweep(state, data, key) -> (state, stored, summed)``: what is stored comes back draw by
draw, what is summed only as a mean (label posteriors would not fit otherwise).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

Sweep = Callable[[Any, Any, Array], tuple[Any, Any, Any]]

_CHUNK = 20


class Draws(NamedTuple):
    """Result of :func:`sample`.

    Attributes:
        stored: leaves of shape ``(chains, draws, ...)``.
        mean: mean of what was summed, over all draws of all chains.
    """

    stored: Any
    mean: Any


@partial(jax.jit, static_argnames=("sweep", "thin"))
def _chunk(sweep: Sweep, state: Any, data: Any, keys: Array, thin: int) -> tuple[Any, Any, Any]:
    def draw(state: Any, key: Array) -> tuple[Any, tuple[Any, Any]]:
        *skipped, last = jax.random.split(key, thin)
        for k in skipped:
            state = sweep(state, data, k)[0]
        state, stored, summed = sweep(state, data, last)
        return state, (stored, summed)

    def body(carry: tuple[Any, Any], key: Array) -> tuple[tuple[Any, Any], Any]:
        state, total = carry
        state, (stored, summed) = draw(state, key)
        return (state, jax.tree.map(jnp.add, total, summed)), stored

    shapes = jax.eval_shape(lambda s, k: sweep(s, data, k)[2], state, keys[0])
    zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    (state, total), stored = lax.scan(body, (state, zeros), keys)
    return state, stored, total


def sample(
    sweep: Sweep,
    state: Any,
    data: Any,
    key: Array,
    *,
    draws: int = 500,
    warmup: int = 200,
    chains: int = 4,
    thin: int = 1,
    report: Callable[[int], None] | None = None,
) -> Draws:
    """Run several chains one after the other, all from ``state``.

    Args:
        sweep: must be the same object from call to call to be compiled once.
        state: where every chain begins; the warm-up makes them independent of it.
        data: passed through to ``sweep``.
        key: JAX random key; every chain and every draw gets its own.
        draws: kept draws of each chain.
        warmup: sweeps of each chain that are thrown away.
        thin: sweeps to each kept draw.
        report: called with the number of sweeps since the last call.

    Raises:
        KeyboardInterrupt: interrupted before the first chain was done; later, the finished chains
            are returned.
    """
    stored, total, kept = [], None, 0
    # whole chunks only, so that one program serves warm-up and sampling
    discard, keep = -(-warmup // (_CHUNK * thin)), -(-draws // _CHUNK)
    try:
        for chain_key in jax.random.split(key, chains):
            here, mine, mine_total = state, [], None
            for i, chunk_key in enumerate(jax.random.split(chain_key, discard + keep)):
                keys = jax.random.split(chunk_key, _CHUNK)
                here, part, summed = jax.block_until_ready(_chunk(sweep, here, data, keys, thin))
                if report is not None:
                    report(_CHUNK * thin)
                if i >= discard:
                    mine.append(jax.tree.map(np.asarray, part))
                    mine_total = (
                        summed if mine_total is None else jax.tree.map(jnp.add, mine_total, summed)
                    )
            stored.append(jax.tree.map(lambda *x: np.concatenate(x)[:draws], *mine))
            total = mine_total if total is None else jax.tree.map(jnp.add, total, mine_total)
            kept += keep * _CHUNK
    except KeyboardInterrupt:
        if not stored:
            raise
    return Draws(
        jax.tree.map(lambda *x: np.stack(x), *stored),
        jax.tree.map(lambda s: np.asarray(s) / kept, total),
    )
