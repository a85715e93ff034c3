"""Groups of rows: as given, or near copies, by nearest-neighbour distances (duplicate detection).

Copies of a row (a frame of the same film, a second export of a record, an augmented image) often
share its wrong label. A classifier that has seen one copy then predicts the label of the others
whatever the class is: folds that divide copies, and neighbours that are copies, take the error for
the truth. Rows of one group are kept in one fold, and are no neighbours of each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from scipy import sparse

from nbmodels.data.outliers import Winsoriser
from nbmodels.errors import Caution, DataError, VerdictWarning, counted
from nbmodels.fitting import points as features

#: Rows among which copies are looked for, fewest and most.
_LEAST_ROWS, _MOST_ROWS = 30, 5_000

#: Columns that have to be continuous: values among this share of the rows differ, or of the
#: distinct rows where values are so much nearer to each other than on a scale of as many steps.
#: Rows of few symbols are alike by chance.
_CONTINUOUS, _DISTINCT, _FINER = 2, 0.25, 10

#: How much oftener than by chance rows have to be equal where one column is continuous, or none;
#: rows of symbols that are compared, at most, and columns in which they are nearly equal.
_OFTENER, _SAMPLE, _FEW = 10, 1_000, 3

#: Neighbours by which the density about a row is measured, at most, and as a share of the rows.
_NEIGHBOURS, _OF_ROWS = 20, 0.2

#: Fewest groups: those of as many folds.
_LEAST_GROUPS = 5

#: Share of the rows from which on a fit warns of copies.
_MANY = 0.05

#: Expected number of pairs that are so near by chance, number of copies that is taken for chance,
#: and largest share of the distance to the last of these neighbours: in many dimensions all
#: distances are alike.
_BY_CHANCE, _MORE, _NEAREST = 0.5, 3, 0.2


def row_groups(
    x: Any,
    missing: Any = None,
    groups: ArrayLike | None = None,
    *,
    least: int = _LEAST_GROUPS,
) -> Int[np.ndarray, " n"] | None:
    """Rows that stay in one fold: groups as given, or near copies.

    Args:
        x: rows of features, see :func:`nbmodels.fitting.points.point_coding`.
        missing: booleans of cells that are missing, or None.
        groups: ``(N,)`` name of each row's group, of any type; null for a row of its own. None to
            look for copies.
        least: fewest groups that may be given: as many as folds, or as neighbours need.

    Returns:
        as :func:`copied_rows`.

    Raises:
        DataError: groups of another number of rows, or fewer of them than ``least``.
    """
    n = x.shape[0] if hasattr(x, "shape") else len(x)
    if groups is None:
        within = _LEAST_ROWS <= n <= _MOST_ROWS  # before a large table is coded in vain
        return copied_rows(features.points(x, missing)) if within else None
    names = np.asarray(groups, object)
    if names.shape != (n,):
        raise DataError(f"groups: expected one name a row, ({n},); got shape {names.shape}")
    codes, found = pd.factorize(names)
    alone = codes < 0
    codes[alone] = len(found) + np.arange(np.count_nonzero(alone))
    first = np.unique(codes, return_index=True)[1]
    if len(first) < least:
        raise DataError(
            f"groups: {len(first)} groups are too few to predict each from the others; expected "
            f"{least} or more"
        )
    return first[codes]


def copied_rows(points: Any) -> Int[np.ndarray, " n"] | None:
    """Group of each row; rows of a group are near copies of each other.

    About a row the number of neighbours within a distance r grows as r to the power D, the
    intrinsic dimension (Levina and Bickel 2005). Pairs are copies where fewer than one would be so
    near in the whole table. Where one column is continuous, or none, only equal rows are, if there
    are many more of them than of rows that differ by one step of that column, or in few columns.

    Args:
        points: ``(N, d)`` from :mod:`nbmodels.fitting.points`.

    Returns:
        ``(N,)`` index of the first row of each row's group; None where there are no copies, or
        where none are looked for: sparse rows, more than 5,000 rows.
    """
    if points is None or sparse.issparse(points) or not _LEAST_ROWS <= len(points) <= _MOST_ROWS:
        return None
    n = len(points)
    distinct, place = np.unique(points, axis=0, return_inverse=True)
    continuous = np.array([_continuous(column, len(distinct), n) for column in distinct.T], bool)
    m, fine = len(distinct), np.count_nonzero(continuous)
    if fine < _CONTINUOUS and not _equal_oftener(points, place.ravel(), continuous):
        return None
    near = fine >= _CONTINUOUS and m >= _LEAST_ROWS
    pairs = _near_pairs(distinct) if near else np.empty((0, 2), int)
    if len(pairs):
        # far out in one column, rows lie on a line: without that, the other columns count as well
        inside = Winsoriser().fit_transform(distinct)
        spread = inside.std(0)
        inside = _near_pairs(inside / np.where(spread > 0, spread, 1))
        pairs = pairs[np.isin(_number(pairs, m), _number(inside, m))]
    graph = sparse.coo_array((np.ones(len(pairs)), pairs.T), (m, m))
    _, group = sparse.csgraph.connected_components(graph, directed=False)
    group = group[place.ravel()]  # NumPy 2.0 gave it another shape
    first = np.full(group.max() + 1, n)
    np.minimum.at(first, group, np.arange(n))
    return first[group] if n - _MORE > len(first) >= _LEAST_GROUPS else None


def among(
    copies: Int[np.ndarray, " n"] | None, rows: Int[np.ndarray, " m"]
) -> Int[np.ndarray, " m"] | None:
    """:func:`copied_rows` of some of the rows, by their places among these."""
    if copies is None:
        return None
    _, first, group = np.unique(copies[rows], return_index=True, return_inverse=True)
    return first[group]


def copies_caution(
    copies: Int[np.ndarray, " n"] | None, weights: Float[np.ndarray, " n"]
) -> tuple[Caution, ...]:
    """A warning where so many rows are copies that errors which they share matter.

    Args:
        copies: from :func:`copied_rows`.
        weights: row weights; rows of weight 0 do not count.
    """
    if copies is None:
        return ()
    rows = np.flatnonzero(weights > 0)
    first, size = np.unique(copies[rows], return_counts=True)
    more = len(rows) - len(first)
    if more <= _MANY * len(rows):
        return ()
    largest = rows[copies[rows] == first[np.argmax(size)]]
    message = counted(more, "row is a near copy of another", "rows are near copies of others")
    return (
        Caution(
            VerdictWarning,
            f"{message} (row {largest[0]} has {len(largest) - 1}: "
            f"{', '.join(map(str, largest[1:4]))}{' ...' if len(largest) > 4 else ''}); an error "
            "that copies share counts as often as there are copies (intervals of the noise matrix "
            "are as wide as that makes them): leave copies out, or give them a sample_weight of 0",
        ),
    )


def _continuous(column: Float[np.ndarray, " m"], n_distinct: int, n_rows: int) -> bool:
    """Whether rows are alike in a column by chance only seldom, by its values in distinct rows."""
    values = np.unique(column)
    if len(values) <= _DISTINCT * n_distinct or len(values) < 2:
        return False
    steps = (values[-1] - values[0]) / np.diff(values).min()
    return len(values) > _DISTINCT * n_rows or steps > _FINER * len(values)


def _equal_oftener(
    points: Float[np.ndarray, "n d"], place: Int[np.ndarray, " n"], fine: Bool[np.ndarray, " d"]
) -> bool:
    """Whether more rows are equal than are by chance, where one column is continuous, or none.

    By chance about as many pairs of rows are equal as are nearly so, whatever columns depend on
    each other. Most rows are to be distinct, and most of these to differ in a continuous column.

    Args:
        points: ``(n, d)``.
        place: index of each row's among the distinct ones.
        fine: which column is continuous, if any.
    """
    counts = np.bincount(place)
    n, m = len(place), len(counts)
    if n - m <= _MORE or 2 * m <= n:
        return False
    if not fine.any():
        apart = _few_columns_apart(points)
    elif 2 * len(np.unique(points[:, fine])) > m:
        apart = _a_step_apart(points, fine)
    else:
        return False
    return bool((counts * (counts - 1)).sum() > _OFTENER * (2 + apart))


def _a_step_apart(points: Float[np.ndarray, "n d"], fine: Bool[np.ndarray, " d"]) -> int:
    """Pairs of rows that differ in one column alone, by its smallest step.

    Of values on a grid they are about twice as many as those that are equal.
    """
    value = points[:, fine].ravel()
    rest = np.unique(points[:, ~fine], axis=0, return_inverse=True)[1].ravel()
    step = np.diff(np.unique(value)).min()
    key = np.sort(rest * (np.ptp(value) + 4 * step) + value)
    return int(np.diff(np.searchsorted(key, [key + 0.5 * step, key + 1.5 * step]), axis=0).sum())


def _few_columns_apart(points: Float[np.ndarray, "n d"]) -> float:
    """Pairs of rows that differ in few columns, by a sample.

    One symbol is two columns of indicators, and may count in columns that are made of others. Those
    that say the same count once.
    """
    from scipy.spatial.distance import pdist  # seldom needed

    n = len(points)
    some = points[np.random.default_rng(n).permutation(n)[:_SAMPLE]]
    codes = np.unique([pd.factorize(column)[0] for column in some.T], axis=0)
    differ = pdist(codes.T, "hamming") * len(codes)
    return float(np.mean((differ > 0.5) & (differ < _FEW + 0.5))) * n * (n - 1) / 2


def _number(pairs: Int[np.ndarray, "pairs 2"], n_rows: int) -> Int[np.ndarray, " pairs"]:
    """One number for each pair, in whatever order its rows come."""
    return pairs.min(1) * n_rows + pairs.max(1)


def _near_pairs(points: Float[np.ndarray, "n d"]) -> Int[np.ndarray, "pairs 2"]:
    from sklearn.neighbors import NearestNeighbors

    n = len(points)
    k = min(_NEIGHBOURS, int(_OF_ROWS * n))
    distance, found = NearestNeighbors(n_neighbors=k + 1).fit(points).kneighbors(points)
    distance, found = distance[:, 1:], found[:, 1:]
    # copies are among the nearer half
    half = k // 2
    outer = np.maximum(distance[:, half:], np.finfo(float).tiny)
    growth = np.median(np.log(outer[:, -1:] / outer[:, :-1]).mean(1))
    in_one = np.mean([(1 / np.arange(j, k)).sum() for j in range(half + 1, k)])
    dimension = in_one / max(float(growth), 1e-3)
    share = min((_BY_CHANCE / (k * n)) ** (1 / dimension), _NEAREST)
    row, place = np.nonzero(distance <= share * distance[:, -1:])
    return np.stack([row, found[row, place]], 1)
