"""Worlds of users, items and classes in which graph models fail in different ways.

Each world is a function of a NumPy generator that returns a :class:`World`; :data:`WORLDS` names
them. ``given_labels`` draws noisy labels, ``plain_answers`` gives what a library must not fall
below: the labels as they are, the neighbours' majority, and relaxation labelling.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from baselines import relaxation_labels, weighted_vote
from scipy import sparse

from nbmodels.datasets import corrupt


class World(NamedTuple):
    """A graph with true classes.

    Attributes:
        edges: ``(N, users)`` numbers of edges.
        classes: ``(N,)`` true classes.
        n_classes: K.
    """

    edges: sparse.csr_array
    classes: np.ndarray
    n_classes: int


def _world(item: Any, user: Any, n_users: int, classes: np.ndarray, k: int) -> World:
    """A world from its pairs, each of which counts once."""
    shape = (len(classes), n_users)
    item, user = np.asarray(item), np.asarray(user)
    edges = sparse.coo_array((np.ones(len(item)), (item, user)), shape=shape).tocsr()
    edges.data[:] = 1
    return World(edges, classes, k)


def _drawn_users(
    rng: Any, classes: np.ndarray, appeal: np.ndarray, degree: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``degree`` distinct users of each item, by their appeal ``(users, K)`` to its class."""
    items, users = [], []
    for j, (c, d) in enumerate(zip(classes, degree, strict=True)):
        keys = np.log(appeal[:, c] + 1e-12) + rng.gumbel(size=len(appeal))
        users.append(np.argsort(-keys)[:d])
        items.append(np.full(d, j))
    return np.concatenate(items), np.concatenate(users)


def few_users(
    rng: Any, n: int = 4000, n_users: int = 20, k: int = 3, alpha: float = 0.5, degree: float = 5
) -> World:
    """A small dense graph: few users, each of a large share of the items."""
    y = rng.integers(0, k, n)
    appeal = rng.dirichlet(np.full(k, alpha), n_users)
    degrees = np.minimum(1 + rng.poisson(degree - 1, n), n_users)
    return _world(*_drawn_users(rng, y, appeal, degrees), n_users, y, k)


def differing_pairs(
    rng: Any, n: int = 600, k: int = 3, differ: float = 0.25, degree: float = 8
) -> World:
    """A plain graph, every user an edge between two items, of which a share differs."""
    y = rng.integers(0, k, n)
    n_users = int(n * degree / 2)
    first = rng.integers(0, n, n_users)
    other = rng.random(n_users) < differ
    wanted = np.where(other, (y[first] + rng.integers(1, k, n_users)) % k, y[first])
    members = [np.flatnonzero(y == c) for c in range(k)]
    second = np.array([rng.choice(members[c]) for c in wanted])
    user = np.arange(n_users)
    return _world(np.r_[first, second], np.r_[user, user], n_users, y, k)


def mixed_users(
    rng: Any, n: int = 600, k: int = 3, own: float = 0.8, size: int = 6, degree: float = 5
) -> World:
    """Users of several items, each mostly of one class."""
    y = rng.integers(0, k, n)
    n_users = int(n * degree / size)
    home = rng.integers(0, k, n_users)
    taste = np.where(np.eye(k, dtype=bool)[home], own, (1 - own) / (k - 1))
    members = [np.flatnonzero(y == c) for c in range(k)]
    items, users = [], []
    for i in range(n_users):
        for c, m in enumerate(rng.multinomial(size, taste[i])):
            chosen = rng.choice(members[c], min(m, len(members[c])), replace=False)
            items.append(chosen)
            users.append(np.full(len(chosen), i))
    return _world(np.concatenate(items), np.concatenate(users), n_users, y, k)


def popular_users(
    rng: Any, n: int = 600, k: int = 3, popular: int = 6, share: float = 0.4
) -> World:
    """Small users with a taste, and a few who touch everything alike."""
    small = mixed_users(rng, n, k, own=0.9, size=4, degree=3)
    touched = sparse.csr_array((rng.random((n, popular)) < share).astype(float))
    edges = sparse.csr_array(sparse.hstack([small.edges, touched]))
    return World(edges, small.classes, k)


