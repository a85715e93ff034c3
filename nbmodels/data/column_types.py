"""Types of the columns of a table: which family of distributions models each of them.

:func:`column_kind` is the one answer for a column, :func:`assign_families` that for a table with
families given by the user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from nbmodels.data.features import Block, of_time
from nbmodels.errors import Caution, DataError, NbmodelsWarning

#: Families that a column may be assigned to.
FAMILIES = ("bernoulli", "multinomial", "categorical", "gaussian")

#: Categories that seem to identify: more values than this ...
MANY_VALUES = 50
#: ... with fewer rows a value than this. From ten rows on, a value says which class is frequent
#: there; below, it says little more than its rows' own labels, and makes wrong ones look right. Zip
#: codes and names of products stay where there are rows enough to learn from.
FEW_ROWS = 10

#: Types of cells by pandas' names that are numbers.
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")

#: Symbols seem to be measurements where they have more values than this, and a value for this
#: share of the rows.
_FEW_VALUES, _DISTINCT = 20, 0.8


@dataclass(frozen=True)
class ColumnKind:
    """The family of a column.

    Attributes:
        family: ``"bernoulli"``, ``"categorical"`` or ``"gaussian"``; None where no emission models
            values of this type.
        reason: why there is none; empty otherwise.
    """

    family: str | None
    reason: str = ""


def column_kind(column: pd.Series) -> ColumnKind:
    """The family of a column by its dtype and values.

    Booleans and numbers that are all zero or one, both of which occur, are binary; other numbers
    are Gaussian (counts cannot be distinguished from measurements); text, other objects and pandas
    categories are categorical.

    Args:
        column: ``(n,)`` cells; nulls are ignored, other markers of missing cells must be dropped
            before.
    """
    known, dtype = column.dropna(), column.dtype
    types = pd.api.types
    if of_time(dtype):
        return ColumnKind(None, "dates and times have no emission")
    if types.is_bool_dtype(dtype):
        return ColumnKind("bernoulli")
    if isinstance(dtype, pd.CategoricalDtype):
        return ColumnKind("categorical")
    if types.is_complex_dtype(dtype):
        return ColumnKind(None, "complex numbers have no emission")
    if types.is_numeric_dtype(dtype):
        binary = set(known.unique().tolist()) == {0, 1}
        return ColumnKind("bernoulli" if binary else "gaussian")
    # a column of booleans with missing cells holds objects
    flags = len(known) and all(isinstance(v, bool | np.bool_) for v in known)
    return ColumnKind("bernoulli" if flags else "categorical")


def assign_families(
    block: Block, frame: pd.DataFrame, families: Any, known: Sequence[str] = FAMILIES
) -> dict[str, str]:
    """The family of each column, by its name, in the columns' order.

    Args:
        block: ``(n, d)`` cells, with the missing ones.
        frame: the same cells with dtypes, by which columns without a given family are assigned.
        families: ``"auto"``, or a mapping from families to names or positions of columns.
        known: names of all families, registered ones among them.

    Raises:
        DataError: an unknown family or column, a column named twice, or a column without a given
            family whose values no emission models, such as dates.
    """
    given = {} if families == "auto" else _given_families(block.names, families, known)
    out = {}
    for j, name in enumerate(block.names):
        if name in given:
            out[name] = given[name]
            continue
        column = frame[name]
        if block.missing is not None:
            column = column[~np.asarray(block.missing[:, j])]
        kind = column_kind(column)
        if kind.family is None:
            raise DataError(
                f"X: column {name!r} cannot be used: {kind.reason}; drop it, or convert it to "
                "numbers or categories"
            )
        out[name] = kind.family
    return out


def identifiers(frame: pd.DataFrame, families: Any = "auto") -> list[Caution]:
    """Warnings of columns whose categories identify rows or groups, or are numbers.

    Args:
        frame: ``(n, d)`` cells.
        families: as for :func:`assign_families`; columns that it names are the user's choice.
    """
    named = set() if isinstance(families, str) else {c for f in families.values() for c in f}
    out = []
    for j, (name, column) in enumerate(frame.items()):
        # numbers are never categories, and there may be thousands of columns of them
        if name in named or j in named or pd.api.types.is_numeric_dtype(column.dtype):
            continue
        known = column.dropna()
        if column_kind(column).family != "categorical" or not hashable(known):
            continue
        distinct = known.nunique()
        numbers = pd.api.types.infer_dtype(known) in _NUMBERS
        if numbers and known.dtype == object and distinct > _FEW_VALUES:
            message = (
                f"column {str(name)!r} of X has numbers as objects, whose {distinct} values are "
                "taken for categories; where they are measurements, make it numeric (pd.to_numeric)"
            )
            out.append(Caution(NbmodelsWarning, message))
        elif few_rows(known, distinct):
            message = (
                f"column {str(name)!r} of X has {distinct} values in {len(known)} rows, like an "
                "id's, which makes wrong labels look right; drop it, or give it as groups= where "
                "the rows of a value belong together"
            )
            out.append(Caution(NbmodelsWarning, message))
    return out


def measurements(block: Block) -> str:
    """A sentence about the first column whose values hardly repeat; empty where all do.

    Args:
        block: ``(n, d)`` symbols, each value of which is a category.
    """
    return _unlike_symbols(block, lambda known, n: n > _DISTINCT * len(known))


def measured(block: Block) -> tuple[Caution, ...]:
    """A warning of such a column, or of one of numbers with decimals that seldom repeat."""

    def found(known: pd.Series, n: int) -> bool:
        if n > _DISTINCT * len(known):
            return True
        decimals = pd.api.types.infer_dtype(known) in ("floating", "mixed-integer-float")
        return decimals and len(known) < FEW_ROWS * n and bool((known.astype(float) % 1 != 0).any())

    sentence = _unlike_symbols(block, found)
    return (Caution(NbmodelsWarning, sentence),) if sentence else ()


def _unlike_symbols(block: Block, is_one: Callable[[pd.Series, int], bool]) -> str:
    """A sentence about the first column of many values for which ``is_one`` is true.

    Args:
        block: ``(n, d)`` symbols.
        is_one: of a column's known cells, and the number of their values.
    """
    for j, name in enumerate(block.names):
        cells = block.x[:, j]
        known = pd.Series(cells if block.missing is None else cells[~block.missing[:, j]])
        n_values = known.nunique()
        if n_values > _FEW_VALUES and is_one(known, n_values):
            return (
                f"X: column {name!r} has {n_values} different values in {len(known)} rows, each of "
                "which would be a category; bin it (sklearn.preprocessing.KBinsDiscretizer)"
            )
    return ""


def few_rows(known: pd.Series, distinct: int) -> bool:
    """Whether categories have too few rows a value to describe.

    Args:
        known: cells that are not missing.
        distinct: number of their values.
    """
    return distinct > MANY_VALUES and len(known) < FEW_ROWS * distinct


def hashable(known: pd.Series) -> bool:
    """Whether cells can be counted by value, which lists cannot."""
    try:
        known.nunique()
    except TypeError:
        return False
    return True


def _given_families(names: Sequence[str], families: Any, known: Sequence[str]) -> dict[str, str]:
    if not isinstance(families, Mapping) or not set(families) <= set(known):
        raise DataError(
            f"families: expected 'auto' or a mapping from {tuple(known)} to columns, got "
            f"{families!r}"
        )
    out: dict[str, str] = {}
    for family, columns in families.items():
        if isinstance(columns, str) or not np.iterable(columns):
            raise DataError(f"families: {family}: expected a list of columns, got {columns!r}")
        for column in columns:
            whole = isinstance(column, int | np.integer)
            if isinstance(column, str) and column in names:
                name = column
            elif whole and 0 <= column < len(names):
                name = names[column]
            else:
                raise DataError(f"families: there is no column {column!r} in X")
            if name in out:
                raise DataError(f"families: column {name!r} is named twice")
            out[name] = family
    return out


def check_numbers(block: Block, families: Mapping[str, str]) -> None:
    """Refuse cells that are no numbers in columns whose family needs them.

    Args:
        block: ``(n, d)`` cells, with the missing ones.
        families: by column, in the columns' order.

    Raises:
        DataError: with the row and the column.
    """
    for j, (name, family) in enumerate(families.items()):
        if family == "categorical":
            continue
        for i, value in enumerate(block.x[:, j]):
            hidden = block.missing is not None and block.missing[i, j]
            if not hidden and not isinstance(value, Real | np.bool_):
                raise DataError(
                    f"X: row {i}, column {name!r} is {value!r}; the {family} family needs numbers"
                )
