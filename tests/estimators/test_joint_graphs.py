"""A user graph beside labels and votes in one model."""

import numpy as np
import pandas as pd
import pytest

from nbmodels import (
    CollaborativeClassifier,
    DawidSkene,
    JointNB,
    VerdictWarning,
)
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.papers import maystre2021

K = 3
NAMES = np.array(["ant", "bee", "cat"])


def crowd_with_a_graph(kind, n, seed):
    """Three votes an item of eight workers, half of whom copy or name one class, and users."""
    rng = np.random.default_rng(seed)
    y = rng.choice(K, n, p=[0.5, 0.3, 0.2])
    lead = np.where(rng.random(n) < 0.65, y, rng.integers(K, size=n))
    task = np.repeat(np.arange(n), 3)
    worker = np.concatenate([rng.choice(8, 3, replace=False) for _ in range(n)])
    right = rng.random(3 * n) < (0.65 if kind == "copied" else 0.75)
    own = np.where(right, y[task], (y[task] + rng.integers(1, K, 3 * n)) % K)
    other = lead[task] if kind == "copied" else worker % K
    label = np.where((worker < 4) & (rng.random(3 * n) < 0.95), other, own)
    likes = rng.integers(K, size=60)
    item, user = np.nonzero(rng.random((n, 60)) < np.where(likes == y[:, None], 0.2, 0.04))
    votes = pd.DataFrame({"task": task, "worker": worker, "label": NAMES[label]})
    return y, {"crowd": votes, "users": pd.DataFrame({"user": user, "item": item})}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:users. its data do not surely predict")
@pytest.mark.filterwarnings("ignore:the noise matrix is not diagonally dominant")  # of spam
@pytest.mark.parametrize(("kind", "gain"), [("copied", 0.08), ("spam", -0.01)])
def test_a_graph_mends_votes_and_harms_none(kind, gain):
    """Variational Bayes gave one class the items; copied votes were taken as they were."""
    right = {}
    for names in (("crowd",), ("crowd", "users")):
        found = []
        for seed in range(2):
            y, evidence = crowd_with_a_graph(kind, 200, seed)
            sources = {"crowd": DawidSkene(), "users": CollaborativeClassifier()}
            model = JointNB({n: sources[n] for n in names}, classes=NAMES, random_state=0)
            model.fit({n: evidence[n] for n in names}, items=np.arange(len(y)))
            found.append(np.mean(model.label_posterior_.argmax(1) == y))
        right[len(names)] = np.array(found)
    assert (right[2] > right[1] + gain).all()


def fitted(evidence, n, given=None):
    sources = {"crowd": DawidSkene(), "users": CollaborativeClassifier()}
    model = JointNB(sources, classes=NAMES, random_state=0)
    return model.fit(evidence, given, items=np.arange(n))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 5])
