"""Matrix products of dense and sparse data: ``X @ W`` for likelihoods, ``X.T @ R`` for statistics.

:func:`matrix` lays out any array or SciPy matrix; the result has ``times`` and ``transpose_times``,
so that a component need not know which it has.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from jaxtyping import DTypeLike

from inference.arrays import floating, on_device
from inference.products.by_fold import ByFold
from inference.products.coordinate import MOST, Coordinate
from inference.products.dense import Dense
from inference.products.layout import block_of, padded_size, whole_lines
from inference.products.sparse import Sparse

__all__ = [
    "MOST",
    "ByFold",
    "Coordinate",
    "Dense",
    "Matrix",
    "Sparse",
    "block_of",
    "matrix",
    "padded_size",
    "whole_lines",
]

Matrix: TypeAlias = Dense | Sparse | Coordinate


def matrix(x: Any, dtype: DTypeLike | None = None, *, room: int | None = None) -> Matrix:
    """Lay out ``x`` for the two products.

    Args:
        x: ``(N, d)`` array, or any SciPy sparse matrix or array (duplicate entries are summed).
        dtype: floating dtype of values; JAX's default by default.
        room: where given, a sparse matrix of few entries is held in coordinate format with room for
            so many, if that is not too many, and shares its programs with others of its shape.
    """
    dtype = floating(dtype)
    if not hasattr(x, "tocsr"):
        return Dense(on_device(x, dtype))
    rows = x.tocsr().copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if room is not None and rows.nnz <= MOST:
        return Coordinate.of(rows, dtype, min(room, MOST))
    return Sparse.of(rows, dtype)
