"""Reasons to doubt a fit that a plain look at the data can give."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from nbmodels.data.column_types import Choice, Labels
from nbmodels.fitting.identifiability import vanished

#: Rows that the plain classifiers look at, and their folds.
_CHECKED_ROWS, _FOLDS = 4_000, 3


def disagreement(x: Any, labels: Labels, random_state: int) -> float | None:
    """Share of given labels that a plain classifier, not having seen them, contradicts."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.naive_bayes import ComplementNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rows = np.flatnonzero(labels.codes >= 0)
    if len(rows) < 10 * _FOLDS:
        return None
    if isinstance(x, pd.DataFrame):
        rng = np.random.default_rng(random_state)
        if len(rows) > _CHECKED_ROWS:
            rows = np.sort(rng.choice(rows, _CHECKED_ROWS, replace=False))
        numeric = [c for c in x if x[c].dtype.kind == "f"]
        symbolic = [c for c in x if c not in numeric]
        plain: Any = make_pipeline(
            make_column_transformer(
                (make_pipeline(SimpleImputer(), StandardScaler()), numeric),
                (OneHotEncoder(handle_unknown="ignore"), symbolic),
            ),
            LogisticRegression(max_iter=200),
        )
        sample = x.iloc[rows]
    else:
        plain, sample = ComplementNB(), x[rows]
    folds = KFold(_FOLDS, shuffle=True, random_state=random_state)
    y = labels.codes[rows]
    if any(len(np.unique(y[train])) < 2 for train, _ in folds.split(y)):
        return None
    # a quick look need not converge, nor have a value of every column in every fold
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        predicted = cross_val_predict(plain, sample, y, cv=folds)
    return float(np.mean(predicted != y))


def drifted(
    expected: float, held_out: float | None, labels: Labels, best: np.ndarray, choice: Choice
) -> list[str]:
    """Signs that the fit follows clusters of the features, or sticks to the labels."""
    out = []
    cut = "rounds" in choice.settings
    remedy = "try fewer features" if cut else "leave --weight and --feedback to be chosen"
    if choice.settings["noise"] == "full":
        remedy += ", or --noise symmetric"
    if expected > 0.5:
        out.append(
            f"{expected:.0%} of the labels would be wrong, which is hardly so: the fit has left "
            f"the labels and follows clusters of the features; {remedy}"
        )
    elif held_out is not None and expected > held_out + 0.05:
        out.append(
            f"{expected:.0%} of the labels would be wrong, but a plain classifier contradicts only "
            f"{held_out:.0%} of labels it has not seen: the fit believes its features too much; "
            f"{remedy}"
        )
    elif (
        held_out is not None
        and choice.settings["noise"] == "symmetric"
        and expected < held_out / 3 - 0.01
    ):
        out.append(
            f"only {expected:.1%} of the labels would be wrong, while a plain classifier "
            f"contradicts {held_out:.0%} of labels it has not seen: errors may have a direction "
            "(one class mistaken for another), which one error rate cannot tell; compare "
            "--noise full"
        )
    given = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.names))
    kept = np.bincount(best, minlength=len(labels.names))
    gone = vanished(given, kept)
    if len(gone):
        some = ", ".join(f"{labels.names[k]} ({given[k]} to {kept[k]})" for k in gone[:6])
        out.append(
            f"these classes have all but vanished from the suggestions: {some}; do not take their "
            "rows' suggestions as they are"
        )
    return out
