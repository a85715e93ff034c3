"""The two products of every model: ``X @ W`` for evidence and ``X.T @ R`` for statistics.

``Dense`` wraps an array, ``Sparse`` a matrix laid out for gathering; a component calls ``times``
and ``transpose_times`` and never asks which it has. Rows of a sparse matrix are sorted by degree
into blocks of (nearly) equal width, so that a block's sum is one fused kernel of unrolled gathers
(``W[i0] + W[i1] + ...``). A row wider than 16 is cut into chunks of 16, whose sums are added four
by four in the same way, level upon level, until one is left. Padding points at a row of zeros. A
matrix of ones carries no values.

A small matrix has blocks of one width only, which are compiled sooner; and all blocks are padded to
one of eight sizes an octave, so that data of much the same size and shape are compiled for once.

Sums that others read are written to memory once and read by gathers only: some releases of XLA
compute a sum of gathers again for every reader (measured on jaxlib 0.10: 30 times slower).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from scipy import sparse

_WIDTH = 16
_FAN_IN = 4

#: Widths of the blocks, and the number of nonzeros from which there is more than one.
_WIDTHS = (1, 2, 3, 4, 6, 8, 12, _WIDTH)
_LARGE = 500_000

#: Whether the compiler keeps optimization barriers until kernels are fused.
_BARRIERS_HOLD = jax.__version_info__ >= (0, 11)

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

    def to_host(self) -> np.ndarray:
        """The matrix as NumPy's."""
        return np.asarray(self.array)


