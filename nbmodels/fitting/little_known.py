"""A warning of a fit that could learn nothing of the noise: no column varies, or labels are few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from nbmodels.data.column_types import hashable
from nbmodels.errors import Caution, IdentifiabilityWarning, counted
from nbmodels.fitting.fitted_model import FittedModel

#: Labels below which they are named as the reason.
_FEW = 10

_WHAT_FOLLOWS = "nothing is known of the noise but its prior, and no given label is changed"


def little_known(
    fitted: FittedModel,
    x: Any,
    codes: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
) -> tuple[Caution, ...]:
    """A warning where that is plain; elsewhere a verdict states that features predict no labels.

    Args:
        fitted: the fit.
        x: ``(n, d)`` cells, a :class:`Block` or a data frame in which nulls are missing.
        codes: of the given labels, -1 where there is none.
        weights: of the rows; those of weight 0 are left out.
    """
    if fitted.drawn is None or fitted.interrupted:
        return ()
    counts = weights > 0
    n_labels = int(np.count_nonzero(counts & (codes >= 0)))
    if not _vary(x, counts):
        why = "X: no column has more than one value"
    elif n_labels < _FEW:
        why = f"y: {counted(n_labels, 'label is', 'labels are')} too few to learn from"
    else:
        return ()
    return (Caution(IdentifiabilityWarning, f"{why}: {_WHAT_FOLLOWS}"),)


def _vary(x: Any, counts: np.ndarray) -> bool:
    """Whether some column has two values among the rows that count."""
    if isinstance(x, pd.DataFrame):
        return any(_distinct(x.iloc[:, j][counts]) for j in range(x.shape[1]))
    if x.is_sparse:
        rows = x.x[np.flatnonzero(counts)]
        return bool((rows.max(axis=0) != rows.min(axis=0)).nnz)
    missing = np.zeros(x.x.shape, bool) if x.missing is None else np.asarray(x.missing)
    columns = (x.x[counts & ~missing[:, j], j] for j in range(x.x.shape[1]))
    return any(_distinct(pd.Series(one)) for one in columns)


def _distinct(column: pd.Series) -> bool:
    known = column.dropna()
    if known.dtype == object and not hashable(known):  # lists and the like are not compared
        return True
    return known.nunique() > 1
