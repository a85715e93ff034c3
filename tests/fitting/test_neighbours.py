"""Neighbours' scores, their average, and labels that stay as they are."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from nbmodels import CollaborativeClassifier
from nbmodels.fitting import neighbours, propagation
from nbmodels.fitting.batched import counted_fits
from nbmodels.fitting.cautious_labels import Levels, cautious, expected_wrong
from nbmodels.fitting.graph_folds import graph_folds
from nbmodels.fitting.graph_labels_as_given import without_changes
from nbmodels.fitting.neighbours import (
    Graph,
    NeighbourVotes,
    UserEvidence,
    scores_of_new,
    scores_without_own,
)
from nbmodels.fitting.stacking_weights import stacking_weights

K = 3
KINDS = [UserEvidence(0.5), NeighbourVotes(0.0), NeighbourVotes(0.5), NeighbourVotes(1.0)]


def drawn(seed=0, n=30, users=12):
    rng = np.random.default_rng(seed)
    edges = sparse.csr_array((rng.random((n, users)) < 0.25).astype(float))
    return edges, np.eye(K)[rng.integers(0, K, n)], np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_items_own_label_is_left_out(kind):
    edges, resp, shares = drawn()
    (found,) = scores_without_own([kind], Graph(edges), resp, shares)
    other = resp.copy()
    other[4] = np.roll(other[4], 1)
    (changed,) = scores_without_own([kind], Graph(edges), other, shares)
    np.testing.assert_allclose(changed[4], found[4], atol=1e-9)
    assert np.abs(changed - found).max() > 0.01  # its neighbours hear the change
    # and they are those of a new item whose label nobody knows
    hidden = resp.copy()
    hidden[4] = 0
    (alone,) = scores_without_own([kind], Graph(edges), hidden, shares)
    new = scores_of_new(kind, edges[[4]], edges.T @ hidden, shares)
    np.testing.assert_allclose(new[0], alone[4], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_items_without_neighbours_have_no_score(kind):
    edges = sparse.csr_array(np.vstack([np.eye(4), np.zeros((1, 4)), np.eye(4)[:2]]))
    resp = np.eye(K)[[0, 1, 2, 0, 1, 1, 1]]
    (found,) = scores_without_own([kind], Graph(edges), resp, np.array([0.5, 0.3, 0.2]))
    np.testing.assert_allclose(found[[2, 3, 4]], 0, atol=1e-9)
    assert found[0].argmax() == 1


@pytest.mark.parametrize("block", [1, 40, 1 << 16])
def test_scores_are_the_formulas_sums_over_edges(block, monkeypatch):
    """Tables by edge and class are made in blocks, or spared; repeated edges count each time."""
    monkeypatch.setattr(neighbours, "_BLOCK", block)
    edges, resp, shares = drawn()
    edges.data[:] = np.random.default_rng(1).integers(1, 4, edges.nnz)
    graph = Graph(edges)
    heard = np.maximum(graph.counts(resp)[graph.user] - graph.count[:, None] * resp[graph.item], 0)
    own = np.random.default_rng(2).random((edges.shape[1], K))
    by_alpha = (
        (UserEvidence(0.5), np.log((heard + 0.5 * K * shares) / shares)),
        (UserEvidence(own), np.log(heard + own[graph.user])),
    )
    for kind, one in by_alpha:
        (found,) = scores_without_own([kind], graph, resp, shares)
        wanted = np.zeros_like(resp)
        np.add.at(wanted, graph.item, graph.count[:, None] * one)
        np.testing.assert_allclose(found, wanted - wanted.mean(1, keepdims=True), atol=1e-10)
    for power in (0.0, 0.5):
        size = heard.sum(1)
        weight = np.where(size > 1e-9, graph.count * np.maximum(size, 1e-9) ** -power, 0)
        votes = np.zeros_like(resp)
        np.add.at(votes, graph.item, weight[:, None] * heard)
        found = NeighbourVotes(power).shares(graph, graph.counts(resp), resp, shares)
        total = graph.counts(resp).sum(1)
        typical = np.sum(total ** (2 - power)) / total.sum()
        wanted = votes / typical + 0.5 * shares
        np.testing.assert_allclose(found, wanted / wanted.sum(1, keepdims=True), atol=1e-10)


def test_kinds_of_scores_without_a_weight_end():
    rng = np.random.default_rng(0)
    good, bad = np.log(rng.uniform(0.6, 0.9, 5000)), np.log(rng.uniform(0.2, 0.5, 5000))
    resp = np.eye(K)[rng.integers(0, K, 5000)]
    about = SimpleNamespace(weights=np.ones(5000), resp=resp)
    fits = [SimpleNamespace(log_likelihood=one) for one in (bad, good, bad, good[::-1])]
    going = propagation._promising(about, fits, [True, True, False, True])
    np.testing.assert_array_equal(going, [False, True, True, True])  # what may become better stays
    assert propagation._promising(about, fits, [False] * 4).all()


@pytest.mark.slow
def test_many_items_take_fewer_fits_to_the_same_answer(monkeypatch):
    """Kinds of scores without a weight end, and so do rounds that gain nothing."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 3000)
    appeal = rng.dirichlet(np.full(3, 0.3), 700)
    edges = sparse.csr_array(1 * (rng.random((700, 3000)) < 0.02 * appeal[:, truth]))
    given = np.where(rng.random(3000) < 0.3, rng.integers(0, 3, 3000), truth)
    found, made = [], []
    for many in (10_000, 1_000):
        monkeypatch.setattr(propagation, "MANY_ROWS", many)
        with counted_fits() as count:
            model = CollaborativeClassifier(random_state=0).fit(edges, given)
        found.append(model.label_posterior_)
        made.append(count.n)
    assert made[1] < 0.75 * made[0]
    assert np.mean(found[1].argmax(1) == found[0].argmax(1)) > 0.995
    assert np.abs(found[1] - found[0]).mean() < 0.003


