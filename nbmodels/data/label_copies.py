"""Columns of a table that were made from its labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from nbmodels.data.column_types import FEW_ROWS, MANY_VALUES, hashable
from nbmodels.data.features import Block
from nbmodels.errors import Caution, NbmodelsWarning

#: Rows by which most columns are known to be none.
_SOME_ROWS = 200


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
    known = None if block.missing is None else ~np.asarray(block.missing)
    for j, name in enumerate(block.names):
        found = _copy(name, block.x[:, j], codes, None if known is None else known[:, j])
        if found:
            return found
    return ()


def copies_in_frame(frame: pd.DataFrame, codes: Int[np.ndarray, " n"]) -> tuple[Caution, ...]:
    """As :func:`label_copies`, of columns as they are, in which nulls are missing."""
    for j, name in enumerate(frame.columns):
        column = frame.iloc[:, j]
        counted = column.dtype != object or hashable(column)
        found = _copy(str(name), column, codes, None) if counted else ()
        if found:
            return found
    return ()


def _copy(
    name: str, column: Any, codes: Int[np.ndarray, " n"], known: Bool[np.ndarray, " n"] | None
) -> tuple[Caution, ...]:
    some = slice(None, None, -(-len(codes) // _SOME_ROWS))
    if not _determines(column[some], codes[some], None if known is None else known[some], 0):
        return ()
    values = pd.Series(column)[codes >= 0].nunique()
    if not _determines(column, codes, known, max(FEW_ROWS * values, (codes >= 0).sum() / 2)):
        return ()
    message = (
        f"X: column {name!r} has {values} values, of which each has one label only; if it was made "
        "from the labels, drop it: with it, every label looks right"
    )
    return (Caution(NbmodelsWarning, message),)


def _determines(
    column: Any,
    codes: Int[np.ndarray, " n"],
    known: Bool[np.ndarray, " n"] | None,
    rows: float,
) -> bool:
    """Whether cells have few values, several labels, and one label a value, on enough rows.

    Args:
        column: ``(n,)`` cells.
        codes: of the labels, -1 where there is none.
        known: where a cell is; None where nulls are missing.
        rows: least number of labels beside a known cell.
    """
    values, names = pd.factorize(column)
    use = (codes >= 0) & (values >= 0 if known is None else known)
    values, given = values[use], codes[use]
    if not 1 < len(names) <= MANY_VALUES or len(given) < max(rows, 1) or np.ptp(given) == 0:
        return False
    label = np.zeros(len(names), int)
    label[values] = given
    return bool((label[values] == given).all())
