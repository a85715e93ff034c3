"""Feature matrices: X as a validated block of columns, of numbers or of any type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import validate_data

from nbmodels.data.validation import as_array
from nbmodels.errors import CellTypeError, DataError, counted

#: Characters of a message that is passed on as it is.
_LONGEST = 600

#: What scikit-learn and pandas say of cells that are no numbers.
_NO_NUMBER = ("could not convert", "Cannot cast")


@dataclass(frozen=True)
class Block:
    """A block of columns as the estimators pass it on.

    Attributes:
        x: ``(N, d)`` array or CSR matrix of numbers, or an object array of categories.
        missing: ``(N, d)`` booleans (sparse where ``x`` is), or None where nothing may be missing.
        names: ``(d,)`` names of the columns, for messages.
    """

    x: Any
    missing: Any
    names: tuple[str, ...]

    @property
    def is_sparse(self) -> bool:
        return sparse.issparse(self.x)

    def columns(self, where: np.ndarray) -> Block:
        """Some of the columns."""
        if len(where) == len(self.names):
            return self
        missing = None if self.missing is None else self.missing[:, where]
        return Block(self.x[:, where], missing, tuple(self.names[j] for j in where))

    def rows(self, where: np.ndarray) -> Block:
        """Some of the rows."""
        return Block(
            self.x[where], None if self.missing is None else self.missing[where], self.names
        )


def refuse(block: Block, bad: Any, expected: str) -> None:
    """Raise for the first bad cell.

    Args:
        block: columns.
        bad: ``(N, d)`` booleans, dense or sparse.
        expected: for the message.

    Raises:
        DataError: with the row and the column.
    """
    if sparse.issparse(bad):
        rows, columns = bad.nonzero()
    else:
        rows, columns = np.nonzero(bad)
    if len(rows):
        at = int(np.argmin(rows))
        i, j = int(rows[at]), int(columns[at])
        value = block.x[i, j]
        raise DataError(f"X: row {i}, column {block.names[j]!r} is {value}; expected {expected}")


def check_missing(
    block: Block, declared: bool, taken: bool = True, empty_rows: bool = False
) -> None:
    """Refuse null cells that were not declared, and rows or columns with nothing else.

    Args:
        block: the table.
        declared: whether ``missing_values`` names them.
        taken: whether the estimator has that parameter.
        empty_rows: whether rows may have nothing else, as where other sources know the item.

    Raises:
        DataError: with the row and the column.
    """
    if block.missing is None:
        return
    missing = block.missing
    if not declared:
        instead = "declare missing cells with" if taken else "impute, or take an estimator with"
        refuse(block, missing, f"no NaN or null ({instead} missing_values)")
        return
    counts = np.asarray(missing.sum(axis=1)).ravel()
    empty = np.flatnonzero(counts == missing.shape[1])
    if len(empty) and not empty_rows:
        more = f", as {counted(len(empty) - 1, 'other row')}" if len(empty) > 1 else ""
        raise DataError(f"X: row {empty[0]} has nothing but missing values{more}; drop it")


def check_columns(block: Block) -> None:
    """Refuse columns with nothing but missing cells.

    Raises:
        DataError: with the column.
    """
    if block.missing is None:
        return
    counts = np.asarray(block.missing.sum(axis=0)).ravel()
    empty = np.flatnonzero(counts == block.missing.shape[0])
    if len(empty):
        raise DataError(
            f"X: column {block.names[empty[0]]!r} has nothing but missing values; drop it"
        )


def _validated(estimator: Any, X: Any, **options: Any) -> Any:
    """scikit-learn's own checks, with the argument and the cell put before their message."""
    if isinstance(X, pd.DataFrame) and "skip_check_array" not in options:
        for name, kind in X.dtypes.items():
            if of_time(kind):
                raise DataError(
                    f"X: column {name!r} holds dates or times; drop it, or convert it to numbers"
                )
    try:
        return validate_data(estimator, X, ensure_all_finite=False, **options)
    except ValueError as error:
        cell = _no_number(X) if any(one in str(error) for one in _NO_NUMBER) else ""
        texts = "; turn texts into counts first, as by CountVectorizer" if _is_texts(X) else ""
        raise DataError(f"X: {cell}{_shortened(str(error))}{texts}") from error
    except TypeError as error:
        if "argument must be" in str(error):
            # scikit-learn's convention for cells like {}, which its own tests require
            raise CellTypeError(f"X: {_no_number(X)}{error}") from error
        raise DataError(f"X: {error}") from error


def _is_texts(X: Any) -> bool:
    """Whether items are texts, which only vectorizers read."""
    items = X.ravel() if isinstance(X, np.ndarray) and X.ndim < 2 else X
    in_a_row = isinstance(X, list | tuple | pd.Series | np.ndarray)
    return in_a_row and any(isinstance(one, str) for one in items)


def _shortened(message: str) -> str:
    """A message without the middle of the array that scikit-learn prints in it."""
    if len(message) <= _LONGEST:
        return message
    return f"{message[: _LONGEST // 2]} ... {message[-_LONGEST // 2 :]}"


def of_time(dtype: Any) -> bool:
    """Whether a column's cells are dates, periods or spans of time."""
    types = pd.api.types
    return bool(
        types.is_datetime64_any_dtype(dtype)
        or types.is_timedelta64_dtype(dtype)
        or isinstance(dtype, pd.PeriodDtype)
    )


def check_names(estimator: Any, X: Any, *, reset: bool) -> None:
    """Names and number of the columns alone, for items that are no table, or that others check.

    Raises:
        DataError: other columns than at fit, or in another order.
    """
    _validated(estimator, X, reset=reset, skip_check_array=True)


