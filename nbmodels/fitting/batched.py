"""Many fits of the same shapes by one compiled program: restarts, folds, grids, replicates.

They take turns as a rule: the program is that of a single fit, however many there are. On a GPU
many fits of the same shapes are one batched program: what they share (most of the data, as a rule)
is held once, what differs from one to the other is stacked. For the folds and candidates of a
default fit that program takes longer to compile than it saves.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from inference import Result, Status, run_batched, run_sequential
from inference.compilation import on_cpu
from nbmodels.fitting.iterations import Iteration

#: Fits of the same shapes from which on a GPU runs them as one: replicates of a simulation, whose
#: program is compiled once for many calls.
_MANY = 100

#: Bytes that the points of the fits run together may take, a few of which each fit remembers.
_ROOM = 250_000_000


#: Counts of the calls under way.
_counts: ContextVar[tuple[FitCount, ...]] = ContextVar("nbmodels_fit_counts", default=())


class FitCount:
    """Number of fits so far: candidates, folds and restarts count one each."""

    def __init__(self) -> None:
        self.n = 0


@contextlib.contextmanager
def counted_fits() -> Iterator[FitCount]:
    """Count the fits that are made inside; may be nested."""
    count = FitCount()
    token = _counts.set((*_counts.get(), count))
    try:
        yield count
    finally:
        _counts.reset(token)


def fit_batch(
    starts: Sequence[Any],
    contexts: Sequence[Any],
    tols: Sequence[float],
    *,
    iteration: Iteration,
    max_iter: int,
    accelerate: bool,
    stride: int = 1,
    report: Callable[[int, float], None] | None = None,
) -> list[Result]:
    """The results of iterating from each start in its context, in their order.

    Args:
        starts: points to begin from, as the iteration carries them.
        contexts: of each, from ``iteration.context``.
        tols: gain in nats below which each has converged.
        iteration: what is carried, and the steps.
        max_iter: largest number of accepted points of each.
        accelerate: try monotone SQUAREM extrapolations.
        stride: steps to each look at the objective.
        report: see :func:`inference.run_sequential`.
    """
    how: dict[str, Any] = {
        "max_steps": max_iter,
        "accelerate": accelerate,
        "stride": stride,
        "coordinates": iteration.coordinates,
        "report": report,
    }
    for count in _counts.get():
        count.n += len(starts)
    step = iteration.step
    out: dict[int, Result] = {}
    interrupted = False
    for batch in _batches(starts, contexts):
        mine, tol = [starts[i] for i in batch], [tols[i] for i in batch]
        if interrupted:
            how["report"] = _stop
        if on_cpu() or len(batch) < _MANY:
            found = run_sequential(step, mine, [contexts[i] for i in batch], tols=tol, **how)
        else:
            in_axes, context = _shared([contexts[i] for i in batch])
            stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *mine)
            found = run_batched(step, stacked, context, tols=tol, in_axes=in_axes, **how)
        interrupted = interrupted or any(int(r.status) == Status.INTERRUPTED for r in found)
        out.update(zip(batch, found, strict=True))
    return [out[i] for i in range(len(out))]


def _stop(n_iter: int, objective: float) -> None:
    """End the later batches, too: Ctrl-C was meant for all fits."""
    raise KeyboardInterrupt


def _batches(starts: Sequence[Any], contexts: Sequence[Any]) -> Iterator[list[int]]:
    """Fits that may run as one: of one shape on a GPU, and few enough for their points."""
    groups = defaultdict(list)
    in_turns = on_cpu()
    for i, (start, context) in enumerate(zip(starts, contexts, strict=True)):
        groups[None if in_turns else _kind((start, context))].append(i)
    for group in groups.values():
        batch: list[int] = []
        size = 0
        for i in group:
            more = sum(leaf.nbytes for leaf in jax.tree.leaves(starts[i]))
            if batch and size + more > _ROOM:
                yield batch
                batch, size = [], 0
            batch.append(i)
            size += more
        yield batch


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


def _shared(contexts: Sequence[Any]) -> tuple[Any, Any]:
    """``in_axes`` for ``jax.vmap``, and the contexts as one, stacked where they differ."""
    axes, leaves = [], []
    for column in zip(*map(jax.tree.leaves, contexts), strict=True):
        shared = _same(column)
        axes.append(None if shared else 0)
        leaves.append(column[0] if shared else jnp.stack([jnp.asarray(x) for x in column]))
    structure = jax.tree.structure(contexts[0])
    return jax.tree.unflatten(structure, axes), jax.tree.unflatten(structure, leaves)
