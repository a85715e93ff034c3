"""Out-of-fold predictions by the levels of single informative columns.

Linear functions of the columns and kernels of all of them fail in two common tables: numbers that
are codes, of which near ones are not alike, and few informative columns among hundreds, whose
distances are those of the others. So each column is cut into levels, which are its own values where
these are few, and columns whose levels do not surely differ in their labels are left out (sure
independence screening; Fan and Lv 2008). The classes are then linear in the levels' indicators, an
additive model. Screening sees the labels of other folds alone.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

#: Distinct values up to which they are the levels, and number of quantiles otherwise.
_VALUES, _QUANTILES = 20, 8

#: Standard deviations of the chi-squared statistic of labels by levels beyond what chance gives,
#: and indicators that are taken, those of the most informative columns.
_SURELY, _MOST = 3.0, 200

#: Ridge of the indicators.
_RIDGE = 3.0


def screened_predictions(
    shares: Float[np.ndarray, "n d"],
    target: Float[np.ndarray, "n k"],
    fold: Int[np.ndarray, " n"],
) -> Float[np.ndarray, "n k"]:
    """Least squares on the levels of informative columns, by the labels of other folds.

    Args:
        shares: share of the rows below each cell of its column, ties at their middle.
        target: indicators of the labels.
        fold: fold of each row, -1 of rows without a label, which are predicted from all others.

    Returns:
        ``(n, K)`` predictions; shares of the other folds' labels where no column is informative.
    """
    levels, sizes = _levels(shares)
    codes = target.argmax(1)
    out = np.empty(target.shape)
    for f in np.unique(fold):
        learned = (fold >= 0) & (fold != f)
        excess = _excess(levels[learned], sizes, codes[learned], target.shape[1])
        order = np.argsort(-excess, kind="stable")
        taken = order[(excess[order] > 0) & (np.cumsum(sizes[order]) <= _MOST)]
        x = np.hstack(
            [np.ones((len(fold), 1))]
            + [np.sqrt(excess[j]) * np.eye(sizes[j])[levels[:, j]] for j in taken]
        )
        own, y = x[learned], target[learned]
        ridge = np.diag(np.r_[0.0, np.full(x.shape[1] - 1, _RIDGE)])
        out[fold == f] = x[fold == f] @ np.linalg.solve(own.T @ own + ridge, own.T @ y)
    return out


def _levels(shares: Float[np.ndarray, "n d"]) -> tuple[Int[np.ndarray, "n d"], np.ndarray]:
    """Level of each cell, and number of levels of each column."""
    ordered = np.sort(shares, axis=0)
    few = 1 + np.count_nonzero(np.diff(ordered, axis=0), axis=0) <= _VALUES
    levels = np.floor(_QUANTILES * shares).astype(int)
    for j in np.flatnonzero(few):
        levels[:, j] = np.unique(shares[:, j], return_inverse=True)[1]
    return levels, levels.max(0, initial=0) + 1


def _excess(
    levels: Int[np.ndarray, "n d"],
    sizes: Int[np.ndarray, " d"],
    codes: Int[np.ndarray, " n"],
    n_classes: int,
) -> Float[np.ndarray, " d"]:
    """``(d,)`` part of each column's chi-squared statistic beyond chance; 0 if not surely any."""
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    cells = (first + levels) * n_classes + codes[:, None]
    count = np.bincount(cells.ravel(), minlength=int(sizes.sum()) * n_classes)
    table = count.reshape(-1, n_classes).astype(float)
    shares = np.bincount(codes, minlength=n_classes) / max(len(codes), 1)
    in_level = table.sum(1, keepdims=True)
    expected = in_level * shares
    terms = np.square(table - expected) / np.maximum(expected, np.finfo(float).tiny)
    column = np.repeat(np.arange(len(sizes)), sizes)
    statistic = np.bincount(column, terms.sum(1), len(sizes))
    seen = np.bincount(column, in_level[:, 0] > 0, len(sizes))
    by_chance = (seen - 1) * (max(int(np.count_nonzero(shares)), 1) - 1)
    surely = statistic > by_chance + _SURELY * np.sqrt(2 * by_chance)
    return np.where(surely, 1 - by_chance / np.maximum(statistic, 1e-12), 0.0)