def weak_edges(rng: Any, n: int = 600, k: int = 3, alpha: float = 3.0, size: int = 5) -> World:
    """Users with hardly a taste."""
    y = rng.integers(0, k, n)
    n_users = n
    taste = rng.dirichlet(np.full(k, alpha), n_users)
    members = [np.flatnonzero(y == c) for c in range(k)]
    items, users = [], []
    for i in range(n_users):
        for c, m in enumerate(rng.multinomial(size, taste[i])):
            items.append(rng.choice(members[c], m, replace=False))
            users.append(np.full(m, i))
    return _world(np.concatenate(items), np.concatenate(users), n_users, y, k)


def isolated_items(rng: Any, n: int = 600, k: int = 3, isolated: float = 0.4) -> World:
    """Clear users, and a share of items that nobody touches."""
    whole = mixed_users(rng, n, k, own=0.9, size=5, degree=5)
    kept = sparse.diags_array((rng.random(n) >= isolated).astype(float))
    edges = sparse.csr_array(kept @ whole.edges)
    edges.eliminate_zeros()
    return World(edges, whole.classes, k)


def two_communities(rng: Any, n: int = 600, k: int = 2, own: float = 0.85) -> World:
    """Twice as many communities of users as classes."""
    parts = mixed_users(rng, n, 2 * k, own, 6, 5)
    return World(parts.edges, parts.classes // 2, k)


def uneven_classes(rng: Any, n: int = 600, k: int = 3, degree: float = 5) -> World:
    """Classes of 70, 20 and 10 %, users who touch anything with a taste for one class."""
    shares = np.array([0.7, 0.2, 0.1, 0.05][:k])
    y = rng.choice(k, n, p=shares / shares.sum())
    n_users = n
    home = rng.choice(k, n_users, p=shares / shares.sum())
    appeal = np.where(np.eye(k, dtype=bool)[home], 1.0, 0.08)
    degrees = 1 + rng.poisson(degree - 1, n)
    return _world(*_drawn_users(rng, y, appeal, degrees), n_users, y, k)


def mute(rng: Any, n: int = 600, k: int = 3) -> World:
    """Edges that say nothing."""
    y = rng.integers(0, k, n)
    edges = sparse.csr_array((rng.random((n, n // 2)) < 6 / (n // 2)).astype(float))
    return World(edges, y, k)


#: Worlds by name.
WORLDS: dict[str, Callable[[Any], World]] = {
    "few users, 4000 items": few_users,
    "few users, 600 items": partial(few_users, n=600),
    "few users, 600 items, weak": partial(few_users, n=600, alpha=2.0),
    "pairs, 20 % differ": partial(differing_pairs, differ=0.2),
    "pairs, 33 % differ": partial(differing_pairs, differ=0.33),
    "pairs, 33 % differ, sparse": partial(differing_pairs, differ=0.33, degree=4),
    "mixed users": mixed_users,
    "mixed users, 4 classes": partial(mixed_users, k=4, own=0.7),
    "popular users": popular_users,
    "weak edges": weak_edges,
    "isolated items": isolated_items,
    "two communities a class": two_communities,
    "uneven classes": uneven_classes,
    "mute": mute,
}


def given_labels(rng: Any, world: World, rate: float, kind: str = "uniform") -> np.ndarray:
    """Labels of which a share is wrong.

    Args:
        rng: NumPy generator.
        world: with the true classes.
        rate: probability that a label is wrong.
        kind: ``"uniform"``, any other class alike, or ``"pair"``, always the next one.
    """
    k = world.n_classes
    eye = np.eye(k)
    other = np.roll(eye, 1, 0) if kind == "pair" else (1 - eye) / (k - 1)
    return corrupt(world.classes, (1 - rate) * eye + rate * other, rng)


def plain_answers(world: World, given: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Suggested labels, and a score of each given label's being wrong, by method."""
    k = world.n_classes
    out = {"labels": (given, np.zeros(len(given)))}
    votes = {
        "majority": weighted_vote(world.edges, given, k),
        "relaxation": relaxation_labels(world.edges, given, k),
    }
    for name, table in votes.items():
        total = table.sum(1)
        share = table[np.arange(len(given)), given] / np.where(total > 0, total, 1)
        best = np.where(total > 0, table.argmax(1), given)
        out[name] = (best, np.where(total > 0, 1 - share, 0.5))
    return out
