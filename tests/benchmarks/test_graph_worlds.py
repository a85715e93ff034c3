"""Worlds of graphs and their label errors."""

import graph_worlds
import numpy as np
import pytest

LARGE = ("few users, 4000 items", "mixed neighbours, 3000 items")


@pytest.mark.parametrize("name", [one for one in graph_worlds.WORLDS if one not in LARGE])
def test_worlds_have_all_classes_and_errors_at_the_rate(name):
    rng = np.random.default_rng(0)
    world = graph_worlds.WORLDS[name](rng)
    assert world.edges.shape[0] == len(world.classes)
    assert len(np.unique(world.classes)) == world.n_classes
    for kind, rate in graph_worlds.NOISES + graph_worlds.OTHERS:
        given = graph_worlds.given_labels(rng, world, rate, kind)
        # with unequal rates the share hangs on the shares of the classes
        assert abs(np.mean(given != world.classes) - rate) < (0.13 if kind == "uneven" else 0.07)


def test_errors_of_a_community_are_in_a_third_of_the_items():
    rng = np.random.default_rng(0)
    world = graph_worlds.mixed_neighbours(rng)
    wrong = graph_worlds.given_labels(rng, world, 0.2, "community") != world.classes
    pairs = world.edges @ world.edges.T
    pairs.setdiag(0)
    beside = (pairs @ wrong) / np.maximum(pairs.sum(1), 1)
    # items beside wrong labels have wrong labels
    assert beside[wrong].mean() > beside[~wrong].mean() + 0.05


def test_errors_of_few_edges_and_of_siblings():
    rng = np.random.default_rng(0)
    world = graph_worlds.uneven_degree(rng)
    wrong = graph_worlds.given_labels(rng, world, 0.2, "degree") != world.classes
    degree = np.diff(world.edges.indptr)
    assert wrong[degree <= 2].mean() > wrong[degree > 6].mean() + 0.2
    four = graph_worlds.super_communities(rng)
    given = graph_worlds.given_labels(rng, four, 0.25, "sibling")
    assert (given // 2 == four.classes // 2).all()
