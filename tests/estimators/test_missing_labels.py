"""Labels that are missing by the class of an item, by its features, or at random."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from nbmodels import (
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
    NoisyNeighbours,
    PartialLabelNB,
)
from nbmodels.estimators import labelled_by_class
from nbmodels.estimators.labelled_by_class import FINDING

NAMES = np.array(["a", "b", "c"], object)


def fitted(rates, seed=0, n=500):
    """A fit to overlapping classes, of which items are labelled with these probabilities."""
    rng = np.random.default_rng(seed)
    true = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    x = rng.normal(size=(n, 4)) + 1.2 * np.eye(3, 4)[true]
    y = np.where(rng.random(n) < rates(true, x), NAMES[true], None)
    model = PartialLabelNB(features="gaussian", random_state=0).fit(x, y)
    found = [one for one in model.verdict().findings if one.name == FINDING]
    return model, found[0].sentence if found else "", np.mean(model.predict(x) == NAMES[true])


@pytest.mark.slow
def test_a_class_that_is_labelled_more_often_does_not_draw_the_others():
    """Taken for missing at random, the class shares were .34, .18 and .48, and .60 right."""
    found = [fitted(lambda true, _: np.array([0.1, 0.1, 0.7])[true], seed) for seed in range(4)]
    shares = np.mean([model.class_prior_ for model, *_ in found], 0)
    np.testing.assert_allclose(shares, [0.5, 0.3, 0.2], atol=0.1)
    assert np.mean([right for *_, right in found]) > 0.65
    assert sum("not missing at random" in sentence for _, sentence, _ in found) >= 3
    assert "of the items of class 'c' have one" in found[0][1]


@pytest.mark.slow
def test_labels_that_are_missing_by_the_features_stay_missing_at_random():
    found = [fitted(lambda _, x: 1 / (1 + np.exp(1.5 - 2.5 * x[:, 2])), seed) for seed in range(4)]
    for model, sentence, _ in found:
        assert "labelled" not in model.fit_.model
        np.testing.assert_allclose(model.class_prior_, [0.5, 0.3, 0.2], atol=0.12)
        assert "not missing at random" not in sentence
    assert sum("depends on its features" in sentence for _, sentence, _ in found) >= 2


@pytest.mark.slow
def test_labels_that_are_missing_at_random_are_taken_for_that():
    assert not any(fitted(lambda true, _: np.full(len(true), 0.2), seed)[1] for seed in range(4))


# class shares of classes that overlap mix slowly
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.PosteriorWarning")
def test_draws_have_the_rates():
    model, _, _ = fitted(lambda true, _: np.array([0.1, 0.1, 0.7])[true])
    draws = model.posterior()["posterior"]["labelled_transition"]
    assert draws.dims == ("chain", "draw", "true_class", "labelled_labelled")
    assert float(draws.isel(labelled_labelled=1).sel(true_class="c").mean()) > 0.4


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ml", "map", "vb"])
def test_most_labels_are_there_at_random(method):
    """Of maximum likelihood, the rates have no prior that would speak for or against them."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        true = rng.choice(3, 1500, p=[0.5, 0.3, 0.2])
        x = rng.normal(size=(1500, 4)) + 1.2 * np.eye(3, 4)[true]
        y = np.where(rng.random(1500) < 0.97, NAMES[true], None)
        model = PartialLabelNB(features="gaussian", estimator="em", solver=method).fit(x, y)
        assert "labelled" not in model.fit_.model


def noisy(rates, seed, n=600):
    """Features, true classes, and labels of which a tenth is wrong and some are missing."""
    rng = np.random.default_rng(seed)
    true = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    x = rng.normal(size=(n, 4)) + 1.2 * np.eye(3, 4)[true]
    y = np.where(rng.random(n) < 0.1, (true + 1) % 3, true)
    return x, true, np.where(rng.random(n) < rates[true], y, -1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [NoisyGaussianNB, NoisyLogisticRegression, NoisyLabelClassifier])
def test_noisy_labels_are_missing_by_the_class_too(kind):
    """Taken for missing at random, 62 to 64 % of the predictions were right."""
    right, plain, shares, found = [], [], [], []
    for seed in range(4):
        x, true, y = noisy(np.array([0.1, 0.2, 0.8]), seed)
        model = kind(missing_label=-1, random_state=0).fit(x, y)
        right.append(np.mean(model.predict(x) == true))
        plain.append(np.mean(LogisticRegression().fit(x[y >= 0], y[y >= 0]).predict(x) == true))
        shares.append(model.class_prior_)
        found.append("labelled" in model.fit_.model)
    assert sum(found) >= 3
    assert np.mean(right) > np.mean(plain) + 0.03
    np.testing.assert_allclose(np.mean(shares, 0), [0.5, 0.3, 0.2], atol=0.12)


