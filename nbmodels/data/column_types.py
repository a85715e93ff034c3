"""Types of the columns of a table: which family of distributions models each of them.

:func:`column_kind` is the one answer for a column, :func:`assign_families` that for a table with
families given by the user; the rest reads the tables of the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from nbmodels.data.features import Block
from nbmodels.errors import Caution, DataError, NbmodelsWarning

#: Families that a column may be assigned to.
FAMILIES = ("bernoulli", "multinomial", "categorical", "gaussian")

#: Categories that seem to identify: more values than this ...
MANY_VALUES = 50
#: ... with fewer rows a value than this. From ten rows on, a value says which class is frequent
#: there; below, it says little more than its rows' own labels, and makes wrong ones look right. Zip
#: codes and names of products stay where there are rows enough to learn from.
FEW_ROWS = 10

#: Text is taken for numbers that went wrong where so many cells, and this share of them, are some.
_LEAST_NUMBERS, _MOSTLY_NUMBERS = 20, 0.95


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
    if (
        types.is_datetime64_any_dtype(dtype)
        or types.is_timedelta64_dtype(dtype)
        or isinstance(dtype, pd.PeriodDtype)
    ):
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
    """Warnings of columns whose categories seem to identify rows or groups of rows.

    Args:
        frame: ``(n, d)`` cells.
        families: as for :func:`assign_families`; columns that it names are the user's choice.
    """
    named = set() if isinstance(families, str) else {c for f in families.values() for c in f}
    out = []
    for j, (name, column) in enumerate(frame.items()):
        chosen = name in named or j in named
        known = column.dropna()
        if chosen or column_kind(column).family != "categorical" or not _hashable(known):
            continue
        if _few_rows(known, distinct := known.nunique()):
            message = (
                f"column {str(name)!r} of X has {distinct} values in {len(known)} rows, like an "
                "id's, which makes wrong labels look right; drop it, or give it as groups= where "
                "the rows of a value belong together"
            )
            out.append(Caution(NbmodelsWarning, message))
    return out


def _few_rows(known: pd.Series, distinct: int) -> bool:
    return distinct > MANY_VALUES and len(known) < FEW_ROWS * distinct


def _hashable(known: pd.Series) -> bool:
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


@dataclass(frozen=True)
class Choice:
    """How the columns are modelled.

    Attributes:
        estimator: name of the estimator.
        families: what each column is taken for; ``"words"`` for a column of text.
        left_out: columns that are not used, with the reason.
        settings: those of the fit, asked for or chosen.
    """

    estimator: str
    families: dict[str, str]
    left_out: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


def check_columns(
    frame: pd.DataFrame,
    label: str,
    text: str | None,
    features: Sequence[str] | None,
    truth: str | None,
) -> None:
    """Refuse columns that are not there, or that have two roles.

    Raises:
        DataError: naming the argument.
    """
    if not len(frame):
        raise DataError("frame: the table has no rows")
    asked = [("label", label), ("text", text), ("truth", truth)]
    for name, column in [*asked, *(("features", c) for c in features or ())]:
        if column is not None and column not in frame.columns:
            there = ", ".join(map(str, frame.columns[:12]))
            more = ", ..." if len(frame.columns) > 12 else ""
            raise DataError(f"{name}: there is no column {column!r}; the table has {there}{more}")
    if text is not None and features is not None:
        raise DataError("features: give either a column of text or features, not both")
    for name, used in (("text", [text] if text else []), ("features", list(features or ()))):
        for role, column in (("label", label), ("truth", truth)):
            if column in used:
                raise DataError(f"{name}: {column!r} is the column of the {role}, never a feature")
    if features is not None and not len(features):
        raise DataError("features: expected at least one column")
    if features is not None and len(set(features)) < len(features):
        raise DataError("features: a column is named twice")
    if truth == label:
        raise DataError(f"truth: {truth!r} is the column of the labels")


def read_text(frame: pd.DataFrame, text: str, label: str, truth: str | None) -> tuple[Choice, Any]:
    """The choice for a column of texts, and the sparse matrix of its words."""
    from nbmodels.data.text import text_features

    others = [c for c in frame.columns if c not in (text, label, truth)]
    left_out = {str(c): "only the text is used" for c in others}
    choice = Choice("NoisyMultinomialNB", {text: "words"}, left_out)
    # messages count rows from 1
    return choice, text_features(frame[text].set_axis(range(1, len(frame) + 1))).x


def read_features(
    frame: pd.DataFrame, label: str, features: Sequence[str] | None, truth: str | None
) -> tuple[Choice, pd.DataFrame]:
    """The choice for a table: each column's family, and the columns coded for it.

    Args:
        frame: the table, its rows numbered from 0; messages count them from 1.
        label: column of the given labels.
        features: columns to learn from; None for all that are usable.
        truth: column of the true labels.

    Raises:
        DataError: no usable column, or one asked for that is not.
    """
    asked = features is not None
    wanted = list(features) if features is not None else list(frame.columns)
    families: dict[str, str] = {}
    left_out: dict[str, str] = {}
    columns: dict[str, pd.Series] = {}
    for name in wanted:
        if name in (label, truth):
            continue
        kind = _usable_kind(frame[name], asked)
        if kind.family is None:
            if asked:
                raise DataError(f"features: column {name!r} cannot be used: {kind.reason}")
            left_out[str(name)] = kind.reason
            continue
        families[str(name)] = kind.family
        columns[str(name)] = _coded(frame[name], kind.family)
        if kind.family == "gaussian" and np.isinf(columns[str(name)]).any():
            row = int(np.flatnonzero(np.isinf(columns[str(name)]))[0])
            raise DataError(f"features: column {name!r} is infinite in row {row + 1}")
    if not families:
        why = "; ".join(f"{n}: {r}" for n, r in list(left_out.items())[:4])
        raise DataError(f"features: no column to learn from{f' ({why})' if why else ''}")
    kinds = set(families.values())
    estimator = "NoisyBernoulliNB" if kinds == {"bernoulli"} else "NoisyMixedNB"
    choice = Choice(estimator, families, left_out)
    return choice, pd.DataFrame(columns)


def _usable_kind(column: pd.Series, asked: bool) -> ColumnKind:
    """The kind of a column of a user's table, of which not every column carries information."""
    known = column.dropna()
    if not len(known):
        return ColumnKind(None, "no value")
    if not _hashable(known):
        return ColumnKind(None, "its cells hold lists or the like")
    distinct = known.nunique()
    kind = column_kind(column)
    if kind.family is not None and distinct == 1:
        return ColumnKind(None, "one value only")
    if kind.family is not None and not asked:
        return ColumnKind(None, why) if (why := _identifier(known, kind.family, distinct)) else kind
    return kind


