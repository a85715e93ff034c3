"""Input validation: arrays of numbers, weights and parameters, codes of ids, and padding.

Labels are read by :mod:`nbmodels.data.labels`, features by :mod:`nbmodels.data.features`. Bad input
raises :class:`nbmodels.errors.DataError` naming the argument, the row and what was expected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.utils import check_random_state

from nbmodels.errors import Caution, DataError, NbmodelsWarning, counted, issue

#: Rows are padded to this many at least, where that costs next to nothing: one shape for all small
#: tables. From there to the second number the next power of two is taken, beyond it a length with
#: few leading binary digits, at most 1/8 more.
_LEAST_ROWS, _DOUBLED_UP_TO = 2_048, 16_384
_LEADING = 3

#: Cells up to which the least number of rows costs next to nothing.
_LEAST_CELLS = 2_000_000

#: Cells of a block of rows.
_BLOCK_CELLS = 1 << 17

#: Rows that folds are drawn for, at the least.
_LEAST_DRAWN = 32

#: Rows up to which a sweep of a sampler takes about as long as of a few.
_LEAST_SAMPLED = 512

#: Annotators that there is room for at the least, and cells up to which that costs next to nothing.
_LEAST_ANNOTATORS, _ANNOTATORS_CELLS = 32, 8_192

#: Annotators from which on their number is rounded up by less.
_MANY_ANNOTATORS = 512

#: Types whose numbers an int64 holds.
_WHOLE = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)][:-1]

#: Number of texts that are worth another way of sorting, and their greatest length for it.
_FEW, _SHORT = 1_000, 32

#: Sum of the weights, all below 1, below which they seem to be shares of the rows.
_LEAST_WEIGHT = 2.0

#: Mean weight of counted rows from which weights seem to be those of a survey.
_MOST_WEIGHT = 100.0

#: Cells of a table of whole numbers, for each number that is looked up.
_ROOMY = 4


def padded_length(n: int, width: int = 1) -> int:
    """The row count that ``n`` rows are padded to, so that similar sizes compile once.

    Args:
        n: number of rows.
        width: number of columns.
    """
    least = max(min(_LEAST_ROWS, 1 << (_LEAST_CELLS // max(width, 1)).bit_length() - 1), 32)
    if n <= least:
        return least
    return 1 << (n - 1).bit_length() if n <= _DOUBLED_UP_TO else drawn_length(n)


def drawn_length(n: int) -> int:
    """The row count for which folds of ``n`` rows are drawn: few leading digits.

    It must not change: other folds are other fits.
    """
    if n <= _LEAST_DRAWN:
        return _LEAST_DRAWN
    unit = 1 << max(int(n - 1).bit_length() - 1 - _LEADING, 0)
    return -(-n // unit) * unit


def posterior_length(n: int) -> int:
    """The row count that posterior draws of ``n`` rows are computed for: powers of two and 3/4.

    Few sizes, since a sampler compiles for longer than it runs on small data; but shorter than
    :func:`padded_length`, since every sweep pays for every row.
    """
    if n > _DOUBLED_UP_TO:
        return drawn_length(n)
    whole = max(1 << (n - 1).bit_length(), _LEAST_SAMPLED)
    shorter = 3 * whole // 4
    return shorter if _LEAST_SAMPLED < n <= shorter else whole


def padded_annotators(n: int, width: int) -> int:
    """The number that ``n`` annotators are padded to, so that similar numbers compile once.

    Args:
        n: number of annotators.
        width: cells of the matrix of each.
    """
    if n > _MANY_ANNOTATORS:
        return drawn_length(n)
    least = min(_LEAST_ANNOTATORS, max(_ANNOTATORS_CELLS // width, 1))
    return max(least, 1 << (n - 1).bit_length())


def row_blocks(n_rows: int, width: int) -> list[slice]:
    """Rows of a table in blocks that a cache holds; one of a small table.

    New pages of memory for every step of a computation take longer than the step.
    """
    step = max(_BLOCK_CELLS // max(width, 1), 1)
    return [slice(first, first + step) for first in range(0, max(n_rows, 1), step)]


def pad_rows(x: np.ndarray, length: int, fill: Any = 0) -> np.ndarray:
    """``x`` with rows of ``fill`` appended."""
    extra = np.full((length - len(x), *x.shape[1:]), fill, x.dtype)
    return np.concatenate([x, extra]) if len(extra) else x


def in_pandas(table: Any) -> Any:
    """Tables of other libraries (Arrow, Polars) as data frames, anything else as it is."""
    return table.to_pandas() if hasattr(table, "to_pandas") else table


def as_array(name: str, values: Any) -> np.ndarray:
    """An array in which every value keeps its type: NumPy turns ``["a", nan]`` into text.

    Whole numbers of pandas' own types, with nulls among them, are no floating-point numbers either.

    Raises:
        DataError: lists of different lengths.
    """
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, pd.api.extensions.ExtensionDtype) and pd.isna(values).any():
        return values.to_numpy(object)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "US" and isinstance(values, list | tuple):
            objects = np.asarray(values, object)
            return array if all(isinstance(v, str) for v in objects.flat) else objects
    except ValueError as error:
        raise DataError(f"{name}: {error}") from error
    return array


def plain(value: Any) -> Any:
    """A NumPy scalar as Python's own, for messages."""
    return value.item() if isinstance(value, np.generic) else value


