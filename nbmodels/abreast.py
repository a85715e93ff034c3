"""Many fits of the same shapes in one compiled program: restarts, folds, grids, replicates.

What the fits share (most of the data, as a rule) is held once; what differs from one to the other
is stacked. Fits of different structure or shapes go into programs of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from inference import Result, run
from nbmodels import model as models
from nbmodels.families import Rule
from nbmodels.model import Data, Model

#: Bytes that the points of the fits in one program may take, a few of which each fit remembers.
_ROOM = 250_000_000


def climb(
    starts: Sequence[Any],
    contexts: Sequence[tuple[Model, Data]],
    tols: Sequence[float],
    *,
    rule: Rule,
    max_iter: int,
    accelerate: bool,
    stride: int = 1,
    report: Callable[[int, float], None] | None = None,
) -> list[Result]:
    """The results of iterating from each start in its context, in their order.

    Args:
        starts: conjugate posteriors of the components to begin from.
        contexts: model and data of each.
        tols: gain in nats below which each has converged.
        rule: ``"ml"``, ``"map"`` or ``"vb"``.
        max_iter: largest number of accepted points of each.
        accelerate: try monotone SQUAREM extrapolations.
        stride: steps to each look at the objective.
        report: see :func:`inference.run`.
    """
    drive = partial(
        run,
        models.step(rule),
        max_steps=max_iter,
        accelerate=accelerate,
        stride=stride,
        coordinates=models.coordinates(rule),
        report=report,
    )
    groups = defaultdict(list)
    for i, (start, context) in enumerate(zip(starts, contexts, strict=True)):
        groups[_kind((start, context))].append(i)
    out: dict[int, Result] = {}
    for group in groups.values():
        size = sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(starts[group[0]]))
        at_once = max(1, _ROOM // max(size, 1))
        for at in range(0, len(group), at_once):
            batch = group[at : at + at_once]
            if len(batch) == 1:
                (i,) = batch
                out[i] = drive(starts[i], contexts[i], tol=tols[i])
                continue
            own, context = _shared([contexts[i] for i in batch])
            stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[starts[i] for i in batch])
            found = drive(stacked, context, tol=np.array([tols[i] for i in batch]), own=own)
            for j, i in enumerate(batch):
                out[i] = jax.tree.map(lambda leaf, j=j: leaf[j], found)
    return [out[i] for i in range(len(out))]


def _kind(tree: Any) -> Any:
    """Hashable; equal where the same compiled program serves."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)


def _same(leaves: Sequence[Any]) -> bool:
    first = leaves[0]
    if all(leaf is first for leaf in leaves):
        return True
    # a power or a pseudo-count is worth a look; a long array is not
    return np.size(first) == 1 and all(np.array_equal(leaf, first) for leaf in leaves)


def _shared(contexts: Sequence[Any]) -> tuple[tuple[bool, ...], Any]:
    """What differs stacked, what is the same once; and of each leaf, whether it was stacked."""
    columns = list(zip(*map(jax.tree.leaves, contexts), strict=True))
    own = tuple(not _same(column) for column in columns)
    leaves = [
        jnp.stack([jnp.asarray(leaf) for leaf in column]) if is_own else column[0]
        for column, is_own in zip(columns, own, strict=True)
    ]
    return own, jax.tree.unflatten(jax.tree.structure(contexts[0]), leaves)
