"""Gibbs sampling from the host: chains at once, progress, an interrupt that keeps the draws.

A sweep is ``sweep(state, data, key) -> (state, stored, summed)``: ``stored`` is returned draw by
draw, ``summed`` only as a mean over draws (label posteriors would not fit in memory otherwise).
:func:`sample` takes as many draws as it is asked for; chains of :func:`sample_until` stop by
themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import PRNGKeyArray, PyTree, UInt32

from inference.compilation import loop_jit
from inference.convergence import convergence
from inference.threads import in_threads

Sweep: TypeAlias = Callable[[PyTree, PyTree, PRNGKeyArray], tuple[PyTree, PyTree, PyTree]]
Report: TypeAlias = Callable[[int], None]
Watched: TypeAlias = Callable[[PyTree], Sequence["Watch"]]

#: Draws of a chain to each call of the one compiled program, and calls of each chain in turn where
#: one of all chains takes less than so many seconds.
_CHUNK, _TURN, _QUICK = 20, 5, 0.2

#: R-hat, less one, beyond which chains are apart whatever share of the draws is needed.
_APART = 0.05


class Draws(NamedTuple):
    """Draws of several Markov chains.

    Attributes:
        stored: leaves of shape ``(chains, draws, ...)``.
        mean: mean of ``summed`` over the draws of each chain; leaves ``(chains, ...)``.
        interrupted: whether ``KeyboardInterrupt`` ended it before all draws were taken.
        warmup: sweeps of each chain that were discarded.
        stride: sweeps for each stored draw.
        mixed: whether chains that stop by themselves had mixed; None where their number of draws
            was given.
    """

    stored: PyTree
    mean: PyTree
    interrupted: bool
    warmup: int = 0
    stride: int = 1
    mixed: bool | None = None


class Watch(NamedTuple):
    """A quantity that has to mix before chains stop.

    Attributes:
        draws: ``(chains, draws, ...)``; the worst element counts.
        share: of the effective draws that are asked for, those that this quantity needs. R-hat may
            exceed 1 by as many times more, since it is the noisier, the fewer draws are effective.
    """

    draws: np.ndarray
    share: float = 1.0

    def shortfall(self, rhat: float, ess: float, first: int = 0) -> Shortfall:
        """How far the draws are from mixing, by the rule that stops chains and warns of them.

        Args:
            rhat: largest R-hat that is allowed.
            ess: fewest effective draws, bulk and tail; 0 where R-hat alone counts, which is then to
                be as small for every quantity.
            first: draws that are left out.
        """
        share = self.share if ess else 1.0
        found = convergence(self.draws[:, first:])
        effective = min(found.bulk, found.tail)
        enough = found.rhat <= _allowed(rhat, share) and effective >= ess * share
        return Shortfall(found.rhat, effective, ess * share, enough)


def _allowed(rhat: float, share: float) -> float:
    """Largest R-hat of draws of which only a share need be effective."""
    return 1 + max(min((rhat - 1) / share, _APART), rhat - 1)


class Shortfall(NamedTuple):
    """What a quantity has of R-hat and effective draws.

    Attributes:
        rhat: largest R-hat of its elements.
        effective: fewest effective draws, bulk or tail.
        needed: effective draws that are asked for.
        mixed: whether both suffice.
    """

    rhat: float
    effective: float
    needed: float
    mixed: bool


class Stopping(NamedTuple):
    """When chains stop; numbers are draws of each chain.

    A rule that looks at nothing but mixing, and not before there are 800 draws of four chains,
    leaves next to no bias in what is estimated.

    Attributes:
        warmup: most draws that are discarded. Warm-up ends where R-hat of its second half is small.
        least: fewest draws that are kept.
        most: most draws that are taken.
        stored: about as many are stored; of more draws every second one, or every fourth.
        rhat: largest R-hat (Vehtari et al. 2021).
        ess: fewest effective draws, bulk and tail, of all chains together.
        warmup_rhat: largest R-hat at the end of the warm-up.
    """

    warmup: int = 500
    least: int = 200
    most: int = 2_000
    stored: int = 500
    rhat: float = 1.01
    ess: float = 400
    warmup_rhat: float = 1.1

    def of_part(self, share: float) -> Stopping:
        """The rule for the draws of one form of several, over which draws are averaged.

        Args:
            share: of the form. It needs so much of the effective draws, and R-hat may exceed 1 by
                as many times more, since it is the noisier, the fewer draws are effective.
        """
        return self._replace(rhat=_allowed(self.rhat, share), ess=share * self.ess)


#: Draws between looks at the warm-up; looks at the draws come after a quarter more of them.
_LOOK, _GROWTH = 100, 1.25


@partial(loop_jit, static_argnames=("sweep", "thin"))
def _chunk(
    sweep: Sweep,
    state: PyTree,
    data: PyTree,
    key: PRNGKeyArray,
    at: UInt32[Array, " two"] | UInt32[np.ndarray, " two"],
    thin: int,
) -> tuple[PyTree, PyTree, PyTree]:
    """A few draws of one chain; ``at`` is the number of the chain and of the chunk."""

    def skip(state: PyTree, key: PRNGKeyArray) -> tuple[PyTree, None]:
        return sweep(state, data, key)[0], None

    def body(
        carry: tuple[PyTree, PyTree], key: PRNGKeyArray
    ) -> tuple[tuple[PyTree, PyTree], PyTree]:
        state, total = carry
        here = jax.random.split(key, thin)
        if thin > 1:
            state, _ = lax.scan(skip, state, here[1:])
        state, stored, summed = sweep(state, data, here[0])
        return (state, jax.tree.map(jnp.add, total, summed)), stored

    keys = jax.random.split(jax.random.fold_in(jax.random.fold_in(key, at[0]), at[1]), _CHUNK)
    shapes = jax.eval_shape(lambda s, k: sweep(s, data, k)[2], state, keys[0])
    zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    (state, total), stored = lax.scan(body, (state, zeros), keys)
    return state, stored, total


class _Chains:
    """Chains that are advanced together, a chunk at a time."""

    def __init__(
        self,
        sweep: Sweep,
        states: Sequence[PyTree],
        data: PyTree,
        key: PRNGKeyArray,
        thin: int,
        report: Report | None,
    ) -> None:
        self._states, self._chunks, self._seconds = list(states), 0, np.inf
        self._run = partial(_chunk, sweep, thin=thin)
        self._data, self._key = data, key
        self._report, self._sweeps = report, _CHUNK * thin

    @property
    def chunks(self) -> int:
        """Number of chunks so far."""
        return self._chunks

    def advance(self, most: int = 1) -> list[list[tuple[PyTree, PyTree]]]:
        """What is stored of each chain, in host memory, and what is summed, a list for each chunk.

        Args:
            most: chunks; those that take long are done one by one, so that they can be reported and
                interrupted. Draws are the same either way.
        """
        begun, every = self._chunks > 0, range(len(self._states))
        chunks = most if begun and self._seconds < _QUICK else 1
        states, done = [], []
        since = time.perf_counter()
        work = partial(self._advanced, chunks)
        for state, parts in in_threads(work, every, reads=self._data, compiled=begun):
            states.append(state)
            done.append(parts)
            if self._report is not None:
                self._report(self._sweeps * chunks)
        self._seconds = (time.perf_counter() - since) / chunks
        self._states = states
        self._chunks += chunks
        return [list(one) for one in zip(*done, strict=True)]

    def _advanced(self, chunks: int, c: int) -> tuple[PyTree, list[tuple[PyTree, PyTree]]]:
        state, parts = self._states[c], []
        for chunk in range(self._chunks, self._chunks + chunks):
            at = np.array([c, chunk], np.uint32)
            state, stored, summed = self._run(state, self._data, self._key, at)
            parts.append((jax.tree.map(np.asarray, stored), summed))  # waits
        return state, parts


class _Kept:
    """Draws that are kept, in a number that does not grow without bound where it is limited."""

    def __init__(self, limit: int | None = None) -> None:
        self.taken, self.stride = 0, 1
        self._limit = limit
        self._rounds: list[list[PyTree]] = []
        self._total: list[PyTree] | None = None

    def add(self, done: list[tuple[PyTree, PyTree]]) -> None:
        sums = [summed for _, summed in done]
        self._total = sums if self._total is None else jax.tree.map(jnp.add, self._total, sums)
        self._rounds.append([self._every(part, self.stride) for part, _ in done])
        self.taken += _CHUNK
        if self._limit is not None and self.taken // self.stride > self._limit:
            self.stride *= 2
            self._rounds = [[self._every(chain, 2) for chain in self._chains()]]

    @staticmethod
    def _every(part: PyTree, stride: int) -> PyTree:
        return jax.tree.map(lambda x: x[stride - 1 :: stride], part)

    def _chains(self) -> list[PyTree]:
        return [
            jax.tree.map(lambda *x: np.concatenate(x), *one)
            for one in zip(*self._rounds, strict=True)
        ]

    def stored(self, draws: int | None = None) -> PyTree:
        """Leaves ``(chains, draws, ...)``, the first draws of all."""
        return jax.tree.map(lambda *x: np.stack(x)[:, :draws], *self._chains())

    def finished(
        self,
        draws: int | None,
        interrupted: bool,
        warmup: int,
        thin: int,
        mixed: bool | None = None,
    ) -> Draws:
        assert self._total is not None
        mean = jax.tree.map(
            lambda *x: np.stack([np.asarray(one) / self.taken for one in x]), *self._total
        )
        return Draws(self.stored(draws), mean, interrupted, warmup, self.stride * thin, mixed)


class _Seen:
    """What has to mix, of every draw."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._rounds: list[Sequence[Watch]] = []

    def add(self, done: list[tuple[PyTree, PyTree]]) -> None:
        stored = jax.tree.map(lambda *x: np.stack(x), *(part for part, _ in done))
        self._rounds.append(self._watched(stored))

    def mixed(self, first: int, rhat: float, ess: float) -> bool:
        """Whether R-hat and effective draws of every array suffice, from a draw on."""
        # one after the other: the first that has not mixed spares the others
        return all(
            Watch(np.concatenate([one.draws for one in parts], 1), parts[0].share)
            .shortfall(rhat, ess, first)
            .mixed
            for parts in zip(*self._rounds, strict=True)
        )


