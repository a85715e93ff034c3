"""Worlds of votes by several annotators."""

from __future__ import annotations

import numpy as np
import pandas as pd

from floor_worlds.base import Items, Setting, classes, world


def majority(votes: pd.DataFrame, k: int) -> np.ndarray:
    """``(tasks,)`` class of most votes, the first of several; tasks are 0, 1, ... in the table."""
    counts = np.zeros((votes["task"].max() + 1, k))
    np.add.at(counts, (votes["task"], votes["label"]), 1)
    return counts.argmax(1)


def _voted(y: np.ndarray, matrices: np.ndarray, per_task: int, rng: np.random.Generator) -> Items:
    """Votes of workers drawn for each task.

    Args:
        y: ``(N,)`` classes.
        matrices: ``(W, K, K)`` ``[worker, true, observed]``.
        per_task: votes on a task.
        rng: NumPy generator.
    """
    workers, k = matrices.shape[:2]
    who = rng.random((len(y), workers)).argsort(1)[:, :per_task].ravel()
    task = np.repeat(np.arange(len(y)), per_task)
    steps = matrices[who, y[task]].cumsum(1)[:, :-1]
    said = (rng.random((len(task), 1)) > steps).sum(1)
    votes = pd.DataFrame({"task": task, "worker": who, "label": said})
    return Items(votes, y, given=majority(votes, k))


def _coins(rates: np.ndarray, k: int) -> np.ndarray:
    """Workers wrong at rates of their own, and then any other class alike."""
    one = rates[:, None, None]
    return np.where(np.eye(k, dtype=bool), 1 - one, one / (k - 1))


def _cells(sizes: tuple[int, ...] = (60, 100, 200, 600, 3000)) -> tuple[Setting, ...]:
    found = []
    for n in sizes:
        for k in (2, 3, 10):
            for rare in (False, True)[: 2 if n >= 200 else 1]:
                found += [Setting(n, k, rare, "own", share) for share in (0.1, 0.2, 0.4)]
    return tuple(found)


_QUICK = (
    Setting(100, 3, False, "own", 0.2),
    Setting(600, 3, False, "own", 0.4),
    Setting(600, 3, True, "own", 0.2),
)


@world("votes, mixed skill", "votes", _cells(), quick=_QUICK)
def mixed_skill(setting: Setting, rng: np.random.Generator) -> Items:
    """Three votes a task; workers' error rates vary about their mean."""
    y, workers = classes(setting.n, setting, rng), max(10, setting.n // 20)
    rates = rng.beta(4 * setting.share, 4 * (1 - setting.share), workers) * 0.95
    return _voted(y, _coins(rates, setting.k), 3, rng)


@world("votes, spammers", "votes", _cells(), quick=_QUICK[1:2])
def spammers(setting: Setting, rng: np.random.Generator) -> Items:
    """Five votes a task; a third of the workers vote at random."""
    y, workers = classes(setting.n, setting, rng), max(10, setting.n // 20)
    random = rng.random(workers) < 1 / 3
    rates = np.where(random, 1 - 1 / setting.k, setting.share / 2)
    return _voted(y, _coins(rates, setting.k), 5, rng)


@world("votes, pair errors", "votes", _cells(), quick=_QUICK[1:2])
def pair_errors(setting: Setting, rng: np.random.Generator) -> Items:
    """Three votes a task; each worker takes a class for the next, at rates of its own."""
    y, workers, k = classes(setting.n, setting, rng), max(10, setting.n // 20), setting.k
    rates = rng.beta(2 * setting.share, 2 * (1 - setting.share), (workers, k)) * 0.9
    matrices = np.zeros((workers, k, k))
    here = np.arange(k)
    matrices[:, here, here] = 1 - rates
    matrices[:, here, (here + 1) % k] = rates
    return _voted(y, matrices, 3, rng)


@world("votes, two a task", "votes", _cells())
def two_a_task(setting: Setting, rng: np.random.Generator) -> Items:
    """Two votes a task, by many workers with few votes each."""
    y, workers = classes(setting.n, setting, rng), max(10, setting.n // 5)
    rates = rng.beta(4 * setting.share, 4 * (1 - setting.share), workers) * 0.95
    return _voted(y, _coins(rates, setting.k), 2, rng)
