"""Fixed-point iteration with a monotone objective: EM, MAP-EM and CAVI are such iterations.

The map is ``step(point, data) -> (next point, objective at point)``. A point is accepted if it does
not lower the objective; a plain step that lowers it ends the iteration. Acceleration is SQUAREM
(:mod:`inference.squarem`). From the host the compiled loop runs in chunks of a fraction of a
second, between which progress is reported and an interrupt keeps the best points so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, DTypeLike, Float, Int, PyTree, ScalarLike

from inference import squarem
from inference.compilation import loop_jit
from inference.moments import Total
from inference.results import Result, Status
from inference.squarem import IDENTITY, Coordinates, Cycle, pick
from inference.threads import in_threads

Step: TypeAlias = Callable[[PyTree, PyTree], tuple[PyTree, Total]]
Report: TypeAlias = Callable[[int, float], None]


class State(NamedTuple):
    """Carried state of an iteration, or of a batch of them along leading axes.

    Attributes:
        point: where the step is evaluated next.
        best: the best accepted point.
        best_objective: the objective there.
        cycle: state of the acceleration, or None without it.
        trace: objective at each accepted point, NaN beyond ``n_iter``.
        n_iter: number of accepted points.
        n_evaluations: number of calls of the step.
        status: a :class:`Status` code.
    """

    point: PyTree
    best: PyTree
    best_objective: Total
    cycle: Cycle | None
    trace: Float[Array, "*batch max_steps"]
    n_iter: Int[Array, "*batch"]
    n_evaluations: Int[Array, "*batch"]
    status: Int[Array, "*batch"]


def start(
    point: PyTree,
    *,
    max_steps: int,
    accelerate: bool = True,
    dtype: DTypeLike | None = None,
    shape: tuple[int, ...] = (),
) -> State:
    """State before the first step, in NumPy's arrays, which compile nothing.

    Args:
        point: pytree of arrays, the starting point.
        max_steps: length of the trace, the largest number of accepted points.
        accelerate: try monotone SQUAREM extrapolations; plain steps carry fewer points.
        dtype: dtype of the objective; that of the point's first floating leaf by default.
        shape: of the batch of iterations that ``point`` holds along its leading axes.
    """
    if dtype is None:
        dtype = jnp.result_type(*jax.tree.leaves(point), jnp.float32)
    zero: Any = np.zeros(shape, np.int32)
    low: Any = np.zeros(shape, dtype)
    trace: Any = np.full((*shape, max_steps), np.nan, dtype)
    cycle = squarem.start(point, shape) if accelerate else None
    worst = Total(low - np.inf, low)
    return State(point, point, worst, cycle, trace, zero, zero, zero)


class _Verdict(NamedTuple):
    """What the objective at a point decides."""

    better: Bool[Array, ""]  # the point is the best so far
    rejected: Bool[Array, ""]  # it is an extrapolated one, and not good enough
    status: Int[Array, ""]


def _judge(s: State, objective: Total, tol: ScalarLike) -> _Verdict:
    first = s.n_iter == 0
    extrapolated = jnp.zeros((), bool) if s.cycle is None else s.cycle.phase == squarem.EXTRAPOLATED
    gain = jnp.where(first, jnp.inf, objective - s.best_objective)
    noise = 2 * jnp.finfo(s.trace.dtype).eps * jnp.abs(objective.value)
    finite = jnp.isfinite(objective.value)
    rejected = extrapolated & ~(finite & (gain >= 0))
    fell = ~extrapolated & finite & (gain < -jnp.maximum(tol, 4 * noise)) & ~first
    broken = ~extrapolated & ~finite
    accepted = ~(rejected | fell | broken)
    settled = accepted & ~extrapolated & (gain <= tol)
    # a last step within rounding of the best point adds nothing to the trace
    better = accepted & ((gain > 0) | first)
    status = jnp.select(
        [broken, fell, settled, s.n_iter + better >= s.trace.shape[0]],
        [Status.NOT_FINITE, Status.OBJECTIVE_FELL, Status.CONVERGED, Status.LIMIT_REACHED],
        Status.RUNNING,
    )
    return _Verdict(better, rejected, status.astype(jnp.int32))


def advance(
    step: Step,
    state: State,
    data: PyTree,
    *,
    until: ScalarLike,
    tol: ScalarLike,
    coordinates: Coordinates = IDENTITY,
    stride: int = 1,
) -> State:
    """Iterate until the status is decided or ``until`` evaluations have been made; pure, jittable.

    Args:
        step: the map; must be the same object from call to call to be compiled once.
        state: from :func:`start` or an earlier call.
        data: second argument of ``step``.
        until: scalar, total number of evaluations to stop at.
        tol: scalar, smallest gain of a plain step, in units of the objective.
        coordinates: unconstrained coordinates for extrapolations.
        stride: plain steps for each evaluation of the objective, which may cost more than the step
            does; 1 with acceleration, which needs it every time.

    Raises:
        ValueError: a stride other than 1 with acceleration.
    """
    if state.cycle is not None and stride != 1:
        raise ValueError("stride: 1 is needed for acceleration")
    max_steps = state.trace.shape[0]

    def blind(_: Array, point: PyTree) -> PyTree:
        return step(point, data)[0]

    def body(s: State) -> State:
        # the first point is evaluated, so that the last one is not lost if the next ones are worse
        here, skipped = s.point, jnp.zeros((), jnp.int32)
        if stride > 1:
            skipped = jnp.where(s.n_iter == 0, 0, stride - 1).astype(jnp.int32)
            here = lax.fori_loop(0, skipped, blind, here)
        following, objective = step(here, data)
        better, rejected, status = _judge(s, objective, tol)
        at = better & (jnp.arange(max_steps) == s.n_iter)
        point, cycle = following, None
        if s.cycle is not None:
            point, cycle = squarem.proceed(s.cycle, here, following, rejected, data, coordinates)
        return State(
            point,
            pick(better, here, s.best),
            pick(better, objective, s.best_objective),
            cycle,
            jnp.where(at, objective.value, s.trace),
            (s.n_iter + better).astype(jnp.int32),
            s.n_evaluations + 1 + skipped,
            status,
        )

    def running(s: State) -> Bool[Array, ""]:
        return (s.status == Status.RUNNING) & (s.n_evaluations < until)

    return lax.while_loop(running, body, state)


def result(state: State) -> Result:
    """The outcome that a state stands for; what was still running has reached its limit."""
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
    point: PyTree,
    data: PyTree,
    *,
    max_steps: int = 500,
    tol: ScalarLike = 1e-6,
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

    Examples:
        >>> import jax.numpy as jnp
        >>> from inference import Status, solve, total
        >>> def step(x, b):  # towards the maximum of b x - x^2, objective at x
        ...     return x + 0.3 * (b - 2 * x), total(b * x - x**2)
        >>> result = solve(step, jnp.zeros(2), jnp.array([2.0, 6.0]))
        >>> print(result.params.round(2), Status(int(result.status)).name)
        [1. 3.] CONVERGED
    """
    state = start(point, max_steps=max_steps, accelerate=accelerate)
    state = advance(step, state, data, until=2 * max_steps, tol=tol, coordinates=coordinates)
    return result(state)