def test_a_graph_counts_against_the_shares_of_the_classes(seed):
    """Against those of an item without neighbours: 88.0 and 90.5 right items in 100."""
    y, evidence = crowd_with_a_graph("spam", 200, seed)
    model = fitted(evidence, len(y))
    assert np.mean(model.label_posterior_.argmax(1) == y) > 0.95
    users = evidence["users"]
    some = pd.DataFrame({"user": users["user"], "item": users["item"].map("new {}".format)})
    names = [*(f"new {i}" for i in range(len(y))), "without users"]
    *new, alone = model.predict_proba({"users": some}, items=names)
    assert np.mean(np.argmax(new, 1) == y) > 0.9
    np.testing.assert_allclose(alone, model.class_prior_, atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")  # of spam
def test_no_class_is_lost_beside_labels():
    """Of few wrong labels and votes of which half are spam one class had 98 % of the items."""
    y, evidence = crowd_with_a_graph("spam", 150, 4)
    given = corrupt(y, uniform_noise(K, 0.3), np.random.default_rng(1004))
    shares = np.bincount(y) / len(y)
    model = fitted(evidence, len(y), NAMES[given])
    assert (model.class_prior_ > 0.6 * shares).all()
    assert np.mean(model.label_posterior_.argmax(1) == y) > 0.85
    alone = JointNB({"crowd": DawidSkene()}, classes=NAMES, random_state=0)
    alone.fit({"crowd": evidence["crowd"]}, NAMES[given], items=np.arange(len(y)))
    assert (alone.class_prior_ > 0.6 * shares).all()


@pytest.mark.slow
def test_checked_labels_hold_where_other_beliefs_need_not():
    y, evidence = crowd_with_a_graph("copied", 200, 0)
    sources = {"crowd": DawidSkene(), "users": CollaborativeClassifier()}
    model = JointNB(sources, classes=NAMES, random_state=0)
    checked = np.arange(0, 200, 4)
    model.fit(
        evidence, trusted=dict(zip(checked, NAMES[y[checked]], strict=True)), items=range(200)
    )
    taken = model._learned["users"].graph.fitted.corrected
    np.testing.assert_allclose(taken[checked, y[checked]], 1)


def clear_graph(seed, n=300):
    """Users who mostly prefer one class, and labels of which a quarter are wrong."""
    rng = np.random.default_rng(seed)
    graph = maystre2021.simulate(rng, M=n // 2, N=n, K=K, S=6, alpha=0.3)
    given = corrupt(graph.v, uniform_noise(K, 0.25), rng)
    item, user = graph.edges.nonzero()
    return pd.DataFrame({"user": user, "item": item}), graph.v, given


@pytest.mark.slow
def test_a_graph_beside_labels_does_not_take_errors_for_the_truth():
    """Fitted jointly, users learn the errors, and hardly a label would be wrong."""
    pairs, true, given = clear_graph(0)
    model = JointNB({"users": CollaborativeClassifier()}, noise="symmetric", random_state=0)
    found = model.fit({"users": pairs}, given).label_posterior_
    alone = CollaborativeClassifier(noise="symmetric", random_state=0)
    alone = alone.fit(pairs, given, items=np.arange(len(true))).label_posterior_
    wrong, given_wrong = np.mean(found.argmax(1) != true), np.mean(given != true)
    assert wrong < given_wrong - 0.06
    assert wrong < np.mean(alone.argmax(1) != true) + 0.015
    p_wrong = np.mean(1 - found[np.arange(len(true)), given])
    assert p_wrong > 0.7 * given_wrong


@pytest.mark.slow
def test_a_joint_graph_that_confirms_its_own_labels_is_reported():
    pairs, true, given = clear_graph(0)
    graph = CollaborativeClassifier(alpha=1.0, weight=0.3)
    model = JointNB({"users": graph}, noise="symmetric", random_state=0)
    with pytest.warns(VerdictWarning, match="it has learned its own errors"):
        model.fit({"users": pairs}, given)
    assert np.mean(1 - model.label_posterior_[np.arange(len(true)), given]) < 0.1
    assert "alpha, weight and training left open" in model.verdict().sentence
    assert 'noise="symmetric"' not in model.verdict().sentence


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "errors"), [(3, "uniform"), (5, "pair")])
def test_a_graph_beside_few_labels_counts(seed, errors):
    """A tenth of 300 labels took a tenth of its weight; the fit then confirmed its own labels."""
    rng = np.random.default_rng(seed)
    n = 300
    graph = maystre2021.simulate(rng, M=n // 2, N=n, K=K, S=6, alpha=0.3)
    item, user = graph.edges.nonzero()
    next_class = 0.7 * np.eye(K) + 0.3 * np.roll(np.eye(K), 1, 0)
    noise = uniform_noise(K, 0.2) if errors == "uniform" else next_class
    given = corrupt(graph.v, noise, rng)
    model = JointNB({"users": CollaborativeClassifier()}, random_state=0)
    model.fit({"users": pd.DataFrame({"user": user, "item": item})}, given)
    assert np.mean(model.label_posterior_.argmax(1) == graph.v) > np.mean(given == graph.v) + 0.08
    assert np.ptp(np.diag(model.noise_matrix_)) == pytest.approx(0) if errors == "uniform" else True
