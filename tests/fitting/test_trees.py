"""Trees beside a nonlinear classifier in closed form, where classes are thresholds of columns."""

import pickle
import warnings

import numpy as np
import pytest

from nbmodels import NoisyGaussianNB, NoisyLogisticRegression
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.errors import NbmodelsWarning, VerdictWarning
from nbmodels.fitting import changed_labels, trees
from nbmodels.fitting.nonlinear_classifier import shares_below
from nbmodels.fitting.reference import nonlinear_classifier, nonlinear_predictions
from nbmodels.fitting.trees import Trees

K = 3


def thresholds(rng, n, useless=15):
    x = rng.normal(size=(n, 3 + useless))
    return x, np.where(x[:, 0] > 0, np.where(x[:, 1] > 0.3, 0, 1), np.where(x[:, 2] > -0.3, 1, 2))


def normal(rng, n, columns=6):
    true = np.arange(n) % K
    return rng.normal(size=(n, columns)) + rng.normal(size=(K, columns))[true], true


def noisy(true, rng, rate=0.2):
    return corrupt(true, uniform_noise(K, rate), rng)


def learned(x, target, weights=None):
    own = np.ones(len(x)) if weights is None else weights
    return Trees.learned(shares_below(x), target, own, 10)


def test_thresholds_beside_useless_columns_are_found(monkeypatch):
    rng = np.random.default_rng(0)
    x, true = thresholds(rng, 300)
    given = noisy(true, rng)
    found = nonlinear_predictions(x, given, K)
    assert np.mean(found.classes == true) > 0.85
    new, expected = thresholds(rng, 500)
    classifier = nonlinear_classifier(found, lambda x, _: x, x, given)
    logs = classifier.of_points(new)
    assert np.mean(logs.argmax(1) == expected) > 0.85
    np.testing.assert_allclose(np.exp(logs).sum(1), 1)
    kept = pickle.loads(pickle.dumps(classifier.basis))
    shares = classifier.ranks(new)
    np.testing.assert_array_equal(kept(new, shares), classifier.basis(new, shares))
    monkeypatch.setattr(trees, "_MORE", np.inf)
    without = nonlinear_predictions(x, given, K)
    assert np.mean(without.classes == true) < np.mean(found.classes == true) - 0.05


def test_new_rows_are_predicted_by_trees():
    """A random forest of the given labels predicts 92 of 100."""
    rng = np.random.default_rng(1)
    x, true = thresholds(rng, 400)
    new, expected = thresholds(rng, 500)
    model = NoisyLogisticRegression(random_state=0).fit(x, noisy(true, rng))
    assert model.chosen_["predictions"] == "nonlinear classifier"
    assert np.mean(model.predict(new) == expected) > 0.9
    # rows that were learned from are not predicted as they are labelled
    assert np.mean(model.predict(x) == true) > 0.9


def test_a_joint_model_that_predicts_labels_surely_worse_is_not_taken(monkeypatch):
    """It had 90 of 100 labels right and predicted 74 of new rows."""
    rng = np.random.default_rng(0)
    x, true = thresholds(rng, 400)
    new, expected = thresholds(rng, 500)
    given = noisy(true, rng)
    model = NoisyGaussianNB(random_state=0).fit(x, given)
    assert "training" not in model.chosen_
    assert np.mean(model.predict(new) == expected) > 0.88
    assert np.mean(model.corrected_labels()["suggested"] == true) > 0.92
    # of many rows, for which nothing is compared before, a caution states it
    monkeypatch.setattr(changed_labels, "poorer_jointly", lambda *_: None)
    with warnings.catch_warnings(record=True, action="always", category=VerdictWarning) as seen:
        jointly = NoisyGaussianNB(random_state=0).fit(x, given)
    assert jointly.chosen_["training"] == "joint"
    assert any("fitted jointly, under which held-out" in str(one.message) for one in seen)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_joint_model_that_fits_stays_beside_errors_by_the_features(seed):
    """Which the classifier of the given labels learns, so that it gives these more probability."""
    rng = np.random.default_rng(seed)
    true = np.arange(300) % K
    means = 2.0 * np.eye(K)
    x = means[true] + rng.normal(size=(300, K))
    away = np.square(x[:, None] - means).sum(2)
    away[np.arange(300), true] = np.inf
    near = np.argsort(away.min(1))[:60]
    given = true.copy()
    given[near] = away[near].argmin(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        model = NoisyGaussianNB(random_state=0).fit(x, given)
    assert model.chosen_["training"] == "joint"
    assert not any("fitted jointly" in one.message for one in model.fitted_.cautions)


@pytest.mark.slow
def test_smooth_classes_are_predicted_without(monkeypatch):
    """Trees that add little blur borders, and noise on their scores is understated."""
    tables = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x, true = normal(rng, 300)
        tables.append((x, noisy(true, rng)))

    def taken():
        return sum(
            nonlinear_predictions(*one, K).learn.func.__module__ == trees.__name__ for one in tables
        )

    assert taken() <= 1
    monkeypatch.setattr(trees, "_MORE", 0.0)
    monkeypatch.setattr(trees, "_SURELY", 0.0)
    assert taken() > 2


def test_the_order_of_columns_does_not_matter():
    rng = np.random.default_rng(2)
    x, true = thresholds(rng, 200)
    order = rng.permutation(x.shape[1])
    shares, target = shares_below(x), np.eye(K)[true]
    found, other = learned(x, target), learned(x[:, order], target)
    np.testing.assert_allclose(found(x, shares), other(x[:, order], shares[:, order]))


def test_a_row_of_weight_three_is_three_rows():
    rng = np.random.default_rng(3)
    x, true = thresholds(rng, 200, 2)
    count = rng.integers(4, size=200)
    target, shares = np.eye(K)[true], shares_below(x)
    at = np.repeat(np.arange(200), count)
    found = Trees.learned(shares, target, count.astype(float), 10)
    rows = Trees.learned(shares[at], target[at], np.ones(len(at)), 10)
    np.testing.assert_allclose(found(x, shares), rows(x, shares))
    assert np.abs(found(x, shares) - learned(x, target)(x, shares)).max() > 0.1


def test_classes_that_are_known_in_part_teach():
    rng = np.random.default_rng(4)
    x, true = thresholds(rng, 400)
    shown = 0.55 * np.eye(K)[true] + 0.15
    new, expected = thresholds(rng, 300)
    found = nonlinear_predictions(x, true, K, known=shown)
    classifier = nonlinear_classifier(found, lambda x, _: x, x, true, known=shown)
    assert np.mean(classifier.of_points(new).argmax(1) == expected) > 0.9


def test_many_rows_are_looked_at_in_part(monkeypatch):
    """Trees of 10,000 rows take seconds, which are well spent only where these are better."""
    rng = np.random.default_rng(5)
    x, true = normal(rng, 6_000, 30)
    rows, own = [], Trees.learned

    def counted(shares, *about):
        rows.append(len(shares))
        return own(shares, *about)

    monkeypatch.setattr(Trees, "learned", counted)
    nonlinear_predictions(x, noisy(true, rng), K)
    assert 0 < max(rows) < 3_000
