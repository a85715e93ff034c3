"""Worlds of items known by their users."""

from __future__ import annotations

from typing import Any

import numpy as np
from baselines import weighted_vote
from scipy import sparse

from floor_worlds.base import Items, Setting, classes, grid, world

#: Share of the items whose labels are hidden.
_HIDDEN = 0.25
_CELLS = grid((200, 600, 3000), (2, 3, 10), rare=(False,))
_QUICK = (
    Setting(600, 3, False, "uniform", 0.1),
    Setting(600, 3, False, "features", 0.2),
    Setting(600, 3, False, "uniform", 0.4),
)


def _drawn(
    y: np.ndarray,
    affinity: np.ndarray,
    degree: np.ndarray,
    setting: Setting,
    rng: np.random.Generator,
) -> Items:
    """A graph where each item draws its users without replacement.

    Args:
        y: ``(N,)`` classes.
        affinity: ``(N, users)`` or ``(K, users)`` rates at which items, or those of a class, draw
            each user.
        degree: ``(N,)`` users of each item.
        setting: cell of the grid.
        rng: NumPy generator.
    """
    rates = affinity[y] if len(affinity) == setting.k else affinity
    n, users = rates.shape
    # the largest of these are draws without replacement
    keys = np.log(rates) + rng.gumbel(size=rates.shape)
    order = np.argsort(-keys, axis=1)
    kept = np.arange(users) < np.minimum(degree, users)[:, None]
    item = np.repeat(np.arange(n), kept.sum(1))
    edges = sparse.csr_array((np.ones(len(item)), (item, order[kept])), shape=(n, users))
    return with_hidden(edges, y, setting.k, rng)


def with_hidden(edges: Any, y: np.ndarray, k: int, rng: np.random.Generator) -> Items:
    """A graph with hidden labels; errors follow the neighbours."""
    hidden = np.zeros(len(y), bool)
    hidden[rng.permutation(len(y))[: round(_HIDDEN * len(y))]] = True
    return Items(edges, y, evidence=_evidence(edges, y, k), hidden=hidden)


def _evidence(edges: Any, y: np.ndarray, k: int) -> np.ndarray:
    """``(N, K)`` logarithms of the true classes' shares among an item's neighbours."""
    votes = weighted_vote(edges, y, k) + 0.1
    return np.log(votes / votes.sum(1, keepdims=True))


def _tastes(k: int, users: int, away: float, rng: np.random.Generator) -> np.ndarray:
    """``(K, users)`` rates of users who prefer one class, and others in ``away`` of their edges."""
    home = rng.integers(0, k, users)
    return np.where(home == np.arange(k)[:, None], 1 - away, away / (k - 1))


@world("graph, dense with few users", "graph", _CELLS, quick=_QUICK[:2])
def dense(setting: Setting, rng: np.random.Generator) -> Items:
    """Twenty users, each with a tenth of all items and more."""
    y = classes(setting.n, setting, rng)
    rates = rng.dirichlet(np.ones(setting.k), 20).T + 1e-3
    return _drawn(y, rates, 2 + rng.poisson(3, setting.n), setting, rng)


@world("graph, tastes", "graph", _CELLS)
def tastes(setting: Setting, rng: np.random.Generator) -> Items:
    """Many users, each with a class that they prefer."""
    y = classes(setting.n, setting, rng)
    rates = _tastes(setting.k, setting.n, 0.05, rng)
    return _drawn(y, rates, 1 + rng.poisson(4, setting.n), setting, rng)


@world("graph, mixed neighbours", "graph", _CELLS, quick=(_QUICK[0], _QUICK[2]))
def mixed(setting: Setting, rng: np.random.Generator) -> Items:
    """A quarter of the neighbours and more are of another class."""
    y = classes(setting.n, setting, rng)
    rates = _tastes(setting.k, setting.n // 3, 0.15, rng)
    return _drawn(y, rates, 1 + rng.poisson(3, setting.n), setting, rng)


@world("graph, heterophilous", "graph", _CELLS)
def heterophilous(setting: Setting, rng: np.random.Generator) -> Items:
    """Users who touch two classes alike, so that most neighbours may be of another one."""
    y, k = classes(setting.n, setting, rng), setting.k
    first = rng.integers(0, k, setting.n // 3)
    second = (first + 1) % k if k > 2 else first
    either = (first == np.arange(k)[:, None]) | (second == np.arange(k)[:, None])
    return _drawn(y, np.where(either, 1.0, 0.05), 2 + rng.poisson(4, setting.n), setting, rng)


@world("graph, popular users", "graph", _CELLS)
def popular(setting: Setting, rng: np.random.Generator) -> Items:
    """Few users without a taste have half of all edges."""
    y = classes(setting.n, setting, rng)
    rates = _tastes(setting.k, setting.n // 2, 0.05, rng)
    rates = rates / rates.sum(1, keepdims=True)
    crowd = np.full((setting.k, 5), 1 / 5)
    return _drawn(y, np.hstack([rates, crowd]), 2 + rng.poisson(4, setting.n), setting, rng)


@world("graph, weak edges", "graph", _CELLS, quick=_QUICK[2:])
def weak(setting: Setting, rng: np.random.Generator) -> Items:
    """Users' tastes hardly differ."""
    y = classes(setting.n, setting, rng)
    rates = rng.dirichlet(np.full(setting.k, 10.0), setting.n // 2).T
    return _drawn(y, rates, 1 + rng.poisson(4, setting.n), setting, rng)


@world("graph, isolated items", "graph", _CELLS)
def isolated(setting: Setting, rng: np.random.Generator) -> Items:
    """Four of ten items have no user."""
    y = classes(setting.n, setting, rng)
    rates = _tastes(setting.k, setting.n // 2, 0.05, rng)
    degree = np.where(rng.random(setting.n) < 0.4, 0, 1 + rng.poisson(4, setting.n))
    return _drawn(y, rates, degree, setting, rng)


@world("graph, two communities in a class", "graph", _CELLS)
def communities(setting: Setting, rng: np.random.Generator) -> Items:
    """Each class has two communities, between which no user goes."""
    y = classes(setting.n, setting, rng)
    community = 2 * y + rng.integers(0, 2, setting.n)
    rates = _tastes(2 * setting.k, setting.n // 2, 0.05, rng)[community]
    return _drawn(y, rates, 1 + rng.poisson(4, setting.n), setting, rng)
