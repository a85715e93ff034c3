"""Never worse than the plain answer: small tables, clean labels, features that say nothing."""

import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from marks import slow
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

from nbmodels import (
    CrossFit,
    DawidSkene,
    NoisyBernoulliNB,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
)
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.errors import IdentifiabilityWarning
from nbmodels.estimators.joint_or_cross_fitted import settings_of
from nbmodels.fitting import plain
from nbmodels.fitting.plain import at_odds, plain_classifier, pseudo_bma

K = 3


def table(n, spread, noise, seed=0):
    """Gaussian classes at a distance of a few ``spread``, noisy labels, and as many new items."""
    rng = np.random.default_rng(seed)
    means = rng.normal(0, 2, (K, 4))
    y, y_new = (rng.permutation(np.arange(n) % K) for _ in range(2))
    x, x_new = (means[c] + spread * rng.normal(size=(n, 4)) for c in (y, y_new))
    return x, y, corrupt(y, uniform_noise(K, noise), rng), x_new, y_new


def fitted(maker, *args):
    with warnings.catch_warnings(action="ignore"):
        return maker(random_state=0).fit(*args)


@pytest.mark.slow
@pytest.mark.parametrize("maker", [NoisyGaussianNB, NoisyLogisticRegression])
def test_features_that_say_nothing_change_no_label(maker):
    x, _, noisy, x_new, _ = table(60, 1000.0, 0.3)
    e = maker(random_state=0).fit(x, noisy)
    assert "no label is corrected" in e.verdict().sentence
    np.testing.assert_array_equal(e.corrected_labels()["suggested"], noisy)
    assert len(np.unique(e.predict(x_new))) > 1
    with warnings.catch_warnings(action="ignore"):  # the prior knows no names of the classes
        draws = e.posterior(draws=200, chains=2)["posterior"]["noise_matrix"].to_numpy()
    right = draws.reshape(-1, K, K)[:, 0, 0]
    assert np.quantile(right, 0.05) < 0.4
    assert np.quantile(right, 0.95) > 0.9


@pytest.mark.parametrize("maker", [NoisyGaussianNB, slow(NoisyLogisticRegression)])
def test_labels_of_uninformative_features_are_ranked_by_the_plain_classifier(maker):
    """By the noise of the prior alone all labels of a class would be equally doubtful."""
    found = []
    for seed in range(4):
        x, y, noisy, *_ = table(60, 2.5, 0.4, seed)
        e = fitted(maker, x, noisy)
        assert e.fitted_.drawn is not None
        labels = e.corrected_labels().sort_values("row")
        np.testing.assert_array_equal(labels["suggested"], noisy)
        found.append(roc_auc_score(noisy != y, labels["p_wrong"]))
    assert np.mean(found) > 0.6


def votes_on(y, rng):
    """Three of six annotators on each item; two of them mostly guess."""
    item = np.repeat(np.arange(len(y)), 3)
    worker = rng.permuted(np.tile(range(6), (len(y), 1)), axis=1)[:, :3].ravel()
    right = np.array([0.5, 0.5, 0.8, 0.8, 0.9, 0.9])[worker]
    guess = rng.integers(K, size=len(item))
    label = np.where(rng.random(len(item)) < right, y[item], guess)
    return pd.DataFrame({"task": item, "worker": worker, "label": label})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("maker", "labelled"), [(NoisyGaussianNB, False), (NoisyLogisticRegression, True)]
)
def test_beside_uninformative_features_votes_count(maker, labelled):
    x, y, noisy, x_new, _ = table(300, 1000.0, 0.3)
    votes = votes_on(y, np.random.default_rng(1))
    with pytest.warns(IdentifiabilityWarning, match="those of the votes without the features"):
        e = maker(random_state=0).fit(x, noisy if labelled else None, votes=votes)
    right = np.mean(e.label_posterior_.argmax(1) == y)
    own = votes.assign(worker=votes["worker"].astype(str))
    if labelled:  # one more annotator
        own = pd.concat([own, pd.DataFrame({"task": range(300), "worker": "y", "label": noisy})])
    alone = DawidSkene(random_state=0).fit(own).label_posterior_.argmax(1)
    assert right > np.mean(alone == y) - 0.01
    assert e.fitted_.noisy == 1
    assert not e.fitted_.informative
    assert set(e.predict(x_new)) <= set(range(K))


