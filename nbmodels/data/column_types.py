"""What the columns of a table are taken for: labels, words, and features of each family."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from nbmodels.errors import DataError


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


def as_text(column: pd.Series) -> np.ndarray:
    """Labels as text, None where missing; whole numbers without a point."""
    whole = pd.api.types.is_float_dtype(column.dtype) and (column.dropna() % 1 == 0).all()
    cells = (None if pd.isna(v) or v == "" else str(int(v) if whole else v) for v in column)
    return np.asarray(list(cells), object)


@dataclass(frozen=True)
class Labels:
    """The given labels, as text and as codes.

    Attributes:
        text: ``(N,)`` as text, None where missing.
        codes: ``(N,)`` from 0, -1 where missing.
        names: ``(K,)`` names of the classes, in the order of their values.
        values: ``(K,)`` the classes as they stand in the table.
    """

    text: np.ndarray
    codes: np.ndarray
    names: np.ndarray
    values: pd.Series

    @classmethod
    def of(cls, column: pd.Series, label: str) -> Labels:
        text = as_text(column)
        known = np.flatnonzero(pd.notna(text))
        first = pd.Series(known, index=text[known])
        first = first[~first.index.duplicated()]
        if len(first) < 2:
            only = f": only {first.index[0]!r}" if len(first) else ""
            raise DataError(
                f"label: column {label!r} needs two classes or more, has {len(first)}{only}"
            )
        if len(first) > max(2, len(known) // 2):
            raise DataError(
                f"label: column {label!r} has {len(first)} different values in {len(known)} rows; "
                "expected the names of a few classes"
            )
        values = column.iloc[first.to_numpy()]
        # a table is sorted by value, so that 10 comes after 9
        with contextlib.suppress(TypeError):
            values = values.sort_values()
        names = text[values.index.to_numpy()].astype(str)
        codes = pd.Index(names).get_indexer(pd.Index(text))
        return cls(text, np.where(pd.isna(text), -1, codes), names, values)


def read_text(frame: pd.DataFrame, text: str, label: str, truth: str | None) -> tuple[Choice, Any]:
    """The choice for a column of texts, and the sparse matrix of its words."""
    from nbmodels.data.text import text_features

    others = [c for c in frame.columns if c not in (text, label, truth)]
    left_out = {str(c): "only the text is used" for c in others}
    choice = Choice("NoisyMultinomialNB", {text: "words"}, left_out)
    return choice, text_features(frame[text]).x


def read_features(
    frame: pd.DataFrame, label: str, features: Sequence[str] | None, truth: str | None
) -> tuple[Choice, pd.DataFrame]:
    """The choice for a table: each column\'s family, and the columns coded for it.

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
        family, reason = _family(frame[name], asked)
        if family is None:
            if asked:
                raise DataError(f"features: column {name!r} cannot be used: {reason}")
            left_out[str(name)] = reason
            continue
        families[str(name)] = family
        columns[str(name)] = _coded(frame[name], family)
        if family == "gaussian" and np.isinf(columns[str(name)]).any():
            row = int(np.flatnonzero(np.isinf(columns[str(name)]))[0])
            raise DataError(f"features: column {name!r} is infinite in row {row}")
    if not families:
        why = "; ".join(f"{n}: {r}" for n, r in list(left_out.items())[:4])
        raise DataError(f"features: no column to learn from{f' ({why})' if why else ''}")
    kinds = set(families.values())
    estimator = "NoisyBernoulliNB" if kinds == {"bernoulli"} else "NoisyMixedNB"
    choice = Choice(estimator, families, left_out)
    return choice, pd.DataFrame(columns)


def _family(column: pd.Series, asked: bool) -> tuple[str | None, str]:
    """What a column is taken for; or None, and why it cannot serve."""
    known = column.dropna()
    if not len(known):
        return None, "no value"
    try:
        distinct = known.nunique()
    except TypeError:
        return None, "its cells hold lists or the like"
    kind = column.dtype
    if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
        return None, "dates and times have no emission"
    if distinct == 1:
        return None, "one value only"
    if pd.api.types.is_bool_dtype(kind):
        return "bernoulli", ""
    if pd.api.types.is_numeric_dtype(kind):
        if pd.api.types.is_complex_dtype(kind):
            return None, "complex numbers have no emission"
        if set(known.unique().tolist()) == {0, 1}:
            return "bernoulli", ""
        counted = pd.api.types.is_integer_dtype(kind) and len(known) > 2
        if not asked and counted and (np.abs(np.diff(known.to_numpy())) == 1).all():
            return None, "it numbers the rows"
        return "gaussian", ""
    if set(map(type, known.unique().tolist())) == {bool}:
        return "bernoulli", ""
    if not asked and distinct == len(known):
        return None, "all values differ, like an id's (for texts use --text)"
    if not asked and distinct > max(20, len(known) // 2):
        return None, "nearly all values differ (for texts use --text)"
    return "categorical", ""


def _coded(column: pd.Series, family: str) -> pd.Series:
    if family == "categorical":
        text = [None if pd.isna(v) else str(v) for v in column]
        return pd.Series(np.asarray(text, object), dtype=object)
    numbers = [np.nan if pd.isna(v) else float(v) for v in column]
    return pd.Series(np.asarray(numbers, float))
