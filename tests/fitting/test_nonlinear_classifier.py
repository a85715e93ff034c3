"""A nonlinear classifier of the features, by which new items are predicted."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_circles
from sklearn.linear_model import LogisticRegression

from nbmodels import (
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
)
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.fitting.nonlinear_classifier import Ranks, bases, shares_below
from nbmodels.fitting.nonlinear_ways import least_squares
from nbmodels.fitting.points import point_coding
from nbmodels.fitting.reference import (
    completed,
    learned_from_all,
    nonlinear_classifier,
    nonlinear_predictions,
)
from nbmodels.fitting.screened_columns import ColumnLevels, screened_predictions


def rings(rng, n=400):
    """A class within another one, which no linear function of the columns tells apart."""
    true = np.arange(n) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1 + 1.5 * true + 0.15 * rng.normal(size=n)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1), true


def codes_of_places(rng, n=400):
    """Whole numbers of which near ones are not alike."""
    tables = np.stack([np.random.default_rng(9).permutation(12) for _ in range(4)])
    x = rng.integers(12, size=(n, 4))
    votes = np.stack([tables[j, x[:, j]] % 3 for j in range(4)], 1)
    true = np.array([np.bincount(row, minlength=3).argmax() for row in votes])
    return x.astype(float), true


@pytest.mark.parametrize("step", [1, 3])
def test_bases_of_the_rows_they_were_learned_from_are_the_same(step):
    rng = np.random.default_rng(0)
    x = np.hstack([rng.normal(size=(300, 3)), rng.integers(4, size=(300, 2))])
    shares = shares_below(x)
    ranks = Ranks.of(x, shares)
    np.testing.assert_allclose(ranks(x[::step]), shares[::step])
    found = list(bases(x, shares, rng))
    assert len(found) == 5
    for basis, values in found:
        np.testing.assert_allclose(basis(x[::step], ranks(x)[::step]), values[::step], atol=1e-9)


def test_ranks_of_new_cells_lie_between_those_around_them():
    x = np.arange(2000.0)[:, None]
    ranks = Ranks.of(x, shares_below(x))
    assert len(ranks.values[0]) < 1000
    np.testing.assert_allclose(ranks(x), shares_below(x), atol=1e-3)
    np.testing.assert_allclose(ranks(np.array([[-1e9], [1e9]]))[:, 0], [0.5 / 2000, 1 - 0.5 / 2000])


def test_a_frequent_value_between_many_others_keeps_its_rank():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 1))
    x[:1500] = 0.01
    ranks = Ranks.of(x, shares_below(x))
    np.testing.assert_allclose(ranks(x), shares_below(x), atol=2e-3)


@pytest.mark.parametrize("world", [rings, codes_of_places])
def test_new_rows_are_predicted_as_well_as_held_out_ones(world):
    rng = np.random.default_rng(1)
    x, true = world(rng)
    codes = np.where(np.arange(len(true)) % 10 == 0, -1, true)  # of some no label is known
    coding = point_coding(x)
    points, k = coding(x), true.max() + 1
    reference = nonlinear_predictions(points, codes, k)
    learned = nonlinear_classifier(reference, coding, points, codes)
    new, truth = world(rng, 2000)
    logs = learned.log_probabilities(new)
    np.testing.assert_allclose(np.exp(logs).sum(1), 1)
    known = codes >= 0
    held_out = np.mean(reference.classes[known] == true[known])
    assert held_out > 0.85
    assert np.mean(logs.argmax(1) == truth) == pytest.approx(held_out, abs=0.05)
    # whatever else is asked for
    np.testing.assert_allclose(learned.log_probabilities(new[:3]), logs[:3], atol=1e-9)
    again = pickle.loads(pickle.dumps(learned))
    np.testing.assert_array_equal(again.log_probabilities(new), logs)


@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
def test_new_items_are_predicted_by_the_classifier_that_predicts_labels_surely_better():
    rng = np.random.default_rng(2)
    x, true = rings(rng)
    y = np.array(["in", "out"])[corrupt(true, uniform_noise(2, 0.2), rng)]
    new, truth = rings(rng, 1000)
    model = NoisyLogisticRegression(random_state=0).fit(x, y)
    assert model.chosen_["predictions"] == "nonlinear classifier"
    assert np.mean(model.predict(new) == np.array(["in", "out"])[truth]) > 0.95
    assert "predictions of a nonlinear classifier" in {f.name for f in model.verdict().findings}
    # the features were not informative, so that nothing was known of the noise
    assert model.noise_range_.share[0] < np.mean(y != np.array(["in", "out"])[true])
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(new), model.predict(new))
    # the coefficients are still the regression's
    assert model.coef_.shape == (1, 2)


@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        NoisyLogisticRegression(rounds=0, random_state=0),  # what was asked for
        NoisyGaussianNB.published(),
        NoisyLabelClassifier(LogisticRegression(), random_state=0),  # the user's own
    ],
)
def test_what_was_asked_for_predicts(estimator):
    rng = np.random.default_rng(2)
    x, true = rings(rng)
    y = corrupt(true, uniform_noise(2, 0.2), rng)
    model = estimator.fit(x, y)
    assert "predictions" not in model.chosen_
    assert np.mean(model.predict(x) == true) < 0.85


@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
def test_a_model_that_fits_predicts():
    rng = np.random.default_rng(3)
    true = rng.integers(3, size=300)
    x = 2.5 * np.eye(3)[true] @ rng.normal(size=(3, 4)) + rng.normal(size=(300, 4))
    y = corrupt(true, uniform_noise(3, 0.2), rng)
    for estimator in (NoisyGaussianNB(random_state=0), NoisyLogisticRegression(random_state=0)):
        assert "predictions" not in estimator.fit(x, y).chosen_


def test_rows_that_were_not_looked_at_are_predicted_by_the_others_labels():
    rng = np.random.default_rng(4)
    x, true = rings(rng, 11_000)
    points = point_coding(x)(x)
    some = nonlinear_predictions(points, true, 2)
    assert not some.complete
    found = completed(some, points, true)
    looked_at = some.fold >= 0
    assert looked_at.sum() == 10_000
    np.testing.assert_array_equal(found.logs[looked_at], some.logs[looked_at])
    assert np.mean(found.logs[~looked_at].argmax(1) == true[~looked_at]) > 0.98
    assert completed(found, points, true) is found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
def test_labels_of_many_rows_are_those_on_its_scores_too():
    """Heavy tails, 12,000 rows: labels were 2 points worse than the given ones, in silence."""
    rng = np.random.default_rng(5)
    true = rng.integers(3, size=12_000)
    x = rng.normal(0, 1.8, (3, 5))[true] + rng.standard_t(2, size=(12_000, 5))
    y = corrupt(true, uniform_noise(3, 0.2), rng)
    model = NoisyGaussianNB(random_state=0).fit(x, y)
    assert model.chosen_["scores"] == "nonlinear classifier"
    assert np.mean(model.corrected_labels()["suggested"] == true) > np.mean(y == true) + 0.04


def test_a_row_of_weight_three_is_three_rows():
    """Of least squares on columns, and on their levels."""
    rng = np.random.default_rng(3)
    x, true = codes_of_places(rng, 150)
    weights, fold = rng.integers(1, 4, 150), np.arange(150) % 5
    target, shares = np.eye(3)[true], shares_below(x)
    levels = ColumnLevels.of(shares)[0]
    at = np.repeat(np.arange(150), weights)
    for learn, rows in (
        (least_squares, x),
        (partial(screened_predictions, levels=levels), shares),
    ):
        whole = learn(rows, target=target, fold=fold, weights=weights)
        each = learn(rows[at], target=target[at], fold=fold[at], weights=np.ones(len(at)))
        np.testing.assert_allclose(whole[at], each, atol=1e-9)


def test_rows_that_hardly_count_do_not_decide_predictions():
    """Most rows are of another source, by whose labels a class lies within the other."""
    rng = np.random.default_rng(1)
    x, new = rng.normal(size=(900, 2)), rng.normal(size=(500, 2))
    own = np.arange(900) < 200
    y = np.where(own, x[:, 0] > 0, np.square(x).sum(1) > 1.4)
    model = NoisyLogisticRegression(random_state=0)
    model.fit(x, y, sample_weight=np.where(own, 1, 1e-3))
    assert np.mean(model.predict(new) == (new[:, 0] > 0)) > 0.9


def test_predictions_are_learned_from_checked_labels():
    """Labels within a circle are all wrong, as checks of most rows show."""
    rng = np.random.default_rng(4)
    x, new = rng.normal(size=(600, 2)), rng.normal(size=(1000, 2))
    true = x[:, 0] > 0
    y = np.where(np.square(x).sum(1) < 0.8, ~true, true)
    trusted = dict(enumerate(true[:500].tolist()))
    model = NoisyLogisticRegression(random_state=0).fit(x, y, trusted=trusted)
    assert np.mean(model.predict(new) == (new[:, 0] > 0)) > 0.95
    assert np.mean(model.classes_[model.label_posterior_.argmax(1)] == true) > 0.98


def test_checks_show_the_noise_on_the_scores_of_what_they_taught():
    """Few labels contradict a classifier that learned them, and many one that knows better."""
    x, true = make_circles(600, noise=0.15, factor=0.5, random_state=11)
    y = np.where(np.random.default_rng(11).random(600) < 0.2, 1 - true, true)
    trusted = dict(enumerate(true[:480].tolist()))
    model = NoisyLogisticRegression(random_state=0).fit(x, y, trusted=trusted)
    assert model.chosen_["scores"] == "nonlinear classifier"
    assert np.mean(model.label_posterior_.argmax(1)[480:] == true[480:]) > 0.9


def test_it_learns_again_from_the_classes_that_were_found():
    """Three rings; to one slope for all classes the middle one is never the likeliest."""
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=600)
    angle, radius = rng.uniform(0, 2 * np.pi, 600), 1 + true + 0.25 * rng.normal(size=600)
    x = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    codes = np.where(rng.random(600) < 0.3, (true + 1) % 3, true)
    train, new = slice(300), slice(300, 600)
    classes = 0.9 * np.eye(3)[true[train]] + 0.1 / 3
    reference = nonlinear_predictions(x[train], codes[train], 3)
    about = reference, lambda rows, missing: rows, x[train], codes[train], None, np.ones(300)
    found, instead = learned_from_all(*about, classes=classes), learned_from_all(*about)
    np.testing.assert_array_equal(found[1], instead[1])  # predictions of the labels, out of fold
    logs, before = (one.log_probabilities(x[new]) for one, _ in (found, instead))
    np.testing.assert_allclose(np.exp(logs).sum(1), 1)
    rows = np.arange(300), true[new]
    assert np.mean(logs.argmax(1) == true[new]) > 0.9
    assert logs[rows].mean() > before[rows].mean() + 0.3
    assert found[0].scaling is not None
