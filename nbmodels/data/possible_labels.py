"""What is possible of each item beside its labels, in every form in which it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool

from nbmodels.data.label_sets import by_class, read_sets, read_table
from nbmodels.data.labels import Classes, unchecked
from nbmodels.data.noisy_labels import LabelData
from nbmodels.data.validation import as_column, check_length, plain
from nbmodels.errors import DataError


def names_of_known(trusted: Any, possible: Any, n: int, marker: Any) -> list[np.ndarray]:
    """Names of classes among checked labels and sets of possible ones.

    Args:
        trusted: checked labels, a row each or by row, or None.
        possible: sets, or a table with a column a class, or None.
        n: number of items.
        marker: value that means "unchecked"; None for nulls alone.

    Raises:
        DataError: what cannot be read.
    """
    found = []
    if trusted is not None:
        values = list(trusted.values()) if isinstance(trusted, Mapping) else trusted
        checked = as_column("trusted", values)
        found.append(checked[~unchecked(checked, marker)])
    if possible is not None:
        table = read_table("possible", possible, n)
        names = read_sets("possible", possible, n).labels if table is None else table[1]
        found.append(np.asarray([] if names is None else names, object))
    return [one for one in found if len(one)]


def allowed_classes(possible: Any, n: int, classes: Classes) -> Bool[np.ndarray, "n k"]:
    """``(n, K)`` what is possible; an item without a set may be of any class.

    Args:
        possible: sets, or a table with a column a class.
        n: number of items.
        classes: names of all classes.

    Raises:
        DataError: another number of rows or columns, or a label outside the classes.
    """
    if (table := read_table("possible", possible, n)) is not None:
        allowed = by_class("possible", *table, classes)
    else:
        allowed = (sets := read_sets("possible", possible, n)).table("possible", classes)
        allowed[~sets.given] = True
    check_length("possible", allowed, n)
    return allowed


def check_possible(allowed: Bool[np.ndarray, "n k"], read: LabelData) -> None:
    """Refuse a checked label that is not possible.

    Args:
        allowed: ``(N, K)`` what is possible.
        read: labels, of which some may be checked.

    Raises:
        DataError: naming the row.
    """
    if read.trusted is None:
        return
    rows = np.flatnonzero(read.trusted >= 0)
    bad = rows[~allowed[rows, read.trusted[rows]]]
    if len(bad):
        name = plain(read.classes.names[read.trusted[bad[0]]])
        raise DataError(f"possible: row {bad[0]} excludes {name!r}, which trusted says that it is")
