"""Class labels: names of the classes, codes of the labels, and which labels are missing.

The only place where the number of classes is inferred.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from nbmodels.data.validation import (
    as_column,
    by_row,
    check_length,
    plain,
    positions,
    sorted_unique,
)
from nbmodels.errors import Caution, DataError, NbmodelsWarning, counted, issue

#: What missing cells are often marked with, in lower case.
_MARKERS = frozenset({"", "?", "-", "--", "na", "n/a", "#n/a", "<na>", "nan", "null"})

#: Signs between the names of several classes, and words before one that is excluded.
_LISTING, _EXCLUDING = (*"|,;/&+", " or "), ("not ", "no ", "!", "~")

#: Labels a class, on average, from which on one that is seen once is odd.
_MANY_LABELS = 10

#: Letters of a word from which on one more, less or other is rather a slip than another word.
_LEAST_LETTERS = 4


def is_missing(values: np.ndarray, marker: Any) -> Bool[np.ndarray, " n"]:
    """Where ``values`` hold the marker; a NaN or None marker means any null."""
    nulls = np.asarray(pd.isna(values), bool)
    if marker is None or pd.isna(marker):
        return nulls
    # a null equals nothing, and pandas' NA cannot be compared
    return np.asarray([not n and bool(v == marker) for v, n in zip(values, nulls, strict=True)])


def check_marker(names: np.ndarray, marker: Any, name: str = "y") -> None:
    """Warn about a class that seems to be a missing label.

    Args:
        names: ``(K,)`` of the classes, which are not declared.
        marker: value that means "no label", or None.
        name: of the argument that holds the labels, for messages.

    Raises:
        DataError: a class is spelt as the marker and is of another type.

    Warns:
        NbmodelsWarning: a class is spelt as missing cells often are, or -1 is one beside two
            others or more.
    """
    spelt = [plain(one) for one in names if marker is not None and str(one) == str(marker)]
    if spelt:
        raise DataError(
            f"missing_label: {marker!r} ({type(marker).__name__}) is no label of y, which has the "
            f"label {spelt[0]!r} ({type(spelt[0]).__name__})"
        )
    # nulls are what mappings by id and data frames have anyway: no marker that was thought of
    if (marker is None or pd.isna(marker)) and (found := like_markers(names)):
        one = found[0]
        if name == "y":
            advice = f"if it means that there is no label, say missing_label={one!r}"
        else:
            advice = "if it means that there is none, leave such rows out"
        message = (
            f"{name}: {one!r} is taken for a class; {advice}, else name all classes with classes="
        )
        issue([Caution(NbmodelsWarning, message)])


def like_markers(names: np.ndarray) -> list[Any]:
    """Classes whose names are those of missing cells elsewhere: -1 beside two others, ``?``."""
    numbers = pd.to_numeric(pd.Series(names), errors="coerce")
    if numbers.notna().all():
        return [plain(names[numbers.argmin()])] if len(names) > 2 and numbers.min() == -1 else []
    texts = [str(one) for one in names if isinstance(one, str)]
    return [one for one in texts if one.strip().casefold() in _MARKERS]


class Classes:
    """The names of the classes and their codes.

    Args:
        names: ``(K,)`` distinct names, in the order of the codes.
    """

    def __init__(self, names: Any) -> None:
        self.names = np.asarray(names)

    @classmethod
    def infer(cls, y: np.ndarray, declared: Any = None, name: str = "y") -> Classes:
        """From the labels that occur, sorted, or from a declared list.

        Args:
            y: the labels.
            declared: names of all classes, or None.
            name: of the argument that holds the labels, for messages.

        Raises:
            DataError: fewer than two classes, a duplicate, or labels that cannot be sorted.
        """
        if declared is not None:
            names = as_column("classes", declared)
            if pd.isna(names).any():
                raise DataError(f"classes: a name is null in {names.tolist()}")
            if len(pd.unique(names)) != len(names):
                raise DataError(f"classes: a name occurs twice in {names.tolist()}")
        else:
            try:
                names = sorted_unique(y)
            except TypeError as error:
                kinds = sorted({type(v).__name__ for v in y})
                raise DataError(
                    f"{name}: labels of mixed types {kinds} cannot be sorted; make them all strings"
                ) from error
        if len(names) < 2:
            only = f": only {plain(names[0])!r} occurs" if len(names) else ": no label occurs"
            where = name if declared is None else "classes"
            raise DataError(
                f"{where}: at least two classes are needed, got {len(names)} class(es){only}"
            )
        if declared is None:
            odd = [
                (spelt_alike(names), "merge them, or name all classes with classes="),
                (
                    names_several(names),
                    "if it means one of these, give PartialLabelNB sets of "
                    "labels; else name all classes with classes=",
                ),
                (
                    names_excluded(names),
                    "if it means that an item is not of that class, give it as excluded= of "
                    "PartialLabelNB; else name all classes with classes=",
                ),
            ]
            messages = [f"{name}: {one}; {advice}" for one, advice in odd if one]
            issue([Caution(NbmodelsWarning, one) for one in messages])
        return cls(names)

    def __len__(self) -> int:
        return len(self.names)

    def in_order(self, name: str, values: Any, axes: Sequence[int] = (0, 1)) -> Any:
        """A series or data frame that names the classes, in their order; anything else as it is.

        Args:
            name: of the argument, for messages.
            values: numbers by class; axes that only count are taken to be in the classes' order.
            axes: which axes are classes.

        Raises:
            DataError: names that are not those of the classes.
        """
        if not isinstance(values, pd.Series | pd.DataFrame):
            return values
        known, found = pd.Index(self.names), cast(Any, values)
        for axis in (one for one in axes if one < values.ndim):
            own = values.axes[axis]
            if own.equals(known) or own.equals(pd.RangeIndex(len(own))):
                continue
            if not (own.is_unique and known.isin(own).all()):
                own, known = own.map(str), known.map(str)  # names of draws are text
            if not (own.is_unique and len(own) == len(known) and known.isin(own).all()):
                listed = [", ".join(map(str, some[:8])) for some in (own, known)]
                raise DataError(f"{name}: is named {listed[0]} where the classes are {listed[1]}")
            order = own.get_indexer(known)
            found = found.iloc[:, order] if axis else found.iloc[order]
        return found

    def encode(
        self,
        name: str,
        y: np.ndarray,
        missing: np.ndarray,
        rows: np.ndarray | None = None,
        unit: str = "row",
    ) -> Int[np.ndarray, " n"]:
        """``(N,)`` codes, -1 where missing.

        Args:
            name: of the argument, for messages.
            y: ``(N,)`` labels.
            missing: ``(N,)`` where there is none.
            rows: ``(N,)`` rows that the labels belong to; their own positions by default.
            unit: what ``rows`` are, for messages.

        Raises:
            DataError: a label outside the classes, with its row.
        """
        codes = np.full(len(y), -1)
        codes[~missing] = positions(self.names, y[~missing])
        bad = np.flatnonzero((codes < 0) & ~missing)
        if len(bad):
            row = plain(bad[0] if rows is None else rows[bad[0]])
            known = ", ".join(map(str, self.names[:12])) + (", ..." if len(self) > 12 else "")
            raise DataError(
                f"{name}: {unit} {row!r} has the label {plain(y[bad[0]])!r}, which is not among "
                f"the {len(self)} classes ({known})" + _ALL_NAMED * (name == "trusted")
            )
        return codes


#: Advice where a class is known from checked labels alone.
_ALL_NAMED = "; name all classes with classes= if it is one of them"


def spelt_alike(names: Any, what: str = "classes") -> str:
    """A sentence about names that differ in blanks and upper case alone, or nothing.

    Args:
        names: of any type; texts are compared.
        what: plural of what has these names.
    """
    plainly: dict[str, str] = {}
    pairs = []
    for name in names:
        if isinstance(name, str):
            other = plainly.setdefault(" ".join(name.split()).casefold(), name)
            pairs += [(str(other), str(name))] if other != name else []
    if not pairs:
        return ""
    one, other = pairs[0]
    more = "" if len(pairs) == 1 else f" (and {counted(len(pairs) - 1, 'other pair')})"
    differ = "whose names differ in blanks or upper case alone"
    return f"{one!r} and {other!r} are two {what}, {differ}{more}"


def names_several(names: Any) -> str:
    """A sentence about a class whose name lists other classes, or nothing."""
    known = {name for name in names if isinstance(name, str)}
    for name in sorted(known):
        for sign in filter(name.__contains__, _LISTING):
            parts = [part.strip() for part in name.split(sign)]
            if known.issuperset(parts):
                listed = ", ".join(map(repr, map(str, parts)))
                return f"{str(name)!r} is a class of its own beside {listed}"
    return ""


def names_excluded(names: Any) -> str:
    """A sentence about a class that says of which other one of several an item is not, or nothing.

    Beside one class alone, ``not spam`` is the name of the other.
    """
    known = [name for name in names if isinstance(name, str)]
    plainly = [name for name in known if not name.startswith(_EXCLUDING)]
    for name in sorted(set(known).difference(plainly)):
        first = next(filter(name.startswith, _EXCLUDING))
        other = name.removeprefix(first).strip()
        if len(plainly) > 1 and other in plainly:
            return f"{str(name)!r} is a class of its own beside {str(other)!r}"
    return ""


def seen_once(codes: Int[np.ndarray, " n"], n_classes: int) -> Bool[np.ndarray, " k"]:
    """``(K,)`` classes that one label alone names: rather slips than classes.

    Args:
        codes: of the labels, without missing ones.
        n_classes: K. In a handful of labels each is rare, and none is returned.
    """
    once = np.bincount(codes, minlength=n_classes) == 1
    return once & (len(codes) >= _MANY_LABELS * n_classes)


def one_slip(name: str, other: str) -> bool:
    """Whether two names differ in one word by a letter, or by two that changed places."""
    words = [
        (a, b) for a, b in zip(name.split(), other.split(), strict=False) if a.lower() != b.lower()
    ]
    if len(words) != 1 or len(name.split()) != len(other.split()):
        return False
    a, b = (word.lower() for word in words[0])
    if min(len(a), len(b)) < _LEAST_LETTERS:
        return False
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    swapped = len(a) == 2 and a == b[::-1]
    return (a + b).isalpha() and (max(len(a), len(b)) == 1 or swapped)


def trusted_codes(
    trusted: Any, classes: Classes, n_rows: int, marker: Any, tasks: np.ndarray | None = None
) -> Int[np.ndarray, " n"]:
    """``(N,)`` codes of checked labels, -1 where none.

    Args:
        trusted: one label a row, null (or ``marker``) where unchecked; or a mapping row -> label.
        classes: names and codes.
        n_rows: N.
        marker: value that means "unchecked"; None for nulls alone.
        tasks: ``(N,)`` ids of the items, by which messages name them; None for their rows.

    Raises:
        DataError: another number of rows, or a label outside the classes, with its row.
    """
    if isinstance(trusted, Mapping):
        values = by_row("trusted", trusted, n_rows)
    else:
        values = as_column("trusted", trusted)
        check_length("trusted", values, n_rows)
    unit = "row" if tasks is None else "task"
    return classes.encode("trusted", values, unchecked(values, marker), tasks, unit)


def unchecked(values: np.ndarray, marker: Any) -> Bool[np.ndarray, " n"]:
    """Whether there is no checked label: null, or ``marker`` where that is not None."""
    missing = np.asarray(pd.isna(values), bool)
    return missing if marker is None else missing | is_missing(values, marker)


def as_text(column: pd.Series) -> np.ndarray:
    """Labels as text, None where missing; whole numbers without a point."""
    whole = pd.api.types.is_float_dtype(column.dtype) and (column.dropna() % 1 == 0).all()
    cells = (None if pd.isna(v) or v == "" else str(int(v) if whole else v) for v in column)
    return np.asarray(list(cells), object)


def spelt_as(text: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Labels in the spelling of the classes, where spreadsheets and the like have rewritten them.

    ``1`` and ``1.0`` are the class ``01``, and ``TRUE`` is the class ``true``, if no other class
    can be meant.

    Args:
        text: ``(N,)`` labels as text, None where missing.
        names: ``(K,)`` names of the classes, as text.
    """
    spelling = pd.Series(names, index=_meanings(names))
    spelling = spelling[~spelling.index.duplicated(keep=False)]
    strange = np.asarray([*{v for v in text if v is not None}.difference(names)], object)
    found = {v: spelling.get(m, v) for v, m in zip(strange, _meanings(strange), strict=True)}
    return np.asarray([found.get(v, v) for v in text], object)