def test_users_of_many_items_count_less():
    """Item 0 has a user of one other item, of class 1, and a popular one, mostly of class 0."""
    edges = np.zeros((22, 2))
    edges[[0, 1], 0] = 1
    edges[[0, *range(2, 22)], 1] = 1
    labels = np.array([2, 1, *[0] * 12, *[2] * 8])
    shares = np.full(K, 1 / K)
    graph = Graph(sparse.csr_array(edges))
    votes = [NeighbourVotes(0.0), NeighbourVotes(1.0)]
    plain, fair = scores_without_own(votes, graph, np.eye(K)[labels], shares)
    assert plain[0].argmax() == 0
    assert fair[0].argmax() == 1


def test_stacking_weights_follow_the_likelihood():
    rng = np.random.default_rng(0)
    good, bad = np.log(rng.uniform(0.6, 0.9, 300)), np.log(rng.uniform(0.2, 0.5, 300))
    weights = stacking_weights(np.array([bad, good, good]), np.ones(300))
    np.testing.assert_allclose(weights, [0, 0.5, 0.5], atol=1e-6)
    # labels of weight 0 have no say
    first = np.where(np.arange(300) < 5, bad, good)
    only = stacking_weights(np.array([bad, first]), 1.0 * (np.arange(300) >= 5))
    assert only[1] > 0.99
    mixed = np.where(np.arange(300) % 2, good, bad)
    both = stacking_weights(np.array([mixed, mixed[::-1]]), np.ones(300))
    np.testing.assert_allclose(both, 0.5, atol=0.1)
    # several sets of row weights at once, one of which holds no label
    rows = np.stack([np.ones(300), 1.0 * (np.arange(300) >= 5), np.zeros(300)])
    several = stacking_weights(np.array([bad, first]), rows)
    for one, found in zip(rows, several, strict=True):
        np.testing.assert_allclose(found, stacking_weights(np.array([bad, first]), one))


def test_labels_change_only_where_that_does_no_harm():
    codes, weights = np.zeros(10, int), np.ones(10)
    sure, weak = np.tile([0.9, 0.1], (10, 1)), np.tile([0.1, 0.9], (10, 1))
    known = Levels(np.array([0.1, 0.4]), np.array([0.01, 0.99]), np.stack([sure, weak]))
    assert (cautious(known, codes, weights).argmax(1) == 1).all()
    unknown = Levels(np.array([0.1, 0.4]), np.array([0.4, 0.6]), np.stack([sure, weak]))
    assert (cautious(unknown, codes, weights).argmax(1) == 0).all()


def test_evidence_that_is_not_heard_ranks_and_changes_nothing():
    rng = np.random.default_rng(0)
    given = rng.integers(0, K, 50)
    probs = np.where(np.eye(K, dtype=bool)[given], 0.6, 0.2)
    evidence = rng.normal(0, 3, (50, K))
    ranked = without_changes(probs, evidence)
    np.testing.assert_array_equal(ranked.argmax(1), given)
    np.testing.assert_allclose(ranked.sum(1), 1)
    own = evidence[np.arange(50), given] - evidence.mean(1)
    assert np.corrcoef(own, ranked[np.arange(50), given])[0, 1] > 0.8


def test_caution_rises_smoothly():
    """A little more doubt of the noise level changes P(true class) a little, never by a leap."""
    codes, weights = np.zeros(200, int), np.ones(200)
    share = np.array([0.1, 0.2, 0.3, 0.4])
    right = np.clip(np.array([[0.9], [0.6], [0.3], [0.1]]) + np.linspace(-0.2, 0.2, 200), 0, 1)
    probs = np.stack([right, 1 - right], 2)
    found = []
    for low_share in np.linspace(0, 0.5, 400):
        weight = np.array([low_share, 0.1, 0.3, 0.6 - low_share])
        found.append(cautious(Levels(share, weight, probs), codes, weights)[:, 0])
    assert np.ptp(found, axis=0).max() > 0.4
    assert np.abs(np.diff(found, axis=0)).max() < 0.02


def test_caution_is_no_evidence_that_labels_are_right():
    codes, weights = np.array([0, 0, -1, 0]), np.array([1.0, 1, 1, 0])
    sure, weak = np.tile([0.9, 0.1], (4, 1)), np.tile([0.1, 0.9], (4, 1))
    levels = Levels(np.array([0.1, 0.4]), np.array([0.4, 0.6]), np.stack([sure, weak]))
    assert expected_wrong(levels, codes, weights) == pytest.approx(0.4 * 0.1 + 0.6 * 0.9)
    assert (1 - cautious(levels, codes, weights)[:, 0] < 0.2).all()
    assert expected_wrong(levels, np.full(4, -1), weights) == 0


def test_folds_do_not_hang_on_the_order_of_items_and_users():
    edges, resp, _ = drawn(n=200, users=40)
    weights = np.ones(200)
    fold = graph_folds(edges, resp, weights, 10)
    assert (np.bincount(fold) == 20).all()
    rng = np.random.default_rng(1)
    for _ in range(3):
        rows, columns = rng.permutation(200), rng.permutation(40)
        moved = sparse.csr_array(edges[rows][:, columns])
        np.testing.assert_array_equal(graph_folds(moved, resp[rows], weights, 10), fold[rows])
