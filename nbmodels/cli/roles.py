"""Columns and rows that are no features: groups, checked rows, and true labels to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from nbmodels.data.column_types import hashable
from nbmodels.data.labels import LabelColumn
from nbmodels.errors import DataError


def names_of_groups(frame: pd.DataFrame, groups: str, others: Sequence[str | None]) -> np.ndarray:
    """``(N,)`` names of groups, null where a row has none.

    Raises:
        DataError: there is no such column, or it has another role.
    """
    if groups not in frame.columns:
        raise DataError(f"groups: there is no column {groups!r}")
    if groups in others:
        raise DataError(f"groups: {groups!r} is the column of something else")
    return frame[groups].to_numpy(object)


def checked_classes(checked: Mapping[int, str], labels: LabelColumn) -> np.ndarray:
    """``(N,)`` true classes of checked rows, None elsewhere.

    Raises:
        DataError: a row outside the table, or a class that is not among the labels.
    """
    out = np.full(len(labels.text), None, object)
    for row, name in checked.items():
        if not 0 <= row < len(out):
            raise DataError(f"checked: there is no row {row + 1}; the table has {len(out)}")
        if name not in labels.names:
            raise DataError(f"checked: row {row + 1} is {name!r}, which no given label is")
        out[row] = name
    return out


def compared_rows(
    labels: LabelColumn, true: np.ndarray | None, trusted: np.ndarray, label: str, truth: str | None
) -> tuple[np.ndarray, list[str]]:
    """``(N,)`` rows to compare with the truth, and why the comparison may be wrong.

    Args:
        labels: given ones.
        true: ``(N,)`` true labels, None where unknown; None without a column of them.
        trusted: ``(N,)`` true classes of checked rows, None elsewhere.
        label: name of the column of given labels.
        truth: name of the column of true labels.

    Raises:
        DataError: no row to compare, or no true label is among the given ones.
    """
    if true is None:
        return np.zeros(len(labels.text), bool), []
    rows = (labels.codes >= 0) & pd.notna(true) & pd.isna(trusted)
    if not rows.any():
        unchecked = " and is not checked" if pd.notna(trusted).any() else ""
        raise DataError(f"truth: no row has a label in both {label!r} and {truth!r}{unchecked}")
    strange = rows & ~np.isin(true, labels.names)
    if not strange.any():
        return rows, []
    named = _some(pd.unique(true[strange]))
    if (strange == rows).all():
        raise DataError(
            f"truth: none of the labels in {truth!r} ({named}) is among those in {label!r} "
            f"({_some(labels.names)}); is it the right column, spelt in the same way?"
        )
    return rows, [
        f"{strange.sum()} of {rows.sum()} true labels are not among the given ones ({named}); in "
        "these rows every suggestion counts as wrong"
    ]


def _some(names: np.ndarray, most: int = 3) -> str:
    """The first names of several."""
    return ", ".join(repr(str(v)) for v in names[:most]) + (", ..." if len(names) > most else "")


def repeated_items(frame: pd.DataFrame, label: str, others: Sequence[str | None]) -> str | None:
    """Column of items whose label is repeated in each of several rows; None without one.

    Such a table is of events, as of users and the items that they touch: its rows confirm each
    other's labels, and none would be wrong. Copies of whole rows are no events.

    Args:
        frame: the table.
        label: column of given labels.
        others: columns with another role.
    """
    frame = frame[[c for c in frame if hashable(frame[c].dropna())]].drop_duplicates()
    n_classes = frame[label].nunique()
    for name in frame.columns:
        if name == label or name in others:
            continue
        n_items = frame[name].nunique()
        # few values with one label each may well be a feature
        if 5 * n_classes <= n_items <= len(frame) / 2:
            of_item = frame.groupby(name)[label].nunique()
            if of_item.max() <= 1:
                return str(name)
    return None