def test_a_training_that_was_asked_for_stays_as_it_is():
    """Of the model as published nothing is selected."""
    x, _, y = noisy(np.array([0.1, 0.2, 0.8]), 1)
    for model in (NoisyGaussianNB.published(), NoisyGaussianNB(training="joint")):
        assert "labelled" not in model.set_params(missing_label=-1).fit(x, y).fit_.model


def test_folds_keep_groups_unless_one_outcome_would_be_alone():
    labelled = np.repeat([True, False], [40, 60])
    groups = np.concatenate([np.arange(100) // 4 * 4])
    fold = labelled_by_class._folds(labelled, groups)
    assert all(len(np.unique(fold[groups == g])) == 1 for g in np.unique(groups))
    together = np.concatenate([np.zeros(40, int), np.arange(40, 100)])  # all that have a label
    fold = labelled_by_class._folds(labelled, together)
    assert all(len(np.unique(labelled[fold != f])) == 2 for f in range(5))


@pytest.mark.slow
def test_shares_that_are_known_are_those_of_all_items():
    """Taken for those of the labelled ones, 57, 66 and 73 % of the predictions were right."""
    for seed in range(3):
        x, true, y = noisy(np.array([0.1, 0.2, 0.8]), seed)
        about = {"class_prior": [0.5, 0.3, 0.2], "missing_label": -1}
        model = NoisyLogisticRegression(**about).fit(x, y)
        assert np.mean(model.predict(x) == true) > 0.68
        assert model.verdict().ok


# classes that overlap are noise to neighbours
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:labels and features cannot tell")
@pytest.mark.parametrize("kind", [NoisyGaussianNB, NoisyLogisticRegression, NoisyNeighbours])
def test_noisy_labels_that_are_missing_at_random_stay_so(kind):
    for seed in range(4):
        x, _, y = noisy(np.full(3, 0.3), seed)
        assert "labelled" not in kind(missing_label=-1, random_state=0).fit(x, y).fit_.model


@pytest.mark.slow
@pytest.mark.parametrize(
    "base",
    [GaussianNB(priors=[0.5, 0.3, 0.2]), LogisticRegression(class_weight={0: 2, 1: 1, 2: 1})],
)
def test_which_rows_are_labelled_is_no_question_to_the_classifier_of_the_classes(base):
    """It may know the classes' number, or weigh them."""
    x, _, y = noisy(np.array([0.1, 0.2, 0.8]), 1)
    model = NoisyLabelClassifier(base, missing_label=-1, random_state=0).fit(x, y)
    assert "labelled" in model.fit_.model


@pytest.mark.slow
@pytest.mark.parametrize("order", ["sorted", "weightless"])
def test_rows_in_order_and_without_weight_change_nothing(order):
    rng = np.random.default_rng(0)
    true = rng.choice(3, 600, p=[0.5, 0.3, 0.2])
    x = rng.normal(size=(600, 4)) + 1.2 * np.eye(3, 4)[true]
    labelled = rng.random(600) < 1 / (1 + np.exp(1.5 - 2.5 * x[:, 0]))
    y, weights = np.where(labelled, true, -1), np.ones(600)
    if order == "sorted":
        at = np.argsort(true)
        x, y = x[at], y[at]
    else:  # as many, of which the others are labelled
        x, y = np.concatenate([x, x]), np.concatenate([y, np.where(labelled, -1, true)])
        weights = np.repeat([1, 0], 600)
    model = NoisyLogisticRegression(missing_label=-1, random_state=0)
    assert "labelled" not in model.fit(x, y, sample_weight=weights).fit_.model


@pytest.mark.slow
def test_what_was_learned_for_rates_that_are_refused_is_not_kept(monkeypatch):
    """New rows are read by the regression of the fit that is kept."""
    x, _, y = noisy(np.array([0.1, 0.2, 0.8]), 1)
    monkeypatch.setattr("nbmodels.estimators.labelled_by_class._likelier", lambda *_: False)
    refused = NoisyLogisticRegression(missing_label=-1, random_state=0).fit(x, y)
    monkeypatch.setattr("nbmodels.estimators.labelled_by_class.unlabelled_shares", lambda *_: None)
    alone = NoisyLogisticRegression(missing_label=-1, random_state=0).fit(x, y)
    np.testing.assert_allclose(refused.predict_proba(x), alone.predict_proba(x), atol=1e-6)