def _take(table: Array, index: Array) -> Array:
    return lax.gather(
        table,
        index[:, None],
        _ROWS,
        (1, table.shape[1]),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def _zeros(size: int, like: Array) -> Array:
    """A buffer to write rows of ``like`` into."""
    return jnp.zeros((size, like.shape[1]), like.dtype)


def _gather_sum(table: Array, index: Array, values: Array | None) -> Array:
    """``sum over j of values[j] * table[index[j]]``, unrolled into one kernel."""
    out = jnp.zeros((), table.dtype)
    for j in range(index.shape[0]):
        part = _take(table, index[j])
        if values is not None:
            part = part * values[j][:, None]
        out = part if j == 0 else out + part
    return out


def _written(rows: Array) -> Array:
    """``rows`` in memory, perhaps with more below them: not to be computed again by each reader."""
    if _BARRIERS_HOLD:
        return lax.optimization_barrier(rows)
    # one row more, or the compiler sees that there is nothing to write into
    room = jnp.zeros((rows.shape[0] + 1, rows.shape[1]), rows.dtype)
    return lax.dynamic_update_slice(room, rows, (0, 0))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tree:
    """Sums of rows too wide for one kernel: chunks of 16, and sums of sums.

    Args:
        block: ``(16, chunks)`` columns of the entries.
        values: of the same shape, or None where every entry is one.
        levels: ``(4, sums)`` which sums of the level before, or of the chunks, each level adds.
        place: ``(rows,)`` place of each result among the sums of all levels.
    """

    block: Array
    values: Array | None
    levels: tuple[Array, ...]
    place: Array

    def __call__(self, padded: Array) -> Array:
        sums = _gather_sum(padded, self.block, self.values)
        found = []
        for level in self.levels:
            sums = _gather_sum(_written(sums), level, None)
            found.append(_written(sums)[: level.shape[1]])
        return _take(jnp.concatenate(found), self.place)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Gather:
    """One direction of a sparse product: ``out[r] = sum over entries (r, c, v) of v * table[c]``.

    Args:
        blocks: ``(width, rows)`` columns of the entries; the number of columns is padding.
        values: of the same shapes, or None where every entry is one.
        wide: rows with more entries than the widest block has, or None.
        place: ``(rows,)`` place of each row among the blocks' and the wide rows; None where they
            stand in that order.
    """

    blocks: tuple[Array, ...]
    values: tuple[Array, ...] | None
    wide: Tree | None
    place: Array | None

    def __call__(self, table: Array) -> Array:
        # the barriers keep what comes before and after out of the kernels: fused into the padding
        # or into the sums, a digamma is computed number by number
        padded = _zeros(table.shape[0] + 1, table)
        padded = lax.optimization_barrier(lax.dynamic_update_slice(padded, table, (0, 0)))
        n_wide = 0 if self.wide is None else self.wide.place.shape[0]
        # where rows have to be put in order, the last one is that of rows without entries
        size = sum(block.shape[1] for block in self.blocks) + n_wide + (self.place is not None)
        out = _zeros(size, table)
        at = 0
        values = self.values or (None,) * len(self.blocks)
        for block, value in zip(self.blocks, values, strict=True):
            out = lax.dynamic_update_slice(out, _gather_sum(padded, block, value), (at, 0))
            at += block.shape[1]
        if self.wide is not None:
            out = lax.dynamic_update_slice(out, self.wide(padded), (at, 0))
        out = lax.optimization_barrier(out)
        return out if self.place is None else _take(out, self.place)


def padded_size(n: int) -> int:
    """The next of eight sizes an octave: ``n`` rounded up to three binary digits after the first.

    Shapes that data decide are rounded up to it, so that few of them occur.
    """
    step = max(1, 1 << max(n.bit_length() - 4, 0))
    return -(-n // step) * step


def _within(counts: np.ndarray) -> np.ndarray:
    """Place of each entry in its run, of runs of ``counts`` entries one after the other."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)


def block_of(degree: np.ndarray) -> np.ndarray:
    """Number of the block that a row of a large matrix goes to, by its number of entries.

    Where rows come in the order of their blocks, their sums need not be put in order.
    """
    return np.searchsorted(_WIDTHS, degree)


def _filled(
    matrix: Any, rows: np.ndarray, width: int, dtype: Any, size: Callable[[int], int]
) -> tuple[np.ndarray, Any, Any]:
    """Chunks of each row, their columns, and their values where ``dtype`` is not None."""
    degree = np.diff(matrix.indptr)[rows]
    chunks = np.maximum(-(-degree // width), 1)  # a row of none has a chunk of padding
    before = width * _within(chunks)
    first = np.repeat(matrix.indptr[rows], chunks) + before
    left = np.repeat(degree, chunks) - before
    shape = (width, size(len(first)))
    columns = np.full(shape, matrix.shape[1], np.int32)
    values = None if dtype is None else np.zeros(shape, dtype)
    for slot in range(width):
        here = np.flatnonzero(left > slot)
        entry = first[here] + slot
        columns[slot, here] = matrix.indices[entry]
        if values is not None:
            values[slot, here] = matrix.data[entry]
    return chunks, columns, values


def _tree(matrix: Any, rows: np.ndarray, dtype: Any, size: Callable[[int], int]) -> Tree:
    # the last column of the block and of each level is padding: its sum is the next one's zero
    chunks, block, values = _filled(matrix, rows, _WIDTH, dtype, lambda n: size(n + 1))
    first, zero, at = np.cumsum(chunks) - chunks, block.shape[1] - 1, 0
    place, left = np.empty(len(rows), np.int64), np.arange(len(rows))
    levels: list[Any] = []
    while len(left):
        inner, below = _within(chunks), np.repeat(first, chunks)
        sums = -(-chunks // _FAN_IN)
        group = np.repeat(np.cumsum(sums) - sums, chunks) + inner // _FAN_IN
        level = np.full((_FAN_IN, size(int(sums.sum()) + 1)), zero, np.int32)
        level[inner % _FAN_IN, group] = below + inner
        chunks = sums
        levels.append(level)
        first, zero = np.cumsum(chunks) - chunks, level.shape[1] - 1
        done = chunks == 1
        place[left[done]] = at + first[done]
        at += level.shape[1]
        left, first, chunks = left[~done], first[~done], chunks[~done]
    padded: Any = np.pad(place, (0, size(len(place)) - len(place))).astype(np.int32)
    return Tree(block, values, tuple(levels), padded)


def _gather(matrix: Any, dtype: Any) -> Gather:
    """Lay out a CSR matrix, of ones where ``dtype`` is None, in NumPy's arrays.

    Rows of a block keep their order.
    """
    degree = np.diff(matrix.indptr).astype(np.int64)
    large = matrix.nnz >= _LARGE
    widths = _WIDTHS if large else (_WIDTH,)
    kind = np.searchsorted(widths, degree)
    ordered = large and bool(np.all(np.diff(kind) >= 0))
    size: Callable[[int], int] = int if ordered else padded_size
    place = np.full(len(degree), -1, np.int64)
    blocks: list[Any] = []
    values: list[Any] = []
    at, wide = 0, None
    for k in np.unique(kind[(degree > 0) | ordered]):
        rows = np.flatnonzero((kind == k) & ((degree > 0) | ordered))
        place[rows] = at + np.arange(len(rows))
        if k == len(widths):
            wide = _tree(matrix, rows, dtype, size)
            at += wide.place.shape[0]
        else:
            _, block, value = _filled(matrix, rows, widths[k], dtype, size)
            blocks.append(block)
            values.append(value)
            at += block.shape[1]
    put: Any = None if ordered else np.where(place < 0, at, place).astype(np.int32)
    return Gather(tuple(blocks), None if dtype is None else tuple(values), wide, put)


def _owners(tree: Tree, rows: np.ndarray) -> np.ndarray:
    """Row that each chunk of a tree belongs to, -1 for padding; ``rows`` of its results."""
    sizes = [level.shape[1] for level in tree.levels]
    owner = np.full(sum(sizes), -1)
    owner[np.asarray(tree.place)[rows >= 0]] = rows[rows >= 0]
    found = [np.full(tree.block.shape[1], -1), *np.split(owner, np.cumsum(sizes)[:-1])]
    for i in range(len(sizes), 0, -1):
        known = found[i] >= 0
        found[i - 1][np.asarray(tree.levels[i - 1])[:, known]] = found[i][known]
    return found[0]


def _entries(gather: Gather, shape: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """Rows, columns and values of the entries that a layout holds."""
    wide = gather.wide
    sizes = [block.shape[1] for block in gather.blocks]
    total = sum(sizes) + (0 if wide is None else wide.place.shape[0])
    row_at = np.full(total + 1, -1)
    row_at[np.arange(shape[0]) if gather.place is None else np.asarray(gather.place)] = np.arange(
        shape[0]
    )
    ends = np.cumsum([0, *sizes])
    owners = [row_at[a:b] for a, b in itertools.pairwise(ends)]
    blocks = [np.asarray(block) for block in gather.blocks]
    values = list(gather.values or [None] * len(blocks))
    if wide is not None:
        owners.append(_owners(wide, row_at[ends[-1] : total]))
        blocks.append(np.asarray(wide.block))
        values.append(wide.values)
    found: list[list[np.ndarray]] = [[np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0)]]
    for owner, block, value in zip(owners, blocks, values, strict=True):
        real = (block < shape[1]) & (owner >= 0)
        found[0].append(np.broadcast_to(owner, block.shape)[real])
        found[1].append(block[real])
        found[2].append(np.ones(int(real.sum())) if value is None else np.asarray(value)[real])
    return tuple(np.concatenate(part) for part in found)


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
        n, d = self.shape
        # the smaller identity: that of a million rows would fill the memory
        return self.forward(jnp.eye(d)) if d <= n else self.backward(jnp.eye(n)).T

    def to_host(self) -> sparse.csr_array:
        """The matrix as SciPy's, read back from the layout without a product."""
        rows, columns, values = _entries(self.forward, self.shape)
        return sparse.coo_array((values, (rows, columns)), self.shape).tocsr()


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
    kept = None if binary else dtype
    # both ways at once, by NumPy: the precision of JAX is a thread's own
    with ThreadPoolExecutor(1) as other:
        turned = other.submit(lambda: _gather(rows.T.tocsr(), kept))
        ways = _gather(rows, kept), turned.result()
    forward, backward = jax.tree.map(jnp.asarray, ways)
    return Sparse(forward, backward, (int(rows.shape[0]), int(rows.shape[1])))
