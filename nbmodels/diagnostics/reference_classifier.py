"""Reference classifiers: ordinary classifiers without a noise model, to compare a fit with.

:func:`out_of_fold_predictions` runs after every fit, so it is in closed form: least squares with a
ridge (a linear discriminant) on up to some hundred columns of any kind, multinomial naive Bayes on
more columns of which none is negative, each fitted once for all folds from sums less those of the
fold. :func:`reference_classifier` builds a logistic regression of scikit-learn for where time is
less scarce and probabilities are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int
from scipy import sparse

from nbmodels.fitting.scores import stratified_folds

#: Columns up to which a matrix over pairs of columns is small.
_NARROW = 300

_FOLDS = 3

#: Labels below which nothing is learned.
_LABELS = 30

#: Pseudo-items behind a coefficient, and pseudo-counts of a word.
_RIDGE, _PSEUDO = 1.0, 1.0


def out_of_fold_predictions(
    blocks: Sequence[Any], codes: Int[np.ndarray, " n"], n_classes: int
) -> Int[np.ndarray, " n"] | None:
    """The class that each item's features point to, learned from other items' labels.

    Args:
        blocks: features, ``(n, d)`` each, dense or sparse.
        codes: ``(n,)`` given labels, negative where missing.
        n_classes: K.

    Returns:
        ``(n,)`` classes, -1 where there is no label; None where there are too few labels, or no
        features.
    """
    rows = np.flatnonzero(codes >= 0)
    y = codes[rows]
    if not blocks or len(rows) < _LABELS or len(np.unique(y)) < 2:
        return None
    rng = np.random.default_rng(len(rows))
    fold = stratified_folds(y, _FOLDS, rng)
    target = np.eye(n_classes)[y]
    wide = [b for b in blocks if b.shape[1] > _NARROW and b.min() >= 0]
    if wide:
        x = sparse.hstack([sparse.csr_array(b) for b in wide]).tocsr()[rows]
        scores = _naive_bayes(x, target, fold)
    else:
        scores = _least_squares(_dense(blocks, rows, rng), target, fold)
    # a class that training never saw is not predicted
    learned = np.stack([target[fold != f].any(0) for f in range(_FOLDS)])
    out = np.full(len(codes), -1)
    out[rows] = np.argmax(np.where(learned[fold], scores, -np.inf), 1)
    return out


def reference_classifier(X: Any) -> Any:
    """A logistic regression of scikit-learn for a table, with the columns' coding.

    Args:
        X: features, a data frame, an array of any type or a sparse matrix.

    Returns:
        an unfitted pipeline; it shares none of the assumptions of naive Bayes.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

    logistic = LogisticRegression(max_iter=1000)
    if sparse.issparse(X):
        return make_pipeline(MaxAbsScaler(), logistic)
    reals = make_pipeline(SimpleImputer(), StandardScaler())
    symbols = OneHotEncoder(handle_unknown="ignore")
    if isinstance(X, pd.DataFrame):
        numeric = [c for c in X if pd.api.types.is_numeric_dtype(X[c])]
        others = [c for c in X if c not in numeric]
        return make_pipeline(make_column_transformer((reals, numeric), (symbols, others)), logistic)
    return make_pipeline(reals if np.asarray(X).dtype.kind in "biuf" else symbols, logistic)


def _dense(blocks: Sequence[Any], rows: np.ndarray, rng: Any) -> np.ndarray:
    """Standardised columns and one of ones; a random sample of the columns of a wide block."""
    some = [b[:, np.sort(rng.permutation(b.shape[1])[:_NARROW])][rows] for b in blocks]
    x = np.hstack([b.toarray() if sparse.issparse(b) else np.asarray(b, float) for b in some])
    scale = x.std(0)
    x = (x - x.mean(0)) / np.where(scale > 0, scale, 1)
    return np.hstack([x, np.ones((len(x), 1))])


def _least_squares(x: np.ndarray, target: np.ndarray, fold: np.ndarray) -> np.ndarray:
    parts = [(x[fold == f], target[fold == f]) for f in range(_FOLDS)]
    squares = np.stack([a.T @ a for a, _ in parts])
    products = np.stack([a.T @ b for a, b in parts])
    ridge = _RIDGE * np.eye(x.shape[1])
    table = np.linalg.solve(squares.sum(0) - squares + ridge, products.sum(0) - products)
    out = np.empty(target.shape)
    for f, (a, _) in enumerate(parts):
        out[fold == f] = a @ table[f]
    return out


def _naive_bayes(x: Any, target: np.ndarray, fold: np.ndarray) -> np.ndarray:
    out = np.empty(target.shape)
    counts = np.stack([x[fold == f].T @ target[fold == f] for f in range(_FOLDS)])
    items = np.stack([target[fold == f].sum(0) for f in range(_FOLDS)])
    for f in range(_FOLDS):
        left = counts.sum(0) - counts[f] + _PSEUDO
        shares = items.sum(0) - items[f] + _PSEUDO
        out[fold == f] = x[fold == f] @ np.log(left / left.sum(0)) + np.log(shares / shares.sum())
    return out