def _meanings(text: np.ndarray) -> list[Any]:
    """The number or the truth value that a text stands for, or else the text itself."""
    numbers = pd.to_numeric(pd.Series(text, dtype=object), errors="coerce")
    flags = {v: v.lower() for v in text if v.lower() in ("true", "false")}
    return [flags.get(v, v) if pd.isna(n) else float(n) for v, n in zip(text, numbers, strict=True)]


def _in_order(values: pd.Series, names: np.ndarray) -> pd.Series:
    """Classes by value, so that 10 comes after 9 also where both are text."""
    numbers = pd.to_numeric(pd.Series(names, dtype=object), errors="coerce")
    if numbers.notna().all():
        return values.iloc[np.argsort(numbers, kind="stable")]
    with contextlib.suppress(TypeError):
        return values.sort_values()
    return values


@dataclass(frozen=True)
class LabelColumn:
    """A column of given labels, as text and as codes.

    Attributes:
        text: ``(N,)`` as text, None where missing.
        codes: ``(N,)`` from 0, -1 where missing.
        names: ``(K,)`` names of the classes, in the order of their values.
        values: ``(K,)`` the classes as they stand in the table.
    """

    text: np.ndarray
    codes: Int[np.ndarray, " n"]
    names: np.ndarray
    values: pd.Series

    @classmethod
    def of(cls, column: pd.Series, label: str) -> LabelColumn:
        """Read a column of a user's table.

        Args:
            column: the labels, null where missing.
            label: name of the column, for messages.

        Raises:
            DataError: fewer than two classes, or so many that they seem to be ids.
        """
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
        values = _in_order(column.iloc[first.to_numpy()], text[first.to_numpy()])
        names = text[values.index.to_numpy()].astype(str)
        codes = pd.Index(names).get_indexer(pd.Index(text))
        return cls(text, np.where(pd.isna(text), -1, codes), names, values)

    @property
    def are_numbers(self) -> bool:
        """Whether all classes are numbers, in whose order they are."""
        numbers = pd.to_numeric(pd.Series(self.names, dtype=object), errors="coerce")
        return bool(numbers.notna().all())

    def in_order(self, names: Sequence[str]) -> LabelColumn:
        """The same with the classes in another order.

        Args:
            names: of all classes, and of others that no row names.
        """
        place = pd.Index(names)
        at = pd.Index(self.names).get_indexer(place)
        values = self.values.iloc[at]
        if (at < 0).any():
            others = pd.Series(list(names), dtype=object)
            with contextlib.suppress(ValueError):  # of names beside numbers
                others = pd.to_numeric(others) if self.values.dtype.kind in "iuf" else others
            values = others.where(at < 0, values.reset_index(drop=True))
        codes = np.where(self.codes < 0, -1, place.get_indexer(pd.Index(self.text)))
        return LabelColumn(self.text, codes, np.asarray(names, str), values)

    def odd_names(self) -> list[str]:
        """Sentences about names that classes seldom have."""
        markers = [
            f"{one!r} is taken for a class; where there is no label, leave the cell empty"
            for one in like_markers(self.names)
        ]
        odd = (one(self.names) for one in (spelt_alike, names_several, names_excluded))
        return [*filter(None, odd), *markers]

    def seen_once(self, confirmed: Iterable[str]) -> list[str]:
        """Sentences about classes that one row alone names: of few labels, those alike to another.

        Args:
            confirmed: names of classes that were checked by hand, which are no slips.
        """
        known = self.codes[self.codes >= 0]
        counts = np.bincount(known, minlength=len(self.names))
        # of several that it may be, the most frequent one
        order = np.argsort(-counts, kind="stable")
        often = [str(self.names[k]) for k in order if counts[k] > 1]
        found = []
        for k in np.flatnonzero((counts == 1) & ~np.isin(self.names, list(confirmed))):
            name = str(self.names[k])
            meant = [other for other in often if one_slip(name, other)]
            if meant or seen_once(known, len(self.names))[k]:
                asked = f"{meant[0]!r}, misspelt" if meant else "misspelt"
                found.append(
                    f"the label {name!r} occurs once among {len(known)}, in row "
                    f"{int(np.argmax(self.codes == k)) + 1}: is it {asked}? It is taken for a class"
                )
        return found
