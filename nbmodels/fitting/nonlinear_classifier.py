"""A nonlinear classifier in closed form: least squares on columns, on their ranks, or on kernels.

What it is linear in is learned from some rows, as the ranks of their cells are, and found of any
others, so that a classifier that was selected by labels held out of it can predict new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import log_softmax, ndtri
from scipy.stats import rankdata

from nbmodels.data.validation import row_blocks
from nbmodels.fitting.matrix_scaling import MatrixScaling

#: Rows that approximate the kernel, its length scales in units of the columns' mean distance, the
#: jitter of its Cholesky factor, and weight of the columns beside it.
_LANDMARKS, _LENGTHS, _JITTER, _LINEAR = 200, (0.5, 1.0, 2.0), 1e-3, 0.3

#: How many of the first :func:`bases` are linear in columns or their normal scores.
LINEAR = 2

#: Values of a column that are kept to rank new cells among: of more, quantiles, and frequent ones.
_KNOTS = 512

#: From columns and the shares below their cells to ``(n, m)``: what the classes are linear in, or
#: their scores.
Basis = Callable[[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]], Float[np.ndarray, "n m"]]


def some_of(
    population: int | Int[np.ndarray, " n"], most: int, rng: np.random.Generator
) -> Int[np.ndarray, " m"]:
    """In order, at most ``most`` of these numbers, or of those below a number, at random."""
    return np.sort(rng.permutation(population)[:most])


def shares_below(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Share of the rows below each cell of its column, ties at their middle."""
    return (rankdata(x, axis=0) - 0.5) / len(x)


