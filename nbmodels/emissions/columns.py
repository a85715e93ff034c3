"""Helpers of the codings of columns: cells as floats, masks of bad cells, padding."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from nbmodels.data.features import Block
from nbmodels.data.validation import pad_rows


def marked(x: Any, bad: np.ndarray) -> Any:
    """Sparse booleans of the shape of ``x`` from booleans of its stored entries."""
    return type(x)((bad, x.indices, x.indptr), shape=x.shape)


def observed(block: Block, bad: Any) -> Any:
    """``(N, d)`` booleans ``bad`` without the missing cells."""
    if block.missing is None:
        return bad
    return bad > block.missing if block.is_sparse else bad & ~block.missing


def floats(block: Block) -> Float[np.ndarray, "n d"]:
    """``(N, d)`` cells of a dense block as floats; missing ones may hold anything."""
    hide = block.missing is not None and block.x.dtype == object
    return np.asarray(np.where(block.missing, 0.0, block.x) if hide else block.x, float)


def padded(block: Block, length: int) -> tuple[Any, Any]:
    """``x`` and ``missing`` with rows of zeros appended; sparse ones stay as they are."""
    if block.is_sparse:
        return block.x, block.missing
    missing = None if block.missing is None else pad_rows(np.asarray(block.missing), length)
    return pad_rows(floats(block), length), missing
