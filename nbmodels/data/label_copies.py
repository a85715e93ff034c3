"""Columns of a table that were made from its labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Int

from nbmodels.data.column_types import FEW_ROWS, MANY_VALUES
from nbmodels.data.features import Block
from nbmodels.errors import Caution, NbmodelsWarning

#: Rows by which most columns are known to be none.
_FIRST_ROWS = 200


def label_copies(block: Block, codes: Int[np.ndarray, " n"]) -> tuple[Caution, ...]:
    """A warning of a column of which every value has one label only.

    Of labels of which some are wrong, no column says that of every row, unless it was made from
    them: a code of the classes, a copy, a finer label.

    Args:
        block: ``(n, d)`` cells; sparse ones are not looked at.
        codes: of the given labels, -1 where there is none.
    """
    if block.is_sparse:
        return ()
    for j, name in enumerate(block.names):
        use = codes >= 0
        if block.missing is not None:
            use &= ~np.asarray(block.missing[:, j])
        cells, given = np.asarray(block.x[:, j])[use], codes[use]
        first = slice(_FIRST_ROWS)
        if _determine(cells[first], given[first]) and _determine(cells, given):
            values = pd.Series(cells).nunique()
            if len(given) >= max(FEW_ROWS * values, (codes >= 0).sum() / 2):
                message = (
                    f"X: column {name!r} has {values} values, of which each has one label only; if "
                    "it was made from the labels, drop it: with it, every label looks right"
                )
                return (Caution(NbmodelsWarning, message),)
    return ()


def _determine(cells: np.ndarray, codes: np.ndarray) -> bool:
    """Whether cells have few values, several labels, and one label a value."""
    values, names = pd.factorize(cells)
    if not 1 < len(names) <= MANY_VALUES or (codes == codes[0]).all():
        return False
    label = np.zeros(len(names), int)
    label[values] = codes
    return bool((label[values] == codes).all())