@pytest.mark.slow
def test_tempered_votes_lose_no_class_where_features_say_nothing():
    """Votes that depend on each other; a fit to tempered ones gives a class to the others."""
    rng = np.random.default_rng(0)
    n, w = 400, 10
    y = rng.integers(0, K, n)
    right = rng.random((n, w)) < np.r_[0.6, rng.uniform(0.6, 0.85, w - 1)]
    cast = np.where(right, y[:, None], (y[:, None] + rng.integers(1, K, (n, w))) % K)
    copied = (rng.random((n, w)) < 0.4) & (np.arange(w) < 6)
    cast = np.where(copied, cast[:, :1], cast)
    item, worker = np.divmod(np.arange(n * w), w)
    votes = pd.DataFrame({"task": item, "worker": worker, "label": cast.ravel()})
    with warnings.catch_warnings(action="ignore"):
        e = NoisyGaussianNB(random_state=0).fit(rng.normal(size=(n, 4)), votes=votes)
        alone = DawidSkene(random_state=0).fit(votes)
    assert not e.fitted_.informative
    own = np.mean(e.label_posterior_.argmax(1) == y)
    assert own > np.mean(alone.label_posterior_.argmax(1) == y) - 0.01
    assert e.label_posterior_.max(1).mean() < 0.95  # tempered nonetheless


@pytest.mark.slow
def test_fixed_settings_have_the_same_floor():
    """Nothing is open, and held-out labels still say that the features are not to count."""
    x, _, noisy, *_ = table(60, 1000.0, 0.3)
    for model in (
        NoisyLabelClassifier(GaussianNB(), rounds=0),
        NoisyGaussianNB(covariance="diag", training=CrossFit(rounds=0)),
    ):
        assert "no label is corrected" in model.fit(x, noisy).verdict().sentence
        np.testing.assert_array_equal(model.corrected_labels()["suggested"], noisy)
        assert np.isfinite(model.fitted_.held_out_scores).all()


def test_predictions_by_uninformative_features_are_those_of_the_plain_classifier():
    x, _, noisy, x_new, _ = table(60, 30.0, 0.4, seed=2)
    e = fitted(NoisyGaussianNB, x, noisy)
    assert e.fitted_.plain is not None
    assert e.fitted_.predictor is None
    plain = GaussianNB().fit(x, noisy)
    assert np.mean(e.predict(x_new) == plain.predict(x_new)) > 0.9


def test_predictions_are_averaged_over_whether_labels_are_noisy():
    """A logarithmic pool of two calibrations of the same regression, which stays linear."""
    x, _, noisy, x_new, _ = table(150, 2.5, 0.3)
    e = fitted(NoisyLogisticRegression, x, noisy)
    found = e.fitted_
    assert found.plain is None

    def logits(share):
        e.fitted_ = replace(found, noisy=share)
        logs = np.log(e.predict_proba(x_new))
        linear = x_new @ e.coef_.T + e.intercept_
        np.testing.assert_allclose(logs, log_softmax(linear, axis=1), atol=1e-3)
        return logs - logs.mean(1, keepdims=True)

    noise, pooled, right = logits(1.0), logits(0.25), logits(0.0)
    assert np.abs(noise - right).max() > 0.5
    np.testing.assert_allclose(pooled, 0.25 * noise + 0.75 * right, atol=2e-3)
    # labels that are right calibrate the held-out scores by themselves
    scores = np.asarray(found.data.parts["class_prior"], float)[: len(noisy)]
    own = np.arange(len(noisy)), noisy
    best = minimize_scalar(lambda u: -log_softmax(np.exp(u) * scores, axis=1)[own].sum())
    assert replace(found, noisy=0.0).calibration[0] == pytest.approx(best.x, abs=0.15)


