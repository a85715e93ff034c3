"""Tables in long format, one row per event (a vote, an interaction): ids become codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int
from scipy import sparse

from nbmodels.data.column_types import hashable
from nbmodels.data.validation import distinct_codes, in_pandas, plain, positions, sorted_unique
from nbmodels.errors import DataError

#: Names of columns, in the order wanted, each with groups of its other names: those of a later
#: group count only where no column has a name of an earlier one.
Columns = Mapping[str, Sequence[Sequence[str]]]


@dataclass(frozen=True)
class CodedColumn:
    """A column of ids or labels, each value as its position among the distinct ones.

    Attributes:
        codes: ``(n,)`` position of each row's value among ``names``.
        names: ``(m,)`` distinct values that occur, in any order.
        order: all values in their order, where the column is an ordered Categorical; None of
            others.
    """

    codes: Int[np.ndarray, " n"]
    names: np.ndarray
    order: np.ndarray | None = None

    @classmethod
    def of(cls, values: Any) -> CodedColumn:
        """From a series or array; a null has the code -1 and no name."""
        kind, order = getattr(values, "dtype", None), None
        if isinstance(kind, pd.CategoricalDtype) and kind.ordered:
            order = kind.categories.to_numpy()
        return cls(*distinct_codes(values), order)

    @property
    def values(self) -> np.ndarray:
        """``(n,)`` the column."""
        return self.names[self.codes]

    def among(self, name: str, known: Any, what: str) -> Int[np.ndarray, " n"]:
        """As :func:`codes_of` of the column, of which only the distinct values are looked up.

        Raises:
            DataError: a value that is not known, with its row.
        """
        found = positions(known, self.names)
        return found[self.codes] if (found >= 0).all() else codes_of(name, self.values, known, what)


def read_coded(
    name: str, table: Any, columns: Columns, *, by_name: bool = False
) -> list[CodedColumn]:
    """The wanted columns of a long table as codes; arguments and errors are :func:`read_long`'s."""
    frame = _wanted(name, table, columns, by_name)
    out = [CodedColumn.of(frame[column]) for column in frame]
    for wanted, column in zip(columns, out, strict=True):
        _refuse_nulls(name, wanted, column.codes < 0)
    return out


def read_long(
    name: str, table: Any, columns: Columns, *, by_name: bool = False
) -> list[np.ndarray]:
    """The wanted columns of a long table.

    Args:
        name: of the argument, for messages.
        table: data frame, mapping of columns, or array with as many columns.
        columns: names of the columns, in the order wanted, with other names for each, which count
            in lower or upper case, in the plural and with ``_id``, ``-id`` or ``Id``.
        by_name: whether an array is refused, whose columns have no names; otherwise one of as many
            columns is read in the order wanted.

    Raises:
        DataError: no such table, no rows, no column or two for one role, or a null cell, with
            its row.
    """
    frame = _wanted(name, table, columns, by_name)
    for wanted, column in zip(columns, frame, strict=True):
        _refuse_nulls(name, wanted, frame[column].isna().to_numpy())
    return [frame[column].to_numpy() for column in frame]


def _wanted(name: str, table: Any, columns: Columns, by_name: bool) -> pd.DataFrame:
    """The table's wanted columns, in the order wanted."""
    table = in_pandas(table)
    frame = table if isinstance(table, pd.DataFrame) else _as_frame(name, table, columns, by_name)
    frame = frame[_found(name, frame, columns)]
    if not len(frame):
        raise DataError(f"{name}: the table has no rows")
    for wanted, column in zip(columns, frame, strict=True):
        _refuse_containers(name, wanted, frame[column])
    return frame


def _refuse_containers(name: str, wanted: str, column: pd.Series) -> None:
    if column.dtype != object or hashable(column):
        return
    row = next(i for i, value in enumerate(column) if not hashable(pd.Series([value])))
    kind = type(column.iloc[row]).__name__
    raise DataError(
        f"{name}: the {wanted} of row {row} is a {kind} that cannot be counted; give strings, "
        "numbers or tuples of them"
    )


