"""Settings out of range are refused before anything compiles."""

import re

import numpy as np
import pytest
from refusals import (
    ANY,
    GOOD,
    SPARSE,
    every_kind,
    features,
    forbid_fits,
    labels,
    make,
    refuses,
)
from scipy import sparse


@pytest.fixture(autouse=True)
def no_fit(monkeypatch):
    forbid_fits(monkeypatch)


NO_NUMBER = [-1.0, np.nan, np.inf, "1", None, [1.0]]


@every_kind
@pytest.mark.parametrize("value", NO_NUMBER, ids=repr)
def test_numbers_out_of_range(kind, value):
    names = ANY if kind == "gaussian" else [*ANY, "alpha"]
    for name in names:
        expected = "expected a finite number, 0 or more(, or 'auto')?"
        match = f"^{name}: {expected}; got {re.escape(repr(value))}"
        refuses(match, make(kind, **{name: value}), features(kind), labels())


@every_kind
@pytest.mark.parametrize("value", [-1, 1.5, np.nan, "1", None], ids=repr)
def test_whole_numbers_out_of_range(kind, value):
    for name in ("max_iter", "n_restarts"):
        match = f"^{name}: expected a whole number"
        refuses(match, make(kind, **{name: value}), features(kind), labels())
    refuses("^max_iter: expected a whole", make(kind, max_iter=0), features(kind), labels())


@every_kind
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("method", "em"),
        ("method", None),
        ("precision", "half"),
        ("noise", "diagonal"),
        ("missing_label", ["", "?"]),
        ("missing_values", [np.nan, -1]),
    ],
)
def test_choices(kind, name, value):
    match = f"^{name}: expected .*got {re.escape(repr(value))}"
    refuses(match, make(kind, **{name: value}), features(kind), labels())


@pytest.mark.parametrize("value", ["0", np.nan, np.inf, [0.5]], ids=repr)
def test_binarize(value):
    estimator = make("bernoulli", binarize=value)
    refuses("^binarize: expected a finite number", estimator, features("bernoulli"), labels())


def test_sparse_x_and_what_is_not_stored():
    x = sparse.csr_array(features("bernoulli"))
    refuses(
        "^binarize: must be 0 or more for sparse", make("bernoulli", binarize=-1.0), x, labels()
    )
    for kind in SPARSE:
        refuses("^missing_values: 0 cannot mark", make(kind, missing_values=0), x, labels())


@pytest.mark.parametrize("kind", ["gaussian", "mixed"])
def test_covariance(kind):
    refuses("^covariance: expected", make(kind, covariance="round"), features(kind), labels())


@every_kind
@pytest.mark.parametrize(
    "noise",
    [
        GOOD.T,
        GOOD[:2, :2],
        GOOD[None],
        GOOD * 0.9,
        np.where(GOOD == 0.3, np.nan, GOOD),
        GOOD + np.array([[0, 0, -0.1], [0, 0, 0.1], [0, 0, 0]]),
        None,
        0.2,
        [["a"] * 3] * 3,
        [[1, 0, 0], [0, 1], [0, 0, 1]],
        GOOD * 1j,
    ],
)
def test_noise_matrix(kind, noise):
    refuses("^noise: expected", make(kind, noise=noise), features(kind), labels())


@every_kind
@pytest.mark.parametrize(
    "prior",
    [
        [0.5, 0.5],
        [0.5, 0.5, 0.0],
        [0.6, 0.6, -0.2],
        [0.5, 0.5, np.nan],
        [0.5, 0.3, 0.1],
        [[0.5, 0.3, 0.2]],
        "uniform",
        1.0,
        [[0.5], [0.3, 0.2]],
    ],
)
def test_class_prior(kind, prior):
    refuses("^class_prior: expected", make(kind, class_prior=prior), features(kind), labels())
