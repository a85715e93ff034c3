"""Confident learning beside the fit of a table, as a method of the estimators of tables."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from nbmodels.data.features import without_marker
from nbmodels.data.labels import Classes
from nbmodels.data.noisy_labels import missing_labels, read_given
from nbmodels.errors import DataError
from nbmodels.fitting.one_thread import one_thread_if_small

if TYPE_CHECKING:
    from nbmodels.diagnostics.confident_learning import SecondOpinion
    from nbmodels.estimators.table import TableClassifier


def second_opinion(
    self: TableClassifier, X: Any, y: Any, classifier: Any = None, cv: int = 5
) -> SecondOpinion:
    """The noise matrix by confident learning (Northcutt et al. 2021), beside the fitted one.

    Args:
        X: the features of the fit.
        y: ``(N,)`` the given labels of the fit.
        classifier: any classifier with ``predict_proba`` that takes X; by default a logistic
            regression, which assumes none of what naive Bayes does.
        cv: number of folds, 2 or more.

    Returns:
        A :class:`nbmodels.diagnostics.confident_learning.SecondOpinion`.

    Raises:
        DataError: other labels than those of the fit, or a wrong number of folds.
    """
    from nbmodels.diagnostics import confident_learning
    from nbmodels.diagnostics.comparison import predicted_labels
    from nbmodels.diagnostics.reference_classifier import reference_classifier

    check_is_fitted(self)
    own = self._label_data
    if own is None:
        raise DataError("y: the model was fitted without one noisy label an item")
    given = read_given(y, len(own.codes), type(self).__name__)
    missing = missing_labels(given, self.missing_label)
    codes = Classes(self.classes_).encode("y", given, missing)
    if not np.array_equal(codes, own.codes):
        row = int(np.flatnonzero(codes != own.codes)[0])
        raise DataError(f"y: row {row} is not the label that the model was fitted to")
    if classifier is None:
        X = without_marker(X, self.missing_values)
    one = reference_classifier(X) if classifier is None else classifier
    regression = X if classifier is None else None
    # a second opinion need not converge
    with (
        warnings.catch_warnings(action="ignore", category=ConvergenceWarning),
        one_thread_if_small(regression),
    ):
        probs = predicted_labels(one, X, given, self.classes_, codes, cv, self._seed())
    known = codes >= 0
    return confident_learning.second_opinion(
        self.noise_matrix_,
        self.label_posterior_[known],
        probs[known],
        codes[known],
        self.classes_,
    )
