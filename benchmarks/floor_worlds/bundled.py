"""Worlds of the sets that come with scikit-learn, with planted errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from floor_worlds.base import SHARES, Items, Setting, world
from floor_worlds.label_errors import BY_NAME



@cache
def evidence(x: Callable[[], tuple[Any, np.ndarray]]) -> np.ndarray:
    """``(N, K)`` log-probabilities by a regression on the true labels, out of fold."""
    rows, y = x()
    judge = make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=1000))
    return np.log(cross_val_predict(judge, rows, y, method="predict_proba") + 1e-9)


def cells(n: int, k: int) -> tuple[Setting, ...]:
    """All errors on a set of one size."""
    kinds = [e for e in BY_NAME if not (e == "pair" and k == 2)]
    clean = Setting(n, k, False, "uniform", 0.0)
    return (clean, *(Setting(n, k, False, e, s) for e in kinds for s in SHARES))


def split(
    source: Callable[[], tuple[Any, np.ndarray]], setting: Setting, rng: np.random.Generator
) -> Items:
    """Training and new items of a set, drawn at random, some of each class."""
    x, y = source()
    while True:
        order = rng.permutation(len(y))
        train, new = order[: setting.n], order[setting.n :]
        if np.bincount(y[train], minlength=setting.k).min() >= 4:
            break
    return Items(x[train], y[train], x[new], y[new], evidence(source)[train])


@cache
def _iris() -> tuple[Any, np.ndarray]:
    return datasets.load_iris(return_X_y=True)


@cache
def _wine() -> tuple[Any, np.ndarray]:
    return datasets.load_wine(return_X_y=True)


@cache
def _cancer() -> tuple[Any, np.ndarray]:
    return datasets.load_breast_cancer(return_X_y=True)


@cache
def _digits() -> tuple[Any, np.ndarray]:
    return datasets.load_digits(return_X_y=True)


@world("Iris", "reals", cells(100, 3), quick=(Setting(100, 3, False, "uniform", 0.2),))
def iris(setting: Setting, rng: np.random.Generator) -> Items:
    """150 flowers, four columns."""
    return split(_iris, setting, rng)


@world(
    "Wine",
    "reals",
    cells(120, 3),
    quick=(Setting(120, 3, False, "uniform", 0.2), Setting(120, 3, False, "uniform", 0.4)),
)
def wine(setting: Setting, rng: np.random.Generator) -> Items:
    """178 wines, 13 columns."""
    return split(_wine, setting, rng)


@world("Breast Cancer", "reals", cells(400, 2), quick=(Setting(400, 2, False, "uniform", 0.2),))
def cancer(setting: Setting, rng: np.random.Generator) -> Items:
    """569 tumours, 30 columns, most of them correlated."""
    return split(_cancer, setting, rng)


@world("Digits", "pixels", cells(600, 10))
def digits(setting: Setting, rng: np.random.Generator) -> Items:
    """1,797 images of 64 whole-number pixels."""
    return split(_digits, setting, rng)
