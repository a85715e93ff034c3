"""The two products of every model: ``X @ W`` for evidence and ``X.T @ R`` for statistics.

``Dense`` wraps an array, ``Sparse`` a matrix laid out for gathering; a component calls ``times``
and ``transpose_times`` and never asks which it has. A sparse row is cut into chunks of 16, so
that the sum over a chunk is one fused kernel of unrolled gathers (``W[i0] + W[i1] + ...``); the
chunk sums of a row are summed four by four in the same way, level upon level, until one is left.
Padding points at a row of zeros. A matrix of ones carries no values.

All levels are written into one buffer and only ever read by gathers: where a sum of gathers has a
second reader, or is concatenated, some releases of XLA write every single gather to memory first
(measured on jaxlib 0.10: 30 times slower).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

_WIDTH = 16
_FAN_IN = 4

_ROWS = lax.GatherDimensionNumbers(
    offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Dense:
    """A dense matrix ``(N, d)``."""

    array: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def times(self, table: Array) -> Array:
        """``X @ table``: ``(N, d) x (d, K) -> (N, K)``."""
        return jnp.matmul(self.array, table, precision=lax.Precision.HIGHEST)

    def transpose_times(self, rows: Array) -> Array:
        """``X.T @ rows``: ``(N, d).T x (N, K) -> (d, K)``."""
        return jnp.matmul(rows.T, self.array, precision=lax.Precision.HIGHEST).T

    def to_dense(self) -> Array:
        return self.array


def _take(table: Array, index: Array) -> Array:
    return lax.gather(
        table,
        index[:, None],
        _ROWS,
        (1, table.shape[1]),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def _gather_sum(table: Array, index: Array, values: Array | None) -> Array:
    """``sum over j of values[j] * table[index[j]]``, unrolled into one kernel."""
    out = jnp.zeros((), table.dtype)
    for j in range(index.shape[0]):
        part = _take(table, index[j])
        if values is not None:
            part = part * values[j][:, None]
        out = part if j == 0 else out + part
    return out


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Gather:
    """One direction of a sparse product: ``out[r] = sum over entries (r, c, v) of v * table[c]``.

    Args:
        index: ``(16, chunks)`` column of each entry; the number of columns stands for padding.
        values: the same shape, or None where every entry is one.
        levels: ``(4, sums)`` rows of the buffer that each level sums.
        place: ``(rows,)`` row of the buffer that holds each result.
    """

    index: Array
    values: Array | None
    levels: tuple[Array, ...]
    place: Array

    def __call__(self, table: Array) -> Array:
        padded = jnp.pad(table, ((0, 1), (0, 0)))
        size = self.index.shape[1] + sum(level.shape[1] for level in self.levels) + 1
        buffer = jnp.zeros((size, table.shape[1]), table.dtype)
        sums = _gather_sum(padded, self.index, self.values)
        buffer = lax.dynamic_update_slice(buffer, sums, (0, 0))
        at = self.index.shape[1]
        for level in self.levels:
            buffer = lax.optimization_barrier(buffer)
            sums = _gather_sum(buffer, level, None)
            buffer = lax.dynamic_update_slice(buffer, sums, (at, 0))
            at += level.shape[1]
        return _take(lax.optimization_barrier(buffer), self.place)


def _grouped(counts: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut runs of ``counts`` entries into groups of ``width``.

    Returns:
        groups of each run, and for each entry its slot in the group and its group.
    """
    groups = -(-counts // width)
    run = np.repeat(np.arange(len(counts)), counts)
    position = np.arange(len(run)) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.cumsum(groups) - groups
    return groups, position % width, first[run] + position // width


def _gather(matrix: Any, dtype: Any, binary: bool) -> Gather:
    n_rows, n_columns = matrix.shape
    counts, slot, group = _grouped(np.diff(matrix.indptr).astype(np.int64), _WIDTH)
    index = np.full((_WIDTH, int(counts.sum())), n_columns, np.int32)
    index[slot, group] = matrix.indices
    values = None
    if not binary:
        values = np.zeros(index.shape, dtype)
        values[slot, group] = matrix.data
    levels, at, size = [], 0, index.shape[1]
    place = np.full(n_rows, -1, np.int64)
    rows = np.arange(n_rows)
    while True:
        first = at + np.cumsum(counts) - counts
        place[rows[counts == 1]] = first[counts == 1]
        rows, first, counts = rows[counts > 1], first[counts > 1], counts[counts > 1]
        if len(rows) == 0:
            break
        inner = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        members = np.repeat(first, counts) + inner
        at = size
        counts, slot, group = _grouped(counts, _FAN_IN)
        level = np.full((_FAN_IN, int(counts.sum())), -1, np.int64)
        level[slot, group] = members
        levels.append(level)
        size += level.shape[1]
    zero = size  # the buffer's last row
    return Gather(
        jnp.asarray(index),
        None if values is None else jnp.asarray(values),
        tuple(jnp.asarray(np.where(level < 0, zero, level), jnp.int32) for level in levels),
        jnp.asarray(np.where(place < 0, zero, place), jnp.int32),
    )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Sparse:
    """A sparse matrix, laid out for both products. Build it with :func:`matrix`."""

    forward: Gather
    backward: Gather
    shape: tuple[int, int] = field(metadata={"static": True})

    def times(self, table: Array) -> Array:
        """``X @ table``: ``(N, d) x (d, K) -> (N, K)``."""
        return self.forward(table)

    def transpose_times(self, rows: Array) -> Array:
        """``X.T @ rows``: ``(N, d).T x (N, K) -> (d, K)``."""
        return self.backward(rows)

    def to_dense(self) -> Array:
        return self.backward(jnp.eye(self.shape[0])).T


Matrix = Dense | Sparse


def matrix(x: Any, dtype: Any = None) -> Matrix:
    """Lay out ``x`` for the two products.

    Args:
        x: ``(N, d)`` array, or any SciPy sparse matrix or array (duplicate entries are summed).
        dtype: floating dtype of values; JAX's default by default.
    """
    dtype = jnp.zeros((), dtype).dtype
    if not hasattr(x, "tocsr"):
        return Dense(jnp.asarray(x, dtype))
    rows = x.tocsr().copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    binary = bool(np.all(rows.data == 1))
    return Sparse(
        _gather(rows, dtype, binary),
        _gather(rows.T.tocsr(), dtype, binary),
        (int(rows.shape[0]), int(rows.shape[1])),
    )
