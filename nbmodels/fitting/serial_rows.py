"""Rows that are alike the nearer they stand: a series in time, or rows of one person or site.

Such rows are not independent given the class. Where they share errors, too, a classifier learns
these from the rows beside, no label looks wrong, and intervals are too narrow. Whose rows are whose
is known to the user alone, so that a fit without groups warns of it: by the serial correlation of
the features beyond their class, of which tables that are sorted by class have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata

from nbmodels.errors import Caution, VerdictWarning
from nbmodels.fitting.fitted_model import FittedModel

#: Correlation of rows that follow each other from which on it is stated, standard errors by which
#: it is above zero, and least rows. Of rows that are independent given the class it was 0.12 at
#: most (of the wines of scikit-learn 0.2), of rows of twelve sites with shifts of 0.7 standard
#: deviations 0.2 to 0.36, of a series 0.95.
_CORRELATED, _SURELY, _LEAST = 0.3, 5.0, 60

#: Values of a column from which on it is looked at.
_VALUES = 10

#: Rows and columns that are looked at.
_MOST_ROWS, _MOST_COLUMNS = 20_000, 50


def serial_caution(points: Any, fitted: FittedModel) -> tuple[Caution, ...]:
    """A warning of rows that are like those before them, and of no groups.

    Args:
        points: ``(N, d)`` rows as points of a metric space; those of sparse tables, or None, are
            not looked at.
        fitted: a model of them.
    """
    weights = np.asarray(fitted.data.weights)[: len(fitted.fit.resp)]
    rows = np.flatnonzero(weights > 0)[:_MOST_ROWS]
    if not isinstance(points, np.ndarray) or points.ndim != 2 or len(rows) < _LEAST:
        return ()
    x = points[rows, :_MOST_COLUMNS].astype(float)
    x = x[:, np.isfinite(x).all(0)]
    # a table that is sorted by a column is no series, nor is a block of missing cells
    x = x[:, [len(np.unique(one)) >= _VALUES and not _is_sorted(one) for one in x.T]]
    if not x.shape[1]:
        return ()
    correlation, z = _serial(x, fitted.label_posterior[rows])
    if correlation < _CORRELATED or z < _SURELY:
        return ()
    sentence = (
        "rows that follow each other are alike beyond their class (correlation "
        f"{correlation:.2f}), as in a series in time, or rows of one person or site: where they "
        "share errors, too, fewer labels seem to be wrong than are, and intervals are too narrow; "
        "give such groups of rows as groups="
    )
    return (Caution(VerdictWarning, sentence),)


def _is_sorted(column: Float[np.ndarray, " n"]) -> bool:
    """Whether a column rises, or falls, for the most part."""
    return bool(abs(np.sign(np.diff(column)).sum()) >= len(column) / 2)


def _serial(x: Float[np.ndarray, "n d"], resp: Float[np.ndarray, "n k"]) -> tuple[float, float]:
    """Median correlation of columns with the row before, given the class, and standard errors."""
    ranks = rankdata(x, axis=0)
    means = resp.T @ ranks / np.maximum(resp.sum(0), 1e-9)[:, None]
    left = ranks - resp @ means
    left = (left - left.mean(0)) / np.maximum(left.std(0), 1e-9)
    # equal rows are copies, which have a warning of their own
    other = np.any(x[1:] != x[:-1], axis=1)
    products = (left[1:] * left[:-1])[other].sum(0)
    total, count = float(products.sum()), max(int(other.sum()), 1)
    spread = np.sqrt(count * np.square(left.T @ left / len(left)).sum())
    return float(np.median(products)) / count, total / float(spread)
