"""A warning where the classes found are those of a few users who touch nearly the same items."""

import numpy as np
import pytest
from graph_worlds import WORLDS
from scipy import sparse

from nbmodels.errors import IdentifiabilityWarning
from nbmodels.fitting.coinciding_users import coinciding_users


def with_accounts(seed=0, n=400, n_accounts=15, k=2):
    """Users with a taste, accounts of the same items, and which items these are."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    home = rng.integers(0, k, n // 2)
    people = rng.random((n, n // 2)) < np.where(home == y[:, None], 0.02, 0.005)
    shared = rng.random(n) < 0.3
    accounts = rng.random((n, n_accounts)) < np.where(shared, 0.8, 0.02)[:, None]
    edges = sparse.csr_array(np.hstack([people, accounts]).astype(float))
    return edges, y, shared.astype(int)


@pytest.mark.parametrize("seed", range(3))
def test_classes_of_such_accounts_are_warned_of_and_true_ones_are_not(seed):
    edges, y, shared = with_accounts(seed)
    weights = np.ones(len(y))
    (caution,) = coinciding_users(edges, np.eye(2)[shared], weights)
    assert caution.category is IdentifiabilityWarning
    assert "nearly the same items" in caution.message
    assert coinciding_users(edges, np.eye(2)[y], weights) == ()
    # numbers of edges are not compared
    edges.data[:] = np.random.default_rng(0).integers(1, 100, edges.nnz)
    assert coinciding_users(edges, np.eye(2)[shared], weights) == (caution,)


def test_items_without_weight_do_not_count():
    edges, y, shared = with_accounts()
    resp = np.eye(2)[np.where(np.arange(400) < 200, shared, y)]
    first = (np.arange(400) < 200).astype(float)
    assert coinciding_users(edges, resp, first)
    assert coinciding_users(edges, resp, 1 - first) == ()


@pytest.mark.parametrize(
    "name", ["few users, 600 items", "single users", "spammers", "popular users", "two tastes"]
)
def test_few_or_active_users_with_a_taste_are_not_warned_of(name):
    world = WORLDS[name](np.random.default_rng(0))
    resp = np.eye(world.n_classes)[world.classes]
    assert coinciding_users(world.edges, resp, np.ones(len(resp))) == ()


def test_users_of_the_same_items_are_not_warned_of_where_there_are_no_others():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    edges = sparse.csr_array((rng.random((300, 12)) < 0.8 * y[:, None]).astype(float))
    assert coinciding_users(edges, np.eye(2)[y], np.ones(300)) == ()
    others = sparse.csr_array((rng.random((300, 200)) < 0.02).astype(float))
    both = sparse.csr_array(sparse.hstack([edges, others]))
    assert coinciding_users(both, np.eye(2)[y], np.ones(300))


def test_graphs_without_edges_or_information_are_not_warned_of():
    empty = sparse.csr_array((10, 5))
    assert coinciding_users(empty, np.full((10, 2), 0.5), np.ones(10)) == ()
    assert coinciding_users(sparse.csr_array((10, 0)), np.eye(2)[[0] * 10], np.ones(10)) == ()
    one = sparse.csr_array(np.ones((10, 1)))
    assert coinciding_users(one, np.eye(2)[[0, 1] * 5], np.ones(10)) == ()
