"""Candidate label sets (partial labels): lists of labels per item, or boolean tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int, Shaped
from sklearn.utils.validation import column_or_1d

from nbmodels.data.labels import Classes, is_missing
from nbmodels.data.validation import as_array, as_column, by_row, check_length, plain
from nbmodels.errors import Caution, DataError, NbmodelsWarning, counted

#: How sets are written as text.
_BRACKETS, _SEPARATORS = ("[]", "{}", "()"), ("|", ";", ",", "/")


@dataclass(frozen=True)
class Sets:
    """Sets of labels, one an item.

    Attributes:
        rows: ``(n,)`` item of each label.
        labels: ``(n,)``.
        given: ``(N,)`` whether the item has a set, which may be empty.
    """

    rows: Int[np.ndarray, " n"]
    labels: Shaped[np.ndarray, " n"]
    given: Bool[np.ndarray, " items"]

    def table(self, name: str, classes: Classes) -> Bool[np.ndarray, "items k"]:
        """``(N, K)`` booleans, true for the labels in the item's set.

        Raises:
            DataError: a label outside the classes, with its row.
        """
        codes = classes.encode(name, self.labels, np.zeros(len(self.labels), bool), self.rows)
        out = np.zeros((len(self.given), len(classes)), bool)
        out[self.rows, codes] = True
        return out


def _is_set(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset | np.ndarray | pd.Index)


def read_sets(name: str, values: Any, n_rows: int, marker: Any = None) -> Sets:
    """A label, a collection of labels, or null (or ``marker``) an item; or a mapping row -> those.

    Raises:
        DataError: wrong length, a row that does not exist, a null or infinity among the labels.
    """
    items = np.full(n_rows, None, object)
    if isinstance(values, Mapping):
        items = by_row(name, values, n_rows)
    elif hasattr(values, "__array__") or not any(map(_is_set, values)):
        array = as_array(name, values)
        column = as_column(name, column_or_1d(array, warn=True) if array.ndim == 2 else array)
        check_length(name, column, n_rows)
        items[:] = column.tolist() if column.dtype.kind != "O" else column
    else:
        check_length(name, values, n_rows)
        for i, value in enumerate(values):
            items[i] = value
    rows: list[int] = []
    labels: list[Any] = []
    given = np.zeros(n_rows, bool)
    for i, item in enumerate(items):
        if _is_set(item):
            found = list(item)
        else:
            one = np.full(1, item, object)
            found = [] if pd.isna(item) or is_missing(one, marker)[0] else [item]
        given[i] = _is_set(item) or bool(found)
        rows += [i] * len(found)
        labels += found
    objects = np.empty(len(labels), object)
    objects[:] = labels
    nulls = np.flatnonzero(pd.isna(objects))
    if len(nulls):
        raise DataError(f"{name}: row {rows[nulls[0]]} has a null among its labels")
    for row, label in zip(rows, labels, strict=True):
        if isinstance(label, float) and np.isinf(label):
            raise DataError(f"{name}: row {row} is infinity (inf); labels must be finite")
    return Sets(np.asarray(rows, int), objects, given)


def sets_as_text(names: np.ndarray) -> tuple[Caution, ...]:
    """A caution that names of classes seem to be sets that were written to a file, or none.

    Args:
        names: ``(K,)`` of classes, of items with one label each.
    """
    texts = [name.strip() for name in names.tolist() if isinstance(name, str)]
    lists = [t for t in texts if t[:1] + t[-1:] in _BRACKETS and ("," in t or t[1:2] in "'\"")]
    for separator in _SEPARATORS:
        several = [t for t in texts if separator in t and not t.replace(separator, "").isdigit()]
        parts = [frozenset(part.strip() for part in text.split(separator)) for text in several]
        if len(set(parts)) < len(parts):  # the same in another order
            lists = lists or [
                text for text, p in zip(several, parts, strict=True) if parts.count(p) > 1
            ]
    if not lists:
        return ()
    shown = " and ".join(repr(text) for text in lists[:2])
    message = (
        f"y: names of classes such as {shown} seem to be sets of labels as text, each of which is "
        "a class here; give a list or a set of labels an item"
    )
    return (Caution(NbmodelsWarning, message),)


def _is_rows_of_booleans(values: Any) -> bool:
    return not isinstance(values, Mapping) and all(
        _is_set(row) and len(row) > 1 and all(isinstance(v, bool | np.bool_) for v in row)
        for row in values
    )


def read_table(name: str, values: Any, n_rows: int) -> tuple[np.ndarray, Any] | None:
    """``(N, K)`` booleans and the columns' names, or None where ``values`` are no table.

    Raises:
        DataError: wrong length, cells other than booleans.
    """
    array: np.ndarray = np.zeros(0)
    names = None
    known = np.iterable(values) or hasattr(values, "__array__")
    if not known or isinstance(values, str):
        raise DataError(f"{name}: expected what is known of each item, got {values!r}")
    if isinstance(values, pd.DataFrame):
        array, names = values.to_numpy(), values.columns.to_numpy()
    elif hasattr(values, "__array__") or _is_rows_of_booleans(values):
        array = as_array(name, values)
    if array.ndim != 2 or array.shape[1] == 1:
        return None
    check_length(name, array, n_rows)
    wrong = np.argwhere(~np.isin(array, (0, 1)))
    if len(wrong):
        i, j = wrong[0]
        raise DataError(
            f"{name}: row {i}, column {j} is {plain(array[i, j])!r}; a table with one column a "
            "class holds booleans"
        )
    return array.astype(bool), names


def by_class(
    name: str, table: Bool[np.ndarray, "n k"], columns: Any, classes: Classes
) -> Bool[np.ndarray, "n k"]:
    """A table of :func:`read_table` with its columns in the order of the classes.

    Raises:
        DataError: another number of columns than of classes, or other names.
    """
    if table.shape[1] != len(classes):
        raise DataError(
            f"{name}: has {counted(table.shape[1], 'column')} for {len(classes)} classes"
        )
    if columns is None:
        return table
    return classes.in_order(name, pd.DataFrame(table, columns=columns), axes=(1,)).to_numpy()
