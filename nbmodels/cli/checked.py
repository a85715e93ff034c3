"""The table of rows to check by hand, which ``audit plan`` writes and others read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nbmodels.cli.console import InputError

if TYPE_CHECKING:
    from nbmodels.cli.files import Table

#: Columns of the table to be filled in, beside those of the input.
ROW, TRUE = "audit_row", "audit_true_label"


def filled_in(table: Table, classes: Iterable[str], name: str = "FILE") -> dict[int, Any]:
    """True labels by row, counted from 1; None where a row is not filled in.

    Args:
        table: as read.
        classes: names of the classes.
        name: of the argument, for messages.

    Raises:
        InputError: a column that is gone, or a row that is no number or occurs twice.
    """
    import pandas as pd

    from nbmodels.data.labels import as_text

    for column in (ROW, TRUE):
        if column not in table.frame.columns:
            raise InputError(f"{name}: {table.path} has no column {column!r}; was it renamed?")
    rows = table.frame[ROW]
    bad = rows[pd.to_numeric(rows, errors="coerce").isna()]
    if len(bad):
        raise InputError(f"{name}: line {bad.index[0] + 2} has no row number in {ROW!r}")
    if rows.duplicated().any():
        raise InputError(f"{name}: row {rows[rows.duplicated()].iloc[0]} occurs twice in {ROW!r}")
    cells = table.frame[TRUE]
    as_read = as_text(cells)
    # numbers lose leading zeros when a column is read, where not all classes are numbers
    raw = table.raw[TRUE].str.strip() if isinstance(table.raw, pd.DataFrame) else as_read
    known = set(classes)
    return {
        int(row): None if pd.isna(label) else (cell if cell in known else str(label).strip())
        for row, label, cell in zip(rows, as_read, raw, strict=True)
    }
