"""The accuracy of scikit-learn with rows by name, a method of all estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from nbmodels.data.user_item_graph import of_items
from nbmodels.data.validation import check_orders
from nbmodels.errors import DataError


def score(self: ClassifierMixin, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Share of rows whose predicted class is the given one.

    Args:
        X: what ``predict`` takes: features, votes, or interactions.
        y: ``(N,)`` classes to compare with; of votes and graphs also a series or a mapping by the
            id of the task or item, of some of them alone if need be. Noisy ones underrate a
            classifier, see :func:`nbmodels.metrics.noisy_test_scores`.
        sample_weight: ``(N,)`` row weights, by id where y is.

    Raises:
        NotFittedError: before a fit.
        DataError: rows that are in another order than those of X by their index; another number of
            them; an id that does not exist; no class at all.
    """
    check_is_fitted(self)
    ids = self._predicted_ids(X) if hasattr(self, "_predicted_ids") else None
    if ids is None:
        if isinstance(y, Mapping):
            raise DataError("y: expected one class a row of X, not a mapping")
        check_orders(X, y=y, sample_weight=sample_weight)
        return ClassifierMixin.score(self, X, y, sample_weight)
    truth = of_items("y", _by_id(y, ids), ids)
    weights = of_items("sample_weight", _by_id(sample_weight, ids), ids)
    if weights is not None:
        weights = np.asarray(weights, float)
    for name, values in (("y", truth), ("sample_weight", weights)):
        if values is not None and len(values) != len(ids):
            raise DataError(f"{name}: {len(values)} values for {len(ids)} predictions")
    known = np.flatnonzero(pd.notna(truth))
    if not len(known):
        raise DataError("y: no class is given")
    right = np.asarray(truth, object)[known] == self.predict(X)[known]
    return float(np.average(right, weights=None if weights is None else weights[known]))


def _by_id(values: Any, ids: np.ndarray) -> Any:
    """A series or mapping by id; a series that nobody has named is one value a prediction."""
    named = isinstance(values, Mapping) or not isinstance(
        getattr(values, "index", None), pd.RangeIndex
    )
    known = isinstance(values, pd.Series) and values.index.isin(ids).any()
    return values if named or known else np.asarray(values)
