"""Several chains or fits at once, a thread each: a small one does not keep all cores busy.

Compiled programs run without Python's lock. A program gives the same result whichever thread runs
it, so that results do not depend on the number of cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import jax
from jaxtyping import PyTree

T = TypeVar("T")
U = TypeVar("U")

#: Bytes of data from which on a program keeps the cores busy by itself, and room is short.
_LARGE = 50_000_000


def in_threads(
    work: Callable[[T], U], items: Sequence[T], *, reads: PyTree, compiled: bool
) -> Iterator[U]:
    """``map(work, items)``, on as many threads as there are cores.

    Args:
        work: computes with JAX, and waits for the result.
        items: what it is called with.
        reads: arrays that one call reads; where they are large, items are done one by one.
        compiled: whether its programs are; otherwise the first item is done alone, so that they are
            compiled once.

    Raises:
        KeyboardInterrupt: interrupted; calls that have begun are finished first.
    """
    size = sum(getattr(leaf, "nbytes", 0) for leaf in jax.tree.leaves(reads))
    threads = 1 if size > _LARGE else min(_n_cores(), len(items))
    alone = len(items) if threads == 1 else 0 if compiled else 1
    yield from map(work, items[:alone])
    if alone == len(items):
        return
    settings: Any = jax.config  # of this thread alone
    double, device = settings.jax_enable_x64, settings.jax_default_device
    precision = settings.jax_default_matmul_precision

    def there(item: T) -> U:
        with (
            jax.enable_x64(double),
            jax.default_device(device),
            jax.default_matmul_precision(precision),
        ):
            return work(item)

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(there, items[alone:])


def _n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
