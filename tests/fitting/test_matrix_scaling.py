"""Matrix scaling: taken where one temperature calibrates badly, and the same for new items."""

import warnings

import numpy as np
import pytest
from marks import slow
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from nbmodels import NoisyLabelClassifier, NoisyLogisticRegression
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.errors import NbmodelsWarning
from nbmodels.fitting import nonlinear_ways
from nbmodels.fitting.matrix_scaling import (
    SCALINGS,
    centred,
    learnable,
    matrix_scaling,
    scaled_out_of_fold,
    scalings,
)
from nbmodels.fitting.reference import nonlinear_predictions

K = 3


def sparse_signal(seed, n=600, useless=58):
    """Three classes in a row along two columns, beside many that say nothing."""
    rng = np.random.default_rng(seed)
    true = rng.integers(K, size=n)
    x = rng.normal(size=(n, 2 + useless))
    x[:, 0] += 2 * true
    x[:, 1] -= 1.5 * true
    return x, true, corrupt(true, uniform_noise(K, 0.2), rng)


def shrunk(rng, n=900):
    """Scores of which one class's are shrunk, and labels by the scores as they were."""
    scores = centred(3 * rng.normal(size=(n, K)))
    given = softmax(scores, axis=1).cumsum(1) > rng.random((n, 1))
    return scores * [1.0, 0.2, 1.0], np.eye(K)[given.argmax(1)]


def log_loss(scores, given):
    return -np.mean(np.log(np.sum(given * softmax(scores, axis=1), 1)))


def test_a_class_that_was_shrunk_counts_as_it_did():
    rng = np.random.default_rng(0)
    (scores, given), (others, labels) = shrunk(rng), shrunk(rng)
    scaling = matrix_scaling(scores, given)
    best = min(log_loss(slope * others, labels) for slope in np.geomspace(0.1, 3, 30))
    assert log_loss(scaling.scaled(others), labels) < best - 0.04
    # a constant of a row says nothing
    shift = rng.normal(size=(len(others), 1))
    np.testing.assert_allclose(scaling.scaled(others + shift), scaling.scaled(others))


def test_scores_of_a_fold_have_not_seen_its_labels():
    rng = np.random.default_rng(1)
    scores, given = shrunk(rng, 90)
    fold = np.arange(90) % 3
    other = np.where((fold == 0)[:, None], given[:, ::-1], given)
    found, again = (scaled_out_of_fold(scores, labels, fold) for labels in (given, other))
    np.testing.assert_array_equal(found[fold == 0], again[fold == 0])
    assert not np.allclose(found[fold == 1], again[fold == 1])
    # where no label is known outside of the fold, scores stay
    alone = scaled_out_of_fold(scores, given * (fold == 0)[:, None], fold)
    np.testing.assert_allclose(softmax(alone[fold == 0], 1), softmax(scores[fold == 0], 1))


@pytest.mark.parametrize(("k", "n"), [(2, 100), (3, 100), (6, 300), (13, 300), slow(30, 600)])
def test_where_a_temperature_is_right_a_matrix_costs_little(k, n):
    """With a prior made for three classes 13 lost half a nat a label, and 30 two."""
    rng = np.random.default_rng(k)
    scores = centred(2 * rng.normal(size=(n, k)))
    given = np.eye(k)[(softmax(0.7 * scores, 1).cumsum(1) < rng.random((n, 1))).sum(1)]
    fold = np.arange(n) % 5
    found = log_loss(scaled_out_of_fold(scores, given, fold), given)
    assert found < log_loss(0.7 * scores, given) + 0.04


@pytest.mark.parametrize(("k", "n"), [(3, 300), (13, 1300)])
def test_where_a_matrix_is_right_many_classes_have_it_too(k, n):
    rng = np.random.default_rng(k)
    scores = centred(3 * rng.normal(size=(n, k)))
    given = np.eye(k)[(softmax(scores, 1).cumsum(1) < rng.random((n, 1))).sum(1)]
    # of a third of the classes little is left, and each class holds a part of the next
    seen = scores * np.where(np.arange(k) % 3, 1, 0.2) + 0.3 * np.roll(scores, 1, axis=1)
    found = log_loss(scaled_out_of_fold(seen, given, np.arange(n) % 5), given)
    one = min(log_loss(slope * seen, given) for slope in np.geomspace(0.1, 3, 30))
    assert found < one - 0.6 * (one - log_loss(scores, given))


def test_the_level_of_log_probabilities_says_something_where_it_is_to():
    """Rows whose probabilities are all sure or all open: classes differ in how often."""
    rng = np.random.default_rng(0)
    y, n = np.arange(400) % 2, 400
    sure = np.where(rng.random(n) < np.where(y, 0.9, 0.1), 4.0, 1.0)
    logs = log_softmax(np.stack([sure, -sure], 1) * rng.choice([-1, 1], (n, 1)), axis=1)
    given, fold = np.eye(2)[y], np.arange(n) // 2 % 5
    without, within = (
        log_loss(scaled_out_of_fold(logs, given, fold, levels=levels), given)
        for levels in (False, True)
    )
    assert without > 0.68
    assert within < 0.4


