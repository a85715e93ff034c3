"""SQUAREM: squared extrapolation of a fixed-point iteration, made monotone by its caller.

Scheme S3 of Varadhan and Roland (2008, "Simple and globally convergent methods for accelerating the
convergence of any EM algorithm"). A cycle is two plain steps ``p0 -> p1 -> p2`` and a jump along
their differences. A jump that lowers the objective is rejected: the iteration returns to ``p2``,
and the next jumps are postponed by 1, 2, 4 ... at most 64 cycles until one is accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Int, PyTree, Scalar

#: Phases of a cycle: which of its points is evaluated next.
FIRST, SECOND, EXTRAPOLATED = 0, 1, 2

_LONGEST_WAIT = 64


class Coordinates(NamedTuple):
    """Unconstrained coordinates in which points are extrapolated; hashable, so it may be static.

    Attributes:
        free: ``free(point, data)``, the point in unconstrained coordinates.
        constrain: ``constrain(free, point, data)``, the inverse; ``point`` is the last plain one,
            for the parts that the coordinates leave out.

    Examples:
        >>> import jax.numpy as jnp
        >>> from inference import Coordinates, solve, total
        >>> def step(x, target):  # half of the way to the target on the scale of logarithms
        ...     return jnp.sqrt(x * target), total(-jnp.square(jnp.log(x / target)))
        >>> logs = Coordinates(lambda x, data: jnp.log(x), lambda free, x, data: jnp.exp(free))
        >>> inside = solve(step, jnp.array([1e-6]), jnp.array([2.0]), coordinates=logs)
        >>> straight = solve(step, jnp.array([1e-6]), jnp.array([2.0]))
        >>> round(float(inside.params[0]), 3), bool(inside.n_evaluations < straight.n_evaluations)
        (2.0, True)
    """

    free: Callable[[PyTree, PyTree], PyTree]
    constrain: Callable[[PyTree, PyTree, PyTree], PyTree]


def _same(point: PyTree, data: PyTree) -> PyTree:
    return point


def _back(free: PyTree, point: PyTree, data: PyTree) -> PyTree:
    return free


IDENTITY = Coordinates(_same, _back)


class Cycle(NamedTuple):
    """State of the acceleration.

    Attributes:
        base: first point of the present cycle.
        fallback: second iterate, where the iteration goes on after a rejected extrapolation.
        phase: :data:`FIRST`, :data:`SECOND` or :data:`EXTRAPOLATED`.
        wait: cycles left to run without an extrapolation.
        penalty: cycles to wait after the next rejection.
    """

    base: PyTree
    fallback: PyTree
    phase: Int[Array, "*batch"]
    wait: Int[Array, "*batch"]
    penalty: Int[Array, "*batch"]


def start(point: PyTree, shape: tuple[int, ...] = ()) -> Cycle:
    """State before the first step, in NumPy's arrays, which compile nothing.

    Args:
        point: the starting point.
        shape: of the batch of iterations that ``point`` holds along its leading axes.
    """
    zero: Any = np.zeros(shape, np.int32)
    one: Any = np.ones(shape, np.int32)
    return Cycle(point, point, zero, zero, one)


def extrapolate(
    coordinates: Coordinates, p0: PyTree, p1: PyTree, p2: PyTree, data: PyTree
) -> PyTree:
    """Point of scheme S3 after the plain steps ``p0 -> p1 -> p2``; step lengths are at least 1."""
    x0, x1, x2 = (coordinates.free(p, data) for p in (p0, p1, p2))
    r = jax.tree.map(jnp.subtract, x1, x0)
    v = jax.tree.map(lambda a, b, c: (c - b) - (b - a), x0, x1, x2)
    size = _norm(v)
    length = jnp.where(size > 0, _norm(r) / jnp.where(size > 0, size, 1), 1)
    length = jnp.maximum(length, 1)
    moved = jax.tree.map(lambda a, b, c: a + 2 * length * b + length**2 * c, x0, r, v)
    return coordinates.constrain(moved, p2, data)


def proceed(
    cycle: Cycle,
    here: PyTree,
    following: PyTree,
    rejected: Bool[Array, ""],
    data: PyTree,
    coordinates: Coordinates,
) -> tuple[PyTree, Cycle]:
    """Next point to evaluate, and the state after it was chosen.

    Args:
        cycle: state of the acceleration.
        here: the point just evaluated.
        following: the plain step from it.
        rejected: whether ``here`` is an extrapolated point that lowers the objective.
        data: passed through to ``coordinates``.
        coordinates: in which points are extrapolated.
    """
    try_now = (cycle.phase == SECOND) & (cycle.wait == 0)
    moved = lax.cond(
        try_now,
        lambda: extrapolate(coordinates, cycle.base, here, following, data),
        lambda: following,
    )
    wait = jnp.maximum(cycle.wait - (cycle.phase == SECOND), 0)
    doubled = jnp.minimum(2 * cycle.penalty, _LONGEST_WAIT)
    accepted = jnp.where(cycle.phase == EXTRAPOLATED, 1, cycle.penalty)
    phase = jnp.where(try_now, EXTRAPOLATED, jnp.where(cycle.phase == FIRST, SECOND, FIRST))
    return pick(rejected, cycle.fallback, moved), Cycle(
        pick(cycle.phase == FIRST, here, cycle.base),
        pick(try_now, following, cycle.fallback),
        phase.astype(jnp.int32),
        jnp.where(rejected, cycle.penalty, wait).astype(jnp.int32),
        jnp.where(rejected, doubled, accepted).astype(jnp.int32),
    )


def pick(condition: Bool[Array, ""], yes: PyTree, no: PyTree) -> PyTree:
    """``jnp.where`` of a scalar condition on each leaf."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _norm(tree: PyTree) -> Scalar:
    return jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree)))
