"""Sparse layout by sorted degree buckets (a sliced ELL format), for products by gathers.

Rows of a large matrix are sorted by degree into buckets of (nearly) equal width. A row wider than
16 is split into chunks of 16, whose sums are added four by four, level upon level, until one is
left. A small matrix has buckets of one width only, which are compiled sooner; and all buckets are
padded to one of eight sizes an octave, so that data of much the same size and shape share a
compiled program. A matrix of ones carries no values. Everything here is NumPy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import Array
from jaxtyping import DTypeLike, Float, Int
from scipy import sparse

from inference.pytree import register_dataclass

_WIDTH = 16
_FAN_IN = 4

#: Widths of the buckets, and the number of nonzeros from which there is more than one.
_WIDTHS = (1, 2, 3, 4, 6, 8, 12, _WIDTH)
_LARGE = 500_000


#: Bytes of a cache line.
_LINE = 64


@register_dataclass
@dataclass(frozen=True)
class ReductionTree:
    """Rows too wide for one kernel: chunks of 16, and sums of sums.

    Attributes:
        block: ``(16, chunks)`` columns of the entries.
        values: of the same shape, or None where every entry is one.
        levels: ``(4, sums)`` which sums of the level before, or of the chunks, each level adds.
        place: ``(rows,)`` place of each result among the sums of all levels.
    """

    block: Int[Array, "16 chunks"]
    values: Float[Array, "16 chunks"] | None
    levels: tuple[Int[Array, "4 sums"], ...]
    place: Int[Array, " rows"]


@register_dataclass
@dataclass(frozen=True)
class Buckets:
    """One direction of a sparse matrix: the entries of its rows, by degree.

    Attributes:
        blocks: ``(width, rows)`` columns of the entries; the number of columns is padding.
        values: of the same shapes, or None where every entry is one.
        wide: rows with more entries than the widest bucket has, or None.
        place: ``(rows,)`` place of each row among the blocks' and the wide rows; None where they
            stand in that order.
    """

    blocks: tuple[Int[Array, "width rows"], ...]
    values: tuple[Float[Array, "width rows"], ...] | None
    wide: ReductionTree | None
    place: Int[Array, " rows"] | None


def padded_size(n: int) -> int:
    """``n`` rounded up to three binary digits after the first: one of eight sizes an octave.

    Shapes that depend on data are rounded up, so that few of them occur and are compiled for.
    """
    step = max(1, 1 << max(n.bit_length() - 4, 0))
    return -(-n // step) * step


def whole_lines(k: int, dtype: DTypeLike) -> int:
    """Number of columns that rows of ``k`` numbers are best padded to.

    A gathered row that fills cache lines costs no line more than it has, and no remainder is
    computed number by number. Not worth more than a fifth of the memory.
    """
    each = _LINE // np.dtype(dtype).itemsize
    whole = -(-k // each) * each
    return whole if 5 * whole <= 6 * k else k


def _within(counts: np.ndarray) -> np.ndarray:
    """Index of each entry in its run, for consecutive runs of ``counts`` entries."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)


def block_of(degree: np.ndarray) -> np.ndarray:
    """Number of the bucket that a row of a large matrix goes to, by its degree.

    Where rows come in the order of their buckets, their sums need not be put in order.

    Args:
        degree: ``(rows,)`` numbers of entries.
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


def _tree(matrix: Any, rows: np.ndarray, dtype: Any, size: Callable[[int], int]) -> ReductionTree:
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
    return ReductionTree(block, values, tuple(levels), padded)


def lay_out(matrix: sparse.csr_array, dtype: np.dtype | None) -> Buckets:
    """Sort the rows of a matrix into buckets, in NumPy arrays.

    Rows of a bucket keep their order.

    Args:
        matrix: ``(rows, columns)`` in canonical CSR format.
        dtype: dtype of the values; None for a matrix of ones, which are not stored.
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
    return Buckets(tuple(blocks), None if dtype is None else tuple(values), wide, put)


def _owners(tree: ReductionTree, rows: np.ndarray) -> np.ndarray:
    """Row that each chunk of a tree belongs to, -1 for padding; ``rows`` of the tree's results."""
    sizes = [level.shape[1] for level in tree.levels]
    owner = np.full(sum(sizes), -1)
    owner[np.asarray(tree.place)[rows >= 0]] = rows[rows >= 0]
    found = [np.full(tree.block.shape[1], -1), *np.split(owner, np.cumsum(sizes)[:-1])]
    for i in range(len(sizes), 0, -1):
        known = found[i] >= 0
        found[i - 1][np.asarray(tree.levels[i - 1])[:, known]] = found[i][known]
    return found[0]


def entries(layout: Buckets, shape: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """Rows, columns and values of the entries that a layout holds (coordinate format).

    Args:
        layout: from :func:`lay_out`, of JAX or NumPy arrays.
        shape: of the matrix.
    """
    wide = layout.wide
    sizes = [block.shape[1] for block in layout.blocks]
    total = sum(sizes) + (0 if wide is None else wide.place.shape[0])
    row_at = np.full(total + 1, -1)
    rows = np.arange(shape[0])
    row_at[rows if layout.place is None else np.asarray(layout.place)] = rows
    ends = np.cumsum([0, *sizes])
    owners = [row_at[a:b] for a, b in itertools.pairwise(ends)]
    blocks = [np.asarray(block) for block in layout.blocks]
    values = list(layout.values or [None] * len(blocks))
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