def as_floats(name: str, values: Any) -> np.ndarray:
    """An array of real numbers.

    Raises:
        DataError: something else, or lists of different lengths.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind != "c":
            return array.astype(float)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: expected real numbers; {error}") from error
    raise DataError(f"{name}: expected real numbers, got complex ones")


def check_level(level: float) -> None:
    """Refuse what is no probability of an interval.

    Raises:
        DataError: not between 0 and 1, such as a percentage.
    """
    if not 0 < level < 1:
        raise DataError(f"level: expected a probability between 0 and 1, got {level}")


def as_column(name: str, values: Any) -> np.ndarray:
    """One-dimensional object or plain array from a list, array, series or one-column frame.

    Raises:
        DataError: several columns, or lists of different lengths.
    """
    array = as_array(name, values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(
            f"{name}: expected one value a row, a 1d array; got an array of shape {array.shape}"
        )
    return array


def _close_numbers(*arrays: Any) -> range | None:
    """The whole numbers from the least to the largest, if that is a table worth having."""
    if not all(isinstance(x, np.ndarray) and x.dtype in _WHOLE and len(x) for x in arrays):
        return None
    low, high = min(int(x.min()) for x in arrays), max(int(x.max()) for x in arrays)
    return range(low, high + 1) if high - low < _ROOMY * sum(map(len, arrays)) else None


def sorted_unique(values: np.ndarray) -> np.ndarray:
    """As ``np.unique``, which is ten times slower on a million numbers."""
    numbers = _close_numbers(values)
    if numbers is None:
        return _sorted(np.asarray(pd.unique(values)))
    return _that_occur(numbers, values)


def _that_occur(numbers: range, values: np.ndarray) -> np.ndarray:
    occurs = np.zeros(len(numbers), bool)
    occurs[_from(numbers, values)] = True
    return (np.flatnonzero(occurs) + numbers.start).astype(values.dtype)


def _sorted(values: np.ndarray) -> np.ndarray:
    """As ``np.sort``; short text is compared as arrays of characters, in a third of the time."""
    many = values.dtype.kind == "O" and len(values) > _FEW
    # a character array has no nulls at a value's end, so that these would be ties
    if many and all(type(v) is str and len(v) <= _SHORT and v[-1:] != "\0" for v in values):
        return values[np.argsort(values.astype(str), kind="stable")]
    return np.sort(values)


def distinct_codes(values: Any) -> tuple[Int[np.ndarray, " n"], np.ndarray]:
    """Codes of values, and the distinct values in the order of the codes.

    Args:
        values: ``(n,)`` series or array.

    Returns:
        ``(n,)`` codes, -1 where null, and the distinct values: sorted where they are whole numbers
        that lie close together, by first occurrence else.
    """
    array = np.asarray(values) if getattr(values, "dtype", None) in _WHOLE else values
    numbers = _close_numbers(array)
    if numbers is None:
        codes, names = pd.factorize(values)
        return codes, names if isinstance(names, np.ndarray) else names.to_numpy()
    names = _that_occur(numbers, array)
    return positions(names, array), names


def positions(known: Any, values: Any) -> Int[np.ndarray, " n"]:
    """``(n,)`` position of each value among the known ones, which are distinct; -1 where unknown.

    Whole numbers that lie close together are looked up in a table, others are hashed.
    """
    numbers = _close_numbers(known, values)
    if numbers is None:
        return pd.Index(known).get_indexer(pd.Index(values))
    table = np.full(len(numbers), -1)
    table[_from(numbers, known)] = np.arange(len(known))
    return table[_from(numbers, values)]


def _from(numbers: range, values: np.ndarray) -> np.ndarray:
    return values.astype(np.int64, copy=False) - numbers.start


def by_row(name: str, values: Mapping[Any, Any], n_rows: int) -> np.ndarray:
    """``(N,)`` objects of a mapping from rows, None where it has none.

    Raises:
        DataError: a row that does not exist.
    """
    out = np.full(n_rows, None, object)
    for row, value in values.items():
        if not (isinstance(row, int | np.integer) and 0 <= row < n_rows):
            raise DataError(f"{name}: row {row!r} does not exist; X has {counted(n_rows, 'row')}")
        out[row] = value
    return out


def own_index(table: Any, n_rows: int) -> pd.Index | None:
    """The index of a data frame or series; None without one, or where it only counts the rows."""
    index = table.index if isinstance(table, pd.DataFrame | pd.Series) else None
    return None if index is None or index.equals(pd.RangeIndex(n_rows)) else index


def row_index(X: Any, y: Any = None) -> pd.Index | None:
    """Index that names the rows; None where they only have numbers.

    That of X; where X is no table of pandas, that of y, if it names each row.
    """
    if isinstance(X, pd.DataFrame | pd.Series):
        return X.index
    index = own_index(y, np.shape(y)[0]) if isinstance(y, pd.DataFrame | pd.Series) else None
    return index if index is not None and index.is_unique else None


def row_tables(name: str, values: Any) -> list[tuple[str, Any]]:
    """Tables with a row an item that an argument holds, by their names in messages.

    Those of a mapping from sources, both parts of a pair of features and labels, or itself.
    """
    if isinstance(values, Mapping):
        return [one for source, own in values.items() for one in row_tables(str(source), own)]
    if isinstance(values, tuple):
        return [(f"{name}: {part}", own) for part, own in zip("Xy", values, strict=False)]
    return [(name, values)]


def check_order(name: str, table: Any, index: pd.Index | None, of: str, ids: str = "") -> None:
    """Refuse rows that are named as those of another table and are at other places.

    Rows are taken by their position, so that each would get what belongs to another one: in another
    order, or of two tables each of which has lost another row. Where one of the two indices only
    counts its rows, it may be no name of them: rows that were shuffled, then numbered anew.

    Args:
        name: of the argument.
        table: anything with a row an item.
        index: of the other table, or None.
        of: name of the other table.
        ids: how its index is written, for messages.

    Raises:
        DataError: such rows.

    Warns:
        NbmodelsWarning: one of the two indices only counts its rows.
    """
    own = table.index if isinstance(table, pd.DataFrame | pd.Series) else None
    if index is None or own is None or own.equals(index) or len(own) != len(index):
        return
    simple = name.isidentifier() and of.isidentifier()  # no table of a source
    ordered = f"{name}.loc[{ids or f'{of}.index'}]" if simple else f"it in the order of {of}"
    counts = pd.RangeIndex(len(index))
    named = not own.equals(counts) and not index.equals(counts)
    if Counter(own) != Counter(index):
        if named and own.is_unique and index.is_unique:
            _check_places(name, own, index, of)
        return
    if named:
        how = f", as in {ordered}," if index.is_unique and simple else ""
        raise DataError(
            f"{name}: its index has the rows of {of} in another order; bring them into one "
            f"order{how} or give an array"
        )
    message = (
        f"{name}: its index has the numbers of the rows of {of} in another order, and rows are "
        f"taken by their position; if they belong together by number, give {ordered}, and if by "
        "position, an array"
    )
    issue([Caution(NbmodelsWarning, message)])


def _check_places(name: str, own: pd.Index, index: pd.Index, of: str) -> None:
    """Raises: DataError: rows of two tables, some of them the same, which are at other places."""
    place = index.get_indexer(own)
    moved = np.flatnonzero((place >= 0) & (place != np.arange(len(own))))
    if len(moved):
        row, at = moved[0], place[moved[0]]
        shared = int(np.count_nonzero(place >= 0))
        raise DataError(
            f"{name}: rows are taken by their position, and row {plain(own[row])!r} is at position "
            f"{row} here, at {at} in {of}; give both the same rows (they share {shared}) "
            "or give an array"
        )


def check_orders(X: Any, **others: Any) -> None:
    """Refuse arguments of which one has the rows of X in another order.

    Args:
        X: anything with a row an item, or a joint model's sources.
        others: arguments by name, see :func:`check_order`.

    Raises:
        DataError: such rows.
    """
    for of, table in row_tables("X", X):
        for name, values in others.items():
            check_order(name, values, row_index(table), of)


def of_some_rows(name: str, values: Any, n_rows: int) -> Any:
    """A series of some rows only, which its index names, as a mapping; anything else as it is.

    Args:
        name: of the argument, for messages.
        values: one value a row, or of some rows.
        n_rows: number of all rows.

    Raises:
        DataError: a row that the index names twice.
    """
    if not isinstance(values, pd.Series) or len(values) == n_rows:
        return values
    index = own_index(values, len(values))
    if index is None:
        return values
    if index.has_duplicates:
        twice = index[index.duplicated()][0]
        raise DataError(f"{name}: its index has row {plain(twice)!r} twice")
    return dict(zip(index, values, strict=True))


def check_length(name: str, values: Any, n_rows: int, of: str = "X") -> None:
    """Raises: DataError: ``values`` has another length than X, or what else it is of."""
    if len(values) != n_rows:
        raise DataError(f"{name}: has {counted(len(values), 'row')} where {of} has {n_rows}")


def check_weights(sample_weight: Any, n_rows: int) -> Float[np.ndarray, " n"]:
    """``(N,)`` row weights, ones where None.

    Raises:
        DataError: wrong length, negative, not finite, or all zero.

    Warns:
        NbmodelsWarning: weights below 1 that sum to less than two rows, or of a hundred on average.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    weights = as_floats("sample_weight", sample_weight)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise DataError("sample_weight: Sample weights must be 1D array or scalar")
    check_length("sample_weight", weights, n_rows)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(
            f"sample_weight: row {bad[0]} is {weights[bad[0]]}; weights must be finite, 0 or more"
        )
    if not weights.any():
        raise DataError("sample_weight: all weights are zero")
    if weights.max() > np.finfo(float).max / n_rows:
        raise DataError(f"sample_weight: row {np.argmax(weights)} is too large to be summed")
    advice = ""
    if n_rows > 2 and weights.max() < 1 and weights.sum() < _LEAST_WEIGHT:
        advice = "are shares are to be multiplied by the number of rows"
    elif n_rows > 2 and weights[weights > 0].mean() >= _MOST_WEIGHT:
        advice = "only compare rows are to be divided by their mean"
    if advice:
        message = (
            f"sample_weight: weights sum to {weights.sum():.3g}, and are evidence of as many rows; "
            f"weights that {advice}"
        )
        issue([Caution(NbmodelsWarning, message)])
    return weights


def seed_of(state: Any) -> int:
    """A whole number drawn from a ``random_state``.

    Raises:
        DataError: it is none.
    """
    try:
        return check_random_state(state).randint(np.iinfo(np.int32).max)
    except ValueError as error:
        raise DataError(
            "random_state: expected None, a whole number, 0 or more, or a RandomState; "
            f"got {state!r}"
        ) from error