def sample(
    sweep: Sweep,
    states: Sequence[PyTree],
    data: PyTree,
    key: PRNGKeyArray,
    *,
    draws: int = 500,
    warmup: int = 200,
    thin: int = 1,
    report: Report | None = None,
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
    chains, kept = _Chains(sweep, states, data, key, thin, report), _Kept()
    interrupted = False
    try:
        while (left := discard - chains.chunks) > 0:
            chains.advance(min(_TURN, left))
        while (left := discard + keep - chains.chunks) > 0:
            # a round that was interrupted counts for no chain
            for done in chains.advance(min(_TURN, left)):
                kept.add(done)
    except KeyboardInterrupt:
        interrupted = True
        if not kept.taken:
            raise
    return kept.finished(draws, interrupted, discard * _CHUNK * thin, thin)


def sample_until(
    sweep: Sweep,
    states: Sequence[PyTree],
    data: PyTree,
    key: PRNGKeyArray,
    *,
    watched: Watched,
    warmup: int | None = None,
    thin: int = 1,
    stopping: Stopping | None = None,
    report: Report | None = None,
) -> Draws:
    """Run a Markov chain from each state until all have mixed, by the program of :func:`sample`.

    Args:
        sweep: must be the same object from call to call to be compiled once.
        states: initial state of each chain; overdispersed, or R-hat cannot detect a lack of mixing.
        data: passed through to ``sweep``.
        key: JAX random key. The same key gives the same draws, and as many.
        watched: from stored draws of a few sweeps, leaves ``(chains, draws, ...)``, to what has to
            mix, the slowest first.
        warmup: discarded sweeps of each chain; None for as many as it takes.
        thin: sweeps for each draw.
        stopping: when to stop; by default :class:`Stopping` as it is.
        report: called with the number of sweeps since the last call.

    Raises:
        KeyboardInterrupt: as :func:`sample`.
    """
    rule = Stopping() if stopping is None else stopping
    chains, kept = _Chains(sweep, states, data, key, thin, report), _Kept(rule.stored)
    interrupted, mixed, discarded = False, False, 0
    try:
        discarded = _warm_up(chains, watched, rule, warmup if warmup is None else warmup // thin)
        seen = _Seen(watched)
        look: float = rule.least
        while kept.taken < rule.most:
            until = -(-(min(look, rule.most) - kept.taken) // _CHUNK)
            for done in chains.advance(int(np.clip(until, 1, _TURN))):
                kept.add(done)
                seen.add(done)
            if kept.taken >= min(look, rule.most):
                mixed = seen.mixed(0, rule.rhat, rule.ess)
                if mixed:
                    break
                look *= _GROWTH
    except KeyboardInterrupt:
        interrupted = True
        if not kept.taken:
            raise
    return kept.finished(None, interrupted, discarded * thin, thin, mixed)


def _warm_up(
    chains: _Chains,
    watched: Watched,
    rule: Stopping,
    draws: int | None,
) -> int:
    """Advance the chains to the end of the warm-up; the number of draws that it took."""
    seen, taken = _Seen(watched), 0
    most = rule.warmup if draws is None else draws
    while taken < most:
        until = min(_LOOK - taken % _LOOK, most - taken)
        for done in chains.advance(int(np.clip(-(-until // _CHUNK), 1, _TURN))):
            seen.add(done)
            taken += _CHUNK
        if draws is None and taken % _LOOK == 0 and seen.mixed(taken // 2, rule.warmup_rhat, 0):
            break
    return taken