@pytest.mark.parametrize("seed", [0, *map(slow, (2, 4, 5))])
def test_a_nonlinear_classifier_that_predicts_better_needs_no_evidence_for_new_items(seed):
    """Of rings a linear classifier knows nothing, and that another one knows more is not sure."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=400)
    angle, radius = rng.uniform(0, 2 * np.pi, 400), 1 + 1.5 * y + 0.3 * rng.normal(size=400)
    x = np.c_[radius * np.cos(angle), radius * np.sin(angle), rng.normal(size=(400, 2))]
    noisy = corrupt(y, uniform_noise(2, 0.25), rng)
    e = fitted(NoisyLogisticRegression, x[:100], noisy[:100])
    assert e.fitted_.as_given
    assert np.mean(e.predict(x[100:]) == y[100:]) > 0.75
    sentence = e.verdict().sentence
    assert "predicted by a nonlinear classifier of the given labels" in sentence
    assert "plain classifier of the given labels" not in sentence


@pytest.mark.slow
@pytest.mark.parametrize("maker", [NoisyGaussianNB, NoisyLogisticRegression])
def test_clean_labels_of_overlapping_classes_mostly_stay(maker):
    changed = []
    for seed in range(3):
        x, y, _, *_ = table(100, 3.0, 0.0, seed)
        changed.append(np.mean(fitted(maker, x, y).label_posterior_.argmax(1) != y))
    assert np.mean(changed) < 0.1


def test_small_tables_of_clear_classes_are_corrected():
    right, given, new = [], [], []
    for seed in range(4):
        x, y, noisy, x_new, y_new = table(100, 1.0, 0.2, seed)
        e = fitted(NoisyGaussianNB, x, noisy)
        right.append(np.mean(e.label_posterior_.argmax(1) == y))
        given.append(np.mean(noisy == y))
        new.append(np.mean(e.predict(x_new) == y_new))
    assert np.mean(right) > np.mean(given) + 0.08
    assert np.mean(new) > 0.85


@pytest.mark.parametrize("as_given", [True, False])
def test_a_power_of_sizes_that_is_chosen_by_chance_does_not_hinder_a_joint_model(as_given):
    """Where labels stay as given the features did not surely predict any."""
    cut: Any = SimpleNamespace(chosen={"alpha": 0.1, "size_power": 1.0, "rounds": 0})
    cut.as_given = as_given
    assert settings_of(cut) == {"alpha": 0.1, "size_power": 0.0 if as_given else 1.0}
    cut.chosen = {"outliers": "kept", "rounds": 0}
    assert settings_of(cut) == {"outliers": "kept"}


@pytest.mark.slow
def test_the_joint_model_is_taken_where_it_holds_only():
    rng = np.random.default_rng(0)
    n = 600  # of fewer rows labels must be surely likelier
    y = rng.integers(K, size=n)
    probs = rng.beta(2, 2, (K, 16))
    x = (rng.random((n, 16)) < probs[y]).astype(int)
    noisy = corrupt(y, uniform_noise(K, 0.2), rng)
    e = fitted(NoisyBernoulliNB, x, noisy)
    assert e.chosen_["training"] == "joint"
    assert not e.fitted_.scored
    assert e.choice_["chosen"].sum() == 1
    assert e.choice_[e.choice_["chosen"]]["training"].item() == "joint"
    copied = np.repeat(x[:, :4], 4, 1) ^ (rng.random((n, 16)) < 0.05)
    cut = fitted(NoisyBernoulliNB, copied, noisy)
    assert "training" not in cut.chosen_
    assert cut.fitted_.scored == ("features",)


def test_a_joint_model_whose_labels_fail_their_checks_is_not_taken():
    """Each column alone says nothing: a mixture of normals finds clusters that are no classes."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(600, 4))
    y = ((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(int)
    e = fitted(NoisyGaussianNB, x, y)
    assert np.mean(e.corrected_labels()["suggested"] == y) > 0.97


@pytest.mark.slow
def test_a_joint_model_that_misses_the_errors_is_not_taken():
    """Rings are not normal classes, which no single column shows."""
    rng = np.random.default_rng(11)
    y = rng.integers(2, size=300)
    radius = np.where(y, 2.2, 1.0) + 0.25 * rng.normal(size=300)
    angle = rng.uniform(0, 2 * np.pi, 300)
    plane = (radius * np.array([np.cos(angle), np.sin(angle)])).T
    x = np.hstack([plane, rng.normal(size=(300, 3))])
    noisy = corrupt(y, uniform_noise(2, 0.3), rng)
    e = fitted(NoisyGaussianNB, x, noisy)
    assert "training" not in e.chosen_
    assert np.diag(e.noise_matrix_).mean() < 0.85


@pytest.mark.parametrize("seed", [5, 13])
def test_predictions_that_agree_with_held_out_labels_count(seed):
    """Held-out labels are not surely likelier: few labels say little of how noisy they are."""
    x, y, noisy, *_ = table(100, 2.0, 0.4, seed)
    e = fitted(NoisyGaussianNB, x, noisy)
    assert e.fitted_.drawn is None
    assert np.mean(e.fit_.resp.argmax(1) == y) > np.mean(noisy == y) + 0.19
    # labels stay, as a classifier that knows no noise predicts them as well, and suspects are known
    assert np.mean(e.label_posterior_.argmax(1) == y) >= np.mean(noisy == y)
    assert "would be changed by the fit alone, and stay" in e.verdict().sentence
    assert roc_auc_score(noisy != y, e.corrected_labels()["p_wrong"]) > 0.85


def test_of_three_classes_the_right_label_may_be_the_most_frequent_with_less_than_half():
    x, y, noisy, *_ = table(150, 1.0, 0.5, 3)
    assert np.mean(noisy == y) < 0.5
    assert np.mean(fitted(NoisyGaussianNB, x, noisy).label_posterior_.argmax(1) == y) > 0.95


@pytest.mark.parametrize("spread", [0.05, 1, 40])
def test_slopes_found_by_bisection_are_those_of_a_whole_search(spread):
    rng = np.random.default_rng(0)
    given, fold = np.eye(3)[rng.integers(3, size=150)], np.arange(150) % 5
    scores, weights = spread * (given + rng.normal(size=(150, 3))), rng.random(150)
    found = plain_classifier(scores, given, weights, fold, False)
    logs = np.stack([(given * log_softmax(t * scores, axis=1)).sum(1) for t in plain._SLOPES])
    held_out = np.zeros(150)
    for f in range(5):
        best = np.argmax(logs[:, fold != f] @ weights[fold != f])
        held_out[fold == f] = logs[best, fold == f]
    np.testing.assert_allclose(found.held_out, held_out, atol=1e-12)
    assert found.calibration[0] == np.log(plain._SLOPES[np.argmax(logs @ weights)])


def test_the_plain_classifier_is_calibrated_without_the_label():
    rng = np.random.default_rng(0)
    given = np.eye(2)[rng.integers(2, size=200)]
    noise = rng.normal(0, 5, (200, 2))
    found = plain_classifier(noise, given, np.ones(200), np.arange(200) % 5, True)
    assert np.exp(found.calibration[0]) < 0.1  # scores that say nothing count for nothing
    sharp = plain_classifier(3 * given, given, np.ones(200), np.arange(200) % 5, False)
    assert np.exp(sharp.calibration[0]) > 1
    assert sharp.held_out.mean() > found.held_out.mean()


def test_the_probability_of_noise_is_a_logistic_function_of_the_gain():
    ones = np.ones(50)
    even = pseudo_bma(0 * ones, 0 * ones, ones)
    assert even == pytest.approx(0.5)
    assert pseudo_bma(ones, 0 * ones, ones) > 0.999
    assert pseudo_bma(-ones, 0 * ones, ones) < 0.001
    assert [at_odds(p, 2) for p in (0, 0.5, 1)] == pytest.approx([0, 2 / 3, 1])
    rng = np.random.default_rng(0)
    vague = pseudo_bma(ones + rng.normal(0, 30, 50), 0 * ones, ones)
    assert 0.05 < vague < 0.95


def test_the_verdict_and_the_table_give_one_share_of_wrong_labels():
    x, _, noisy, *_ = table(100, 2.0, 0.2, seed=2)
    e = fitted(NoisyLogisticRegression, x, noisy)
    share = next(f for f in e.verdict().findings if f.name == "share of wrong labels")
    assert share.effect == pytest.approx(e.corrected_labels()["p_wrong"].mean())


@pytest.mark.parametrize(("n", "warned"), [(60, False), (600, True)])
def test_a_warning_of_useless_features_takes_many_labels(n, warned):
    """What is reported holds, as wide as the prior; of few labels the verdict states it alone."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, 3)), rng.integers(2, size=n)
    with warnings.catch_warnings(record=True, action="always") as caught:
        e = NoisyGaussianNB(random_state=0).fit(x, y)
    told = [str(w.message) for w in caught if w.category is IdentifiabilityWarning]
    assert any("the features do not predict held-out labels" in one for one in told) == warned
    stated = [f for f in e.verdict().findings if f.name == "uninformative features"]
    assert len(stated) == 1 - warned
    assert "no label is corrected" in " ".join([*told, e.verdict().sentence])