def standardised(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Columns of mean 0 and variance 1; constant ones of 0."""
    return _Scale.of(x)(x)


def normal_scores(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Columns' ranks as quantiles of a normal distribution."""
    return standardised(ndtri(shares_below(x)))


def bases(
    x: Float[np.ndarray, "n d"], shares: Float[np.ndarray, "n d"], rng: np.random.Generator
) -> Iterator[tuple[Basis, Float[np.ndarray, "n m"]]]:
    """What a classifier may be linear in, each with its values of the rows it was learned from.

    The columns; their normal scores; and beside these Gaussian kernels of three length scales,
    approximated by some of the rows (Nyström; Williams and Seeger 2001) and not by random Fourier
    features, whose frequencies would go by a column's position: another order of the columns is the
    same answer.

    Args:
        x: columns on one scale.
        shares: share of the rows below each cell, see :func:`shares_below`.
        rng: draws the rows by which kernels are approximated.
    """
    columns = _Columns(_Scale.of(x))
    yield columns, columns(x, shares)
    scores = _NormalScores(_Scale.of(ndtri(shares)))
    ranks = scores.of(shares)
    yield scores, _with_ones(ranks)
    some = some_of(len(x), _LANDMARKS, rng)
    squares = _squares(ranks, ranks[some])
    for length in _LENGTHS:
        own = np.exp(-squares[some] / length**2)
        factor = np.linalg.cholesky(own + _JITTER * np.eye(len(some)))
        kernel = _Kernel(scores, ranks[some], length, factor)
        yield kernel, kernel.beside(ranks, squares)


@dataclass(frozen=True)
class _Scale:
    """Location and scale of columns."""

    mean: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]

    @classmethod
    def of(cls, x: Float[np.ndarray, "n d"]) -> _Scale:
        scale = x.std(0)
        return cls(x.mean(0), np.where(scale > 0, scale, 1))

    def __call__(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        return (x - self.mean) / self.scale


@dataclass(frozen=True)
class _Columns:
    """The columns and a one."""

    scale: _Scale

    def __call__(self, x: np.ndarray, shares: np.ndarray) -> np.ndarray:
        return _with_ones(self.scale(x))


@dataclass(frozen=True)
class _NormalScores:
    """Their normal scores and a one."""

    scale: _Scale

    def of(self, shares: np.ndarray) -> np.ndarray:
        """Without the one."""
        return self.scale(ndtri(shares))

    def __call__(self, x: np.ndarray, shares: np.ndarray) -> np.ndarray:
        return _with_ones(self.of(shares))


@dataclass(frozen=True)
class _Kernel:
    """Normal scores, features whose products are nearly a Gaussian kernel, and a one."""

    scores: _NormalScores
    landmarks: Float[np.ndarray, "m d"]
    length: float
    factor: Float[np.ndarray, "m m"]

    def beside(self, ranks: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Of normal scores and their squared distances to the landmarks."""
        kernel = np.exp(-squares / self.length**2)
        bent = solve_triangular(self.factor, kernel.T, lower=True, check_finite=False).T
        return _with_ones(_LINEAR * ranks, bent)

    def __call__(self, x: np.ndarray, shares: np.ndarray) -> np.ndarray:
        ranks = self.scores.of(shares)
        return self.beside(ranks, _squares(ranks, self.landmarks))


@dataclass(frozen=True)
class OfColumns:
    """A basis of some columns.

    Attributes:
        columns: their numbers.
        basis: of them.
    """

    columns: Int[np.ndarray, " m"]
    basis: Basis

    @classmethod
    def numbered(
        cls,
        number: int,
        columns: Int[np.ndarray, " m"],
        x: Float[np.ndarray, "n d"],
        shares: Float[np.ndarray, "n d"],
        rng: np.random.Generator,
    ) -> OfColumns:
        """One of the :func:`bases` of some columns.

        Args:
            number: its place among them.
            columns: of ``x``.
            x, shares, rng: see :func:`bases`.
        """
        found = bases(x[:, columns], shares[:, columns], rng)
        return cls(columns, next(islice(found, number, None))[0])

    def __call__(self, x: np.ndarray, shares: np.ndarray) -> np.ndarray:
        return self.basis(x[:, self.columns], shares[:, self.columns])


def _squares(ranks: np.ndarray, landmarks: np.ndarray) -> np.ndarray:
    return cdist(ranks, landmarks, "sqeuclidean") / (2 * ranks.shape[1])


def _with_ones(*parts: np.ndarray) -> np.ndarray:
    return np.hstack([*parts, np.ones((len(parts[0]), 1))])


@dataclass(frozen=True)
class Ranks:
    """Share of training rows below cells of any rows, by some values of each column.

    Attributes:
        values: by column, distinct values in their order; of many quantiles and frequent ones.
        shares: by column, share of the rows below each of them, ties at their middle.
    """

    values: tuple[Float[np.ndarray, " v"], ...]
    shares: tuple[Float[np.ndarray, " v"], ...]

    @classmethod
    def of(cls, x: Float[np.ndarray, "n d"], shares: Float[np.ndarray, "n d"]) -> Ranks:
        """Those of training rows."""
        values, below = [], []
        for column, share in zip(x.T, shares.T, strict=True):
            known, first, count = np.unique(column, return_index=True, return_counts=True)
            at = np.arange(len(known))
            if len(known) > _KNOTS:
                even = np.round(np.linspace(0, len(known) - 1, _KNOTS)).astype(int)
                # ranks jump at a value of many rows, as missing cells are
                frequent = np.flatnonzero(count > len(column) / _KNOTS)
                about = (frequent[:, None] + [-1, 0, 1]).ravel()
                at = np.unique([*even, *np.clip(about, 0, len(known) - 1)])
            values.append(known[at])
            below.append(share[first[at]])
        return cls(tuple(values), tuple(below))

    def __call__(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """``(n, d)``; beyond the training rows those of the outermost."""
        about = zip(x.T, self.values, self.shares, strict=True)
        return np.stack([np.interp(*one) for one in about], axis=1)


@dataclass(frozen=True)
class NonlinearClassifier:
    """Scores of the classes, linear in a basis.

    Attributes:
        coding: from rows of features, and booleans of missing cells or None, to points.
        columns: those of the points that are looked at.
        ranks: of their cells among the training rows'.
        basis: what the scores are linear in.
        table: ``(m, K)`` coefficients.
        slope: factor of the scores (temperature scaling).
        scaling: matrix scaling of the log-probabilities; None where the slope is all.
    """

    coding: Callable[..., Any]
    columns: np.ndarray
    ranks: Ranks
    basis: Basis
    table: Float[np.ndarray, "m k"]
    slope: float
    scaling: MatrixScaling | None = None

    def log_probabilities(self, x: Any, missing: Any = None) -> Float[np.ndarray, "n k"]:
        """Of the classes of new rows.

        Args:
            x: ``(n, d)`` features, coded as the training rows' were.
            missing: ``(n, d)`` booleans of cells that are missing, or None.
        """
        return self.of_points(self.coding(x, missing))

    def of_points(self, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
        """The same of rows that are coded already."""
        out = np.empty((len(points), self.table.shape[1]))
        for rows in row_blocks(len(points), len(self.table)):
            some = np.asarray(points[rows], float)[:, self.columns]
            out[rows] = self.basis(some, self.ranks(some)) @ self.table
        logs = log_softmax(self.slope * out, axis=1)
        return logs if self.scaling is None else log_softmax(self.scaling.scaled(logs), axis=1)
