"""Features as points of a metric space: a coding that is learned from training rows.

Columns of numbers are standardised, symbols and columns of two values become indicators, and texts
and other sparse rows are weighted words of length one, whose distances are those of their cosines.
Divided by its own standard deviation a rare property would count more than all frequent ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import sparse

from nbmodels.data.validation import row_blocks
from nbmodels.errors import DataError

#: From rows of features, and booleans of missing cells or None, to ``(N, d)`` points.
Coding = Callable[..., Any]


def point_coding(x: Any, missing: Any = None, symbols: bool = False) -> Coding | None:
    """The coding of a table, a sparse matrix or a list of texts; None of anything else.

    Args:
        x: ``(N, d)`` numbers or symbols, a data frame, a sparse matrix, or ``(N,)`` texts.
        missing: ``(N, d)`` booleans of cells that are missing, or None.
        symbols: whether all columns of a table are symbols, numbers too.
    """
    if symbols:
        return _Columns.of(pd.DataFrame(np.asarray(x, object)), missing, symbols)
    if sparse.issparse(x):
        return _Words.of(x)
    if isinstance(x, pd.DataFrame):
        return _Columns.of(x, missing)
    values = np.asarray(x)
    if values.ndim == 1 and len(values) and all(isinstance(v, str) for v in values):
        return _Texts.of(values)
    if values.ndim != 2:
        return None
    if values.dtype.kind in "biuf":
        return _Numbers.of(values, missing)
    return _Columns.of(pd.DataFrame(values).infer_objects(), missing)


def points(x: Any, missing: Any = None) -> Any:
    """Rows as points in a coding of their own; None where there is none. See :func:`point_coding`.

    Args:
        x: rows of features.
        missing: booleans of cells that are missing, or None.
    """
    coding = point_coding(x, missing)
    return None if coding is None else coding(x, missing)


@dataclass(frozen=True)
class _Words:
    """Rows of length one; words that many rows have count less (TF-IDF)."""

    weight: Float[np.ndarray, " d"]

    @classmethod
    def of(cls, x: Any) -> _Words:
        seen = np.bincount(sparse.csr_array(x).indices, minlength=x.shape[1])
        return cls(np.log((1 + x.shape[0]) / (1 + seen)) + 1)

    def __call__(self, x: Any, missing: Any = None) -> sparse.csr_array:
        known = sparse.csr_array(x).astype(float)
        known.data = np.nan_to_num(known.data, posinf=0.0, neginf=0.0)
        weighted = sparse.csr_array(known.multiply(self.weight))
        length = np.sqrt(np.asarray(weighted.multiply(weighted).sum(1)).ravel())
        scale = 1 / np.where(length > 0, length, 1)
        return sparse.csr_array(sparse.diags_array(scale) @ weighted)


@dataclass(frozen=True)
class Distances:
    """Distances between items that are given, a sparse row of neighbours an item.

    Attributes:
        n_items: number of training items, to which distances are.
    """

    n_items: int

    @classmethod
    def of(cls, x: Any) -> Distances:
        """Raises: DataError: no sparse square matrix."""
        shape = np.shape(x)
        if not sparse.issparse(x) or shape[0] != shape[1]:
            raise DataError(
                "X: expected a sparse (N, N) matrix of distances, as "
                "sklearn.neighbors.kneighbors_graph(..., mode='distance') gives it"
            )
        return cls(shape[0])

    def __call__(self, x: Any, missing: Any = None) -> sparse.csr_array:
        """``(M, N)`` distances, checked.

        Raises:
            DataError: another number of columns, or a distance that is negative or not finite.
        """
        if not sparse.issparse(x) or x.shape[1] != self.n_items:
            raise DataError(
                f"X: expected a sparse matrix of distances to the {self.n_items} training items"
            )
        x = sparse.csr_array(x)
        x.sum_duplicates()
        bad = np.flatnonzero(~(np.isfinite(x.data) & (x.data >= 0)))
        if len(bad):
            row = int(np.searchsorted(x.indptr, bad[0], side="right")) - 1
            raise DataError(f"X: row {row} has the distance {x.data[bad[0]]}")
        return x


@dataclass(frozen=True)
class _Texts:
    """Texts by the TF-IDF weights of their words."""

    vectoriser: Any

    @classmethod
    def of(cls, x: np.ndarray) -> _Texts:
        from nbmodels.data.text import text_features

        return cls(text_features(list(x)).vectoriser)

    def __call__(self, x: Any, missing: Any = None) -> sparse.csr_array:
        return sparse.csr_array(self.vectoriser.transform(list(x)))


@dataclass(frozen=True)
class _Numbers:
    """Columns of mean 0 and variance 1, or of two values; missing cells at the mean.

    Two values are as far apart as two symbols.
    """

    unit: Float[np.ndarray, " d"]
    mean: Float[np.ndarray, " d"]
    spread: Float[np.ndarray, " d"]

    @classmethod
    def of(cls, x: Any, missing: Any = None) -> _Numbers:
        blocks = row_blocks(*np.shape(x))
        low, high = np.full((2, np.shape(x)[1]), np.nan)
        for rows in blocks:
            inside = _with_gaps(x, missing, rows)
            least, most = (np.fmin, np.fmax) if _has_gaps(inside) else (np.minimum, np.maximum)
            low, high = np.fmin(low, least.reduce(inside, 0)), np.fmax(high, most.reduce(inside, 0))
        largest = np.maximum(np.abs(low), np.abs(high))
        # squares of large numbers would overflow
        unit = np.where(np.isnan(largest), 1, np.maximum(largest, np.finfo(float).tiny))
        low, high = low / unit, high / unit
        count, total, square, extreme = (np.zeros(len(unit)) for _ in range(4))
        for rows in blocks:
            part = _with_gaps(x, missing, rows) / unit
            count += np.sum(~np.isnan(part), 0) if _has_gaps(part) else len(part)
            total += _sum(part)
            extreme += np.sum((part == low) | (part == high), 0)
        two = extreme == count
        count = np.maximum(count, 1)
        mean = total / count
        for rows in blocks:
            part = _with_gaps(x, missing, rows) / unit - mean
            square += _sum(part * part)
        spread = np.where(two, (high - low) / np.sqrt(2), np.sqrt(square / count))
        return cls(unit, mean, np.where(spread > 0, spread, 1))

    def __call__(self, x: Any, missing: Any = None) -> Float[np.ndarray, "n d"]:
        out = np.empty(np.shape(x))
        for rows in row_blocks(*out.shape):
            part = (_with_gaps(x, missing, rows) / self.unit - self.mean) / self.spread
            out[rows] = np.nan_to_num(part)
        return out


def _with_gaps(x: Any, missing: Any, rows: slice) -> Float[np.ndarray, "n d"]:
    """Some rows of numbers, NaN where a cell is missing or not finite."""
    # sums are then in one order, however the table lies in memory
    some = np.ascontiguousarray(np.asarray(x)[rows], float)
    gone = ~np.isfinite(some)
    if missing is not None:
        gone |= np.asarray(missing)[rows]
    return np.where(gone, np.nan, some) if gone.any() else some


def _has_gaps(x: Float[np.ndarray, "n d"]) -> bool:
    return bool(np.isnan(x).any())


def _sum(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " d"]:
    """Of each column, gaps left out; without any the cells need not be copied."""
    return np.asarray(np.nansum(x, 0) if _has_gaps(x) else np.sum(x, 0))


@dataclass(frozen=True)
class _Symbols:
    """One indicator a symbol: two that differ are as far apart as two numbers on average."""

    known: np.ndarray

    def __call__(self, column: pd.Series) -> Float[np.ndarray, "n d"]:
        return (_names(column)[:, None] == self.known).astype(float)


@dataclass(frozen=True)
class _Columns:
    """Columns of numbers and of symbols, each in its own coding."""

    codings: tuple[_Numbers | _Symbols, ...]

    @classmethod
    def of(cls, frame: pd.DataFrame, missing: Any = None, symbols: bool = False) -> _Columns:
        out: list[_Numbers | _Symbols] = []
        for column in _columns(frame, missing):
            number = pd.to_numeric(column, errors="coerce")
            if not symbols and number.notna().eq(column.notna()).all():
                out.append(_Numbers.of(_cells(number)))
            else:
                out.append(_Symbols(np.unique(_names(column))))
        return cls(tuple(out))

    def __call__(self, x: Any, missing: Any = None) -> Float[np.ndarray, "n d"]:
        frame = x if isinstance(x, pd.DataFrame) else pd.DataFrame(np.asarray(x, object))
        pairs = zip(_columns(frame, missing), self.codings, strict=True)
        parts = [
            coding(_cells(pd.to_numeric(column, errors="coerce")))
            if isinstance(coding, _Numbers)
            else coding(column)
            for column, coding in pairs
        ]
        return np.hstack(parts) if parts else np.zeros((len(frame), 0))


def _columns(frame: pd.DataFrame, missing: Any) -> list[pd.Series]:
    """Columns with nulls where cells are missing."""
    if missing is None:
        return [frame.iloc[:, j] for j in range(frame.shape[1])]
    gone = np.asarray(missing)
    return [frame.iloc[:, j].astype(object).mask(gone[:, j]) for j in range(frame.shape[1])]


def _cells(column: pd.Series) -> Float[np.ndarray, "n 1"]:
    return column.to_numpy(float, na_value=np.nan)[:, None]


def _names(column: pd.Series) -> np.ndarray:
    """Symbols as text, nulls among them."""
    return np.array([str(value) for value in column.to_numpy(object)], object)