# From the host -----------------------------------------------------------------------------------

_advance = loop_jit(advance, static_argnames=("step", "coordinates", "stride"))


def run(
    step: Step,
    point: PyTree,
    data: PyTree,
    *,
    tol: ScalarLike = 1e-6,
    max_steps: int = 500,
    accelerate: bool = True,
    stride: int = 1,
    coordinates: Coordinates = IDENTITY,
    report: Report | None = None,
    chunk_seconds: float = 0.25,
) -> Result:
    """:func:`solve` from the host, interruptible: the same compiled loop in chunks.

    Arguments as for :func:`run_sequential`, of one iteration.

    Examples:
        >>> import jax.numpy as jnp
        >>> from inference import run, total
        >>> def step(x, b):
        ...     return x + 0.01 * (b - 2 * x), total(b * x - x**2)
        >>> start, b = jnp.zeros(2), jnp.array([2.0, 6.0])
        >>> result = run(step, start, b)
        >>> print(result.params.round(1))
        [1. 3.]
        >>> plain = run(step, start, b, accelerate=False)  # this slow map then takes many steps
        >>> bool(plain.n_evaluations > 5 * result.n_evaluations)
        True
    """
    (found,) = run_sequential(
        step,
        [point],
        [data],
        tols=[tol],
        max_steps=max_steps,
        accelerate=accelerate,
        stride=stride,
        coordinates=coordinates,
        report=report,
        chunk_seconds=chunk_seconds,
    )
    return found


