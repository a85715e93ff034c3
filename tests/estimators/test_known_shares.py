"""Class shares that are known: never worse than shares that are learned."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from nbmodels import (
    AutoNoisyClassifier,
    CollaborativeClassifier,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
    VerdictWarning,
)
from nbmodels.datasets import corrupt, uniform_noise

SHARES = np.array([0.6, 0.3, 0.1])
NOISE = np.array([[0.85, 0.25, 0.1], [0.1, 0.65, 0.2], [0.05, 0.1, 0.7]])


def any_classifier(**known):
    return NoisyLabelClassifier(LogisticRegression(), **known)


@pytest.mark.slow
@pytest.mark.parametrize("make", [NoisyLogisticRegression, any_classifier, NoisyGaussianNB])
def test_known_shares_are_no_worse_than_learned_ones(make):
    """Scores of a classifier hold the shares: labels stayed as given, 0.79 right for 0.89."""
    rng = np.random.default_rng(0)
    true = rng.choice(3, 600, p=SHARES)
    x = rng.normal(np.random.default_rng(5).normal(size=(3, 4))[true])
    given = corrupt(true, NOISE, rng)
    free, known = (
        make(random_state=0, **how).fit(x, given) for how in ({}, {"class_prior": SHARES})
    )
    right = [np.mean(one.label_posterior_.argmax(1) == true) for one in (free, known)]
    assert right[1] >= right[0] - 0.01
    assert right[1] > np.mean(given == true) + 0.08
    np.testing.assert_allclose(known.label_posterior_.mean(0), SHARES, atol=0.06)


@pytest.mark.slow
def test_known_shares_help_a_graph():
    """Of three uneven classes, beside 80 users; labels stayed, with shares that were far off."""
    right, off = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        true, likes = rng.choice(3, 300, p=SHARES), rng.integers(3, size=80)
        edges = rng.random((80, 300)) < np.where(likes[:, None] == true, 0.1, 0.03)
        given = corrupt(true, uniform_noise(3, 0.3), rng)
        model = CollaborativeClassifier(class_prior=SHARES, classes=range(3), random_state=0)
        probs = model.fit(sparse.csr_array(edges.astype(float)), given).label_posterior_
        right.append(np.mean(probs.argmax(1) == true) - np.mean(given == true))
        off.append(np.abs(probs.mean(0) - np.bincount(true) / 300).max())
    assert np.mean(right) > 0.05
    assert np.mean(off) < 0.05


def test_shares_are_known_to_whatever_is_selected():
    rng = np.random.default_rng(1)
    true = rng.integers(2, size=120)
    x, given = rng.normal(3.0 * true[:, None], size=(120, 2)), corrupt(true, np.eye(2), rng)
    names = np.array(["ant", "bee"])
    model = AutoNoisyClassifier(emission="gaussian", class_prior={"bee": 0.4, "ant": 0.6})
    np.testing.assert_allclose(model.fit(x, names[given]).class_prior_, [0.6, 0.4], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("make", [NoisyLogisticRegression, NoisyGaussianNB])
def test_shares_that_labels_and_features_contradict_are_warned_of(make):
    rng = np.random.default_rng(100)
    true = rng.choice(3, 1000, p=SHARES)
    x = rng.normal(1.5 * rng.normal(size=(3, 4))[true])
    given = np.array(["ant", "bee", "cat"])[corrupt(true, uniform_noise(3, 0.2), rng)]
    right = make(class_prior=SHARES, random_state=0).fit(x, given)
    assert not [one for one in right.verdict().findings if one.name == "class shares" and one.bad]
    with pytest.warns(
        VerdictWarning,
        match="class shares that were given.*(more items are 'ant'|fewer items are 'cat')",
    ):
        make(class_prior=[0.4, 0.3, 0.3], random_state=0).fit(x, given)
