"""Validation of what components pack on the host: codes of labels and symbols, tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbmodels.errors import DataError


def checked_codes(name: str, codes: Any, size: Any) -> np.ndarray:
    """Whole codes in ``0..size - 1``, negative where missing.

    Args:
        name: of the argument, for messages.
        codes: array of integers, or of floats that are whole.
        size: number of codes; or ``(d,)`` numbers, one a column of ``codes``.

    Returns:
        the codes as integers.

    Raises:
        DataError: no numbers, NaN, not whole, or beyond the last code; with the row.
    """
    table = np.asarray(codes)
    if table.dtype.kind not in "biuf":
        raise DataError(f"{name}: expected integer codes, got an array of {table.dtype}")
    if table.dtype.kind == "f":
        _refuse(name, table, ~np.isfinite(table) | (table != np.floor(table)), "a whole number")
        table = table.astype(np.int64)
    size = np.asarray(size)
    last = f"{size.flat[0] - 1}" if size.ndim == 0 else "one less than its column's categories"
    expected = f"a code from 0 to {last}, or a negative one where missing"
    _refuse(name, table, table >= size, expected)
    return table


def checked_table(name: str, values: Any, bad: Any, expected: str) -> None:
    """Refuse a table with bad entries.

    Args:
        name: of the argument, for messages.
        values: array, dense or sparse.
        bad: from an array of entries to booleans.
        expected: what was expected, for the message.

    Raises:
        DataError: with the first bad row.
    """
    if hasattr(values, "tocoo"):
        entries = values.tocoo()
        wrong = np.asarray(bad(entries.data))
        if wrong.any():
            at = np.flatnonzero(wrong)[np.argmin(entries.row[wrong])]
            row, value = entries.row[at], entries.data[at]
            raise DataError(f"{name}: row {row} has {value}; expected {expected}")
    else:
        _refuse(name, np.asarray(values), np.asarray(bad(np.asarray(values))), expected)


def _refuse(name: str, table: np.ndarray, wrong: np.ndarray, expected: str) -> None:
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise DataError(f"{name}: row {at[0] if at else 0} has {table[at]}; expected {expected}")
