"""The shape of the classes, a second witness where errors may follow the features."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from nbmodels import NbmodelsWarning, NoisyGaussianNB, NoisyLogisticRegression
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.diagnostics.checks.checked import CheckedEnds
from nbmodels.diagnostics.checks.ends import CHECKS, Ends
from nbmodels.diagnostics.findings import SHAPE
from nbmodels.fitting.class_shapes import share_wrong_by_shape

K = 3


def groups(rng, apart, n=600, d=6):
    """Normal classes, and how much nearer an item is to its own than to the next one."""
    true = rng.integers(K, size=n)
    means = apart * rng.normal(size=(K, d))
    x = means[true] + rng.normal(size=(n, d))
    gaps = np.square(x[:, None] - means).sum(2)
    own = gaps[np.arange(n), true]
    gaps[np.arange(n), true] = np.inf
    return x, true, gaps.argmin(1), gaps.min(1) - own


def near_borders(rng, true, other, margin, share=0.2):
    """Wrong labels, the oftener the nearer an item is to another class."""
    rank = margin.argsort().argsort() / len(true)
    return np.where(rng.random(len(true)) < 2 * share * (1 - rank), other, true)


def by_shape(x, given):
    return share_wrong_by_shape(x, given, K, np.ones(len(given)))


@pytest.mark.parametrize("seed", [0, 1])
def test_errors_near_borders_leave_the_gaps_between_classes(seed):
    rng = np.random.default_rng(seed)
    x, *about = groups(rng, 1.5)
    true = about[0]
    assert by_shape(x, true) < 0.02
    for given in (near_borders(rng, *about), corrupt(true, uniform_noise(K, 0.2), rng)):
        assert abs(by_shape(x, given) - np.mean(given != true)) < 0.08


@pytest.mark.parametrize("seed", [0, 1])
def test_overlap_fills_them(seed):
    x, true, *_ = groups(np.random.default_rng(seed), 0.6)
    assert not by_shape(x, true) > 0.08  # or it cannot tell


def test_it_says_nothing_of_few_labels_many_classes_or_other_classes():
    x, true, *_ = groups(np.random.default_rng(0), 1.0)
    assert np.isnan(share_wrong_by_shape(x[:20], true[:20], K, np.ones(20)))
    assert np.isnan(share_wrong_by_shape(x, true, 30, np.ones(600)))
    assert np.isnan(share_wrong_by_shape(x[:, :0], true, K, np.ones(600)))
    assert by_shape(sparse.csr_array(x), true) < 0.05  # cells below zero are no words
    assert np.isfinite(by_shape(x, np.where(np.arange(600) % 5 == 0, -1, true)))


@pytest.mark.parametrize(
    ("ends", "bad"),
    [
        ((0.01, 0.2, 0.03, 0.12), True),
        ((0.01, 0.2, 0.03, 0.03), False),  # no errors by the shape
        ((0.01, 0.2, 0.06, 0.18), False),  # the matrix says as much
        ((0.01, 0.04, 0.01, 0.12), False),  # no error by the neighbours
        ((0.01, 0.2, 0.03, np.nan), None),
    ],
)
def test_both_witnesses_must_speak(ends, bad):
    (check,) = [one for one in CHECKS if one.name == SHAPE]
    independent, separable, matrix, shape = ends
    none = np.zeros(400)
    about = independent, separable, none, none, np.ones(400)
    found = check.run(Ends(*about, matrix=matrix, shape=shape))
    assert (None if found is None else found.bad) == bad
    if bad:
        assert found.share_only
        checked = CheckedEnds(np.arange(100) < 1, np.full(100, 0.01), np.full(100, 0.2))
        assert not check.run(Ends(*about, checked, matrix=matrix, shape=shape)).bad


@pytest.mark.parametrize(
    ("ends", "by_fit", "bad"),
    [
        ((0.25, 0.2, 0.3, 0.0), 0.15, True),
        ((0.25, 0.2, 0.3, 0.0), 0.0, False),  # of none the fit is sure
        ((0.25, 0.2, 0.3, 0.12), 0.15, False),  # many are changed
        ((0.05, 0.2, 0.3, 0.0), 0.15, False),  # near items are of one class
        ((0.25, 0.05, 0.3, 0.0), 0.15, False),  # classes overlap by their shape
        ((0.25, 0.2, 0.08, 0.0), 0.15, False),  # a nonlinear classifier predicts the labels
        ((0.25, 0.2, np.nan, 0.0), 0.15, True),
        ((0.25, np.nan, 0.3, 0.0), 0.15, None),
    ],
)
def test_labels_that_stay_are_named_where_all_witnesses_have_them_wrong(ends, by_fit, bad):
    (check,) = [one for one in CHECKS if one.name == "labels that stay"]
    separable, shape, contradicted, changed = ends
    none = np.zeros(400)
    more = {"shape": shape, "changed": changed, "contradicted": contradicted}
    about = 0.1, separable, none, none, np.ones(400)
    found = check.run(Ends(*about, by_fit=by_fit, **more))
    assert (None if found is None else found.bad) == bad
    if bad:
        assert found.share_only
        assert "20.0 % or more are wrong" in found.sentence
        checked = CheckedEnds(np.arange(100) < 1, np.full(100, 0.01), np.full(100, 0.2))
        assert not check.run(Ends(*about, checked, by_fit=by_fit, **more)).bad


def warned(estimator, x, given):
    with warnings.catch_warnings(record=True, action="always") as caught:
        estimator.fit(x, given)
    return [str(w.message) for w in caught if issubclass(w.category, NbmodelsWarning)]


def test_a_fit_that_takes_errors_for_overlap_warns():
    """The matrix holds hardly an error, though a fifth of the labels is wrong; it was silent."""
    rng = np.random.default_rng(5)
    x, *about = groups(rng, 1.5)
    e = NoisyGaussianNB(random_state=0)
    (said,) = warned(e, x, near_borders(rng, *about))
    assert said.startswith("Do not rely on this fit's share of wrong labels")
    assert "errors seem to follow the features" in said
    assert np.diag(e.noise_matrix_).min() > 0.9
    assert not warned(e, x, about[0])


def test_overlap_of_right_labels_is_no_reason_to_warn():
    x, true, *_ = groups(np.random.default_rng(5), 0.6, n=400)
    assert not warned(NoisyLogisticRegression(random_state=0), x, true)