def _identifier(known: pd.Series, family: str, distinct: int) -> str:
    """Why a column seems to identify rows, and not to describe them; empty where it does not."""
    if family == "gaussian" and pd.api.types.is_integer_dtype(known.dtype) and len(known) > 2:
        numbered = (np.abs(np.diff(known.to_numpy())) == 1).all()
        return "it numbers the rows" if numbered else ""
    if family != "categorical":
        return ""
    alike = distinct == len(known), distinct > max(20, len(known) // 2), _few_rows(known, distinct)
    if not any(alike):
        return ""
    if why := _spoilt_numbers(known):
        return why
    if alike[0]:
        return "all values differ, like an id's (for texts use --text)"
    if alike[1]:
        return "nearly all values differ (for texts use --text)"
    return (
        f"{distinct} values in {len(known)} rows, like an id's; use --groups {known.name} if rows of "
        "a value belong together, or --features if it describes them"
    )


def _spoilt_numbers(known: pd.Series) -> str:
    """What is wrong with a column of text that is mostly numbers; empty where it is not.

    Args:
        known: cells, by the number of their row from 0.
    """
    text = known.astype(str).str.strip()
    rows = known.index.to_numpy(int) + 1
    least = max(_LEAST_NUMBERS, _MOSTLY_NUMBERS * len(text))
    plain = pd.to_numeric(text, errors="coerce").notna().to_numpy()
    if plain.all():
        return "its numbers are stored as text"
    if plain.sum() >= least:
        at, others = plain.argmin(), (~plain).sum() - 1
        more = f", and {others} more" if others else ""
        cell = f"{text.iloc[at]!r} in row {rows[at]}"
        return f"{plain.sum()} of {len(text)} cells are numbers; {cell} is not{more}"
    signs = text.str.replace(r"[%€$£¥\s]", "", regex=True)
    # a lone comma is a decimal one, beside a point it separates thousands
    points = signs.where(signs.str.contains(".", regex=False), signs.str.replace(",", "."))
    written = pd.to_numeric(points.str.replace(",", ""), errors="coerce").notna().to_numpy()
    if written.sum() < least:
        return ""
    at = (written & ~plain).argmax()
    return (
        f"its numbers are written like {text.iloc[at]!r} in row {rows[at]}; write them with digits "
        "and a decimal point alone"
    )


def _coded(column: pd.Series, family: str) -> pd.Series:
    if family == "categorical":
        text = [None if pd.isna(v) else str(v) for v in column]
        return pd.Series(np.asarray(text, object), dtype=object)
    numbers = [np.nan if pd.isna(v) else float(v) for v in column]
    return pd.Series(np.asarray(numbers, float))
