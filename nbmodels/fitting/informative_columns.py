"""Columns by which labels surely differ, one by one or in pairs (sure screening; Fan and Lv 2008).

Kernels of all columns fail where most of these say nothing: distances are then those of noise. A
column is kept where the labels of its levels differ by more than chance, or where those of two
columns' halves do: an exclusive or shows in no single column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import chi2

from nbmodels.fitting.column_levels import ColumnLevels

#: Standard deviations of the chi-squared statistic of labels by levels beyond what chance gives.
_SURELY = 3.0

#: Probability that chance alone has a pair of columns, and columns beyond which pairs are too many.
_BY_CHANCE, _PAIRED = 0.01, 100


@dataclass(frozen=True)
class Screening:
    """Columns of a table, to be screened by the labels of some rows.

    Attributes:
        shares: share of the rows below each cell of its column.
        levels: of the cells.
        sizes: number of levels of each column.
    """

    shares: Float[np.ndarray, "n d"]
    levels: Int[np.ndarray, "n d"]
    sizes: Int[np.ndarray, " d"]

    @classmethod
    def of(cls, shares: Float[np.ndarray, "n d"]) -> Screening:
        """Of cells by the share of the rows below each."""
        cuts = ColumnLevels.of(shares)[0]
        return cls(shares, cuts(shares), cuts.sizes)

    def informative(
        self,
        rows: Int[np.ndarray, " m"],
        codes: Int[np.ndarray, " m"],
        n_classes: int,
        weights: Float[np.ndarray, " m"],
        dispersion: float = 1.0,
    ) -> Int[np.ndarray, " c"]:
        """Columns by which labels surely differ, alone or in a pair; all if there is none.

        Args:
            rows: rows of the table, which may be repeated.
            codes: their labels.
            n_classes: K.
            weights: their weights.
            dispersion: variance of a row's part in a class, in units of that of a sure label; less
                than one where a row is repeated with parts of its weight in several classes.
        """
        parts = codes, n_classes, weights, dispersion
        found = excess(self.levels[rows], self.sizes, *parts) > 0
        found |= _interacting(self.shares[rows], *parts)
        return np.flatnonzero(found) if found.any() else np.arange(len(found))


def _interacting(
    shares: Float[np.ndarray, "n d"],
    codes: Int[np.ndarray, " n"],
    n_classes: int,
    weights: Float[np.ndarray, " n"],
    dispersion: float,
) -> np.ndarray:
    """``(d,)`` whether labels differ by the signs' product of a column and another."""
    d = shares.shape[1]
    if not 1 < d <= _PAIRED:
        return np.zeros(d, bool)
    signs = np.sign(shares - 0.5)
    products, count = np.zeros((n_classes, d, d)), np.zeros(n_classes)
    for k in np.unique(codes):
        own = codes == k
        products[k] = (weights[own, None] * signs[own]).T @ signs[own]
        count[k] = weights[own].sum()
    mean = products.sum(0) / max(float(count.sum()), np.finfo(float).tiny)
    seen = count > 0
    about = count[seen, None, None]
    variance = np.maximum(1 - np.square(mean), np.finfo(float).eps)
    statistic = (np.square(products[seen] - about * mean) / about).sum(0) / variance
    np.fill_diagonal(statistic, 0.0)
    least = chi2.isf(_BY_CHANCE / (d * (d - 1) / 2), max(int(seen.sum()) - 1, 1))
    return (statistic > dispersion * least).any(1)


def excess(
    levels: Int[np.ndarray, "n d"],
    sizes: Int[np.ndarray, " d"],
    codes: Int[np.ndarray, " n"],
    n_classes: int,
    weights: Float[np.ndarray, " n"],
    dispersion: float = 1.0,
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
    statistic = np.bincount(column, terms.sum(1), len(sizes)) / dispersion
    seen = np.bincount(column, in_level[:, 0] > 0, len(sizes))
    by_chance = (seen - 1) * (max(int(np.count_nonzero(shares)), 1) - 1)
    surely = statistic > by_chance + _SURELY * np.sqrt(2 * by_chance)
    return np.where(surely, 1 - by_chance / np.maximum(statistic, 1e-12), 0.0)
