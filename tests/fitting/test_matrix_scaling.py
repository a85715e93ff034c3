"""Matrix scaling: taken where one temperature calibrates badly, and the same for new items."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from nbmodels import NoisyLabelClassifier, NoisyLogisticRegression
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.fitting.matrix_scaling import (
    SCALINGS,
    centred,
    matrix_scaling,
    scaled_out_of_fold,
    scalings,
)

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


def test_two_classes_or_many_labels_have_a_temperature():
    assert scalings(3, 600) == SCALINGS
    assert len(scalings(2, 600)) == len(scalings(20, 100_000)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 5])
def test_useless_columns_cost_no_right_labels(seed):
    """The penalty shrank the class in the middle most: up to 16 points of labels were lost."""
    x, true, y = sparse_signal(seed)
    model = NoisyLogisticRegression(random_state=0).fit(x, y)
    assert model.chosen_["scaling"] == "matrix"
    right = np.mean(model.corrected_labels()["suggested"] == true)
    assert right > np.mean(y == true) + 0.02
    logits = x @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.predict_proba(x), softmax(logits, 1), atol=1e-5)
    # rounds that are given ask for the fit as it is
    if seed == 1:
        assert "scaling" not in NoisyLogisticRegression(rounds=0).fit(x, y).chosen_


@pytest.mark.slow
def test_any_classifier_has_it_too():
    x, true, y = sparse_signal(2)
    model = NoisyLabelClassifier(LogisticRegression(C=0.002), random_state=0).fit(x, y)
    assert model.chosen_["scaling"] == "matrix"
    assert np.mean(model.corrected_labels()["suggested"] == true) > np.mean(y == true) + 0.02
    assert np.mean(model.predict(x) == true) > 0.8
