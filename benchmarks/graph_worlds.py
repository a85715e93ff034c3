"""Worlds of users, items and classes in which graph models fail in different ways.

``python benchmarks/graph_worlds.py --seeds 900 901`` prints ours beside the plain answers;
``--only`` takes some of the worlds, ``--others`` more kinds of errors, ``--coverage`` draws
intervals, too, which takes longer.

Each world is a function of a NumPy generator that returns a :class:`World`; :data:`WORLDS` names
them. ``given_labels`` draws noisy labels, ``plain_answers`` gives what a library must not fall
below: the labels as they are, the neighbours' majority, and relaxation labelling.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from baselines import relaxation_labels, weighted_vote
from scipy import sparse
from sklearn.metrics import roc_auc_score

from nbmodels import CollaborativeClassifier, NbmodelsWarning, Solver
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


def ordered_classes(rng: Any, n: int = 600, k: int = 5, width: float = 0.7) -> World:
    """Classes on a line, users with a position there, who also touch the classes beside theirs."""
    y = rng.integers(0, k, n)
    at = rng.uniform(-0.5, k - 0.5, n // 2)
    appeal = np.exp(-0.5 * ((at[:, None] - np.arange(k)) / width) ** 2)
    return _world(*_drawn_users(rng, y, appeal, 1 + rng.poisson(3, n)), n // 2, y, k)


def repeated_visits(rng: Any, n: int = 600, k: int = 3) -> World:
    """Users with a taste who come back to an item, some of them hundreds of times."""
    once = mixed_users(rng, n, k, own=0.8, size=6, degree=5)
    edges = once.edges.copy()
    edges.data[:] = np.ceil(rng.pareto(0.9, edges.nnz)).clip(1, 500)
    return World(edges, once.classes, k)


def alike_classes(rng: Any, n: int = 900, k: int = 4) -> World:
    """Classes in pairs; users keep to a pair, and hardly prefer either class of it."""
    y = rng.integers(0, k, n)
    home = rng.integers(0, k, n // 2)
    classes = np.arange(k)
    own, pair = classes == home[:, None], classes // 2 == home[:, None] // 2
    appeal = np.where(own, 0.55, np.where(pair, 0.4, 0.025))
    return _world(*_drawn_users(rng, y, appeal, 2 + rng.poisson(3, n)), n // 2, y, k)


def single_users(rng: Any, n: int = 1500, k: int = 3) -> World:
    """A stream: seven of ten items have one user, and few users have most of the items."""
    y = rng.integers(0, k, n)
    taste = rng.dirichlet(np.full(k, 0.3), 150)
    activity = rng.pareto(1.2, 150) + 0.2
    degrees = 1 + (rng.random(n) < 0.3) * rng.integers(1, 4, n)
    return _world(*_drawn_users(rng, y, taste * activity[:, None], degrees), 150, y, k)


def ten_classes(rng: Any, n: int = 1500) -> World:
    """Ten classes, forty users."""
    return few_users(rng, n, 40, 10, 0.1, 4)


def rare_class(rng: Any, n: int = 1000) -> World:
    """Classes of 80, 15 and 5 %; users of several items, mostly of one class."""
    k, shares = 3, np.array([0.8, 0.15, 0.05])
    y = rng.choice(k, n, p=shares)
    home = rng.choice(k, n // 2, p=shares)
    appeal = np.where(np.eye(k, dtype=bool)[home], 1.0, 0.05)
    return _world(*_drawn_users(rng, y, appeal, 1 + rng.poisson(3, n)), n // 2, y, k)


def two_tastes(rng: Any, n: int = 600, k: int = 3) -> World:
    """Users who touch two classes alike, and hardly a third."""
    y = rng.integers(0, k, n)
    away = rng.integers(0, k, n // 2)
    appeal = np.where(np.eye(k, dtype=bool)[away], 0.03, 1.0)
    return _world(*_drawn_users(rng, y, appeal, 2 + rng.poisson(4, n)), n // 2, y, k)


def bots(rng: Any, n: int = 600, k: int = 3, n_bots: int = 15, share: float = 0.3) -> World:
    """Users with a taste, and bots that all touch the same items, which are drawn at random."""
    people = mixed_users(rng, n, k, own=0.8, size=6, degree=4)
    target = rng.random(n) < share
    touched = (rng.random((n, n_bots)) < np.where(target, 0.8, 0.02)[:, None]).astype(float)
    edges = sparse.csr_array(sparse.hstack([people.edges, sparse.csr_array(touched)]))
    return World(edges, people.classes, k)


def spammers(rng: Any, n: int = 600, k: int = 3, n_spammers: int = 12) -> World:
    """Users with a taste, and a few of a hundred items each that slightly prefer one class."""
    people = mixed_users(rng, n, k, own=0.8, size=6, degree=3)
    rates = np.where(people.classes[:, None] == rng.integers(0, k, n_spammers), 0.28, 0.16)
    touched = sparse.csr_array((rng.random((n, n_spammers)) < rates).astype(float))
    edges = sparse.csr_array(sparse.hstack([people.edges, touched]))
    return World(edges, people.classes, k)


def sparse_items(rng: Any, n: int = 1000, k: int = 3) -> World:
    """Most items have no more than two users."""
    y = rng.integers(0, k, n)
    home = rng.integers(0, k, n // 4)
    appeal = np.where(np.eye(k, dtype=bool)[home], 1.0, 0.1)
    return _world(*_drawn_users(rng, y, appeal, rng.binomial(2, 0.6, n)), n // 4, y, k)


def super_communities(rng: Any, n: int = 800, k: int = 4) -> World:
    """Classes in pairs; users prefer a class, then the other one of its pair."""
    y = rng.integers(0, k, n)
    home = rng.integers(0, k, n // 2)
    classes = np.arange(k)
    own, pair = classes == home[:, None], classes // 2 == home[:, None] // 2
    appeal = np.where(own, 0.65, np.where(pair, 0.25, 0.05))
    return _world(*_drawn_users(rng, y, appeal, 1 + rng.poisson(4, n)), n // 2, y, k)


def counted_edges(rng: Any, n: int = 600, k: int = 3) -> World:
    """Users touch anything once, and come back to items of their class."""
    y = rng.integers(0, k, n)
    home = rng.integers(0, k, n // 3)
    pairs = _world(*_drawn_users(rng, y, np.ones((n // 3, k)), 1 + rng.poisson(5, n)), n // 3, y, k)
    edges = pairs.edges.tocoo()
    rates = np.where(y[edges.row] == home[edges.col], 2.5, 0.4)
    edges.data[:] = 1 + rng.poisson(rates)
    return World(sparse.csr_array(edges), y, k)


def uneven_degree(rng: Any, n: int = 600, k: int = 3) -> World:
    """Items of the first class have one user, those of the last a dozen."""
    y = rng.integers(0, k, n)
    home = rng.integers(0, k, n // 2)
    appeal = np.where(np.eye(k, dtype=bool)[home], 1.0, 0.15)
    degree = 1 + rng.poisson(11 * y / (k - 1))
    return _world(*_drawn_users(rng, y, appeal, degree), n // 2, y, k)


def drift(rng: Any, n: int = 900, k: int = 3) -> World:
    """Items in the order of time; users are there for all of it, and change their taste midway."""
    y = rng.integers(0, k, n)
    n_users = n // 3
    tastes = [np.eye(k, dtype=bool)[rng.integers(0, k, n_users)] for _ in range(2)]
    early, late = (np.where(taste, 1.0, 0.1) for taste in tastes)
    degree = 2 + rng.poisson(4, n)
    half = n // 2
    item, user = _drawn_users(rng, y[:half], early, degree[:half])
    later, others = _drawn_users(rng, y[half:], late, degree[half:])
    return _world(np.r_[item, half + later], np.r_[user, others], n_users, y, k)


def time_line(rng: Any, n: int = 800, k: int = 4, run: int = 25) -> World:
    """Items in the order of time, classes in runs; a user is there for a short while."""
    y = np.repeat(rng.integers(0, k, n // run + 1), run)[:n]
    n_users = n // 2
    at = rng.integers(0, n, n_users)
    reach = at[:, None] + rng.integers(-20, 21, (n_users, 8))
    inside = (reach >= 0) & (reach < n)
    user = np.broadcast_to(np.arange(n_users)[:, None], reach.shape)
    return _world(reach[inside], user[inside], n_users, y, k)


def mixed_neighbours(rng: Any, n: int = 600, k: int = 3, away: float = 0.15) -> World:
    """Users of some ten items, of which a quarter and more are of other classes."""
    y = rng.integers(0, k, n)
    home = rng.integers(0, k, n // 3)
    appeal = np.where(np.eye(k, dtype=bool)[home], 1 - away, away / (k - 1))
    return _world(*_drawn_users(rng, y, appeal, 1 + rng.poisson(3, n)), n // 3, y, k)


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
    "ordered classes": ordered_classes,
    "repeated visits": repeated_visits,
    "alike classes": alike_classes,
    "single users": single_users,
    "ten classes, 40 users": ten_classes,
    "rare class": rare_class,
    "two tastes": two_tastes,
    "bots": bots,
    "bots, 2 classes": partial(bots, n=400, k=2),
    "spammers": spammers,
    "sparse items": sparse_items,
    "super-communities": super_communities,
    "counted edges": counted_edges,
    "uneven degree": uneven_degree,
    "uneven degree, 5 classes": partial(uneven_degree, n=1500, k=5),
    "drift": drift,
    "time line": time_line,
    "mixed neighbours": mixed_neighbours,
    "mixed neighbours, 200 items": partial(mixed_neighbours, n=200),
    "mixed neighbours, 3000 items": partial(mixed_neighbours, n=3000, k=5),
}

#: Kinds and rates of label errors; those of a run unless others are named, and the others.
NOISES = (("uniform", 0.1), ("uniform", 0.3), ("pair", 0.3), ("uneven", 0.2))
OTHERS = (("uniform", 0.4), ("sibling", 0.25), ("community", 0.2), ("degree", 0.2))


def noise_matrix(k: int, rate: float, kind: str = "uniform") -> np.ndarray:
    """``(K, K)`` ``[observed, true]``; arguments as of :func:`given_labels`."""
    eye = np.eye(k)
    other = (1 - eye) / (k - 1)
    if kind == "pair":
        other = np.roll(eye, 1, 0)
    if kind == "sibling":
        other = eye[np.where(np.arange(k) ^ 1 < k, np.arange(k) ^ 1, 0)].T
    rates = np.linspace(0.25, 1.75, k) if kind == "uneven" else np.ones(k)
    return eye * (1 - rate * rates) + other * rate * rates


def given_labels(rng: Any, world: World, rate: float, kind: str = "uniform") -> np.ndarray:
    """Labels of which a share is wrong.

    Args:
        rng: NumPy generator.
        world: with the true classes.
        rate: probability that a label is wrong.
        kind: ``"uniform"``, any other class alike; ``"pair"``, always the next one; ``"uneven"``,
            uniform, with a rate that rises with the class from a quarter to seven quarters;
            ``"sibling"``, the other class of a pair; ``"community"``, uniform, in the items of
            some users alone, a third of all; ``"degree"``, uniform, the more the fewer edges.
    """
    rates = _rates(rng, world, rate, kind)
    if rates is None:
        return corrupt(world.classes, noise_matrix(world.n_classes, rate, kind), rng)
    other = (world.classes + rng.integers(1, world.n_classes, len(rates))) % world.n_classes
    return np.where(rng.random(len(rates)) < rates, other, world.classes)


def _rates(rng: Any, world: World, rate: float, kind: str) -> np.ndarray | None:
    """``(N,)`` probabilities that labels are wrong; None where they hang on the class alone."""
    n = len(world.classes)
    if kind == "community":
        users = np.asarray(rng.permutation(world.edges.shape[1]))
        place = np.full(world.edges.shape[1], np.inf)
        place[users] = np.arange(len(users))
        pairs = world.edges.tocoo()
        first = np.full(n, np.inf)
        np.minimum.at(first, pairs.row, place[pairs.col])
        inside = np.argsort(first, kind="stable")[: n // 3]
        return np.where(np.isin(np.arange(n), inside), min(3 * rate, 0.6), 0.0)
    if kind == "degree":
        few = 1 / (1 + np.diff(world.edges.indptr))
        return np.minimum(rate * few / few.mean(), 0.7)
    return None


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


def figures(name: str, kind: str, rate: float, seed: int, coverage: bool) -> dict[str, Any]:
    """Errors of ours and of the plain answers on one data set.

    Args:
        name: of the world.
        kind: of the label errors.
        rate: of these.
        seed: of the data.
        coverage: draw from the posterior, for the share of cells of the noise matrix whose 90 %
            interval holds them.
    """
    rng = np.random.default_rng([seed, sum(map(ord, name)), (NOISES + OTHERS).index((kind, rate))])
    world = WORLDS[name](rng)
    given = given_labels(rng, world, rate, kind)
    with warnings.catch_warnings(record=True, action="always") as caught:
        e = CollaborativeClassifier(
            classes=range(world.n_classes),
            random_state=0,
            solver=Solver(method="vb", progress=False),
        ).fit(world.edges.T, given)
    warned = any(issubclass(w.category, NbmodelsWarning) for w in caught)
    probs = e.label_posterior_
    answers = plain_answers(world, given)
    answers["ours"] = (probs.argmax(1), 1 - probs[np.arange(len(given)), given])
    wrong = given != world.classes
    out: dict[str, Any] = {"world": name, "noise": f"{kind} {rate:.0%}"}
    for method, (best, score) in answers.items():
        out[method] = np.mean(best != world.classes)
        out[f"AUC {method}"] = roc_auc_score(wrong, score)
    out["spoke"] = warned or not e.verdict().ok
    if coverage:
        tree = e.posterior(progress=False)
        draws = tree["posterior"]["noise_matrix"].to_numpy()
        truth = noise_matrix(world.n_classes, rate, kind)
        if kind in ("community", "degree"):  # errors that no matrix describes: their shares
            truth = _shares(world, given)
        out["heard"] = e.weight_ > 0
        out["diagonal held"], out["other cells held"] = held(draws, truth)
    return out


def _shares(world: World, given: np.ndarray) -> np.ndarray:
    """``(K, K)`` ``[observed, true]`` shares of the labels of each class."""
    names = np.arange(world.n_classes)
    of_class = [given[world.classes == c] for c in names]
    return np.array([[np.mean(labels == name) for labels in of_class] for name in names])


def held(draws: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Shares of true rates in intervals of 90 %: of the diagonal, and of the other cells.

    Args:
        draws: ``(..., K, K)`` of the noise matrix.
        truth: ``(K, K)``.
    """
    low, high = np.quantile(draws.reshape(-1, *truth.shape), [0.05, 0.95], axis=0)
    # an interval of shares does not hold zero
    inside = (truth <= high) & ((low <= truth) | ((truth == 0) & (low < 0.02)))
    return float(np.diag(inside).mean()), float(inside[~np.eye(len(truth), dtype=bool)].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--only", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--others", action="store_true", help="four more kinds of errors")
    parser.add_argument("--coverage", action="store_true")
    a = parser.parse_args()
    rows = [
        figures(name, kind, rate, seed, a.coverage)
        for name in a.only
        for kind, rate in (NOISES + OTHERS if a.others else NOISES)
        for seed in a.seeds
    ]
    table = pd.DataFrame(rows).groupby(["world", "noise"], sort=False).mean()
    print(table.drop(columns="AUC labels").round(3).to_string())


if __name__ == "__main__":
    main()
