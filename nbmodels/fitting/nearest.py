"""Nearest neighbours among the items: whose labels are taken for votes on an item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

#: Labelled items among which neighbours are found, exactly; of more, a random sample.
MOST_ITEMS = 50_000

#: Items whose neighbours are found, a random sample of them.
MOST_ASKED = 2_000

#: Neighbours that are found of all items together, where some of them do not count.
_MOST_FOUND = 4_000_000

#: Memory of distances at a time: pages that are used again cost a third of new ones.
_MEBIBYTES = 32

#: Rows so long are bounded by a sample of their values, which are so many times those looked for,
#: most values to one of the sample, and values below the bound to each that is looked for.
_LONG, _SEEN, _MOST_SKIPPED, _ROOM = 4096, 8, 16, 2.0

#: Pairs of items up to which all distances are computed at once.
_FEW_PAIRS = 4_000_000

#: Standard deviation of the noise by which ties are broken, beside columns of variance 1.
_JITTER = 1e-6

#: Share of a class's mean number of items that may be neighbours: more reach into other classes.
_OF_CLASS = 0.5

#: Least number of neighbours: with the item's own label three votes, which identify a noise matrix
#: (HOC, Zhu et al. 2021), and least number of labelled items.
_LEAST, _LEAST_ITEMS = 2, 30

#: Numbers of neighbours that are compared, in multiples of ``2 K - 1``, and the least of them from
#: three classes on. Half of it: with many classes that many neighbours reach into other classes.
_MULTIPLES, _FEW = (0.5, 1, 2, 4), 5
MOST_SIZES = len(_MULTIPLES)


@dataclass(frozen=True)
class NearestLabels:
    """Labels of some items, and of their neighbours.

    Attributes:
        rows: ``(n,)`` the items.
        codes: ``(n,)`` their own labels.
        counts: by number of neighbours, ``(n, K)`` how many of them have each label.
    """

    rows: Int[np.ndarray, " n"]
    codes: Int[np.ndarray, " n"]
    counts: dict[int, Float[np.ndarray, "n k"]]


def numbers_of_neighbours(n_items: int, n_classes: int) -> tuple[int, ...]:
    """Numbers of neighbours to compare, around ``2 K - 1`` where classes have so many items."""
    votes = 2 * n_classes - 1
    most = max(int(_OF_CLASS * n_items / n_classes), _LEAST)
    least = min(votes, _FEW)
    return tuple(dict.fromkeys(min(max(round(f * votes), least), most) for f in _MULTIPLES))


def nearest_labels(
    points: Any,
    codes: Int[np.ndarray, " n"],
    n_classes: int,
    sizes: Sequence[int] | None = None,
    most: int = MOST_ASKED,
    seed: int = 0,
    given: bool = False,
    copies: Int[np.ndarray, " n"] | None = None,
) -> NearestLabels | None:
    """Labels of items' nearest neighbours, the item itself left out.

    Args:
        points: ``(N, d)`` from :mod:`nbmodels.fitting.points`, dense or sparse; or, if ``given``,
            a sparse ``(N, N)`` matrix of distances, whose stored cells are the neighbours.
        codes: ``(N,)`` given labels, negative where missing; only labelled items are neighbours.
        n_classes: K.
        sizes: numbers of neighbours; None for :func:`numbers_of_neighbours`.
        most: items whose neighbours are found; of more labelled ones, a random sample.
        seed: of samples of large data, and of the order of ties.
        given: whether ``points`` are distances. Items then may have fewer neighbours than ``sizes``
            ask for.
        copies: group of each row, of which the first among the neighbours counts, and none that an
            item is in (:func:`nbmodels.fitting.copied_rows.copied_rows`).

    Returns:
        None where there are too few labels or no features.
    """
    if points is None or points.shape[1] == 0:
        return None
    rng = np.random.default_rng(seed)
    # an item without words or users is near none
    known = np.flatnonzero((codes >= 0) & _has_place(points))
    known = rng.permutation(known)[:MOST_ITEMS]
    if len(known) < _LEAST_ITEMS:
        return None
    if not given:
        points = _some(points, known, rng)
    if sizes is None:
        apart = len(known) if copies is None else len(np.unique(copies[known]))
        sizes = numbers_of_neighbours(apart, n_classes)
    asked = np.arange(min(len(known), most))
    if given:
        found = _stored(points[known[asked]][:, known], max(sizes) + 1)
    else:
        size = max(sizes) + 1
        if copies is not None:  # room for neighbours that do not count, as far as memory allows
            most_alike = int(np.bincount(copies).max())
            size = max(size, min(size * (1 + most_alike), _MOST_FOUND // len(asked)))
        found = _nearest(points, points[asked], size)
        if copies is not None:
            found = _of_other_groups(found, asked, copies[known], max(sizes) + 1)
    others = _others(found, asked)
    counts = {m: _counted(others[:, :m], codes[known], n_classes) for m in sizes}
    return NearestLabels(known[asked], codes[known[asked]], counts)


def shares_nearby(near: NearestLabels) -> Float[np.ndarray, "n k"]:
    """``(n, K)`` shares of the neighbours' labels; of equal ones that of the nearest is larger."""
    counts = near.counts[max(near.counts)] + near.counts[min(near.counts)] / 1e3
    return counts / np.maximum(counts.sum(1, keepdims=True), np.finfo(float).tiny)


