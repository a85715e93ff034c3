"""Confident learning beside the latent-class model."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from threadpoolctl import threadpool_info

from nbmodels import DataError, NoisyGaussianNB
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.diagnostics import comparison
from nbmodels.diagnostics.confident_learning import (
    calibrated,
    confident_joint,
    second_opinion,
    wrong_labels,
)
from nbmodels.diagnostics.reference_classifier import reference_classifier

N, K = 900, 3
NAMES = np.array(["apple", "berry", "cherry"])


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, N)
    x = rng.normal(0, 2, (K, 4))[y] + rng.normal(size=(N, 4))
    return pd.DataFrame(x, columns=list("abcd")), y, corrupt(y, uniform_noise(K, 0.2), rng)


@pytest.fixture(scope="module")
def probs(world):
    x, _, given = world
    return cross_val_predict(LogisticRegression(), x, given, method="predict_proba")


def test_the_joint_by_hand():
    probs = np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6], [0.75, 0.25], [0.55, 0.45]])
    codes = np.array([0, 0, 0, 1, 1, 1])
    # thresholds 0.6 and (0.6 + 0.25 + 0.45) / 3 = 0.433
    joint = confident_joint(probs, codes)
    np.testing.assert_array_equal(joint, [[2, 1], [1, 2]])
    np.testing.assert_allclose(calibrated(joint, codes), joint / 6)
    # two of three labels 0 are right, so that the least likely one is wrong
    wrong = wrong_labels(probs, codes, calibrated(joint, codes))
    np.testing.assert_array_equal(wrong, [False, False, True, False, True, False])


def test_no_class_is_empty():
    joint = confident_joint(np.array([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0]]), np.array([0, 1]))
    assert (np.diag(joint) >= 1).all()
    found = calibrated(joint, np.array([0, 1]))
    np.testing.assert_allclose(found.sum(), 1)
    np.testing.assert_allclose(found.sum(1), [0.5, 0.5, 0])


def test_the_numbers_are_cleanlabs(world, probs):
    count = pytest.importorskip("cleanlab.count", reason="cleanlab is not installed")
    filters = pytest.importorskip("cleanlab.filter", reason="cleanlab is not installed")
    _, _, given = world
    ours = confident_joint(probs, given)
    theirs = count.compute_confident_joint(given, probs, calibrate=False)
    np.testing.assert_array_equal(ours, theirs)
    joint = calibrated(ours, given)
    np.testing.assert_allclose(joint, count.estimate_joint(given, probs), atol=2e-3)
    _, noise, _ = count.estimate_py_noise_matrices_and_cv_pred_proba(
        np.asarray(world[0]), given, clf=LogisticRegression(), seed=0
    )[:3]
    np.testing.assert_allclose(joint / joint.sum(0), noise, atol=0.02)
    issues = filters.find_label_issues(given, probs, filter_by="prune_by_class", n_jobs=1)
    assert np.mean(issues != wrong_labels(probs, given, joint)) < 0.01


@pytest.mark.slow
def test_planted_noise_is_found_by_both(world):
    x, y, given = world
    e = NoisyGaussianNB.published(random_state=0).fit(x, NAMES[given])
    found = e.second_opinion(x, NAMES[given])
    planted = np.zeros((K, K))  # as it came out, not as it was drawn from
    np.add.at(planted, (given, y), 1)
    planted /= planted.sum(0)
    assert np.abs(found.ours.to_numpy() - planted).max() < 0.05
    assert np.abs(found.theirs.to_numpy() - planted).max() < 0.05
    np.testing.assert_allclose(found.theirs.sum(), 1)
    assert list(found.ours.columns) == list(found.theirs.index) == list(NAMES)
    assert found.disagreement < 0.1
    np.testing.assert_allclose(found.share_wrong, np.mean(given != y), atol=0.03)
    given_, true, gap = found.largest
    np.testing.assert_allclose(found.ours.loc[given_, true] - found.theirs.loc[given_, true], gap)
    assert f"P({given_} | {true})" in found.sentence
    assert list(found.table().index) == list(NAMES)


def test_any_classifier_and_missing_labels(world):
    x, _, given = world
    some = np.where(np.arange(N) % 4 == 0, -1, given)
    e = NoisyGaussianNB.published(missing_label=-1, random_state=0).fit(x, some)
    found = e.second_opinion(x, some, LogisticRegression(C=0.1), cv=3)
    assert np.isfinite(found.theirs.to_numpy()).all()
    assert found.total_variation.max() < 0.2


def test_the_regression_of_a_small_table_runs_on_one_thread(world, monkeypatch):
    x, _, given = world
    e = NoisyGaussianNB.published(random_state=0).fit(x, given)
    threads = []

    def seen(one, *about):
        threads.append([pool["num_threads"] for pool in threadpool_info()])
        return np.full((N, K), 1 / K)

    monkeypatch.setattr(comparison, "predicted_labels", seen)
    before = [pool["num_threads"] for pool in threadpool_info()]
    e.second_opinion(x, given)
    e.second_opinion(x, given, LogisticRegression())  # whose threads are its own matter
    assert threads == [[1] * len(before), before]


def test_bad_input_is_named(world):
    x, _, given = world
    e = NoisyGaussianNB.published(random_state=0).fit(x, given)
    other = given.copy()
    other[7] = (other[7] + 1) % K
    with pytest.raises(DataError, match="row 7"):
        e.second_opinion(x, other)
    with pytest.raises(DataError, match="cv"):
        e.second_opinion(x, given, cv=1)


def test_the_distance_of_two_matrices():
    probs = np.repeat(np.eye(2), [6, 4], 0)
    codes = np.repeat([0, 1], [6, 4])
    ours = np.array([[0.7, 0.0], [0.3, 1.0]])
    found = second_opinion(ours, probs, probs, codes, ["a", "b"])
    np.testing.assert_allclose(found.theirs, np.eye(2))
    np.testing.assert_allclose(found.total_variation, [0.3, 0])
    assert found.disagreement == 0
    assert found.share_wrong == (0, 0)
    assert found.largest[1] == "a"


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        sparse.csr_array,
        lambda x: x.mask(x > 3).assign(word=np.where(x["a"] > 0, "u", "v")),
        lambda x: (x > 0).to_numpy().astype(object),
    ],
)
def test_the_reference_classifier_takes_any_features(world, form):
    x, _, given = world
    values = form(x)
    assert reference_classifier(values).fit(values, given).score(values, given) > 0.5


def test_a_class_of_one_label_draws_no_other_items():
    rng = np.random.default_rng(0)
    codes = np.r_[rng.integers(0, 2, 99), 2]
    own = rng.uniform(0.4, 0.9, 99)  # many are less sure than their class is on average
    probs = np.zeros((100, 3))
    probs[np.arange(99), codes[:99]] = own
    probs[np.arange(99), 1 - codes[:99]] = 1 - own - 0.01
    probs[:99, 2] = 0.01
    probs[99] = 0.5, 0.5, 0.0  # a classifier that has not seen the label does not know the class
    joint = confident_joint(probs, codes)
    assert joint[:2, 2].sum() == 0
    assert joint[2, 2] == 1


def test_a_classifier_that_predicts_no_label_has_no_opinion():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 400)
    right = np.full((400, 2), 0.5)
    for predictive, probs in ((False, right), (True, 0.6 * np.eye(2)[codes] + 0.2)):
        found = second_opinion(np.eye(2), np.eye(2)[codes], probs, codes, ["a", "b"])
        assert found.predictive == predictive
        assert ("no better than the shares" in found.sentence) != predictive
    # a rare class is predicted by no hit, but its items are likelier
    rare = (np.arange(400) < 20).astype(int)
    p = np.where(rare == 1, 0.4, 0.03)
    found = second_opinion(np.eye(2), np.eye(2)[rare], np.c_[1 - p, p], rare, ["a", "b"])
    assert found.predictive
