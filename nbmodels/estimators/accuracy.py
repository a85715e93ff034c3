"""The accuracy of scikit-learn with rows by name, a method of all estimators."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin

from nbmodels.data.validation import check_orders


def score(self: ClassifierMixin, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Share of rows whose predicted class is the given one.

    Args:
        X: features, as for ``predict``.
        y: ``(N,)`` classes to compare with; noisy ones underrate a classifier, see
            :func:`nbmodels.metrics.noisy_test_scores`.
        sample_weight: ``(N,)`` row weights.

    Raises:
        DataError: rows that are in another order than those of X by their index.
    """
    check_orders(X, y=y, sample_weight=sample_weight)
    return ClassifierMixin.score(self, X, y, sample_weight)