def labels_near(
    points: Any, among: Any, codes: Int[np.ndarray, " n"], n_classes: int, size: int
) -> Float[np.ndarray, "m k"]:
    """``(M, K)`` how many of new items' nearest neighbours have each label.

    Args:
        points: ``(M, d)`` the new items; or sparse ``(M, N)`` distances to the labelled ones.
        among: ``(N, d)`` labelled items; None beside distances.
        codes: ``(N,)`` their labels.
        n_classes: K.
        size: number of neighbours.
    """
    found = _stored(points, size) if among is None else _nearest(among, points, size)
    return _counted(found, codes, n_classes)


def _some(points: Any, rows: Int[np.ndarray, " m"], rng: np.random.Generator) -> Any:
    """Some of the points; where they are dense, moved a little so that none are equally near."""
    if sparse.issparse(points):
        return points[rows]
    if len(points) > MOST_ITEMS:
        some = points[rows]
        return some + _JITTER * rng.standard_normal(some.shape)
    return (points + _JITTER * rng.standard_normal(points.shape))[rows]


def _counted(
    found: Int[np.ndarray, "m size"], codes: Int[np.ndarray, " n"], n_classes: int
) -> Float[np.ndarray, "m k"]:
    """How many neighbours have each label; -1 is none."""
    labels = np.where(found < 0, n_classes, codes[found])
    cells = labels + (n_classes + 1) * np.arange(len(found))[:, None]
    counts = np.bincount(cells.ravel(), minlength=len(found) * (n_classes + 1))
    return counts.reshape(len(found), -1)[:, :n_classes].astype(float)


def _nearest(among: Any, points: Any, size: int) -> Int[np.ndarray, "m size"]:
    """Positions of the nearest neighbours in Euclidean distance, nearest first."""
    size = min(size, among.shape[0])
    if sparse.issparse(among):
        return _nearest_words(sparse.csr_array(among), sparse.csr_array(points), size)
    if len(among) * len(points) <= _FEW_PAIRS:
        return _nearest_of_few(among, points, size)
    from sklearn import config_context
    from sklearn.neighbors import NearestNeighbors

    near = NearestNeighbors(n_neighbors=size).fit(among)
    with config_context(working_memory=_MEBIBYTES):
        return near.kneighbors(points, return_distance=False)


def _nearest_of_few(
    among: Float[np.ndarray, "n d"], points: Float[np.ndarray, "m d"], size: int
) -> Int[np.ndarray, "m size"]:
    """As scikit-learn finds them, in half of the time and without 85 ms of its import."""
    centre = among.mean(0)  # far from the origin distances would be lost in rounding
    among, points = among - centre, points - centre
    squares = points @ among.T
    squares *= -2
    squares += np.square(among).sum(1)  # those of the points change no order
    return _least(squares, size)


