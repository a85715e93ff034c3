"""A batch of fixed-point iterations under ``jax.vmap``, for devices that one fit leaves idle.

All iterations advance in one compiled program; those that have ended stand still until the last one
does. Data may be shared by the batch, or differ along a leading axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import jax
import numpy as np
from jax import Array
from jax.tree_util import PyTreeDef
from jaxtyping import Float, PyTree, ScalarLike

from inference import driver
from inference.compilation import loop_jit
from inference.driver import Report, State, Step
from inference.results import Result
from inference.squarem import IDENTITY, Coordinates


class _Axes(NamedTuple):
    """``in_axes`` of ``jax.vmap``, flattened: hashable, so that it may be a static argument."""

    leaves: tuple[int | None, ...]
    structure: PyTreeDef

    @classmethod
    def of(cls, tree: PyTree) -> _Axes:
        leaves, structure = jax.tree.flatten(tree, is_leaf=lambda leaf: leaf is None)
        return cls(tuple(leaves), structure)

    @property
    def tree(self) -> PyTree:
        return jax.tree.unflatten(self.structure, self.leaves)


@partial(loop_jit, static_argnames=("step", "in_axes", "coordinates", "stride"))
def _advance(
    step: Step,
    state: State,
    data: PyTree,
    *,
    until: ScalarLike,
    tol: Float[Array, " batch"],
    in_axes: _Axes,
    coordinates: Coordinates,
    stride: int,
) -> State:
    """:func:`inference.driver.advance` of each iteration of a batch."""

    def one(state: State, data: PyTree, tol: ScalarLike) -> State:
        return driver.advance(
            step, state, data, until=until, tol=tol, coordinates=coordinates, stride=stride
        )

    return jax.vmap(one, in_axes=(0, in_axes.tree, 0))(state, data, tol)


def run_batched(
    step: Step,
    points: PyTree,
    data: PyTree,
    *,
    tols: Sequence[float],
    in_axes: PyTree,
    max_steps: int = 500,
    accelerate: bool = True,
    stride: int = 1,
    coordinates: Coordinates = IDENTITY,
    report: Report | None = None,
    chunk_seconds: float = 0.25,
) -> list[Result]:
    """:func:`inference.run_sequential`, with all iterations in one program.

    Args:
        step: as there.
        points: pytree of starting points, stacked along the first axis of each leaf.
        data: pytree; leaves that differ between iterations are stacked.
        tols: gain of a plain step, in units of the objective, below which each has converged.
        in_axes: of ``data``, as in ``jax.vmap``: the axis along which a leaf is stacked, or None
            where it is shared; a pytree, or a prefix of one.
        max_steps, accelerate, stride, coordinates, report, chunk_seconds: as there.

    Raises:
        KeyboardInterrupt: interrupted before the first points were evaluated.

    Examples:
        >>> import jax.numpy as jnp
        >>> from inference import run_batched, total
        >>> def step(x, b):
        ...     return x + 0.3 * (b - 2 * x), total(b * x - x**2)
        >>> points, targets = jnp.zeros((3, 1)), jnp.array([[2.0], [4.0], [6.0]])
        >>> results = run_batched(step, points, targets, tols=[1e-6] * 3, in_axes=0)
        >>> [round(float(result.params[0]), 2) for result in results]
        [1.0, 2.0, 3.0]
    """
    n, steps = len(tols), driver.n_evaluated(max_steps, stride)
    state = driver.start(points, max_steps=steps, accelerate=accelerate, shape=(n,))
    axes = _Axes.of(in_axes)
    (found,) = driver.drive(
        partial(_advance, step, in_axes=axes, coordinates=coordinates, stride=stride),
        [state],
        [data],
        [np.asarray(tols, float)],
        limit=2 * stride * steps,
        report=report,
        chunk_seconds=chunk_seconds,
    )
    return [jax.tree.map(itemgetter(i), found) for i in range(n)]
