"""Numbers that may mark missing cells, such as 999 and -9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from nbmodels.data.features import Block
from nbmodels.data.validation import row_blocks
from nbmodels.errors import Caution, NbmodelsWarning

#: Columns of few values may be codes, of which the last is often far off.
_FEW_VALUES = 10

#: Least number of cells, and least share of them, by which a value far out is a marker.
_OFTEN, _SHARE = 5, 0.01

#: Columns that a warning names.
_MOST_NAMED = 3

#: What to do about them.
ADVICE = (
    "if it marks missing cells, fill them in, or set them to NaN with missing_values=np.nan where "
    "the estimator has it"
)


def missing_markers(block: Block, weights: Float[np.ndarray, " n"]) -> tuple[Caution, ...]:
    """A warning of columns with a number that may mark missing cells.

    Args:
        block: ``(n, d)`` cells; sparse ones and columns of other cells than numbers are left out.
        weights: of the rows; those of weight 0 are left out.
    """
    if block.is_sparse:
        return ()
    found, counts = [], np.asarray(weights) > 0
    for j in _with_frequent_ends(block, counts):
        name = block.names[j]
        known = counts if block.missing is None else counts & ~np.asarray(block.missing[:, j])
        column = pd.Series(block.x[known, j]).infer_objects()
        if pd.api.types.is_numeric_dtype(column.dtype):
            cells = column.to_numpy(float)
            if marker := _marker(cells[np.isfinite(cells)]):
                found.append(f"column {name!r} has {marker}")
    if not found:
        return ()
    more = len(found) - _MOST_NAMED
    named = "; ".join(found[:_MOST_NAMED]) + (f"; and {more} more columns have one" * (more > 0))
    return (Caution(NbmodelsWarning, f"X: {named}, far from all other values; {ADVICE}"),)


def _with_frequent_ends(block: Block, counts: Bool[np.ndarray, " n"]) -> Any:
    """Columns whose largest or least value may be a marker; all where cells have to be read first.

    One pass over the rows: to read a large table column by column takes five times as long.
    """
    n_columns = len(block.names)
    if block.missing is not None or block.x.dtype.kind not in "iuf" or not counts.all():
        return range(n_columns)
    blocks = [block.x[rows] for rows in row_blocks(*block.x.shape)]
    often = np.zeros(n_columns, bool)
    for extreme in (np.max, np.min):
        end = extreme([extreme(part, 0) for part in blocks], 0)
        often |= sum(np.sum(part == end, 0) for part in blocks) >= _least(len(block.x))
    return np.flatnonzero(often)


def _least(n_cells: int) -> float:
    """Least number of cells of a marker."""
    return max(_OFTEN, _SHARE * n_cells)


def _marker(cells: Float[np.ndarray, " n"]) -> str:
    """Such a number and its cells: it occurs often, farther from all others than these are apart.

    Args:
        cells: of a column, all finite.
    """
    least = _least(len(cells))
    for sign in (1, -1):
        at = sign * cells
        end = at.max(initial=-np.inf)
        often = np.count_nonzero(at == end)
        if often < least or often == len(cells):
            continue
        others = at[at < end]
        gap, width = end - others.max(), np.ptp(others)
        if gap > width and len(np.unique(others)) >= _FEW_VALUES:
            return f"{sign * end:g} in {often} cells"
    return ""
