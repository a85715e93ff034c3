"""Out-of-fold predictions by the levels of single informative columns.

Linear functions of the columns and kernels of all of them fail in two common tables: numbers that
are codes, of which near ones are not alike, and few informative columns among hundreds, whose
distances are those of the others. So each column is cut into levels, which are its own values where
these are few, and columns whose levels do not surely differ in their labels are left out (sure
independence screening; Fan and Lv 2008). The classes are then linear in the levels' indicators, an
additive model. Screening sees the labels of other folds alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from nbmodels.fitting.column_levels import ColumnLevels
from nbmodels.fitting.informative_columns import excess

#: Indicators that are taken, those of the most informative columns.
_MOST = 200

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
    beyond = excess(table[rows], sizes, target[rows].argmax(1), target.shape[1], here)
    order = np.argsort(-beyond, kind="stable")
    taken = order[(beyond[order] > 0) & (np.cumsum(sizes[order]) <= _MOST)]
    basis = ScreenedLevels(levels, taken, np.sqrt(beyond[taken]))
    roots = np.sqrt(here)[:, None]
    x = roots * basis.indicators(table[rows])
    ridge = np.diag(np.r_[0.0, np.full(x.shape[1] - 1, _RIDGE)])
    return basis, np.linalg.solve(x.T @ x + ridge, x.T @ (roots * target[rows]))
