"""Few rows: a joint fit needs more evidence than its own held-out labels, and so does noise."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from nbmodels import NoisyBernoulliNB, NoisyGaussianNB
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.diagnostics.check import features_p_value
from nbmodels.diagnostics.score_tests import Scores, omnibus
from nbmodels.errors import NbmodelsWarning
from nbmodels.fitting.changed_labels import belief_in_joint
from nbmodels.fitting.points import points

K = 3


def fitted(x, y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        return NoisyGaussianNB(random_state=0, **settings).fit(x, y)


def normal(rng, n=150, distance=1.2):
    """Normal classes with independent columns, as the model has them."""
    true = rng.integers(K, size=n)
    return distance * rng.normal(size=(K, 5))[true] + rng.normal(size=(n, 5)), true


def clusters(n, distance, share, seed):
    """Clear classes, and labels of which a share names the next class."""
    rng = np.random.default_rng(seed)
    true = rng.integers(K, size=n)
    given = np.where(rng.random(n) < share, (true + 1) % K, true)
    return rng.normal(size=(n, 4)) + distance * np.eye(K, 4)[true], true, given


def shares(rng, n=150):
    """Shares of a whole: columns sum to one, so that they depend on each other."""
    true = rng.integers(K, size=n)
    parts = np.exp(0.8 * rng.normal(size=(K, 6))[true] + 0.8 * rng.normal(size=(n, 6)))
    return parts / parts.sum(1, keepdims=True), true


def patches(rng, n=150):
    """Classes are patches on a map, several of each."""
    x, centres = rng.uniform(0, 10, (n, 2)), rng.uniform(0, 10, (3 * K, 2))
    return x, np.square(x[:, None] - centres).sum(2).argmin(1) % K


def planted(world, seed, share=0.2, **size):
    rng = np.random.default_rng(seed)
    x, true = world(rng, **size)
    return x, true, corrupt(true, uniform_noise(K, share), rng)


# What they do -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [21, pytest.param(33, marks=pytest.mark.slow)])
def test_clusters_of_another_kind_cost_no_right_labels(seed):
    """A joint fit to the map found clusters across the patches: 9 to 13 points were lost."""
    x, true, given = planted(patches, seed)
    e = fitted(x, given)
    assert e.fitted_.scored
    assert e.chosen_.get("training") is None
    assert not e.choice_[e.choice_["training"] == "joint"]["chosen"].any()
    assert np.mean(e.corrected_labels()["suggested"] == true) > np.mean(given == true) - 0.02


@pytest.mark.slow
def test_shares_of_a_whole_cost_few_right_labels():
    found = []
    for seed in (1, 26, 34, 39):  # the worst four of forty
        x, true, given = planted(shares, seed)
        found.append(np.mean(fitted(x, given).label_posterior_.argmax(1) == true))
        found[-1] -= np.mean(given == true)
    assert np.mean(found) > -0.03


@pytest.mark.parametrize("seed", [5, pytest.param(6, marks=pytest.mark.slow)])
def test_a_joint_model_that_holds_is_taken(seed):
    """Labels need be likelier only, not surely so, where nothing contradicts it."""
    x, true, given = clusters(120, 2.5, 0.15, seed)
    e = fitted(x, given)
    assert e.chosen_["training"] == "joint"
    row = e.choice_[e.choice_["chosen"]].iloc[0]
    assert 0 < row["gain"] < row["standard_error"]
    assert np.mean(e.corrected_labels()["suggested"] == true) > np.mean(given == true) + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_right_labels_that_a_plain_classifier_explains_stay(seed):
    """One latent score raises all binary columns: up to 19 points of right labels were lost."""
    rng = np.random.default_rng(seed)
    true = rng.integers(K, size=100)
    latent = 1.2 * rng.normal(size=(K, 12))[true] + 1.8 * rng.normal(size=(100, 1))
    x = (latent + rng.logistic(size=(100, 12)) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        e = NoisyBernoulliNB(random_state=0).fit(x, true)
    assert np.mean(e.corrected_labels()["suggested"] == true) > 0.96


# Other estimates --------------------------------------------------------------------------------


def test_many_small_deviations_are_significant_together():
    ones = np.ones(40)
    small = Scores(1.8 * ones, ones, ones)
    assert omnibus([small]) < 1e-6
    assert omnibus([Scores(0.5 * ones, ones, ones)]) > 0.99
    assert omnibus([]) == omnibus([Scores(ones, 0 * ones, ones)]) == 1  # no test


def test_the_p_value_of_normal_scores_is_uniform():
    rng = np.random.default_rng(0)
    found = [omnibus([Scores(rng.normal(size=30), np.ones(30), np.ones(30))]) for _ in range(400)]
    assert np.quantile(found, [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.08)


@pytest.mark.parametrize(("world", "refuted"), [(normal, False), (shares, True)])
def test_all_columns_together_refute_a_wrong_model(world, refuted):
    found = []
    for seed in range(4):
        x, _, given = planted(world, seed)
        e = fitted(x, given, training="joint")
        fit = e.fitted_
        found.append(features_p_value(fit.fit, fit.data, fit.names, fit.columns))
    assert (np.array(found) < 0.05).sum() in ((3, 4) if refuted else (0, 1))


def test_changes_to_random_labels_are_not_believed():
    x, true, given = planted(normal, 0)
    joint = fitted(x, given, training="joint").fitted_
    where = points(x)
    assert belief_in_joint(joint, where, None) > 0.9
    shuffled = np.random.default_rng(1).permutation(np.eye(K)[true])
    wrong = replace(joint, fit=replace(joint.fit, resp=shuffled), noisy=1.0)
    assert belief_in_joint(wrong, where, None) < 0.01
    # who has no points, or too few labels, asks nobody
    assert belief_in_joint(wrong, None, None) == 1
    assert belief_in_joint(wrong, sparse.csr_array(where), None) == 1
