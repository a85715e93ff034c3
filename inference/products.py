"""The two products of every model: ``X @ W`` for evidence and ``X.T @ R`` for statistics.

``Dense`` wraps an array, ``Sparse`` a matrix laid out for gathering; a component calls ``times``
and ``transpose_times`` and never asks which it has. A sparse row is cut into chunks of a fixed
width, so that the sum over a chunk is one fused kernel of unrolled gathers
(``out = W[i0] + W[i1] + ...``); rows are sorted by their number of chunks, and the chunk sums of a
bucket are added slab by slab. Padding points at an appended row of zeros. A matrix of ones carries
no values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

_WIDTH = 16

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


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Gather:
    """One direction of a sparse product: ``out[r] = sum over entries (r, c, v) of v * table[c]``.

    Args:
        index: ``(width, chunks)`` column of each entry, transposed; the number of columns pads.
        values: the same shape, or None where every entry is one.
        place: ``(rows,)`` where each row stands in the sorted order.
        buckets: ``(rows, chunks a row)`` of each bucket, in order.
    """

    index: Array
    values: Array | None
    place: Array
    buckets: tuple[tuple[int, int], ...] = field(metadata={"static": True})

    def __call__(self, table: Array) -> Array:
        n_columns = table.shape[1]
        padded = jnp.concatenate([table, jnp.zeros((1, n_columns), table.dtype)])
        chunks = jnp.zeros((), table.dtype)
        for j in range(self.index.shape[0]):
            part = _take(padded, self.index[j])
            if self.values is not None:
                part = part * self.values[j][:, None]
            chunks = part if j == 0 else chunks + part
        chunks = lax.optimization_barrier(chunks)
        sums, at = [], 0
        for rows, each in self.buckets:
            block = lax.slice_in_dim(chunks, at, at + rows * each)
            at += rows * each
            sums.append(
                jnp.zeros((rows, n_columns), table.dtype) if each == 0 else _fold(block, each, rows)
            )
        return _take(jnp.concatenate(sums), self.place)


def _fold(block: Array, parts: int, rows: int) -> Array:
    """Add ``parts`` consecutive slabs of ``rows`` rows, by halves (a major-axis sum is slow)."""
    rest = None
    while parts > 1:
        half = parts // 2
        if parts % 2:
            last = lax.slice_in_dim(block, 2 * half * rows, parts * rows)
            rest = last if rest is None else rest + last
        lower = lax.slice_in_dim(block, 0, half * rows)
        block = lower + lax.slice_in_dim(block, half * rows, 2 * half * rows)
        parts = half
    return block if rest is None else block + rest


def _steps(most: int) -> list[int]:
    """Chunk counts that buckets are rounded up to: exact to 4, then growing by a quarter."""
    steps = list(range(min(most, 4) + 1))
    while steps[-1] < most:
        steps.append(max(steps[-1] + 1, int(np.ceil(steps[-1] * 1.25))))
    return steps


def _gather(matrix: Any, dtype: Any, binary: bool) -> Gather:
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices
    n_rows, n_columns = matrix.shape
    degree = np.diff(indptr)
    steps = np.asarray(_steps(int(-(-degree.max(initial=0) // _WIDTH))))
    step = np.searchsorted(steps, -(-degree // _WIDTH))
    order = np.argsort(step, kind="stable")
    place = np.empty(n_rows, np.int32)
    place[order] = np.arange(n_rows)
    blocks, weights, buckets = [], [], []
    for s, each in enumerate(steps):
        rows = order[step[order] == s]
        if len(rows) == 0:
            continue
        buckets.append((len(rows), int(each)))
        width = int(each) * _WIDTH
        index = np.full((len(rows), width), n_columns, np.int32)
        inside = np.arange(width) < degree[rows, None]
        entries = (indptr[rows, None] + np.arange(width))[inside]
        index[inside] = indices[entries]
        blocks.append(_chunked(index, int(each)))
        if not binary:
            value = np.zeros(index.shape, dtype)
            value[inside] = matrix.data[entries]
            weights.append(_chunked(value, int(each)))
    return Gather(
        jnp.asarray(np.concatenate(blocks, 1)),
        None if binary else jnp.asarray(np.concatenate(weights, 1)),
        jnp.asarray(place),
        tuple(buckets),
    )


def _chunked(block: np.ndarray, each: int) -> np.ndarray:
    """``(rows, each * width) -> (width, each * rows)``, the chunks of all rows slab by slab."""
    rows = block.shape[0]
    return block.reshape(rows, each, _WIDTH).transpose(2, 1, 0).reshape(_WIDTH, each * rows)


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
