"""Worlds of the sets that come with scikit-learn, with planted errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from floor_worlds.base import SHARES, Items, Setting, world
from floor_worlds.label_errors import BY_NAME

#: Rows and true classes of a set.
Source = Callable[[], tuple[Any, np.ndarray]]


@cache
def evidence(x: Source) -> np.ndarray:
    """``(N, K)`` log-probabilities by a regression on the true labels, out of fold."""
    rows, y = x()
    judge = make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=1000))
    return np.log(cross_val_predict(judge, rows, y, method="predict_proba") + 1e-9)


def cells(n: int, k: int) -> tuple[Setting, ...]:
    """All errors on a set of one size."""
    kinds = [e for e in BY_NAME if not (e == "pair" and k == 2)]
    clean = Setting(n, k, False, "uniform", 0.0)
    return (clean, *(Setting(n, k, False, e, s) for e in kinds for s in SHARES))


def split(source: Source, setting: Setting, rng: np.random.Generator) -> Items:
    """Training and new items of a set, drawn at random, some of each class."""
    x, y = source()
    train = new = np.arange(0)
    while np.bincount(y[train], minlength=setting.k).min() < 4:
        train, new = np.split(rng.permutation(len(y)), [setting.n])
    return Items(x[train], y[train], x[new], y[new], evidence(source)[train])


_iris = cache(partial(datasets.load_iris, return_X_y=True))
_wine = cache(partial(datasets.load_wine, return_X_y=True))
_cancer = cache(partial(datasets.load_breast_cancer, return_X_y=True))
_digits = cache(partial(datasets.load_digits, return_X_y=True))


@world("Iris", "reals", cells(100, 3))
def iris(setting: Setting, rng: np.random.Generator) -> Items:
    """150 flowers, four columns."""
    return split(_iris, setting, rng)


@world(
    "Wine",
    "reals",
    cells(120, 3),
    quick=(Setting(120, 3), Setting(120, 3, share=0.4)),
)
def wine(setting: Setting, rng: np.random.Generator) -> Items:
    """178 wines, 13 columns."""
    return split(_wine, setting, rng)


@world("Breast Cancer", "reals", cells(400, 2))
def cancer(setting: Setting, rng: np.random.Generator) -> Items:
    """569 tumours, 30 columns, most of them correlated."""
    return split(_cancer, setting, rng)


@world("Digits", "pixels", cells(600, 10))
def digits(setting: Setting, rng: np.random.Generator) -> Items:
    """1,797 images of 64 whole-number pixels."""
    return split(_digits, setting, rng)