def _nearest_words(
    among: sparse.csr_array, points: sparse.csr_array, size: int
) -> Int[np.ndarray, "m size"]:
    """As scikit-learn finds them, which turns rows into columns anew for every block."""
    from sklearn.utils.extmath import safe_sparse_dot

    turned = among.T.tocsr()
    lengths, own = (np.asarray(one.multiply(one).sum(1)).ravel() for one in (among, points))
    step = max(int(_MEBIBYTES * 2**20) // (8 * among.shape[0]), 1)
    out = np.empty((points.shape[0], size), int)
    for first in range(0, len(out), step):
        rows = slice(first, first + step)
        squares = safe_sparse_dot(points[rows], turned, dense_output=True)
        squares *= -2
        squares += own[rows, None]
        squares += lengths
        out[rows] = _least(squares, size)
    return out


def _least(values: Float[np.ndarray, "n m"], size: int) -> Int[np.ndarray, "n size"]:
    """Positions of the least values of each row, the least first.

    Of long rows only values below a bound are partitioned: a quantile of every so many-th value.
    """
    length = values.shape[1]
    every = min(length // (_SEEN * size), _MOST_SKIPPED)
    if length < _LONG or every < 2:
        return _partitioned(values, size)
    some = values[:, ::every]
    rank = min(int(_ROOM * size / every) + 1, some.shape[1] - 1)
    at = np.flatnonzero(values <= np.partition(some, rank, axis=1)[:, [rank]])
    row = at // length
    count = np.bincount(row, minlength=len(values))
    if count.min() < size:
        return _partitioned(values, size)
    place = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count)
    where = np.zeros((len(values), count.max()), int)
    below = np.full(where.shape, np.inf)
    where[row, place], below[row, place] = at % length, values.ravel()[at]
    return np.take_along_axis(where, _partitioned(below, size), 1)


def _partitioned(values: Float[np.ndarray, "n m"], size: int) -> Int[np.ndarray, "n size"]:
    """:func:`_least` of rows as they are."""
    near = np.argpartition(values, size - 1, axis=1)[:, :size]
    order = np.argsort(np.take_along_axis(values, near, 1), axis=1)
    return np.take_along_axis(near, order, 1)


def _stored(distances: sparse.csr_array, size: int) -> Int[np.ndarray, "m size"]:
    """Positions of the nearest of the stored neighbours, nearest first, then -1."""
    row = np.repeat(np.arange(distances.shape[0]), np.diff(distances.indptr))
    order = np.lexsort((distances.data, row))
    rank = np.arange(len(row)) - distances.indptr[row]
    found = np.full((distances.shape[0], size), -1)
    kept = rank < size
    found[row[kept], rank[kept]] = distances.indices[order][kept]
    return found


def _others(
    found: Int[np.ndarray, "m size"], own: Int[np.ndarray, " m"]
) -> Int[np.ndarray, "m less"]:
    """Neighbours without the item itself, or the farthest where ties have displaced it."""
    same = found == own[:, None]
    same[~same.any(1), -1] = True
    return found[~same].reshape(len(found), -1)


def _of_other_groups(
    found: Int[np.ndarray, "m more"],
    own: Int[np.ndarray, " m"],
    group: Int[np.ndarray, " n"],
    size: int,
) -> Int[np.ndarray, "m size"]:
    """The item itself, then the first neighbour of each other group, nearest first, then -1."""
    of = group[found]
    order = np.argsort(of, axis=1, kind="stable")
    by_group = np.take_along_axis(of, order, 1)
    repeated = np.zeros_like(of, bool)
    np.put_along_axis(repeated, order[:, 1:], by_group[:, 1:] == by_group[:, :-1], 1)
    kept = ~repeated & (of != group[own][:, None])
    place = np.where(kept, kept.cumsum(1), size)  # 0 is the item's own
    out = np.full((len(found), size), -1)
    out[:, 0] = own
    row, column = np.nonzero(place < size)
    out[row, place[row, column]] = found[row, column]
    return out


def _has_place(points: Any) -> np.ndarray:
    """``(N,)`` booleans: whether a sparse row has a cell that is not 0; every dense row."""
    return np.diff(points.indptr) > 0 if sparse.issparse(points) else np.ones(len(points), bool)