def _refuse_nulls(name: str, wanted: str, null: Bool[np.ndarray, " n"]) -> None:
    if null.any():
        raise DataError(
            f"{name}: row {np.argmax(null)} has no {wanted} (null); leave such rows out"
        )


def _there(frame: pd.DataFrame) -> str:
    listed = ", ".join(map(repr, frame.columns[:8]))
    return f"the table has {listed or 'none'}"


def _found(name: str, frame: pd.DataFrame, columns: Columns) -> list[Any]:
    """Names of the table's columns, in the order wanted."""
    out = []
    for wanted in columns:
        hits = columns_named(frame, wanted, columns)
        if len(hits) != 1:
            what = f"{hits} could each be the {wanted}" if hits else f"no column is the {wanted}"
            raise DataError(
                f"{name}: expected columns {', '.join(columns)}; {what}, {_there(frame)}; columns "
                f"are found by name: rename them, as in "
                f"{name}.rename(columns={{'...': {wanted!r}}})"
            )
        out.append(hits[0])
    return out


def columns_named(frame: pd.DataFrame, wanted: str, columns: Columns) -> list[str]:
    """Columns that may be the one wanted, by the first group of its names that any has.

    Args:
        frame: the table.
        wanted: one of the names.
        columns: all names, with other names for each.
    """
    texts = [c for c in frame.columns if isinstance(c, str)]
    if wanted in texts:
        return [c for c in texts if c == wanted]
    usual, *others = columns[wanted]
    for names in ((wanted, *usual), *others):
        known = {f"{one}{end}" for one in names for end in ("", "s", "id")}
        hits = [c for c in texts if "".join(filter(str.isalnum, c.lower())) in known]
        if hits:
            return hits
    return []


def _as_frame(name: str, table: Any, columns: Columns, by_name: bool) -> pd.DataFrame:
    try:
        frame = pd.DataFrame(table)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{name}: expected a table with columns {', '.join(columns)}; {error}"
        ) from error
    unnamed = list(frame.columns) == list(range(len(columns)))
    if unnamed and not by_name:
        frame = frame.set_axis(list(columns), axis=1).infer_objects()
    return frame


def codes_of(name: str, ids: np.ndarray, known: Any, what: str) -> Int[np.ndarray, " n"]:
    """``(n,)`` positions of ids among the known ones.

    Raises:
        DataError: an id that is not known, with its row.
    """
    codes = positions(known, ids)
    bad = np.flatnonzero(codes < 0)
    if len(bad):
        raise DataError(
            f"{name}: row {bad[0]} has the {what} {plain(ids[bad[0]])!r}, which is unknown"
        )
    return codes


def distinct(name: str, ids: np.ndarray, what: str) -> np.ndarray:
    """The distinct ids, sorted.

    Raises:
        DataError: ids of types that cannot be sorted together.
    """
    try:
        return sorted_unique(ids)
    except TypeError as error:
        raise DataError(f"{name}: the {what}s are of mixed types; make them all strings") from error


def counted(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """How often each pair of codes occurs, as a matrix in canonical order.

    Pairs are sorted as whole numbers: SciPy's way from coordinates walks through memory at random.

    Args:
        rows: ``(n,)`` codes from 0 on.
        columns: ``(n,)`` codes from 0 on.
        shape: numbers of rows and of columns.
    """
    bits = int(shape[1]).bit_length()
    pairs = np.sort((rows.astype(np.int64) << bits) | columns)
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    times = np.diff(first, append=len(pairs)).astype(float)
    pairs = pairs[first]
    return ordered_matrix(times, pairs >> bits, pairs & ((1 << bits) - 1), shape)


def ordered_matrix(
    values: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> sparse.csr_array:
    """Distinct cells as a matrix, without sorting them.

    Args:
        values: ``(n,)`` of the cells.
        rows: ``(n,)`` ascending codes from 0 on.
        columns: ``(n,)`` codes from 0 on, ascending in each row.
        shape: numbers of rows and of columns.
    """
    ends = np.cumsum(np.bincount(rows, minlength=shape[0]))
    return sparse.csr_array((values, columns, np.concatenate([[0], ends])), shape)
