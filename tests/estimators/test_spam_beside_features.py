"""Votes of which half are spam, beside features: no class takes all, and votes are not replaced."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from nbmodels import (
    DawidSkene,
    JointNB,
    NbmodelsWarning,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
)
from nbmodels.fitting.informative import votes_agree

WORKERS = 8


def spam(seed, n, shares):
    """Three votes an item; of eight annotators four name one class nearly always."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=shares)
    rows = []
    for i in range(n):
        for worker in rng.choice(WORKERS, 3, replace=False):
            vote = y[i] if rng.random() < 0.75 else (y[i] + rng.integers(1, 3)) % 3
            if worker < WORKERS // 2 and rng.random() < 0.9:
                vote = worker % 3
            rows.append((i, f"worker {worker}", vote))
    return pd.DataFrame(rows, columns=["task", "worker", "label"]), y


def right(model, y):
    return float((model.label_posterior_.argmax(1) == y).mean())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 10])
@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
def test_useless_columns_give_no_class_all_items(seed):
    """A slope once raised the shares of the classes to its power: all items were one class's."""
    votes, y = spam(seed, 150, [0.6, 0.3, 0.1])
    x = np.random.default_rng(seed).normal(size=(150, 5))
    alone = DawidSkene(random_state=0).fit(votes)
    model = NoisyLogisticRegression(random_state=0).fit(x, votes=votes)
    shares = model.label_posterior_.mean(0)
    assert shares.max() < alone.label_posterior_.mean(0).max() + 0.1
    assert right(model, y) > right(alone, y) - 0.05


@pytest.mark.slow
def test_classes_of_the_features_do_not_replace_those_of_the_votes():
    """A forest of columns with a common factor, whose own classes explained the votes as chance."""
    votes, y = spam(9, 100, [1 / 3, 1 / 3, 1 / 3])
    rng = np.random.default_rng(9)
    x = rng.normal(0, 0.8, (3, 6))[y] + rng.normal(size=(100, 6)) + 2 * rng.normal(size=(100, 1))
    model = NoisyLabelClassifier(RandomForestClassifier(60, random_state=0), random_state=0)
    with pytest.warns(NbmodelsWarning, match="votes agree less with|nonlinear classifier"):
        model.fit(x, votes=votes)
    alone = DawidSkene(random_state=0).fit(votes)
    assert right(model, y) > right(alone, y) - 0.05


def test_votes_agree_with_their_own_classes_and_not_with_others():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    given = 0.5 * np.eye(3)[y] + 0.5 * rng.dirichlet(np.ones(3), 300)
    votes, features = 0.8 * np.eye(3)[y] + 0.2 / 3, np.eye(3)[rng.integers(0, 3, 300)]
    weights = np.ones(300)
    assert votes_agree(np.eye(3)[y], votes, given, weights)
    assert not votes_agree(features, votes, given, weights)
    # only items with votes count
    some = np.where(np.arange(300)[:, None] < 200, features, votes)
    assert votes_agree(some, votes, given, weights * (np.arange(300) >= 200))
    # a third of the items by the features' classes leaves more than half of the agreement
    mixed = np.where(np.arange(300)[:, None] < 100, features, votes)
    assert not votes_agree(mixed, votes, given, weights)
    assert votes_agree(mixed, votes, given, weights, least=0.5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
def test_columns_fitted_jointly_give_no_class_all_items():
    """One class had nearly all items, with votes at random: 34 right labels in 100."""
    votes, y = spam(3, 100, [1 / 3, 1 / 3, 1 / 3])
    x = np.random.default_rng(3).normal(size=(100, 5))
    sources = {"columns": NoisyGaussianNB(), "votes": DawidSkene()}
    model = JointNB(sources, random_state=0).fit({"columns": x, "votes": votes})
    assert model.label_posterior_.mean(0).max() < 0.6
    assert right(model, y) > right(DawidSkene(random_state=0).fit(votes), y) - 0.05
