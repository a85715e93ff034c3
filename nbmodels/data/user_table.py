"""A user's table as the command line reads it: columns by role, and those that say nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from nbmodels.data.column_types import ColumnKind, column_kind, few_rows, hashable
from nbmodels.data.labels import as_text
from nbmodels.errors import DataError, counted

#: Text is taken for numbers that went wrong where so many cells, and this share of them, are some.
_LEAST_NUMBERS, _MOSTLY_NUMBERS = 20, 0.95
#: One other spelling beside numbers is taken for a marker of missing cells where most cells are
#: numbers, of more values than this: few may be codes, among which another one is a category.
_MANY_NUMBERS = 10
#: Signs beside a number, with the spaces between.
_SIGN = r"^[€$£¥]\s?|\s?[%€$£¥]$"

#: Cells among numbers that are spelt in at most so many ways mark that there is none.
_FEW_SPELLINGS = 5
#: Rows from which on whole numbers that occur once each, without a gap, only number them.
_MANY_ROWS = 20
#: Beginning of a cell that says no more than on which side of a number the value is.
_BEYOND = r"[<>≤≥]\s*\d"
#: Why a column of texts is left out, words from which on a column holds some, and columns from
#: which on the others are most of a table.
_FOR_TEXTS, _LEAST_WORDS, _FEW_COLUMNS = "for texts use --text", 5, 5
#: Columns that ``nbmodels clean`` adds to a table, beside ``p_`` and the name of each class.
RESULTS = ("suggested_label", "p_label_wrong", "p_suggested", "check_rank")
#: Days, months and years in any order, and a time.
_DATE = r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{2,4})(?:[T ]\d{1,2}:\d{2}.*)?"


@dataclass(frozen=True)
class Choice:
    """How the columns are modelled.

    Attributes:
        estimator: name of the estimator.
        families: what each column is taken for; ``"words"`` for a column of text.
        left_out: columns that are not used, with the reason.
        settings: those of the fit, asked for or chosen.
        remarks: what else to know of how columns were read, as sentences.
    """

    estimator: str
    families: dict[str, str]
    left_out: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


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


def results_of_clean(frame: pd.DataFrame, classes: Iterable[str]) -> list[str]:
    """Columns that ``nbmodels clean`` added to the table before; none if one of them is not there.

    Args:
        frame: the table.
        classes: names of the classes.
    """
    own = {str(c): re.sub(r"_\d+$", "", str(c)) for c in frame.columns}
    if not set(RESULTS) <= {*own, *own.values()}:
        return []
    names = {*RESULTS, *(f"p_{one}" for one in classes)}
    return [name for name, stem in own.items() if names & {name, stem}]


def read_text(frame: pd.DataFrame, text: str, label: str, truth: str | None) -> tuple[Choice, Any]:
    """The choice for a column of texts, and the sparse matrix of its words."""
    from nbmodels.data.text import text_features

    others = [c for c in frame.columns if c not in (text, label, truth)]
    left_out = {str(c): "only the text is used" for c in others}
    choice = Choice("NoisyMultinomialNB", {text: "words"}, left_out)
    # messages count rows from 1
    return choice, text_features(frame[text].set_axis(range(1, len(frame) + 1))).x


def read_features(
    frame: pd.DataFrame,
    label: str,
    features: Sequence[str] | None,
    truth: str | None,
    unused: Mapping[str, str] | None = None,
) -> tuple[Choice, pd.DataFrame]:
    """The choice for a table: each column's family, and the columns coded for it.

    Args:
        frame: the table, its rows numbered from 0; messages count them from 1.
        label: column of the given labels.
        features: columns to learn from; None for all that are usable.
        truth: column of the true labels.
        unused: columns that are learned from only where they are asked for, with the reason.

    Raises:
        DataError: no usable column, or one asked for that is not.
    """
    asked = features is not None
    wanted = list(features) if features is not None else list(frame.columns)
    families: dict[str, str] = {}
    left_out: dict[str, str] = {}
    columns: dict[str, pd.Series] = {}
    remarks: list[str] = []
    for name in wanted:
        if name in (label, truth):
            continue
        if not asked and str(name) in (unused or {}):
            left_out[str(name)] = (unused or {})[str(name)]
            continue
        column, remark = _read_numbers(*_without_marker(frame[name]))
        kind = _usable_kind(column, asked)
        if kind.family is None:
            if asked:
                raise DataError(f"features: column {name!r} cannot be used: {kind.reason}")
            left_out[str(name)] = kind.reason
            continue
        families[str(name)] = kind.family
        columns[str(name)] = _coded(column, kind.family)
        if remark:
            remarks.append(f"{str(name)!r}: {remark}")
        if kind.family == "gaussian" and np.isinf(columns[str(name)]).any():
            row = int(np.flatnonzero(np.isinf(columns[str(name)]))[0])
            first, out = ("features: ", "") if asked else ("", ": name the others by --features")
            raise DataError(
                f"{first}column {name!r} is infinite in row {row + 1}; empty the cell if its value "
                f"is not known, or leave the column out{out}"
            )
    if not families:
        why = "; ".join(f"{n}: {r}" for n, r in list(left_out.items())[:4])
        raise DataError(f"features: no column to learn from{f' ({why})' if why else ''}")
    kinds = set(families.values())
    estimator = "NoisyBernoulliNB" if kinds == {"bernoulli"} else "NoisyMixedNB"
    choice = Choice(estimator, families, left_out, remarks=remarks)
    return choice, pd.DataFrame(columns)


def like_votes(frame: pd.DataFrame, columns: Iterable[str], classes: Iterable[str]) -> str:
    """A sentence about columns that have the labels' own values; empty where fewer than two do.

    Args:
        frame: the table.
        columns: those that are learned from.
        classes: names of the classes.
    """
    own = set(classes)
    known = (name for name in columns if name in frame)
    found = [name for name in known if set(as_text(frame[name].dropna().drop_duplicates())) == own]
    if len(found) < 2:
        return ""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return (
        f"{', '.join(map(repr, found[:3]))}{more} have the values of the labels; votes of several "
        "annotators are read from a table with a row a vote, by --task and --worker"
    )


def texts_left_out(frame: pd.DataFrame, choice: Choice, *, informative: bool) -> list[str]:
    """Sentences about columns of texts that are not used and are most of what a table has.

    Args:
        frame: the table.
        choice: how its columns are modelled.
        informative: whether the columns that are used say anything of the labels.
    """
    if informative and len(choice.families) >= _FEW_COLUMNS:
        return []
    words = {
        name: float(np.mean([len(str(cell).split()) for cell in frame[name].dropna()]))
        for name, reason in choice.left_out.items()
        if _FOR_TEXTS in reason
    }
    return [
        f"column {name!r} holds texts (of {mean:.0f} words on average), which are not used: to "
        f"learn from them in the place of {', '.join(map(repr, choice.families))}, use --text "
        f"{shlex.quote(name)}"
        for name, mean in words.items()
        if mean >= _LEAST_WORDS
    ]


def _without_marker(column: pd.Series) -> tuple[pd.Series, str]:
    """A column of numbers without the marker of its missing cells, and what was found.

    Args:
        column: cells, by the number of their row from 0.

    Returns:
        the column, as numbers where all other cells have one spelling (``?``, ``unknown``); and a
        remark on that, or on a column that is read as categories though most cells are numbers.
    """
    if column_kind(column).family != "categorical" or isinstance(column.dtype, pd.CategoricalDtype):
        return column, ""
    known = column.dropna()
    if not len(known) or not known.map(lambda v: isinstance(v, str)).all():
        return column, ""
    text = known.str.strip()
    numbers = pd.to_numeric(text, errors="coerce")
    other = numbers.isna()
    if not 0 < 2 * other.sum() < len(known) or numbers.nunique() <= _MANY_NUMBERS:
        return column, ""
    spellings = text[other].str.lower().unique()
    first = repr(text[other].iloc[0])
    if len(spellings) == 1:
        taken = f"{first} in {counted(int(other.sum()), 'cell')} is taken for missing"
        if re.match(_BEYOND, spellings[0]):
            taken += "; where it is a limit of detection, write a number, such as half of it"
        return numbers.reindex(column.index), taken
    return column, (
        f"read as categories, since {other.sum()} of {len(known)} cells are not numbers "
        f"({first} in row {int(known.index.to_numpy(int)[other.to_numpy()][0]) + 1})"
    )


def _read_numbers(column: pd.Series, remark: str) -> tuple[pd.Series, str]:
    """A column of numbers with decimal commas or one sign (``5,1``, ``51 %``, ``€ 3.50``), read.

    Cells are all written alike. Where nothing shows whether commas stand before decimals or
    separate thousands, the column stays as it is, and so do few values, which may be codes.

    Args:
        column: cells, by the number of their row from 0.
        remark: what was found before.
    """
    known = column.dropna()
    if remark or not len(known) or not known.map(lambda v: isinstance(v, str)).all():
        return column, remark
    text = known.str.strip()
    bare = text.str.replace(_SIGN, "", regex=True)
    signs = text.str.findall(_SIGN).str.join("").str.strip()
    if signs.nunique() > 1 or pd.to_numeric(text, errors="coerce").notna().all():
        return column, remark
    points = _with_points(bare)
    numbers = pd.to_numeric(points, errors="coerce")
    if numbers.isna().any() or numbers.nunique() <= _MANY_NUMBERS:
        return column, remark
    # a cell that shows how the others are written
    at = int(np.argmax(points != text))
    read = f"{text.iloc[at]!r} in row {int(text.index[at]) + 1} is read as {numbers.iloc[at]:g}"
    return numbers.reindex(column.index), read


def _with_points(cells: pd.Series) -> pd.Series:
    """Numbers with decimal points alone; empty where it is not clear what a comma stands for."""
    unclear = pd.Series("", index=cells.index)
    if cells.str.fullmatch(r"[+-]?\d+(\.\d+)?").all():
        return cells
    # no group of thousands begins with a zero
    decimals = cells.str.contains(r"^[+-]?0,\d").any()
    thousands = cells.str.fullmatch(r"[+-]?\d{1,3}(,\d{3})*(\.\d+)?")
    if thousands.all() and not decimals:
        shown = cells.str.contains(r",.*[,.]").any()
        return cells.str.replace(",", "") if shown else unclear
    return cells.str.replace(",", ".") if cells.str.fullmatch(r"[+-]?\d+(,\d+)?").all() else unclear


def _written(text: pd.Series) -> pd.Series:
    """Numbers that have signs or commas; NaN for other texts."""
    signs = text.str.replace(r"[%€$£¥\s]", "", regex=True)
    # a lone comma is a decimal one, beside a point it separates thousands
    points = signs.where(signs.str.contains(".", regex=False), signs.str.replace(",", "."))
    return pd.to_numeric(points.str.replace(",", ""), errors="coerce")


def _usable_kind(column: pd.Series, asked: bool) -> ColumnKind:
    """The kind of a column of a user's table, of which not every column carries information."""
    known = column.dropna()
    if not len(known):
        return ColumnKind(None, "no value")
    if not hashable(known):
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
        values = known.to_numpy()
        ordered = (np.abs(np.diff(values)) == 1).all()
        # of a handful of rows it may be a rank
        each_once = distinct == len(known) == int(values.max()) - int(values.min()) + 1
        numbered = ordered or (each_once and distinct >= _MANY_ROWS)
        return "it numbers the rows" if numbered else ""
    if family != "categorical":
        return ""
    if known.astype(str).str.strip().str.fullmatch(_DATE).mean() >= _MOSTLY_NUMBERS:
        return "dates and times have no emission"
    alike = distinct == len(known), distinct > max(20, len(known) // 2), few_rows(known, distinct)
    if not any(alike):
        return ""
    if why := _spoilt_numbers(known):
        return why
    if alike[0]:
        return f"all values differ, like an id's ({_FOR_TEXTS})"
    if alike[1]:
        return f"nearly all values differ ({_FOR_TEXTS})"
    return (
        f"{distinct} values in {len(known)} rows, like an id's; use --groups {known.name} if rows "
        "of a value belong together, or --features if it describes them"
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
    mostly = 2 * plain.sum() > len(text) and text[~plain].nunique() <= _FEW_SPELLINGS
    if plain.sum() >= (_LEAST_NUMBERS if mostly else least):
        at, others = plain.argmin(), (~plain).sum() - 1
        more = f", and {others} more" if others else ""
        cell = f"{text.iloc[at]!r} in row {rows[at]}"
        return f"{plain.sum()} of {len(text)} cells are numbers; {cell} is not{more}"
    written = _written(text).notna().to_numpy()
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
