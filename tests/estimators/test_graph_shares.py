"""Shares of wrong labels, classes and repeated edges, by an average of neighbour models."""

import warnings

import numpy as np
import pytest
from graph_worlds import given_labels, mixed_users, weak_edges
from scipy import sparse

from nbmodels import CollaborativeClassifier, IdentifiabilityWarning, Solver
from nbmodels.diagnostics.findings import SHARE_WRONG
from nbmodels.fitting.neighbours import READINGS, read_repeats


def fitted(edges, given, k, **options):
    quiet = Solver(method="vb", progress=False)
    own = {"noise": "symmetric", "alpha": 1.0} | options
    e = CollaborativeClassifier(classes=range(k), random_state=0, solver=quiet, **own)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        return e.fit(edges.T, given)


@pytest.mark.slow
def test_caution_does_not_lower_the_share_of_wrong_labels():
    rng = np.random.default_rng(0)
    world = weak_edges(rng, 250, alpha=2.0)
    given = given_labels(rng, world, 0.1, "uniform")
    e = fitted(world.edges, given, 3)
    doubt = 1 - e.label_posterior_[np.arange(len(given)), given].mean()
    share = e.fitted_.share_wrong
    rates = 1 - np.diag(e.noise_matrix_)
    assert doubt < 0.9 * share
    assert abs(share - rates @ e.class_prior_) < 0.05
    (finding,) = [one for one in e.verdict().findings if one.name == SHARE_WRONG]
    assert finding.effect == share
    assert f"{100 * share:.1f} %" in finding.sentence


@pytest.fixture(scope="module")
def plain():
    """A graph without repeated edges, and its labels."""
    rng = np.random.default_rng(1)
    world = mixed_users(rng, 250, 3, own=0.85, size=5, degree=5)
    return world, given_labels(rng, world, 0.2, "uniform")


@pytest.mark.slow
def test_a_new_item_of_unknown_users_has_the_shares_of_the_classes(plain):
    world, given = plain
    e = fitted(world.edges, given, 3)
    n_users = world.edges.shape[1]
    new = sparse.csr_array(np.column_stack([np.zeros(n_users), world.edges.toarray()[0]]))
    nobody, somebody = e.predict_proba(new)
    np.testing.assert_allclose(nobody, e.class_prior_)
    assert somebody.max() > 0.6


@pytest.mark.slow
def test_a_pair_of_many_edges_does_not_outvote_all_others(plain):
    world, given = plain
    rng = np.random.default_rng(2)
    often = world.edges.copy()
    often.data = np.ceil(rng.lognormal(1.5, 1.5, often.nnz))
    e = fitted(often, given, 3)
    error, counted = (
        np.mean(one.label_posterior_.argmax(1) != world.classes)
        for one in (e, fitted(often, given, 3, duplicates="count"))
    )
    assert error <= counted - 0.04
    assert error <= np.mean(fitted(world.edges, given, 3).predict() != world.classes) + 0.02
    assert set(e.choice_["repeats"].dropna()) == set(READINGS)
    # and new items are read as those of the fit
    assert np.mean(e.predict(often.T) != world.classes) < 0.1


@pytest.mark.slow
def test_nothing_is_tried_where_edges_do_not_repeat(plain):
    world, given = plain
    e, counted = fitted(world.edges, given, 3), fitted(world.edges, given, 3, duplicates="count")
    np.testing.assert_array_equal(e.label_posterior_, counted.label_posterior_)
    assert "repeats" not in e.choice_
    assert len(e.choice_) == len(counted.choice_)


def test_a_single_edge_counts_one_under_every_reading():
    edges = sparse.csr_array(np.array([[1.0, 0, 3], [0, 7, 1]]))
    found = {one: read_repeats(edges, one).toarray() for one in READINGS}
    np.testing.assert_allclose(found["count"], edges.toarray())
    np.testing.assert_allclose(found["log"], [[1, 0, 2], [0, 3, 1]])
    np.testing.assert_allclose(found["once"], [[1, 0, 1], [0, 1, 1]])
    np.testing.assert_allclose(edges.toarray(), [[1, 0, 3], [0, 7, 1]])


def test_known_shares_of_the_classes_count_once():
    rng = np.random.default_rng(3)
    classes = rng.choice(2, 300, p=[0.8, 0.2])
    taste = rng.integers(0, 2, 60)
    often = np.where(classes == taste[:, None], 0.1, 0.05)
    edges = sparse.csr_array((rng.random((60, 300)) < often).astype(float).T)
    e = fitted(edges, classes, 2, class_prior=[0.8, 0.2], noise=np.eye(2) * 0.98 + 0.01)
    assert e.weight_ > 0
    assert e.predict_proba(edges.T)[:, 1].mean() == pytest.approx(0.2, abs=0.04)
