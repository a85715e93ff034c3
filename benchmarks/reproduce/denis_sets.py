"""The six UCI sets of Denis et al. 2006 and how their cells may have been prepared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.reproduce.data import SHARED

#: Values at which the documentation of the UCI set cuts the numeric columns of Hepatitis.
DOCUMENTED = {
    "age": (10, 20, 30, 40, 50, 60, 70, 80),
    "bilirubin": (0.39, 0.80, 1.20, 2.00, 3.00, 4.00),
    "alk_phosphate": (33, 80, 120, 160, 200, 250),
    "sgot": (13, 100, 200, 300, 400, 500),
    "albumin": (2.1, 3.0, 3.8, 4.5, 5.0, 6.0),
    "protime": (10, 20, 30, 40, 50, 60, 70, 80, 90),
}
CUTS = ("documented", "equal counts, 10", "equal widths, 10", "equal widths, 5", "equal counts, 5")
MISSING = ("left out", "a value of its own", "most common value", "most common value of the class")


@dataclass(frozen=True)
class Prepared:
    """A set as codes.

    Attributes:
        codes: ``(N, attributes)`` integers, -1 where missing.
        sizes: number of values of each attribute.
        y: ``(N,)`` true classes, 0 and 1.
    """

    codes: np.ndarray
    sizes: tuple[int, ...]
    y: np.ndarray


def prepare(row: dict[str, Any], cut: str, missing: str) -> Prepared:
    """A set of ``denis2006_table3.json``, numbers cut and empty cells handled as named."""
    frame = pd.read_csv(SHARED / "uci" / row["file"])
    frame = frame[~frame["label"].isin(row.get("left_out", []))]
    y = (frame.pop("label") == row["positive"]).to_numpy(int)
    known = frame.notna().any(axis=1).to_numpy()  # one representative voted on nothing
    frame, y = frame[known], y[known]
    columns = [codes(frame[name], cut, missing, y) for name in frame]
    table = np.stack(columns, 1)
    return Prepared(table, tuple(int(size) for size in table.max(0) + 1), y)


def codes(column: pd.Series, cut: str, missing: str, y: np.ndarray) -> np.ndarray:
    """``(N,)`` codes of one column, -1 where a missing cell is left out."""
    if pd.api.types.is_numeric_dtype(column) and column.nunique() > 11:
        column = cut_into(column, cut)
    found = pd.factorize(column, sort=True)[0]
    empty = found < 0
    if missing == "a value of its own" and empty.any():
        found[empty] = found.max() + 1
    elif missing == "most common value":
        found[empty] = np.bincount(found[~empty]).argmax()
    elif missing == "most common value of the class":
        for k in (0, 1):
            found[empty & (y == k)] = np.bincount(found[~empty & (y == k)]).argmax()
    return found


def cut_into(column: pd.Series, cut: str) -> pd.Series:
    """Intervals of a numeric column."""
    if cut == "documented":
        edges = [-np.inf, *DOCUMENTED[str(column.name)], np.inf]
        return pd.cut(column, edges, labels=False, right=False)
    kind, count = cut.split(", ")
    if kind == "equal counts":
        return pd.qcut(column, int(count), labels=False, duplicates="drop")
    return pd.cut(column, int(count), labels=False)
