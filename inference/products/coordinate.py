"""Small sparse matrices in coordinate format, whose programs do not depend on where entries stand.

Entries are padded to few sizes, so that the shape of a matrix and about as many entries are all
that a compiled program depends on. On a CPU, products of up to some ten thousand entries take about
as long as those of :mod:`inference.products.sparse`; of 65,000 entries, up to twice as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int
from scipy import sparse

from inference.arrays import on_device
from inference.products.dense import Inner
from inference.pytree import register_dataclass

#: Fewest entries that there is room for, and most that are held in this format.
_LEAST, MOST = 16_384, 65_536

#: Fewest entries that there is room for where a sampler goes over them again and again.
_FEWEST = 1_024


@register_dataclass
@dataclass(frozen=True)
class Coordinate:
    """A sparse matrix ``(N, d)`` as a list of its entries.

    Attributes:
        row: ``(entries,)`` row of each entry, sorted; beyond the last row for padding.
        column: ``(entries,)`` its column; beyond the last one for padding.
        value: ``(entries,)``.
        shape: ``(N, d)``.
    """

    row: Int[Array, " entries"]
    column: Int[Array, " entries"]
    value: Float[Array, " entries"]
    shape: tuple[int, int] = field(metadata={"static": True})

    @classmethod
    def of(cls, x: sparse.csr_array, dtype: np.dtype, room: int) -> Coordinate:
        """From a canonical CSR matrix.

        Args:
            x: ``(N, d)``.
            dtype: floating dtype of values.
            room: number of entries to have room for.
        """
        size = _room(max(room, x.nnz), _LEAST)
        entries, extra = x.tocoo(), size - x.nnz
        n, d = int(x.shape[0]), int(x.shape[1])
        return cls(
            on_device(np.pad(entries.row.astype(np.int32), (0, extra), constant_values=n)),
            on_device(np.pad(entries.col.astype(np.int32), (0, extra), constant_values=d)),
            on_device(np.pad(entries.data.astype(dtype), (0, extra))),
            (n, d),
        )

    def times(self, table: Float[Array, "d k"]) -> Float[Array, "n k"]:
        """``X @ table``: ``(N, d) x (d, K) -> (N, K)``."""
        terms = _rows(table, self.column) * self.value[:, None]
        out = jnp.zeros((self.shape[0], table.shape[1]), terms.dtype)
        return out.at[self.row].add(terms, mode="drop", indices_are_sorted=True)

    def transpose_times(self, rows: Float[Array, "n k"]) -> Float[Array, "d k"]:
        """``X.T @ rows``: ``(N, d).T x (N, K) -> (d, K)``."""
        terms = _rows(rows, self.row) * self.value[:, None]
        out = jnp.zeros((self.shape[1], rows.shape[1]), terms.dtype)
        return out.at[self.column].add(terms, mode="drop")

    def round_trip(
        self, rows: Float[Array, "n k"], inner: Inner, aside: Sequence[Array] = ()
    ) -> tuple[Float[Array, "n k"], list[Array]]:
        """As :meth:`inference.products.dense.Dense.round_trip`."""
        table, extra = inner(self.transpose_times(rows), *aside)
        return self.times(table), [extra]

    def first_rows(self, n_rows: int) -> Coordinate:
        """The first rows, where those that follow have no entries, with less room for padding."""
        size = _room(int(np.sum(np.asarray(self.row) < n_rows)), _FEWEST)
        entries = self.row[:size], self.column[:size], self.value[:size]
        return Coordinate(*entries, (n_rows, self.shape[1]))

    def first_columns(self, n_columns: int) -> Coordinate:
        """The first columns, where those that follow have no entries."""
        return replace(self, shape=(self.shape[0], n_columns))

    def to_dense(self) -> Float[Array, "n d"]:
        """The matrix as a JAX array."""
        out = jnp.zeros(self.shape, self.value.dtype)
        return out.at[self.row, self.column].add(self.value, mode="drop")

    def to_host(self) -> sparse.csr_array:
        """The matrix as a SciPy array."""
        parts: Any = map(np.asarray, (self.value, self.row, self.column))
        value, row, column = parts
        real = (row < self.shape[0]) & (value != 0)
        cells = value[real], (row[real], column[real])
        return sparse.coo_array(cells, self.shape).tocsr()


def _room(entries: int, least: int) -> int:
    """The next power of two, and ``least`` where there are fewer: few shapes are compiled for."""
    return max(least, 1 << max(entries - 1, 0).bit_length())


def _rows(table: Float[Array, "d k"], index: Int[Array, " entries"]) -> Float[Array, "entries k"]:
    """Rows of a table; zeros beyond the last one."""
    return jnp.take(table, index, axis=0, mode="fill", fill_value=0)
