"""The level of the noise by two halves of the users."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from nbmodels.errors import IdentifiabilityWarning
from nbmodels.fitting.cautious_labels import WeighedLevels
from nbmodels.fitting.neighbours import Graph
from nbmodels.fitting.noise_levels import Levels
from nbmodels.fitting.split_users import Halves, evidence_of_halves, levels_of, votes_of_halves

K = 3
LEVELS = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45])


def symmetric(share, k=K):
    return (1 - share) * np.eye(k) + share * (1 - np.eye(k)) / (k - 1)


def cyclic(share, k=K):
    return (1 - share) * np.eye(k) + share * np.roll(np.eye(k), 1, 1)


def drawn(rng, classes, matrix):
    return (rng.random(len(classes))[:, None] > matrix[classes].cumsum(1)).sum(1)


def halves(noise, right, n=4000, seed=0, missing=0.2):
    """Labels, and two votes of the same accuracy, of which some are missing."""
    rng = np.random.default_rng(seed)
    y = rng.choice(K, n, p=[0.5, 0.3, 0.2])
    votes = np.stack([drawn(rng, y, symmetric(1 - right)) for _ in range(2)])
    votes[rng.random(votes.shape) < missing] = K
    return Halves(votes[None], drawn(rng, y, noise), np.ones(n))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.4])
@pytest.mark.parametrize("right", [0.6, 0.8])
def test_levels_are_told_by_votes_of_unknown_accuracy(share, right):
    matrices = np.stack([symmetric(level) for level in LEVELS])
    found = evidence_of_halves(halves(symmetric(share), right), matrices)
    assert abs(LEVELS[found.argmax()] - share) <= 0.05
    # the accuracy of the votes makes up for no other level
    assert found.max() - found[np.abs(LEVELS - share) > 0.12].max() > 3


@pytest.mark.slow
def test_levels_of_many_classes_are_computed_in_little_memory():
    """All levels at once would take arrays of 40 MB."""
    rng, n, k = np.random.default_rng(0), 2000, 100
    y = rng.integers(0, k, n)
    votes = np.where(rng.random((1, 2, n)) < 0.3, rng.integers(0, k, (1, 2, n)), y)
    tracemalloc.start()
    evidence_of_halves(Halves(votes, y, np.ones(n)), np.stack([symmetric(0.1, k)] * 25))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 60e6


def test_votes_without_information_tell_no_level():
    matrices = np.stack([symmetric(level) for level in LEVELS])
    assert np.ptp(evidence_of_halves(halves(symmetric(0.2), 1 / K), matrices)) < 3
    one = halves(symmetric(0.2), 0.8)
    none = one._replace(votes=np.full_like(one.votes, K))
    # with 45 % no class has as few labels as the last one
    assert np.ptp(evidence_of_halves(none, matrices)[:-1]) < 0.1


def test_the_form_of_the_noise_shows_in_the_halves():
    about = halves(cyclic(0.3), 0.7)
    right, wrong = (levels_of(matrix, about).marginal for matrix in (cyclic(0.2), symmetric(0.2)))
    assert right > wrong + 20
    about = halves(symmetric(0.3), 0.7)
    wrong, right = (levels_of(matrix, about).marginal for matrix in (cyclic(0.2), symmetric(0.2)))
    assert right > wrong + 20


def test_a_weight_of_two_is_two_items_and_items_without_a_label_have_votes():
    one = halves(symmetric(0.2), 0.7, n=300)
    codes = one.codes.copy()
    codes[:50] = -1
    weights = 1.0 + (np.arange(300) % 3 == 0)
    twice = np.repeat(np.arange(300), weights.astype(int))
    heavy = Halves(one.votes, codes, weights)
    long = Halves(one.votes[:, :, twice], codes[twice], np.ones(len(twice)))
    matrices = np.stack([symmetric(level) for level in LEVELS])
    np.testing.assert_allclose(
        evidence_of_halves(heavy, matrices), evidence_of_halves(long, matrices)
    )
    without = Halves(one.votes[:, :, 50:], codes[50:], weights[50:])
    assert not np.allclose(
        *(np.diff(evidence_of_halves(about, matrices)) for about in (heavy, without))
    )


def graph(n=200, users=60, seed=0):
    rng = np.random.default_rng(seed)
    edges = sparse.csr_array((rng.random((n, users)) < 0.1).astype(float))
    return edges, np.eye(K)[rng.integers(0, K, n)]


def test_votes_of_halves_hang_on_no_order():
    edges, resp = graph()
    weights, shares = np.ones(200), resp.mean(0)
    votes = votes_of_halves(Graph(edges), resp, weights, shares)
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(200), rng.permutation(60)
    moved = Graph(sparse.csr_array(edges[rows][:, columns]))
    found = votes_of_halves(moved, resp[rows], weights, shares)
    np.testing.assert_array_equal(found, votes[:, :, rows])
    assert len(np.unique(votes[:, 0], axis=0)) == len(votes)  # several ways to split


def test_users_of_the_same_items_are_one_witness():
    """Eight accounts that touch the same items agree with each other whatever the classes are."""
    edges, resp = graph(users=1)
    same = Graph(sparse.csr_array(np.repeat(edges.toarray(), 8, axis=1)))
    votes = votes_of_halves(same, resp, np.ones(200), resp.mean(0))
    assert ((votes == K).sum(1) >= 1).all()  # they are never in both halves
    assert (votes < K).any()


def test_an_items_own_label_has_no_part_in_its_votes():
    edges, resp = graph()
    weights, shares = np.ones(200), resp.mean(0)
    other = resp.copy()
    other[4] = np.roll(other[4], 1)
    # halves and ties follow from labels, too, so that the same users are compared: all of them
    part = Graph(edges[:, [int(np.flatnonzero(edges[[4]].toarray()[0])[0])]])
    for changed in (resp, other):
        votes = votes_of_halves(part, changed, weights, shares)[:, :, 4]
        counted = (part.edges.toarray()[:, 0] > 0) & (np.arange(200) != 4)
        most = resp[counted].sum(0)
        assert set(votes[votes < K]) <= set(np.flatnonzero(most == most.max()))


def test_surely_different_levels_are_warned_of_and_others_are_not():
    share = np.linspace(0.02, 0.5, 49)

    def normal(mean, sd):
        weight = np.exp(-0.5 * ((share - mean) / sd) ** 2)
        return weight / weight.sum()

    both = Levels(share, normal(0.2, 0.02), np.full((49, 2, 2), 0.5))
    (caution,) = WeighedLevels(both, normal(0.1, 0.02), normal(0.25, 0.03)).cautions()
    assert caution.category is IdentifiabilityWarning
    assert "10%" in caution.message
    assert "25%" in caution.message
    assert WeighedLevels(both, normal(0.15, 0.03), normal(0.22, 0.03)).cautions() == ()
    assert WeighedLevels(both, normal(0.1, 0.02), np.full(49, 1 / 49)).cautions() == ()
    # surely, and too little to matter
    assert WeighedLevels(both, normal(0.11, 0.006), normal(0.08, 0.006)).cautions() == ()
    assert WeighedLevels(both, normal(0.11, 0.006), normal(0.05, 0.006)).cautions()


@pytest.mark.parametrize(("n_classes", "n"), [(4, 600), (40, 3000)])
def test_the_level_is_found_whatever_the_number_of_classes(n_classes, n):
    """With half a pseudo-vote a cell 0.20 of 40 classes, where 0.28 is right."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, n_classes, n)

    def with_errors(share):
        return np.where(rng.random(n) < share, rng.integers(0, n_classes, n), true)

    halves = Halves(np.array([[with_errors(0.4), with_errors(0.4)]]), with_errors(0.3), np.ones(n))
    matrix = np.full((n_classes, n_classes), 0.3 / n_classes) + 0.7 * np.eye(n_classes)
    found = levels_of(matrix, halves)
    level = found.share[found.halves.argmax()]
    assert level == pytest.approx(np.mean(halves.codes != true), abs=0.05)
