"""The table of rows to check by hand, which ``audit plan`` writes and others read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbmodels.cli.console import InputError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from jaxtyping import Bool

    from nbmodels.cli.files import Table

#: Columns of the table to be filled in, beside those of the input.
ROW, TRUE = "audit_row", "audit_true_label"

#: Share of a row's cells from which on it is another row where they differ.
_MOST_CELLS = 0.5

#: Median length from which on cells are prose, which no spreadsheet writes in another way.
_PROSE = 40


def check_rows(checked: Table, of: Table, label: str, name: str) -> None:
    """Refuse rows that have other cells than those of the table with their numbers.

    The table was sorted or lost rows since, or is another one. A spreadsheet may have written a few
    columns in another way, so that a row is another one where most of its cells differ, or where
    the prose of most rows does; and labels may have been corrected in their place.

    Args:
        checked: what was filled in, with rows counted from 1.
        of: the table that it should be of.
        label: name of the labels' column.
        name: of the argument, for messages.

    Raises:
        InputError: a row that is another one.
    """
    import numpy as np
    import pandas as pd

    from nbmodels.data.validation import plain

    frame = checked.frame[checked.frame[TRUE].notna()]
    rows = pd.to_numeric(frame[ROW]).to_numpy(int)
    known = (rows >= 1) & (rows <= len(of.frame))  # others are refused where they are looked up
    frame, rows = frame[known], rows[known]
    there = of.frame.iloc[rows - 1]
    shared = [c for c in there if c in frame and c != label and there[c].nunique() > 1]
    if not shared or not len(rows):
        return
    differ = np.array([_differ(frame[c], there[c]) for c in shared])
    prose = [there[c].astype(str).str.len().median() >= _PROSE for c in shared]
    others = differ[prose] & (differ[prose].mean(1, keepdims=True) > _MOST_CELLS)
    other = np.flatnonzero((differ.mean(0) > _MOST_CELLS) | others.any(0))
    if len(other):
        row, column = rows[other[0]], shared[int(np.argmax(differ[:, other[0]]))]
        here, now = (plain(cells[column].iloc[other[0]]) for cells in (frame, there))
        raise InputError(
            f"{name}: row {row} of {of.path} is not the row that was checked: its {column!r} is "
            f"{now!r}, and was {here!r}; was the table sorted since, or did it lose rows?"
        )


def _differ(one: pd.Series, other: pd.Series) -> Bool[np.ndarray, " n"]:
    """``(n,)`` whether two cells differ: as numbers where both are, else as text but for blanks."""
    import numpy as np
    import pandas as pd

    a, b = (pd.to_numeric(cells, errors="coerce").to_numpy(float) for cells in (one, other))
    near = np.isclose(a, b, rtol=1e-4, atol=0)
    # spreadsheets end the lines of a text in their own way
    texts = (cells.astype(object).where(cells.notna(), "").astype(str) for cells in (one, other))
    x, y = (text.str.split().str.join(" ").to_numpy() for text in texts)
    return ~near & (x != y)


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


def files_of_checks(paths: Sequence[Path] | None) -> dict[str, Path]:
    """Files of ``--checked`` by what they are, as inputs that no output overwrites."""
    files = paths or ()
    names = [f"file {i + 1} of --checked" for i in range(len(files))]
    return dict(zip(names if len(files) > 1 else ["the file of --checked"], files, strict=False))


def together(found: Iterable[Mapping[Any, str]], what: str) -> dict[Any, str]:
    """Classes that several files name, by row or item.

    Args:
        found: of each file; rows are counted from 1.
        what: a row or an item.

    Raises:
        InputError: two files name other classes of one.
    """
    out: dict[Any, str] = {}
    for one in found:
        for key, label in one.items():
            if out.setdefault(key, label) != label:
                first = out[key]
                raise InputError(
                    f"--checked: {what} {key!r} is {first!r} in one file and {label!r} in another"
                )
    return out


def true_classes(
    paths: Sequence[Path], table: Table, label: str, encoding: str | None
) -> dict[int, str]:
    """True classes by row of the input, from 0, as text.

    Args:
        paths: of files that were filled in.
        table: the input.
        label: name of the labels' column.
        encoding: of the files, or None.

    Raises:
        InputError: a file that is none of this table, or two that name other classes of a row.
    """
    from nbmodels.cli.files import read_table

    found = []
    for path in paths:
        read = read_table(path, encoding)
        rows = filled_in(read, table.classes(label), "--checked")
        check_rows(read, table, label, "--checked")
        found.append({row: name for row, name in rows.items() if name is not None})
    return {row - 1: name for row, name in together(found, "row").items()}
