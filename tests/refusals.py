"""Valid input of every kind of features, and what refuses it when it is spoilt."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from settings import configured

from nbmodels import (
    DataError,
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyMixedNB,
    NoisyMultinomialNB,
)
from nbmodels.fitting import em, options

N, D = 12, 3
CLASSES = {
    "bernoulli": NoisyBernoulliNB.published,
    "multinomial": NoisyMultinomialNB.published,
    "categorical": NoisyCategoricalNB.published,
    "gaussian": NoisyGaussianNB.published,
    "mixed": NoisyMixedNB.published,
}
KINDS = list(CLASSES)
SPARSE = ["bernoulli", "multinomial"]
FAMILIES = {"bernoulli": ["flag"], "multinomial": ["count"], "gaussian": ["size"]}
MIXED = ["flag", "count", "size", "word"]
really_fit = em.fit_many


class AcceptedError(Exception):
    """The estimator was about to fit what it should have refused."""


def forbid_fits(monkeypatch):
    """Let an estimator raise ``AcceptedError`` in the place of its first fit."""

    def accept(*args, **kwargs):
        raise AcceptedError

    monkeypatch.setattr(options, "fit_many", accept)


def features(kind):
    """Clean features, each column with every value: a frame for the mixed estimator."""
    rng = np.random.default_rng(0)
    flags = np.arange(N * D).reshape(N, D) % 2
    counts = rng.integers(0, 5, (N, D))
    codes = rng.permuted(np.arange(N)[:, None] % [3, 3, 3], axis=0)
    words = np.array(["u", "v", "w"], object)[codes]
    reals = rng.normal(size=(N, D))
    if kind == "mixed":
        columns = flags[:, 0], counts[:, 0], reals[:, 0], words[:, 0]
        return pd.DataFrame(dict(zip(MIXED, columns, strict=True)))
    tables = {"bernoulli": flags, "multinomial": counts, "categorical": words, "gaussian": reals}
    return tables[kind].copy()


def labels():
    return np.array(["a", "b", "c"], object)[np.arange(N) % 3]


def make(kind, **parameters):
    fixed = {"families": FAMILIES} if kind == "mixed" else {}
    return configured(CLASSES[kind], **(fixed | parameters))


@cache
def fitted(kind):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "fit_many", really_fit)
        return make(kind).fit(features(kind), labels())


def put(x, i, j, value):
    """A copy with one cell changed, in a table that can hold it."""
    if isinstance(x, pd.DataFrame):
        columns = {name: x[name].astype(object) if k == j else x[name] for k, name in enumerate(x)}
        columns[x.columns[j]].iloc[i] = value
        out = pd.DataFrame(columns)
        return out if isinstance(value, str) else out.infer_objects()
    holds = x.dtype == object or isinstance(value, float | int)
    out = x.astype(object) if not holds else x.astype(x.dtype if x.dtype == object else float)
    out[i, j] = value
    return out


def refuses(match, estimator, *args, **kwargs):
    with pytest.raises(DataError, match=match):
        estimator.fit(*args, **kwargs)


def cell(x, i, j):
    """The beginning of a message about a cell."""
    name = x.columns[j] if isinstance(x, pd.DataFrame) else str(j)
    return f"^X: row {i}, column '{name}' is "


every_kind = pytest.mark.parametrize("kind", KINDS)
ANY = ["noise_alpha", "noise_diagonal", "class_alpha", "weight", "tol"]
GOOD = np.array([[0.8, 0.1, 0.0], [0.1, 0.8, 0.3], [0.1, 0.1, 0.7]])
