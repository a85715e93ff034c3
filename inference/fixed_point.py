"""The one driver: a fixed-point map with a monotone objective, run in compiled chunks.

It sees a map ``step(point, data) -> (next point, objective at point)`` and nothing else. EM,
MAP-EM and CAVI are such maps. Acceleration is SQUAREM (Varadhan and Roland 2008, scheme S3) made
monotone: an extrapolated point whose objective is lower than the last plain one is dropped, the
iteration goes on from the plain point, and the next extrapolations are tried less often.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from inference.compilation import host_jit
from inference.moments import Total
from inference.results import Result, Status

Step = Callable[[Any, Any], tuple[Any, Total]]


class Coordinates(NamedTuple):
    """Unconstrained coordinates in which points are extrapolated; hashable, so it may be static."""

    free: Callable[[Any, Any], Any]
    constrain: Callable[[Any, Any, Any], Any]


def _same(point: Any, data: Any) -> Any:
    return point


def _back(free: Any, point: Any, data: Any) -> Any:
    return free


IDENTITY = Coordinates(_same, _back)


class State(NamedTuple):
    """Carried state, apart from what is reported."""

    point: Any  # where the step is evaluated next
    base: Any  # the first point of the present cycle; None without acceleration
    best: Any  # the best accepted point
    fallback: Any  # where to go on when an extrapolation is refused; None likewise
    best_objective: Total
    phase: Any  # 0 first plain point, 1 second plain point, 2 extrapolated point
    wait: Any  # cycles to run without extrapolation
    penalty: Any  # how long the next refusal makes us wait
    trace: Any
    n_iter: Any
    n_evaluations: Any
    status: Any


def start(point: Any, *, max_steps: int, accelerate: bool = True, dtype: Any = None) -> State:
    """State before the first step.

    Args:
        point: pytree of arrays, the starting point.
        max_steps: length of the trace, the largest number of accepted points.
        accelerate: as in :func:`advance`; plain steps need to remember fewer points.
        dtype: dtype of the objective; that of the point's first floating leaf by default.
    """
    if dtype is None:
        dtype = jnp.result_type(*jax.tree.leaves(point), jnp.float32)
    # NumPy's, which compile nothing
    low: Any = np.zeros((), dtype)
    worst = Total(low - np.inf, low)
    zero, one = np.zeros((), np.int32), np.ones((), np.int32)
    earlier = point if accelerate else None
    return State(
        point,
        earlier,
        point,
        earlier,
        worst,
        zero,
        zero,
        one,
        np.full((max_steps,), np.nan, dtype),
        zero,
        zero,
        zero,
    )


def _pick(condition: Any, yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _norm(tree: Any) -> Any:
    return jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree)))


def _extrapolate(coordinates: Coordinates, p0: Any, p1: Any, p2: Any, data: Any) -> Any:
    x0, x1, x2 = (coordinates.free(p, data) for p in (p0, p1, p2))
    r = jax.tree.map(jnp.subtract, x1, x0)
    v = jax.tree.map(lambda a, b, c: (c - b) - (b - a), x0, x1, x2)
    size = _norm(v)
    length = jnp.where(size > 0, _norm(r) / jnp.where(size > 0, size, 1), 1)
    length = jnp.maximum(length, 1)
    moved = jax.tree.map(lambda a, b, c: a + 2 * length * b + length**2 * c, x0, r, v)
    return coordinates.constrain(moved, p2, data)


def advance(
    step: Step,
    state: State,
    data: Any,
    *,
    until: Any,
    tol: Any,
    accelerate: bool = True,
    coordinates: Coordinates = IDENTITY,
    stride: int = 1,
) -> State:
    """Run until the status is decided or ``until`` evaluations have been made; pure, jittable.

    Args:
        step: the map; must be the same object from call to call to be compiled once.
        state: from :func:`start` or an earlier call.
        data: second argument of ``step``.
        until: scalar, total number of evaluations to stop at.
        tol: scalar, smallest gain of a plain step, in units of the objective.
        accelerate: try SQUAREM extrapolations.
        coordinates: where to extrapolate.
        stride: plain steps to each look at the objective, which may cost more than the step does;
            1 with acceleration, which needs it every time.
    """
    if accelerate and stride != 1:
        raise ValueError("stride: 1 is needed for acceleration")
    eps = jnp.finfo(state.trace.dtype).eps
    max_steps = state.trace.shape[0]

    def unseen(_: Any, point: Any) -> Any:
        return step(point, data)[0]

    def body(s: State) -> State:
        # the first point is looked at, so that the last one is not lost if the next ones are worse
        here, unlooked = s.point, jnp.zeros((), jnp.int32)
        if stride > 1:
            unlooked = jnp.where(s.n_iter == 0, 0, stride - 1).astype(jnp.int32)
            here = lax.fori_loop(0, unlooked, unseen, here)
        following, objective = step(here, data)
        first = s.n_iter == 0
        gain = jnp.where(first, jnp.inf, objective - s.best_objective)
        noise = 2 * eps * jnp.abs(objective.value)
        finite = jnp.isfinite(objective.value)
        extrapolated = s.phase == 2
        refused = extrapolated & ~(finite & (gain >= 0))
        fell = ~extrapolated & finite & (gain < -jnp.maximum(tol, 4 * noise)) & ~first
        broken = ~extrapolated & ~finite
        accepted = ~(refused | fell | broken)
        settled = accepted & ~extrapolated & (gain <= tol)

        # a last step within rounding of the best point adds nothing to the trace
        better = accepted & ((gain > 0) | first)
        n_iter = s.n_iter + better
        trace = jnp.where(better & (jnp.arange(max_steps) == s.n_iter), objective.value, s.trace)
        status = jnp.select(
            [broken, fell, settled, n_iter >= max_steps],
            [Status.NOT_FINITE, Status.OBJECTIVE_FELL, Status.CONVERGED, Status.LIMIT_REACHED],
            Status.RUNNING,
        ).astype(jnp.int32)

        try_now = (s.phase == 1) & (s.wait == 0) & accelerate
        if accelerate:
            moved = lax.cond(
                try_now,
                lambda: _extrapolate(coordinates, s.base, here, following, data),
                lambda: following,
            )
            point = _pick(refused, s.fallback, moved)
        else:
            point = following
        phase = jnp.where(try_now, 2, jnp.where(s.phase == 0, 1, 0)).astype(jnp.int32)
        wait = jnp.where(refused, s.penalty, jnp.maximum(s.wait - (s.phase == 1), 0))
        penalty = jnp.where(
            refused, jnp.minimum(2 * s.penalty, 64), jnp.where(extrapolated, 1, s.penalty)
        )
        return State(
            point,
            _pick(s.phase == 0, here, s.base) if accelerate else s.base,
            _pick(better, here, s.best),
            _pick(try_now, following, s.fallback) if accelerate else s.fallback,
            _pick(better, objective, s.best_objective),
            phase,
            wait.astype(jnp.int32),
            penalty.astype(jnp.int32),
            trace,
            n_iter.astype(jnp.int32),
            s.n_evaluations + 1 + unlooked,
            status,
        )

    def running(s: State) -> Any:
        return (s.status == Status.RUNNING) & (s.n_evaluations < until)

    return lax.while_loop(running, body, state)


@partial(host_jit, static_argnames=("step", "accelerate", "coordinates", "stride", "own"))
def _advance(
    step: Step,
    state: State,
    data: Any,
    *,
    until: Any,
    tol: Any,
    own: tuple[bool, ...] | None,
    **how: Any,
) -> State:
    """:func:`advance`, of one iteration, or of a batch of them; see :func:`run_batched`."""
    if own is None:
        return advance(step, state, data, until=until, tol=tol, **how)
    leaves, tree = jax.tree.flatten(data)

    def one(mine: list[Any], state: State, tol: Any) -> State:
        rest = iter(mine)
        here = [next(rest) if is_own else leaf for leaf, is_own in zip(leaves, own, strict=True)]
        here = jax.tree.unflatten(tree, here)
        return advance(step, state, here, until=until, tol=tol, **how)

    mine = [leaf for leaf, is_own in zip(leaves, own, strict=True) if is_own]
    return jax.vmap(one)(mine, state, tol)


#: What a state holds beside points; one of each an iteration.
_COUNTERS = tuple(f for f in State._fields if f not in ("point", "base", "best", "fallback"))


def _repeated(state: State, n: int) -> State:
    """A state whose points are those of ``n`` iterations, with counters for each."""
    each = {name: getattr(state, name) for name in _COUNTERS}
    return state._replace(**jax.tree.map(lambda x: np.repeat(x[None], n, 0), each))


def result(state: State) -> Result:
    """What is reported of a state."""
    running = state.status == Status.RUNNING
    return Result(
        state.best,
        state.best_objective.value,
        state.best_objective.high - state.best_objective.value + state.best_objective.low,
        state.trace,
        state.n_iter,
        state.n_evaluations,
        state.status + running * (Status.LIMIT_REACHED - Status.RUNNING),
    )


def solve(
    step: Step,
    point: Any,
    data: Any,
    *,
    max_steps: int = 500,
    tol: Any = 1e-6,
    accelerate: bool = True,
    coordinates: Coordinates = IDENTITY,
) -> Result:
    """Iterate to a fixed point; pure, so that it may be put under ``jit`` and ``vmap``.

    Args:
        step: ``step(point, data) -> (next, objective at point)``, objective as a ``Total``.
        point: starting point, a pytree of floating arrays.
        data: passed through to ``step``.
        max_steps: largest number of accepted points (evaluations: at most 3 for every 2).
        tol: gain of a plain step, in units of the objective, below which it has converged.
        accelerate: try monotone SQUAREM extrapolations.
        coordinates: unconstrained coordinates for them.
    """
    state = start(point, max_steps=max_steps, accelerate=accelerate)
    state = advance(
        step,
        state,
        data,
        until=2 * max_steps,
        tol=tol,
        accelerate=accelerate,
        coordinates=coordinates,
    )
    return result(state)


def run(step: Step, point: Any, data: Any, *, tol: Any = 1e-6, **options: Any) -> Result:
    """:func:`solve` from the host: the same compiled loop in chunks, so that Ctrl-C loses nothing.

    Arguments as for :func:`run_sequential`.
    """
    (found,) = run_sequential(step, [point], [data], tols=[tol], **options)
    return found


def run_sequential(
    step: Step,
    points: Sequence[Any],
    data: Sequence[Any],
    *,
    tols: Sequence[Any],
    max_steps: int = 500,
    accelerate: bool = True,
    stride: int = 1,
    **how: Any,
) -> list[Result]:
    """:func:`solve` of several points from the host, by one compiled loop where shapes agree.

    Each in turn runs a chunk of about ``chunk_seconds``; between rounds the host calls
    ``report(accepted points, objective)`` of the furthest and the best. On ``KeyboardInterrupt``
    the best points so far are returned, those that were still running with
    ``Status.INTERRUPTED``.

    Args:
        step: as for :func:`solve`.
        points: where each begins.
        data: passed through to ``step``, for each.
        tols: gain of a plain step, in units of the objective, below which each has converged.
        max_steps: largest number of accepted points of each.
        accelerate: try monotone SQUAREM extrapolations.
        stride: with more than 1 (see :func:`advance`) the trace holds one point in so many, and
            ``max_steps`` still counts all.
        how: ``coordinates``, ``report`` and ``chunk_seconds``.
    """
    begin = partial(start, max_steps=_looks(max_steps, stride), accelerate=accelerate)
    states = [begin(point) for point in points]
    return _driven(step, states, data, tols, accelerate=accelerate, stride=stride, **how)


def run_batched(
    step: Step,
    points: Any,
    data: Any,
    *,
    tols: Sequence[float],
    own: tuple[bool, ...],
    max_steps: int = 500,
    accelerate: bool = True,
    stride: int = 1,
    **how: Any,
) -> list[Result]:
    """:func:`run_sequential`, all at once in one program: for what has more cores than one fit needs.

    Args:
        points: pytree with one leaf for each of the points', the points along its first axis.
        data: pytree, what differs from one to the other stacked, what is the same once.
        tols: as there.
        own: of each leaf of ``data``, whether it was stacked.
        step, max_steps, accelerate, stride, how: as there.
    """
    n, tol = len(tols), np.asarray(tols, float)
    state = _repeated(start(points, max_steps=_looks(max_steps, stride), accelerate=accelerate), n)
    (found,) = _driven(
        step, [state], [data], [tol], accelerate=accelerate, stride=stride, own=own, **how
    )
    return [jax.tree.map(itemgetter(i), found) for i in range(n)]


def _looks(max_steps: int, stride: int) -> int:
    """Most looks at the objective: one at the first point, then one every ``stride``."""
    return 1 + -(-(max_steps - 1) // stride)


def _driven(
    step: Step,
    states: list[State],
    data: Sequence[Any],
    tols: Sequence[Any],
    *,
    stride: int,
    coordinates: Coordinates = IDENTITY,
    report: Callable[[int, float], None] | None = None,
    chunk_seconds: float = 0.25,
    own: tuple[bool, ...] | None = None,
    **how: Any,
) -> list[Result]:
    """Advance all states in turns until none is running or may make another evaluation."""
    chunk, done, limit = 8, 0, 2 * stride * states[0].trace.shape[-1]
    left = list(range(len(states)))
    try:
        while True:
            began = time.perf_counter()
            done = min(done + chunk, limit)
            for i in left:
                state = _advance(
                    step,
                    states[i],
                    data[i],
                    until=done,
                    tol=tols[i],
                    coordinates=coordinates,
                    stride=stride,
                    own=own,
                    **how,
                )
                states[i] = jax.block_until_ready(state)
            left = [i for i in left if np.any(np.asarray(states[i].status) == Status.RUNNING)]
            if report is not None:
                furthest = max(int(np.max(s.n_iter)) for s in states)
                report(furthest, max(float(np.max(s.best_objective.value)) for s in states))
            if not left or done >= limit:
                return [result(s) for s in states]
            pace = (time.perf_counter() - began) / chunk
            chunk = int(min(max(chunk_seconds / max(pace, 1e-9), 1), 4 * chunk))
    except KeyboardInterrupt:
        if any(np.any(np.asarray(s.n_iter) == 0) for s in states):
            raise
        return [result(_interrupted(s)) for s in states]


def _interrupted(state: State) -> State:
    status = np.asarray(state.status)
    status = np.where(status == Status.RUNNING, Status.INTERRUPTED, status)
    return state._replace(status=status.astype(np.int32))
