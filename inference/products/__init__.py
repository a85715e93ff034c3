"""Matrix products of dense and sparse data: ``X @ W`` for likelihoods, ``X.T @ R`` for statistics.

:func:`matrix` lays out any array or SciPy matrix; the result has ``times`` and ``transpose_times``,
so that a component need not know which it has.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from jaxtyping import DTypeLike

from inference.arrays import floating, on_device
from inference.products.dense import Dense
from inference.products.layout import block_of, padded_size, whole_lines
from inference.products.sparse import Sparse

__all__ = ["Dense", "Matrix", "Sparse", "block_of", "matrix", "padded_size", "whole_lines"]

Matrix: TypeAlias = Dense | Sparse


def matrix(x: Any, dtype: DTypeLike | None = None) -> Matrix:
    """Lay out ``x`` for the two products.

    Args:
        x: ``(N, d)`` array, or any SciPy sparse matrix or array (duplicate entries are summed).
        dtype: floating dtype of values; JAX's default by default.
    """
    dtype = floating(dtype)
    return Sparse.of(x, dtype) if hasattr(x, "tocsr") else Dense(on_device(x, dtype))
