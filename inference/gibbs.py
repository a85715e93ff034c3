"""Gibbs sampling from the host: any sweep, several chains, progress, and Ctrl-C keeps what is done.

A sweep is ``sweep(state, data, key) -> (state, stored, summed)``: what is stored comes back draw by
draw, what is summed only as a mean (label posteriors would not fit otherwise).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from inference.compilation import host_jit

Sweep = Callable[[Any, Any, Array], tuple[Any, Any, Any]]

_CHUNK = 20


class Draws(NamedTuple):
    """Result of :func:`sample`.

    Attributes:
        stored: leaves of shape ``(chains, draws, ...)``.
        mean: mean of what was summed, over the draws of each chain; leaves ``(chains, ...)``.
        interrupted: whether Ctrl-C ended it before all draws were taken.
    """

    stored: Any
    mean: Any
    interrupted: bool


@partial(host_jit, static_argnames=("sweep", "thin"))
def _chunk(sweep: Sweep, state: Any, data: Any, keys: Array, thin: int) -> tuple[Any, Any, Any]:
    def skip(state: Any, key: Array) -> tuple[Any, None]:
        return sweep(state, data, key)[0], None

    def body(carry: tuple[Any, Any], key: Array) -> tuple[tuple[Any, Any], Any]:
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
    states: Sequence[Any],
    data: Any,
    key: Array,
    *,
    draws: int = 500,
    warmup: int = 200,
    thin: int = 1,
    report: Callable[[int], None] | None = None,
) -> Draws:
    """Run a chain from each state, a few sweeps of one after a few of the other.

    Args:
        sweep: must be the same object from call to call to be compiled once.
        states: where each chain begins; R-hat means something only if they lie apart.
        data: passed through to ``sweep``.
        key: JAX random key; every chain and every draw gets its own.
        draws: kept draws of each chain.
        warmup: sweeps of each chain that are thrown away, rounded up to whole chunks.
        thin: sweeps to each kept draw.
        report: called with the number of sweeps since the last call.

    Raises:
        KeyboardInterrupt: interrupted before every chain had some draws; later, those that all of
            them have are returned.
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