def test_a_reference_of_any_number_of_classes_is_recalibrated():
    for k in (2, 13, 70):
        rng = np.random.default_rng(k)
        codes = np.append(rng.permutation(np.arange(279) % k), -1)
        reference = nonlinear_predictions(rng.normal(size=(280, 3)) + codes[:, None], codes, k)
        logs = reference.recalibrated(codes)
        np.testing.assert_array_equal(np.isnan(logs), codes < 0)
        assert np.nanmean(logs) > np.nanmean(reference.held_out) - 0.05
        # too many classes for a matrix have the temperature
        assert learnable(k) == (k < 70)
        assert learnable(k) or np.array_equal(logs, reference.held_out, equal_nan=True)


def test_a_class_without_labels_and_weights_of_labels():
    rng = np.random.default_rng(3)
    scores, given = shrunk(rng, 90)
    given[:, 2] = 0
    twice = matrix_scaling(np.vstack([scores, scores]), np.vstack([given, given]))
    weighted = matrix_scaling(scores, 2 * given)
    np.testing.assert_allclose(twice.matrix, weighted.matrix, atol=1e-6)
    assert np.isfinite(weighted.bias).all()


def test_a_matrix_that_finds_nothing_is_a_temperature():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(400, K)), np.repeat(np.arange(K), [90, 120, 190])
    # as scores that say nothing do where each label was held out
    found = matrix_scaling(scores - 0.1 * np.eye(K)[labels], np.eye(K)[labels])
    np.testing.assert_allclose(found.matrix, found.matrix[0, 0] * np.eye(K), atol=1e-12)
    np.testing.assert_array_equal(found.bias, 0)
    assert found.matrix[0, 0] > 0
    # a class that most labels are of may be predicted for everything
    most = np.repeat(np.arange(K), [20, 30, 350])
    biased = matrix_scaling(scores, np.eye(K)[rng.permutation(most)])
    assert biased.bias[2] > biased.bias[:2].max() + 1


def test_scores_without_a_difference_stay_so():
    found = matrix_scaling(np.zeros((40, K)), np.eye(K)[np.arange(40) % K], levels=True)
    np.testing.assert_allclose(found.scaled(np.zeros((2, K))), 0, atol=0.1)


def test_two_classes_or_many_labels_have_a_temperature():
    assert scalings(3, 600) == SCALINGS
    assert len(scalings(2, 600)) == len(scalings(20, 100_000)) == 1


@pytest.mark.slow
def test_features_in_which_a_linear_model_finds_nothing_do_not_make_it_constant():
    """Classes are rings: the matrix of a regression was all bias, and predicted one class."""
    rng = np.random.default_rng(90)
    true, angle = rng.integers(K, size=600), rng.uniform(0, 2 * np.pi, 600)
    radius = 1 + true + 0.2 * rng.normal(size=600)
    x = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), rng.normal(size=(600, 2))])
    y = corrupt(true, uniform_noise(K, 0.2), rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        model = NoisyLogisticRegression(random_state=0).fit(x, y)
    assert np.bincount(model.predict(x), minlength=K).min() > 0


@pytest.fixture
def by_all_columns(monkeypatch):
    """The classifier that fits are compared with selects no columns.

    Kernels of informative columns predict these labels better than any regression of all columns,
    and hardly distinguish noise from overlap.
    """
    monkeypatch.setattr(nonlinear_ways, "SURELY_BETTER", np.inf)


@pytest.mark.slow
def test_useless_columns_cost_no_right_labels(by_all_columns):
    """The penalty shrank the class in the middle most: up to 16 points of labels were lost."""
    x, true, y = sparse_signal(1)
    model = NoisyLogisticRegression(random_state=0).fit(x, y)
    assert model.chosen_["scaling"] == "matrix"
    right = np.mean(model.corrected_labels()["suggested"] == true)
    assert right > np.mean(y == true) + 0.02
    logits = x @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.predict_proba(x), softmax(logits, 1), atol=1e-5)
    # rounds that are given ask for the fit as it is
    with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):  # a poor one
        assert "scaling" not in NoisyLogisticRegression(rounds=0).fit(x, y).chosen_


@pytest.mark.slow
def test_kernels_of_informative_columns_cost_no_right_labels():
    """They predict better, do not show whether labels are wrong, and change none."""
    x, true, y = sparse_signal(2)
    model = NoisyLogisticRegression(random_state=0).fit(x, y)
    assert model.chosen_["predictions"] == "nonlinear classifier"
    assert np.mean(model.predict(x) == true) > np.mean(y == true) + 0.02
    assert np.mean(model.corrected_labels()["suggested"] == true) >= np.mean(y == true)


@pytest.mark.slow
def test_any_classifier_has_it_too(by_all_columns):
    x, true, y = sparse_signal(2)
    model = NoisyLabelClassifier(LogisticRegression(C=0.002), random_state=0).fit(x, y)
    assert model.chosen_["scaling"] == "matrix"
    assert np.mean(model.corrected_labels()["suggested"] == true) > np.mean(y == true) + 0.02
    assert np.mean(model.predict(x) == true) > 0.8
