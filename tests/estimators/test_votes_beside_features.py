"""Votes that depend on each other, beside features: no class is lost, and groups are named."""

import warnings

import numpy as np
import pandas as pd
import pytest
from marks import slow

from nbmodels import (
    DataError,
    DawidSkene,
    IdentifiabilityWarning,
    JointNB,
    NoisyGaussianNB,
    NoisyLogisticRegression,
    NoisyNeighbours,
)

NAMES = np.array(["cat", "dog", "emu"])


def table(votes, cast):
    row, worker = np.nonzero(cast)
    return pd.DataFrame({"task": row, "worker": worker, "label": NAMES[votes[row, worker]]})


def disputed(seed, n=300, workers=9):
    """Of items of three classes three in ten mislead most of the annotators to one wrong class."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.45, 0.3, 0.25])
    right = np.where(rng.random(n) < 0.7, 0.85, 0.35)[:, None]
    wrong = (y + rng.integers(1, 3, n))[:, None] % 3
    any_ = rng.integers(0, 3, (n, workers))
    lured = np.where(rng.random((n, workers)) < 0.8, wrong, any_)
    votes = np.where(rng.random((n, workers)) < right, y[:, None], lured)
    cast = rng.random((n, workers)) < 0.5
    cast[np.arange(n), rng.integers(0, workers, n)] = True
    return table(votes, cast), y


def alone(seed, n=300, workers=40):
    """One vote an item, by annotators of different accuracy."""
    rng = np.random.default_rng(seed)
    y, worker = rng.choice(3, n, p=[0.45, 0.3, 0.25]), rng.integers(0, workers, n)
    right = rng.random(n) < rng.uniform(0.6, 0.9, workers)[worker]
    label = NAMES[np.where(right, y, (y + rng.integers(1, 3, n)) % 3)]
    return pd.DataFrame({"task": np.arange(n), "worker": worker, "label": label}), y


def weak_features(y):
    return np.random.default_rng(9).normal(0.5 * y[:, None], 1, (len(y), 2))


def right(model, y):
    return float(np.mean(model.classes_[model.label_posterior_.argmax(1)] == NAMES[y]))


def test_tempered_votes_teach_as_if_they_were_independent():
    votes, y = disputed(0)
    crowd = DawidSkene(random_state=0).fit(votes)
    joint = JointNB({"crowd": DawidSkene()}, random_state=0)
    joint.fit({"crowd": votes}, items=np.arange(len(y)))
    assert joint._learned["crowd"].powers is not None  # or nothing is tempered
    assert right(joint, y) > right(crowd, y) - 0.03  # it was 0.14 below
    np.testing.assert_allclose(joint.class_prior_, crowd.class_prior_, atol=0.1)
    tempered = joint.predict_proba({"crowd": votes}, np.arange(len(y)))
    np.testing.assert_allclose(tempered, joint.label_posterior_, atol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
@pytest.mark.parametrize("world", [disputed, alone])
def test_weak_features_beside_votes_do_no_harm(world):
    votes, y = world(3)
    X = weak_features(y)
    floor = right(DawidSkene(random_state=0).fit(votes), y) - 0.06  # it was 0.1 to 0.3 below
    joint = JointNB({"x": NoisyGaussianNB(), "crowd": DawidSkene()}, random_state=0)
    assert right(joint.fit({"x": X, "crowd": votes}), y) > floor
    assert right(NoisyGaussianNB(random_state=0).fit(X, votes=votes), y) > floor


def led(seed, n=300, workers=9):
    """Four of nine annotators follow one who does not vote, and is right in 45 % of the items."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.45, 0.3, 0.25])
    others = np.zeros((n, workers), int)
    for w, rate in enumerate(rng.uniform(0.6, 0.8, workers)):
        others[:, w] = np.where(rng.random(n) < rate, 0, rng.integers(1, 3, n))
    votes = (y[:, None] + others) % 3
    hidden = np.where(rng.random(n) < 0.45, y, (y + rng.integers(1, 3, n)) % 3)
    for w in range(4):
        votes[:, w] = np.where(rng.random(n) < 0.7, hidden, votes[:, w])
    cast = rng.random((n, workers)) < 0.7
    cast[np.arange(n), rng.integers(0, workers, n)] = True
    return table(votes, cast), y


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_a_group_among_the_annotators_is_told():
    votes, y = led(0)
    model = JointNB({"crowd": DawidSkene()}, random_state=0)
    with pytest.warns(IdentifiabilityWarning, match="crowd: some annotators vote as a group"):
        model.fit({"crowd": votes}, items=np.arange(len(y)))
    assert right(model, y) > 0.7


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
@pytest.mark.filterwarnings("ignore::nbmodels.IdentifiabilityWarning")
def test_a_group_among_the_annotators_of_a_table_is_told():
    model, (votes, y) = NoisyGaussianNB(random_state=0), led(0)
    with pytest.warns(IdentifiabilityWarning, match="some annotators vote as a group"):
        model.fit(weak_features(y), votes=votes)
    votes, y = alone(3)
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(weak_features(y), votes=votes)
    assert not any("as a group" in str(w.message) for w in caught)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [NoisyGaussianNB(random_state=0), NoisyNeighbours(random_state=0)]
)
def test_labels_show_whose_side_of_a_group_is_right(model):
    votes, y = led(0)
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(weak_features(y), NAMES[y], votes=votes)
    assert not any("as a group" in str(w.message) for w in caught)
    assert right(model, y) > 0.9


def test_a_class_that_one_vote_beside_features_names_is_refused():
    votes, y = alone(0)
    votes.loc[7, "label"] = "cta"
    with pytest.raises(DataError, match="row 7 has the label 'cta', which occurs once in 300"):
        NoisyGaussianNB().fit(weak_features(y), votes=votes)


@pytest.mark.parametrize("estimator", [NoisyGaussianNB, slow(NoisyLogisticRegression)])
def test_votes_are_checked_beside_features(estimator):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 400)
    x = np.eye(3)[y] * 2 + rng.normal(size=(400, 3))
    wrong = rng.random((400, 5)) < [0.2, 0.3, 0.4, 0.4, 0.4]
    named = np.where(wrong, (y[:, None] + rng.integers(1, 3, (400, 5))) % 3, y[:, None])
    named[:, 3:] = np.where(rng.random((400, 2)) < 0.9, named[:, [2]], named[:, 3:])
    task, worker = np.divmod(np.arange(2000), 5)
    votes = pd.DataFrame({"task": task, "worker": worker, "label": named.ravel()})
    model = estimator(random_state=0).fit(x, votes=votes)
    verdict = model.verdict()
    names = {finding.name for finding in verdict.findings}
    expected = {"own votes", "independent votes", "classes kept", "accuracies", "votes by class"}
    assert expected <= names
    assert verdict.ok
    assert "60 % of the annotators copy from each other, and their votes count" in verdict.sentence
