"""Numbers that may mark missing cells, such as 999 and -9."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float

from nbmodels.data.features import Block
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
    for j, name in enumerate(block.names):
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


def _marker(cells: Float[np.ndarray, " n"]) -> str:
    """Such a number and its cells: it occurs often, farther from all others than these are apart.

    Args:
        cells: of a column, all finite.
    """
    least = max(_OFTEN, _SHARE * len(cells))
    for sign in (1, -1):
        at = sign * cells
        end = at.max(initial=-np.inf)
        others = at[at < end]
        if len(cells) - len(others) < least or not len(others):
            continue
        gap, width = end - others.max(), np.ptp(others)
        if gap > width and len(np.unique(others)) >= _FEW_VALUES:
            return f"{sign * end:g} in {len(cells) - len(others)} cells"
    return ""
