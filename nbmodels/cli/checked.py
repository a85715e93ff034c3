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
    import numpy as np
    import pandas as pd

    from nbmodels.data.labels import as_text, spelt_as

    for column in (ROW, TRUE):
        if column not in table.frame.columns:
            raise InputError(f"{name}: {table.path} has no column {column!r}; was it renamed?")
    rows = table.frame[ROW]
    numbers = pd.to_numeric(rows, errors="coerce")
    bad = rows[numbers.isna() | (numbers % 1 != 0)]
    if len(bad):
        raise InputError(f"{name}: line {bad.index[0] + 2} has no row number in {ROW!r}")
    if rows.duplicated().any():
        raise InputError(f"{name}: row {rows[rows.duplicated()].iloc[0]} occurs twice in {ROW!r}")
    labels, _ = table.with_labels(TRUE)
    text = spelt_as(as_text(labels.frame[TRUE]), np.asarray([*classes], object))
    return dict(zip(numbers.astype(int).tolist(), text, strict=True))
