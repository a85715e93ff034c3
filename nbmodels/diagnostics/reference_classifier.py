"""A reference classifier: an ordinary one of scikit-learn without a noise model.

For where time is less scarce than in :mod:`nbmodels.fitting.reference`, and probabilities are
needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from nbmodels.data.outliers import Winsoriser


def numeric_columns(X: pd.DataFrame) -> list[bool]:
    """Whether each column is of numbers, by its place: names may be of several levels."""
    return [pd.api.types.is_numeric_dtype(column) for _, column in X.items()]


def reference_classifier(X: Any) -> Any:
    """A logistic regression of scikit-learn for a table, with the columns' coding.

    Args:
        X: features, a data frame, an array of any type or a sparse matrix. NaN is missing: the mean
            of a column of numbers, a symbol of its own elsewhere
            (:func:`nbmodels.data.features.without_marker`). Numbers that lie far out in a column
            are cut off (:class:`nbmodels.data.outliers.Winsoriser`).

    Returns:
        an unfitted pipeline; it shares none of the assumptions of naive Bayes.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

    logistic = LogisticRegression(max_iter=1000)
    means = SimpleImputer(keep_empty_features=True)
    if sparse.issparse(X):
        gaps = [means] if np.isnan(X.data).any() else []  # a loop over the columns
        return make_pipeline(*gaps, MaxAbsScaler(), logistic)
    reals = make_pipeline(means, Winsoriser(), StandardScaler())
    symbols = OneHotEncoder(handle_unknown="ignore")
    if isinstance(X, pd.DataFrame):
        kinds = numeric_columns(X)  # by place, so that new rows may be an array
        numeric, others = ([i for i, k in enumerate(kinds) if k is one] for one in (True, False))
        return make_pipeline(make_column_transformer((reals, numeric), (symbols, others)), logistic)
    return make_pipeline(reals if np.asarray(X).dtype.kind in "biuf" else symbols, logistic)