def run_sequential(
    step: Step,
    points: Sequence[PyTree],
    data: Sequence[PyTree],
    *,
    tols: Sequence[ScalarLike],
    max_steps: int = 500,
    accelerate: bool = True,
    stride: int = 1,
    coordinates: Coordinates = IDENTITY,
    report: Report | None = None,
    chunk_seconds: float = 0.25,
) -> list[Result]:
    """:func:`solve` of several points from the host, by one compiled loop where shapes agree.

    All run chunks of about ``chunk_seconds``, several at once where they are small. On
    ``KeyboardInterrupt`` the best points so far are returned; those still running have
    ``Status.INTERRUPTED``.

    Args:
        step: as for :func:`solve`.
        points: starting point of each.
        data: passed through to ``step``, for each.
        tols: gain of a plain step, in units of the objective, below which each has converged.
        max_steps: largest number of accepted points of each.
        accelerate: try monotone SQUAREM extrapolations.
        stride: with more than 1 (see :func:`advance`) the trace holds one point in so many, and
            ``max_steps`` still counts all.
        coordinates: unconstrained coordinates for extrapolations.
        report: called between rounds with the largest number of accepted points and the best
            objective of all.
        chunk_seconds: seconds between two rounds.

    Raises:
        KeyboardInterrupt: interrupted before each had evaluated its first point.

    Examples:
        >>> import jax.numpy as jnp
        >>> from inference import run_sequential, total
        >>> def step(x, b):
        ...     return x + 0.3 * (b - 2 * x), total(b * x - x**2)
        >>> points, targets = [jnp.zeros(1), jnp.ones(1)], [jnp.array([2.0]), jnp.array([6.0])]
        >>> results = run_sequential(step, points, targets, tols=[1e-6, 1e-6])
        >>> [round(float(result.params[0]), 2) for result in results]
        [1.0, 3.0]
    """
    steps = n_evaluated(max_steps, stride)
    states = [start(point, max_steps=steps, accelerate=accelerate) for point in points]
    return drive(
        partial(_advance, step, coordinates=coordinates, stride=stride),
        states,
        data,
        tols,
        limit=2 * stride * steps,
        report=report,
        chunk_seconds=chunk_seconds,
    )


def n_evaluated(max_steps: int, stride: int) -> int:
    """Largest number of evaluated objectives: the first point's, then one every ``stride``."""
    return 1 + -(-(max_steps - 1) // stride)


def drive(
    compiled: Callable[..., State],
    states: Sequence[State],
    data: Sequence[PyTree],
    tols: Sequence[ScalarLike],
    *,
    limit: int,
    report: Report | None,
    chunk_seconds: float,
) -> list[Result]:
    """Advance all states in rounds until none is running or ``limit`` evaluations have been made.

    Args:
        compiled: ``compiled(state, data, until=, tol=)``, as :func:`advance`.
        states: from :func:`start`; each may be a batch of iterations.
        data, tols: of each state.
        limit: largest number of evaluations of each iteration.
        report, chunk_seconds: as for :func:`run_sequential`.
    """
    states = list(states)
    chunk, done, begun = 8, 0, False
    left = list(range(len(states)))
    try:
        while True:
            began = time.perf_counter()
            done = min(done + chunk, limit)
            until = partial(_advanced, compiled, done)
            now = [(states[i], data[i], tols[i]) for i in left]
            moved = in_threads(until, now, reads=data[0], compiled=begun)
            for i, state in zip(left, moved, strict=True):
                states[i] = state
            begun = True
            left = [i for i in left if np.any(np.asarray(states[i].status) == Status.RUNNING)]
            if report is not None:
                read = [_on_host(s) for s in states]
                furthest = max(int(s.n_iter.max()) for s in read)
                report(furthest, max(float(s.best_objective.value.max()) for s in read))
            if not left or done >= limit:
                return [result(_on_host(s)) for s in states]
            pace = (time.perf_counter() - began) / chunk
            chunk = int(min(max(chunk_seconds / max(pace, 1e-9), 1), 4 * chunk))
    except KeyboardInterrupt:
        if any(np.any(np.asarray(s.n_iter) == 0) for s in states):
            raise
        return [result(_interrupted(_on_host(s))) for s in states]


def _advanced(
    compiled: Callable[..., State], until: int, about: tuple[State, PyTree, ScalarLike]
) -> State:
    state, data, tol = about
    return jax.block_until_ready(compiled(state, data, until=until, tol=tol))


def _on_host(state: State) -> Any:
    """The state with everything but its points in host memory, where reading compiles nothing."""
    names = ("best_objective", "trace", "n_iter", "n_evaluations", "status")
    return state._replace(**{n: jax.tree.map(np.asarray, getattr(state, n)) for n in names})


def _interrupted(state: State) -> State:
    ended: Any = np.where(state.status == Status.RUNNING, Status.INTERRUPTED, state.status)
    return state._replace(status=ended.astype(np.int32))
