"""Sparse-dense products by gathers: a bucket's rows are summed in one fused kernel.

The layout is that of :mod:`inference.products.layout`. A bucket of width ``w`` is the sum of ``w``
gathers (``W[i0] + W[i1] + ...``), unrolled; padding points at a row of zeros below the table.

Sums that others read are written to memory once and read by gathers only: some releases of XLA
compute a sum of gathers again for every reader (measured on jaxlib 0.10: 30 times slower).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int
from scipy import sparse

from inference.arrays import on_device
from inference.products.dense import Inner
from inference.products.layout import Buckets, ReductionTree, entries, lay_out
from inference.pytree import register_dataclass

#: Whether the compiler keeps optimization barriers until kernels are fused.
_BARRIERS_HOLD = jax.__version_info__ >= (0, 11)

#: Rows whose sums are held at a time where a bucket's extra is asked for.
_PIECE = 1 << 14

_ROWS = lax.GatherDimensionNumbers(
    offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
)


@register_dataclass
@dataclass(frozen=True)
class Sparse:
    """A sparse matrix ``(N, d)``, laid out for both products.

    Attributes:
        forward: layout of its rows.
        backward: layout of its columns.
        shape: ``(N, d)``.
    """

    forward: Buckets
    backward: Buckets
    shape: tuple[int, int] = field(metadata={"static": True})

    @classmethod
    def of(cls, rows: sparse.csr_array, dtype: np.dtype) -> Sparse:
        """Lay out a matrix in canonical CSR format; a matrix of ones carries no values.

        Args:
            rows: ``(N, d)``.
            dtype: floating dtype of values.
        """
        kept = None if np.all(rows.data == 1) else dtype
        # both ways at once, by NumPy: the precision of JAX is a thread's own
        with ThreadPoolExecutor(1) as other:
            turned = other.submit(lambda: lay_out(rows.T.tocsr(), kept))
            ways = lay_out(rows, kept), turned.result()
        forward, backward = jax.tree.map(on_device, ways)
        return cls(forward, backward, (int(rows.shape[0]), int(rows.shape[1])))

    def times(self, table: Float[Array, "d k"]) -> Float[Array, "n k"]:
        """``X @ table``: ``(N, d) x (d, K) -> (N, K)``."""
        return _product(self.forward, table)

    def transpose_times(self, rows: Float[Array, "n k"]) -> Float[Array, "d k"]:
        """``X.T @ rows``: ``(N, d).T x (N, K) -> (d, K)``."""
        return _product(self.backward, rows)

    def round_trip(
        self, rows: Float[Array, "n k"], inner: Inner, aside: Sequence[Array] = ()
    ) -> tuple[Float[Array, "n k"], list[Array]]:
        """As :meth:`Dense.round_trip`; the sums of a bucket never leave its kernel.

        Where columns come in the order of their buckets, ``inner`` is called once a bucket.
        """
        table, extras = _mapped(self.backward, rows, inner, aside)
        return _gathered(self.forward, table), extras

    def to_dense(self) -> Float[Array, "n d"]:
        """The matrix as a JAX array."""
        n, d = self.shape
        # the smaller identity: that of a million rows would fill the memory
        return self.times(jnp.eye(d)) if d <= n else self.transpose_times(jnp.eye(n)).T

    def to_host(self) -> sparse.csr_array:
        """The matrix as a SciPy array, read back from the layout without a product."""
        rows, columns, values = entries(self.forward, self.shape)
        return sparse.coo_array((values, (rows, columns)), self.shape).tocsr()


def _product(layout: Buckets, table: Float[Array, "d k"]) -> Float[Array, "n k"]:
    """``out[r] = sum over entries (r, c, v) of v * table[c]``."""
    return _gathered(layout, _padded(table))


def _padded(table: Float[Array, "d k"]) -> Float[Array, "d_and_one k"]:
    """A table with a row of zeros below, to which padding points."""
    # the barriers keep what comes before and after out of the kernels: fused into the padding
    # or into the sums, a digamma is computed number by number
    out = _zeros(table.shape[0] + 1, table)
    return lax.optimization_barrier(lax.dynamic_update_slice(out, table, (0, 0)))


def _gathered(layout: Buckets, padded: Float[Array, "d_and_one k"]) -> Float[Array, "n k"]:
    """:func:`_product` with a padded table."""
    n_wide = 0 if layout.wide is None else layout.wide.place.shape[0]
    # where rows have to be put in order, the last one is that of rows without entries
    size = sum(block.shape[1] for block in layout.blocks) + n_wide + (layout.place is not None)
    out = _zeros(size, padded)
    at = 0
    values = layout.values or (None,) * len(layout.blocks)
    for block, value in zip(layout.blocks, values, strict=True):
        out = lax.dynamic_update_slice(out, _gather_sum(padded, block, value), (at, 0))
        at += block.shape[1]
    if layout.wide is not None:
        out = lax.dynamic_update_slice(out, _tree_sum(layout.wide, padded), (at, 0))
    out = lax.optimization_barrier(out)
    return out if layout.place is None else _take(out, layout.place)


def _mapped(
    layout: Buckets, rows: Float[Array, "n k"], inner: Inner, aside: Sequence[Array]
) -> tuple[Float[Array, "d_and_one k"], list[Array]]:
    """``inner`` of the sums that :func:`_product` makes of ``rows``, padded; and the extras."""
    if layout.place is not None:
        table, extra = inner(_product(layout, rows), *aside)
        return _padded(table), [extra]
    padded = _padded(rows)
    values = layout.values or (None,) * len(layout.blocks)
    sums = [_gather_sum(padded, *pair) for pair in zip(layout.blocks, values, strict=True)]
    if layout.wide is not None:
        sums.append(_tree_sum(layout.wide, padded))
    out = _zeros(sum(one.shape[0] for one in sums) + 1, rows)
    at, extras = 0, []
    for i, one in enumerate(sums):
        beside = [x if x.shape[0] == 1 else x[at : at + one.shape[0]] for x in aside]
        table, extra = inner(one, *beside)
        out = lax.dynamic_update_slice(out, table, (at, 0))
        at += one.shape[0]
        if i < len(layout.blocks):
            extra = _extra(padded, layout.blocks[i], values[i], inner, beside)
        extras.append(extra)
    return lax.optimization_barrier(out), extras


def _extra(
    padded: Float[Array, "n_and_one k"],
    block: Int[Array, "width rows"],
    values: Float[Array, "width rows"] | None,
    inner: Inner,
    beside: Sequence[Array],
) -> Array:
    """The extra of a bucket, from sums of their own: a piece at a time, which a cache holds.

    Computed with the table, both would wait in memory for all sums, several tables' worth; where
    nobody asks for the extra there is no second pass.
    """
    n, size = divmod(block.shape[1], _PIECE)

    def piece(start: Any, size: int) -> Array:
        def cut(x: Any, axis: int) -> Any:
            return lax.dynamic_slice_in_dim(x, start, size, axis)

        sums = _gather_sum(padded, cut(block, 1), None if values is None else cut(values, 1))
        return inner(sums, *(x if x.shape[0] == 1 else cut(x, 0) for x in beside))[1]

    rest = piece(n * _PIECE, size)
    if not n:
        return rest
    whole = lax.map(lambda i: piece(i * _PIECE, _PIECE), jnp.arange(n))
    return jnp.concatenate([whole.reshape(-1, *whole.shape[2:]), rest])


def _tree_sum(tree: ReductionTree, padded: Float[Array, "d k"]) -> Float[Array, "rows k"]:
    sums = _gather_sum(padded, tree.block, tree.values)
    found = []
    for level in tree.levels:
        sums = _gather_sum(_written(sums), level, None)
        found.append(_written(sums)[: level.shape[1]])
    return _take(jnp.concatenate(found), tree.place)


def _gather_sum(
    table: Float[Array, "d k"],
    index: Int[Array, "width rows"],
    values: Float[Array, "width rows"] | None,
) -> Float[Array, "rows k"]:
    """``sum over j of values[j] * table[index[j]]``, unrolled into one kernel."""
    out = jnp.zeros((), table.dtype)
    for j in range(index.shape[0]):
        part = _take(table, index[j])
        if values is not None:
            part = part * values[j][:, None]
        out = part if j == 0 else out + part
    return out


def _take(table: Float[Array, "d k"], index: Int[Array, " rows"]) -> Float[Array, "rows k"]:
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


def _written(rows: Array) -> Array:
    """``rows`` in memory, perhaps with more below them: not to be computed again by each reader."""
    if _BARRIERS_HOLD:
        return lax.optimization_barrier(rows)
    # one row more, or the compiler sees that there is nothing to write into
    room = jnp.zeros((rows.shape[0] + 1, rows.shape[1]), rows.dtype)
    return lax.dynamic_update_slice(room, rows, (0, 0))
