"""Worlds that are shaped unlike normal tables, topics, tastes and coins.

A table has codes for missing cells, one informative column among hundreds, numbers that are codes,
units of very different size, a class of far groups, or twelve classes of a dozen rows; texts are
titles; a graph has popular items and users; annotators abstain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import gammaln, logsumexp

from floor_worlds.base import N_NEW, Items, Setting, classes, world
from floor_worlds.crowds import majority
from floor_worlds.graphs import with_hidden


def _cells(n: tuple[int, int, int], k: int, rare: bool = False) -> tuple[Setting, ...]:
    """Five cells: three sizes, four kinds of errors."""
    few, some, many = n
    next_class = "pair" if k > 2 else "uniform"
    return (
        Setting(few, k, rare),
        Setting(some, k, rare, share=0.0),
        Setting(some, k, rare, next_class),
        Setting(some, k, rare, "features"),
        Setting(many, k, rare),
    )


_SIZES = (80, 200, 600)
_CELLS = _cells(_SIZES, 3)


def _labelled(setting: Setting, rng: np.random.Generator, share: float | None = None) -> np.ndarray:
    """Training and new classes, one after the other; a rare class has ``share`` of them."""
    sizes = setting.n, N_NEW
    if share is None or not setting.rare:
        return np.concatenate([classes(n, setting, rng) for n in sizes])
    few = [max(4, round(share * n)) for n in sizes]
    last = setting.k - 1
    parts = [
        np.concatenate([np.full(m, last), np.arange(n - m) % last])
        for n, m in zip(sizes, few, strict=True)
    ]
    return np.concatenate([rng.permutation(part) for part in parts])


def _split(
    x: np.ndarray | sparse.csr_matrix, both: np.ndarray, log_density: np.ndarray, n: int
) -> Items:
    """Training rows first, then new ones."""
    return Items(x[:n], both[:n], x[n:], both[n:], log_density[:n])


def _normal(x: np.ndarray, means: np.ndarray, sd: float | np.ndarray = 1.0) -> np.ndarray:
    return -0.5 * (((x[:, None] - means) / sd) ** 2).sum(2)


def _apart(setting: Setting, rng: np.random.Generator, columns: int, spread: float) -> Items:
    """Normal columns."""
    both = _labelled(setting, rng)
    means = rng.normal(0, spread, (setting.k, columns))
    x = means[both] + rng.normal(size=(len(both), columns))
    return _split(x, both, _normal(x, means), setting.n)


@world("missing codes", "reals", _CELLS)
def missing_codes(setting: Setting, rng: np.random.Generator) -> Items:
    """Six normal columns, of which three have -999 in one cell of eight."""
    found = _apart(setting, rng, 6, 1.2)
    coded = np.arange(6) < 3
    x, x_new = (
        np.where((rng.random(part.shape) < 1 / 8) & coded, -999.0, part)
        for part in (found.x, found.x_new)
    )
    return replace(found, x=x, x_new=x_new)


@world("one column of three hundred", "reals", _CELLS)
def one_column(setting: Setting, rng: np.random.Generator) -> Items:
    """One column has the classes three standard deviations apart, 299 say nothing."""
    both = _labelled(setting, rng)
    x = rng.normal(size=(len(both), 300))
    x[:, 17] += 3 * both
    return _split(x, both, _normal(x[:, [17]], 3.0 * np.arange(setting.k)[:, None]), setting.n)


@world("whole and real numbers", "reals", _CELLS)
def mixed_numbers(setting: Setting, rng: np.random.Generator) -> Items:
    """Ages, counts, grades, flags, skewed amounts and measures in one table."""
    both, k = _labelled(setting, rng), setting.k
    n = len(both)
    age, rate, grade, flag, amount, measure = rng.normal(0, 1, (6, k))
    latent = grade[both] + rng.normal(size=n)
    columns = [
        np.round(40 + 8 * age[both] + 10 * rng.normal(size=n)),
        rng.poisson(np.exp(1 + 0.7 * rate[both])),
        np.digitize(latent, [-1.5, -0.5, 0.5, 1.5]) + 1,
        rng.random(n) < 1 / (1 + np.exp(-1.5 * flag[both])),
        np.round(np.exp(4 + 0.8 * amount[both] + rng.normal(size=n)), 2),
        measure[both] + rng.normal(size=n),
    ]
    x = np.stack(columns, 1).astype(float)
    log_density = (
        -0.5 * ((x[:, [0]] - 40 - 8 * age) / 10) ** 2
        + x[:, [1]] * 0.7 * rate
        - np.exp(1 + 0.7 * rate)
        - 0.5 * (latent[:, None] - grade) ** 2
        - np.logaddexp(0, np.where(x[:, [3]] > 0, -1.5, 1.5) * flag)
        - 0.5 * (np.log(x[:, [4]] + 0.01) - 4 - 0.8 * amount) ** 2
        - 0.5 * (x[:, [5]] - measure) ** 2
    )
    return _split(x, both, log_density, setting.n)


@world("a class of far groups", "reals", _CELLS)
def far_groups(setting: Setting, rng: np.random.Generator) -> Items:
    """The last class is six groups far from each other, about the others, which are near."""
    both, k = _labelled(setting, rng), setting.k
    near = rng.normal(0, 1.0, (k - 1, 5))
    far = rng.normal(size=(6, 5))
    far *= 6 / np.linalg.norm(far, axis=1, keepdims=True)
    centres = np.vstack([near, far])
    group = np.where(both < k - 1, both, k - 1 + rng.integers(0, 6, len(both)))
    x = centres[group] + rng.normal(size=(len(both), 5))
    parts = _normal(x, centres)
    last = logsumexp(parts[:, k - 1 :], axis=1, keepdims=True) - np.log(6)
    return _split(x, both, np.hstack([parts[:, : k - 1], last]), setting.n)


@world("twelve classes", "reals", _cells((100, 150, 400), 12))
def twelve(setting: Setting, rng: np.random.Generator) -> Items:
    """A dozen rows of each of twelve classes, six columns."""
    return _apart(setting, rng, 6, 1.5)


@world("numbers that are codes", "reals", _CELLS)
def codes(setting: Setting, rng: np.random.Generator) -> Items:
    """Three columns are numbers of a place, a product and a shop: near ones are not alike."""
    both, k = _labelled(setting, rng), setting.k
    n = len(both)
    tables = rng.dirichlet(np.full(12, 0.4), (3, k)) * 0.96 + 0.04 / 12
    steps = tables[:, both].cumsum(2)
    found = (rng.random((3, n, 1)) > steps[:, :, :-1]).sum(2)
    names = np.stack([rng.permutation(12) for _ in range(3)])
    numbers = np.stack([100 + names[j][found[j]] for j in range(3)], 1)
    means = rng.normal(0, 0.5, (k, 2))
    real = means[both] + rng.normal(size=(n, 2))
    log_density = _normal(real, means) + sum(np.log(tables[j][:, found[j]]).T for j in range(3))
    return _split(np.hstack([numbers, real]).astype(float), both, log_density, setting.n)


@world("units", "reals", _CELLS)
def units(setting: Setting, rng: np.random.Generator) -> Items:
    """Seconds since 1970, metres in nanometres, amounts in billions: sizes of 1e-9 to 1e9."""
    found = _apart(setting, rng, 5, 1.0)
    size = np.array([3600.0, 1e-9, 1e9, 1e-3, 1.0])
    begin = np.array([1.7e9, 0.0, 5e9, 1.0, 0.0])
    return replace(found, x=begin + size * found.x, x_new=begin + size * found.x_new)


@world("fingerprints", "binary", _CELLS)
def fingerprints(setting: Setting, rng: np.random.Generator) -> Items:
    """600 bits, three of a hundred set: motifs of a dozen bits, of each class some more often."""
    both, k = _labelled(setting, rng), setting.k
    motifs = np.stack([rng.permutation(600)[:12] for _ in range(30)])
    rates = np.clip(rng.gamma(0.5, 0.12, (k, 30)), 0.005, 0.8)
    has = rng.random((len(both), 30)) < rates[both]
    x = rng.random((len(both), 600)) < 0.02
    for j, bits in enumerate(motifs):
        x[np.ix_(has[:, j], bits)] |= rng.random((has[:, j].sum(), 12)) < 0.9
    log_density = has @ np.log(rates).T + ~has @ np.log1p(-rates).T
    return _split(x.astype(float), both, log_density, setting.n)


@world("titles", "counts", _cells(_SIZES, 3, rare=True))
def titles(setting: Setting, rng: np.random.Generator) -> Items:
    """Five words of 1,500; a rare class has 5 % of the texts."""
    both, k = _labelled(setting, rng, 0.05), setting.k
    probs = 1 / np.arange(10, 1510) * np.exp(rng.normal(0, 1.5, (k, 1500)))
    probs /= probs.sum(1, keepdims=True)
    x = rng.multinomial(1 + rng.poisson(4, len(both)), probs[both]).astype(float)
    return _split(sparse.csr_matrix(x), both, x @ np.log(probs).T, setting.n)


@world("spectra", "counts", _CELLS)
def spectra(setting: Setting, rng: np.random.Generator) -> Items:
    """Thousands of counts in 12 bins, whose shares vary about those of the class."""
    both, k = _labelled(setting, rng), setting.k
    shares = 0.7 / 12 + 0.3 * rng.dirichlet(np.ones(12), k)
    own = rng.gamma(60 * shares[both])
    own /= own.sum(1, keepdims=True)
    x = rng.multinomial(rng.poisson(3000, len(both)), own).astype(float)
    log_density = (gammaln(x[:, None] + 60 * shares) - gammaln(60 * shares)).sum(2)
    return _split(sparse.csr_matrix(x), both, log_density, setting.n)


@world("graph, popularity of two levels", "graph", _CELLS)
def popularity(setting: Setting, rng: np.random.Generator) -> Items:
    """One item in twenty has some fifty users, the others one to three.

    One user in fifty has half of all edges, and hardly any taste.
    """
    y, k = classes(setting.n, setting, rng), setting.k
    users = setting.n
    core = np.arange(users) < max(2, users // 50)
    home = rng.integers(0, k, users)
    away = np.where(core, 0.55, 0.1)
    rates = np.where(home == np.arange(k)[:, None], 1 - away, away / (k - 1))
    rates *= np.where(core, (~core).sum() / core.sum(), 1.0)
    popular = rng.random(setting.n) < 1 / 20
    degree = np.where(popular, 30 + rng.poisson(20, setting.n), rng.integers(1, 4, setting.n))
    keys = np.log(rates[y]) + rng.gumbel(size=(setting.n, users))
    order = np.argsort(-keys, axis=1)
    kept = np.arange(users) < np.minimum(degree, users // 2)[:, None]
    item = np.repeat(np.arange(setting.n), kept.sum(1))
    edges = sparse.csr_array((np.ones(len(item)), (item, order[kept])), shape=(setting.n, users))
    return with_hidden(edges, y, k, rng)


def _votes(task: np.ndarray, worker: np.ndarray, label: np.ndarray, y: np.ndarray, k: int) -> Items:
    """Votes of those workers who have some."""
    who = np.unique(worker, return_inverse=True)[1]
    votes = pd.DataFrame({"task": task, "worker": who, "label": label})
    return Items(votes, y, given=majority(votes, k))


@world(
    "votes, abstentions",
    "votes",
    [
        Setting(n, k, True, "own", s)
        for n, k, s in ((80, 3, 0.2), (200, 3, 0.1), (200, 3, 0.3), (600, 3, 0.2), (600, 2, 0.2))
    ],
)
def abstentions(setting: Setting, rng: np.random.Generator) -> Items:
    """Eight annotators see each task and abstain from most, the more the harder it is.

    A rare class has 3 % of the tasks; half of the votes on it are for another.
    """
    k, n = setting.k, setting.n
    y = _labelled(setting, rng, 0.03)[:n]
    hard = rng.random(n)
    eager = rng.beta(2, 2, 8)
    cast = rng.random((n, 8)) < eager * (1.1 - 0.8 * hard)[:, None]
    cast[np.arange(n), rng.integers(0, 8, n)] = True
    rate = rng.beta(5 * setting.share, 5 * (1 - setting.share), 8)
    wrong = rng.random((n, 8)) < np.where(y[:, None] == k - 1, 0.5, rate * 2 * hard[:, None])
    other = (y[:, None] + rng.integers(1, k, (n, 8))) % k
    task, worker = np.nonzero(cast)
    label = np.where(wrong, other, y[:, None])[cast]
    return _votes(task, worker, label, y, k)


@world(
    "votes, one annotator of all",
    "votes",
    [
        Setting(n, k, False, "own", s)
        for n, k, s in ((80, 3, 0.2), (200, 3, 0.1), (200, 5, 0.3), (600, 4, 0.2), (600, 2, 0.3))
    ],
)
def one_of_all(setting: Setting, rng: np.random.Generator) -> Items:
    """One annotator votes on all tasks, forty on a few each: two votes a task on average."""
    k, n = setting.k, setting.n
    y = classes(n, setting, rng)
    rates = np.append(setting.share, rng.beta(2, 2 / setting.share - 2, 40))
    cast = np.hstack([np.ones((n, 1), bool), rng.random((n, 40)) < 1 / 40])
    task, worker = np.nonzero(cast)
    wrong = rng.random(len(task)) < rates[worker]
    label = np.where(wrong, (y[task] + rng.integers(1, k, len(task))) % k, y[task])
    return _votes(task, worker, label, y, k)