def _no_number(X: Any) -> str:
    """The first cell of a table of which no number can be made, for messages."""
    frame = pd.DataFrame(X if isinstance(X, pd.DataFrame) or np.ndim(X) == 2 else [])
    for i, row in enumerate(frame.itertuples(index=False, name=None)):
        for name, value in zip(frame.columns, row, strict=True):
            try:
                np.asarray(value, float)
            except (TypeError, ValueError):
                if value is not pd.NA:
                    return f"row {i}, column {str(name)!r} is {value!r}; expected a number; "
    return ""


def _names(estimator: Any, n_features: int) -> tuple[str, ...]:
    named = getattr(estimator, "feature_names_in_", None)
    return tuple(map(str, range(n_features) if named is None else named))


def _marked(x: Any, marker: Any) -> Any:
    """Where ``x`` holds the marker of missing cells, or a null."""
    nulls = np.asarray(pd.isna(x), bool)
    if marker is None or pd.isna(marker):
        return nulls
    # pandas' NA cannot be compared
    return nulls | (np.where(nulls, None, x) == marker if x.dtype == object else x == marker)


def without_marker(X: Any, marker: Any) -> Any:
    """A table in which every missing cell is NaN, for those who know no other marker.

    Args:
        X: ``(N, d)`` data frame, array, list of rows or sparse matrix.
        marker: what means "missing" beside nulls; None for nothing else.
    """
    if isinstance(X, pd.DataFrame):
        parts = [_column_without(X.iloc[:, j], marker) for j in range(X.shape[1])]
        return pd.concat(parts, axis=1) if parts else X
    if sparse.issparse(X):
        out: Any = X.copy()
        out.data = _filled(X.data, marker)
        return out
    return _filled(as_array("X", X), marker)


def _filled(cells: np.ndarray, marker: Any) -> np.ndarray:
    """An array with NaN where a cell is missing; as it is where none is."""
    missing = _marked(cells, marker)
    if not missing.any():
        return cells
    return np.where(missing, np.nan, cells if cells.dtype.kind in "biuf" else cells.astype(object))


def _column_without(column: pd.Series, marker: Any) -> pd.Series:
    """:func:`without_marker` of a column; one of pandas' own types as objects, or as numbers."""
    plain = isinstance(column.dtype, np.dtype)
    missing = _marked(column.to_numpy() if plain else column.to_numpy(object), marker)
    if plain and not missing.any():
        return column
    if pd.api.types.is_numeric_dtype(column.dtype):
        cells: Any = column.to_numpy(float, na_value=np.nan)
    else:
        cells = column.to_numpy(object)
    return pd.Series(np.where(missing, np.nan, cells), column.index, name=column.name)


def numbers(estimator: Any, X: Any, *, reset: bool, accept_sparse: bool) -> Block:
    """A numeric matrix, dense or CSR, with its missing cells.

    Raises:
        DataError: not a matrix of numbers, other columns than at fit, infinite cells.
    """
    x = _validated(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr" if accept_sparse else False,
        dtype=[np.float64, np.float32],
    )
    names = _names(estimator, x.shape[1])
    if sparse.issparse(x):
        if estimator.missing_values == 0:
            raise DataError("missing_values: 0 cannot mark what is missing in sparse X")
        x = x.copy()
        x.sum_duplicates()
        missing = x.copy()
        missing.data = _marked(x.data, estimator.missing_values)
        infinite = x.copy()
        infinite.data = np.isinf(x.data)
        missing.eliminate_zeros()
    else:
        missing, infinite = _marked(x, estimator.missing_values), np.isinf(x)
    some = missing.nnz if sparse.issparse(missing) else missing.any()
    block = Block(x, missing.astype(bool) if some else None, names)
    refuse(block, infinite, "neither NaN nor infinity")
    return block


def _as_objects(X: Any) -> Any:
    """A frame with columns of pandas' own types, or of dates, as objects.

    scikit-learn refuses some combinations of them (booleans beside categories, dates beside
    numbers); objects it takes as they are.
    """
    if not isinstance(X, pd.DataFrame):
        return X
    plain = all(isinstance(t, np.dtype) and t.kind in "biufcO" for t in X.dtypes)
    return X if plain else X.astype(object)


def table(estimator: Any, X: Any, *, reset: bool) -> tuple[Block, pd.DataFrame]:
    """A table whose columns may be of any kind: the block of objects, and a frame with dtypes.

    Raises:
        DataError: not a table, other columns than at fit, infinite cells.
    """
    if isinstance(X, list | tuple):
        X = as_array("X", X)
    x = _validated(estimator, _as_objects(X), reset=reset, dtype=None)
    names = _names(estimator, x.shape[1])
    if isinstance(X, pd.DataFrame):
        frame = X.set_axis(list(names), axis=1)
    else:
        frame = pd.DataFrame(x, columns=list(names)).infer_objects()
    objects = np.asarray(x, object)
    missing = _marked(objects, estimator.missing_values)
    block = Block(objects, missing if missing.any() else None, names)
    infinite = np.zeros(objects.shape, bool)
    for j, name in enumerate(names):
        if pd.api.types.is_float_dtype(frame[name].dtype):
            infinite[:, j] = np.isinf(frame[name].to_numpy(float, na_value=0.0))
        elif frame[name].dtype == object:
            infinite[:, j] = [isinstance(v, float) and np.isinf(v) for v in objects[:, j]]
    refuse(block, infinite, "neither NaN nor infinity")
    return block, frame
