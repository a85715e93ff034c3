"""Small data sets of every kind of features, and what must hold of any fit to them."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from marks import slow_among
from settings import configured

from nbmodels import (
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyMixedNB,
    NoisyMultinomialNB,
)

N, D, K = 24, 3, 3
CLASSES = {
    "bernoulli": NoisyBernoulliNB.published,
    "multinomial": NoisyMultinomialNB.published,
    "categorical": NoisyCategoricalNB.published,
    "diag": NoisyGaussianNB.published,
    "full": NoisyGaussianNB.published,
    "mixed": NoisyMixedNB.published,
}
KINDS = list(CLASSES)
every_kind = pytest.mark.parametrize("kind", slow_among(KINDS, ["full"]))
single_families = pytest.mark.parametrize("kind", slow_among(KINDS, ("full", "mixed")))


def make(kind, **parameters):
    own = {"covariance": "full"} if kind == "full" else {}
    own |= {"families": {"multinomial": ["count"]}} if kind == "mixed" else {}
    return configured(CLASSES[kind], **({"max_iter": 2000} | own | parameters))


@cache
def truth(n):
    return np.arange(n) % K


def features(kind, n=N, d=D):
    """Features that tell the classes apart, mostly; every column has every value."""
    y, rng = truth(n), np.random.default_rng(0)
    own = np.arange(d) % K == y[:, None]
    if kind == "bernoulli":
        return (rng.random((n, d)) < np.where(own, 0.95, 0.08)).astype(int)
    if kind == "multinomial":
        return rng.poisson(np.where(own, 8.0, 1.0))
    if kind == "categorical":
        return np.array(["u", "v", "w"], object)[
            np.where(rng.random((n, d)) < 0.9, y[:, None], rng.integers(0, K, (n, d)))
        ]
    if kind == "mixed":
        parts = [features(k, n, d) for k in ("bernoulli", "multinomial", "categorical", "diag")]
        names = ["flag", "count", "word", "size"]
        return pd.DataFrame(
            {m: p[:, i % d] for i, (m, p) in enumerate(zip(names, parts, strict=True))}
        )
    return rng.normal(np.where(own, 4.0, 0.0), 1)


def labels(n=N):
    """One in seven is wrong, of each class."""
    y = truth(n).copy()
    y[::7] = (y[::7] + 1) % K
    return y


def sound(e, x, scale=0.0):
    """All that is read out is finite and normalised; the objective, of terms up to scale, rose."""
    k, n = len(e.classes_), len(e.label_posterior_)
    for table, axis, shape in (
        (e.class_prior_, 0, (k,)),
        (e.noise_matrix_, 0, (k, k)),
        (e.inverse_noise_matrix_, 0, (k, k)),
        (e.label_posterior_, 1, (n, k)),
        (e.predict_proba(x), 1, (x.shape[0], k)),
    ):
        assert table.shape == shape
        assert np.isfinite(table).all()
        assert (table >= 0).all()
        np.testing.assert_allclose(table.sum(axis), 1, 1e-9)
    assert np.isfinite(e.predict_log_proba(x)).all()
    assert np.isfinite(e.objective_)
    assert np.isfinite(e.objective_trace_).all()
    rounding = 1e-11 * np.abs(e.objective_trace_[1:]) + 1e-15 * scale
    assert (np.diff(e.objective_trace_) >= -rounding).all()
    assert set(e.predict(x)) <= set(e.classes_)
    for name in ("feature_log_prob_", "theta_", "var_", "covariance_"):
        if hasattr(e, name):
            value = getattr(e, name)
            for part in value if isinstance(value, list) else [value]:
                assert np.isfinite(part).all()
    if hasattr(e, "var_"):
        assert (e.var_[:, e.fitted_.coded[0].where] > 0).all()
    if hasattr(e, "covariance_"):
        varying = e.fitted_.coded[0].where
        covariance = e.covariance_[..., varying[:, None], varying]
        size = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
        correlation = covariance / size[..., :, None] / size[..., None, :]
        assert (np.linalg.eigvalsh(correlation) > 0).all()
    frame = e.corrected_labels()
    assert frame["p_wrong"].dropna().between(-1e-12, 1 + 1e-12).all()
    return e


@cache
def plain(kind):
    return sound(make(kind).fit(features(kind), labels()), features(kind))
