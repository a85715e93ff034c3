"""Out-of-fold predictions by the levels of single informative columns.

Linear functions of the columns and kernels of all of them fail in two common tables: numbers that
are codes, of which near ones are not alike, and few informative columns among hundreds, whose
distances are those of the others. So each column is cut into levels, which are its own values where
these are few, and columns whose levels do not surely differ in their labels are left out (sure
independence screening; Fan and Lv 2008). The classes are then linear in the levels' indicators, an
additive model. Screening sees the labels of other folds alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int

#: Distinct values up to which they are the levels, few or more, and number of quantiles otherwise.
#: 30 codes are no order, and 30 ages are: which it is held-out labels show.
_VALUES, _QUANTILES = (20, 50), 8

#: Standard deviations of the chi-squared statistic of labels by levels beyond what chance gives,
#: and indicators that are taken, those of the most informative columns.
_SURELY, _MOST = 3.0, 200

#: Ridge of the indicators.
_RIDGE = 3.0


def screened_predictions(
    shares: Float[np.ndarray, "n d"],
    levels: ColumnLevels,
    target: Float[np.ndarray, "n k"],
    fold: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
) -> Float[np.ndarray, "n k"]:
    """Least squares on the levels of informative columns, by the labels of other folds.

    Args:
        shares: share of the rows below each cell of its column, ties at their middle.
        levels: of the columns.
        target: indicators of the labels.
        fold: fold of each row, -1 of rows without a label, which are predicted from all others.
        weights: row weights.

    Returns:
        ``(n, K)`` predictions; shares of the other folds' labels where no column is informative.
    """
    known, table = fold >= 0, levels(shares)
    out = np.empty(target.shape)
    for f in np.unique(fold):
        basis, coefficients = _learned(levels, table, target, known & (fold != f), weights)
        out[fold == f] = basis.indicators(table[fold == f]) @ coefficients
    return out


def screened_columns(
    shares: Float[np.ndarray, "n d"],
    levels: ColumnLevels,
    target: Float[np.ndarray, "n k"],
    known: Bool[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
) -> tuple[ScreenedLevels, Float[np.ndarray, "m k"]]:
    """Levels of informative columns, and the coefficients of their indicators, by all labels.

    Args:
        shares, levels, target, weights: those of :func:`screened_predictions`.
        known: rows that have a label.
    """
    return _learned(levels, levels(shares), target, known, weights)


@dataclass(frozen=True)
class ColumnLevels:
    """Cuts of columns into levels.

    Attributes:
        cuts: by column, shares at which a level ends.
    """

    cuts: tuple[Float[np.ndarray, " c"], ...]

    @classmethod
    def of(cls, shares: Float[np.ndarray, "n d"]) -> Sequence[ColumnLevels]:
        """Between the values of columns that have few, else at quantiles; one or two ways."""
        ordered = np.sort(shares, axis=0)
        number = 1 + np.count_nonzero(np.diff(ordered, axis=0), axis=0)
        quantiles = np.arange(1, _QUANTILES) / _QUANTILES
        cuts = [quantiles] * shares.shape[1]
        found: list[ColumnLevels] = []
        for least, most in pairwise((0, *_VALUES)):
            some = np.flatnonzero((number > least) & (number <= most))
            for j in some:
                values = np.unique(ordered[:, j])
                cuts[j] = (values[1:] + values[:-1]) / 2
            if len(some) or not found:
                found.append(cls(tuple(cuts)))
        return found

    @property
    def sizes(self) -> Int[np.ndarray, " d"]:
        """Number of levels of each column."""
        return np.array([len(one) + 1 for one in self.cuts])

    def __call__(self, shares: Float[np.ndarray, "n d"]) -> Int[np.ndarray, "n d"]:
        """Level of each cell."""
        about = zip(self.cuts, shares.T, strict=True)
        return np.stack([np.searchsorted(*one, side="right") for one in about], axis=1)


@dataclass(frozen=True)
class ScreenedLevels:
    """A one and the indicators of informative columns' levels: what the classes are linear in.

    Attributes:
        levels: of all columns.
        taken: informative columns.
        weight: of the indicators of each.
    """

    levels: ColumnLevels
    taken: Int[np.ndarray, " t"]
    weight: Float[np.ndarray, " t"]

    def indicators(self, levels: Int[np.ndarray, "n d"]) -> Float[np.ndarray, "n m"]:
        """Of cells' levels."""
        sizes = self.levels.sizes
        return np.hstack(
            [np.ones((len(levels), 1))]
            + [
                weight * np.eye(sizes[j])[levels[:, j]]
                for j, weight in zip(self.taken, self.weight, strict=True)
            ]
        )

    def __call__(
        self, x: Float[np.ndarray, "n d"], shares: Float[np.ndarray, "n d"]
    ) -> Float[np.ndarray, "n m"]:
        """Of new rows, by the shares of the training rows below their cells."""
        return self.indicators(self.levels(shares))


def _learned(
    levels: ColumnLevels,
    table: Int[np.ndarray, "n d"],
    target: Float[np.ndarray, "n k"],
    rows: Bool[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
) -> tuple[ScreenedLevels, Float[np.ndarray, "m k"]]:
    """Informative columns by some rows, and coefficients of their indicators (ridge regression)."""
    sizes = levels.sizes
    here = weights[rows]
    excess = _excess(table[rows], sizes, target[rows].argmax(1), target.shape[1], here)
    order = np.argsort(-excess, kind="stable")
    taken = order[(excess[order] > 0) & (np.cumsum(sizes[order]) <= _MOST)]
    basis = ScreenedLevels(levels, taken, np.sqrt(excess[taken]))
    roots = np.sqrt(here)[:, None]
    x = roots * basis.indicators(table[rows])
    ridge = np.diag(np.r_[0.0, np.full(x.shape[1] - 1, _RIDGE)])
    return basis, np.linalg.solve(x.T @ x + ridge, x.T @ (roots * target[rows]))


def _excess(
    levels: Int[np.ndarray, "n d"],
    sizes: Int[np.ndarray, " d"],
    codes: Int[np.ndarray, " n"],
    n_classes: int,
    weights: Float[np.ndarray, " n"],
) -> Float[np.ndarray, " d"]:
    """``(d,)`` part of each column's chi-squared statistic beyond chance; 0 if not surely any."""
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    cells = (first + levels) * n_classes + codes[:, None]
    each = np.repeat(weights, len(sizes))
    count = np.bincount(cells.ravel(), each, int(sizes.sum()) * n_classes)
    table = count.reshape(-1, n_classes)
    of_class = np.bincount(codes, weights, n_classes)
    shares = of_class / max(float(of_class.sum()), np.finfo(float).tiny)
    in_level = table.sum(1, keepdims=True)
    expected = in_level * shares
    terms = np.square(table - expected) / np.maximum(expected, np.finfo(float).tiny)
    column = np.repeat(np.arange(len(sizes)), sizes)
    statistic = np.bincount(column, terms.sum(1), len(sizes))
    seen = np.bincount(column, in_level[:, 0] > 0, len(sizes))
    by_chance = (seen - 1) * (max(int(np.count_nonzero(shares)), 1) - 1)
    surely = statistic > by_chance + _SURELY * np.sqrt(2 * by_chance)
    return np.where(surely, 1 - by_chance / np.maximum(statistic, 1e-12), 0.0)
