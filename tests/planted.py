"""One simulated data set an estimator, with planted noise, and its fit.

Shapes are few, because each costs a compilation: contents vary.
"""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from settings import configured

from nbmodels import (
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyMixedNB,
    NoisyMultinomialNB,
)
from nbmodels.datasets import corrupt

N, K = 1920, 3
NAMES = np.array(["apple", "berry", "cherry"], object)
PRIOR = np.array([0.5, 0.3, 0.2])
#: Planted noise, ``[observed, true]``; far from symmetric, so that a transposed one is noticed.
RHO = np.array([[0.65, 0.02, 0.10], [0.05, 0.90, 0.20], [0.30, 0.08, 0.70]])
EXACT = 1e-13  # as far as rounding lets a fit go
#: Class-wise parameters of the simulated features.
ON = np.where(np.eye(K, dtype=bool)[:, [0, 0, 1, 1, 2, 2]], 0.85, 0.12)
WORDS = ON / ON.sum(1, keepdims=True)
SYMBOLS = np.where(np.eye(K, dtype=bool), 0.8, 0.1)
MEANS = np.array([[0.0, 0.0, 2.5], [2.5, 0.0, 0.0], [0.0, 2.5, 0.0]])
CLASSES = {
    "bernoulli": (NoisyBernoulliNB, {}),
    "multinomial": (NoisyMultinomialNB, {}),
    "categorical": (NoisyCategoricalNB, {}),
    "diag": (NoisyGaussianNB, {}),
    "full": (NoisyGaussianNB, {"covariance": "full"}),
    "tied": (NoisyGaussianNB, {"covariance": "tied"}),
    "mixed": (NoisyMixedNB, {"families": {"multinomial": ["red", "green"]}}),
}
#: Covariance matrices are slow to compile.
KINDS = [
    pytest.param(kind, marks=pytest.mark.slow) if kind in ("full", "tied") else kind
    for kind in CLASSES
]
every_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def truth():
    rng = np.random.default_rng(1)
    y = rng.choice(K, N, p=PRIOR)
    return y, corrupt(y, RHO, rng)


def symbols(rng, y, columns):
    draws = [(rng.random(N)[:, None] > SYMBOLS.cumsum(1)[:, :-1][y]).sum(1) for _ in range(columns)]
    return np.array(["u", "v", "w"], object)[np.stack(draws, 1)]


@cache
def features(kind):
    """Simulated features; three columns differ in their means, so that no class is easy."""
    y, _ = truth()
    rng = np.random.default_rng(2)
    if kind == "bernoulli":
        return (rng.random((N, 6)) < ON[y]).astype(int)
    if kind == "multinomial":
        return rng.multinomial(6, WORDS[y])
    if kind == "categorical":
        return symbols(rng, y, 4)
    if kind == "mixed":
        counts = rng.multinomial(8, np.array([[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]])[y])
        return pd.DataFrame(
            {
                "flag": rng.random(N) < ON[y, 0],
                "size": rng.normal(MEANS[y, 0], 1) * 40 + 170,
                "shape": symbols(rng, y, 1)[:, 0],
                "red": counts[:, 0],
                "binary": (rng.random(N) < ON[y, 3]).astype(float),
                "green": counts[:, 1],
                "grade": pd.Categorical(symbols(rng, y, 1)[:, 0]),
                "weight": rng.normal(MEANS[y, 2], 1) / 1000,
            }
        )
    return rng.normal(MEANS[y], [1.0, 1.3, 0.8]) * [1, 50, 0.01] + [0, 1000, 3]


def given_labels():
    return NAMES[truth()[1]]


def make(kind, **parameters):
    cls, own = CLASSES[kind]
    return configured(cls.published, **({"tol": EXACT, "max_iter": 2000} | own | parameters))


def frozen(x):
    return x if not isinstance(x, np.ndarray) else x.copy()


@cache
def fitted(kind, **parameters):
    return make(kind, **parameters).fit(frozen(features(kind)), given_labels())


def same_fit(a, b, rtol=1e-8):
    np.testing.assert_allclose(a.label_posterior_, b.label_posterior_, rtol, 1e-10)
    np.testing.assert_allclose(a.noise_matrix_, b.noise_matrix_, rtol, 1e-10)
    np.testing.assert_allclose(a.objective_, b.objective_, rtol)


def normalised(table, axis, shape):
    assert table.shape == shape
    assert (table >= 0).all()
    np.testing.assert_allclose(table.sum(axis), 1, 1e-12)


def one_hot(codes):
    return np.eye(K)[codes]


def log_likelihood(e, table):
    joint = table + np.log(e.class_prior_) + np.log(e.noise_matrix_)[truth()[1]]
    return logsumexp(joint, 1)


LOST = np.random.default_rng(5).random((N, 8)) < 0.15
LOST[:, 0] = False


def lose(x, marker):
    """A copy with a sixth of the cells marked as missing."""
    if isinstance(x, pd.DataFrame):
        return pd.DataFrame(
            {c: x[c].astype(object).mask(LOST[:, j], marker) for j, c in enumerate(x.columns)}
        )
    holds = object if x.dtype == object else float
    return np.where(LOST[:, : x.shape[1]], np.full((), marker, holds), x.astype(holds))


def small():
    """Forty rows: posterior draws of them are quick, and uncertain enough to be worth comparing."""
    return features("bernoulli")[:40, [0, 2, 4]], given_labels()[:40]


@cache
def draws(method):
    e = make("bernoulli", random_state=3, noise_diagonal=8.0).fit(*small())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return e, e.posterior(method, draws=1000 if method == "gibbs" else 800, progress=False)
