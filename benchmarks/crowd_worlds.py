"""Generated worlds of votes: ours beside counting, ``python benchmarks/crowd_worlds.py``.

``counting`` is the class of most votes, ties shared; its probabilities are smoothed shares of the
votes. ``Dawid-Skene`` is the published model by EM (``solver="ml"``). ``warned`` is the share of
sets on which a warning was issued or a check of the verdict failed. Confidence is the mean
probability of the likeliest class less the accuracy.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from nbmodels import DawidSkene, Solver

ABSTAIN = -1


def matrix_of(rates, k, rng):
    """``(W, K, K)`` ``[worker, true, observed]``, wrong alike for all classes."""
    one = np.asarray(rates)[:, None, None]
    return np.where(np.eye(k, dtype=bool), 1 - one, one / (k - 1))


def voted(y, matrices, rng, per_item=None):
    """``(N, W)`` votes; ``ABSTAIN`` where a worker has not voted on an item."""
    n, w = len(y), len(matrices)
    steps = matrices[:, y].cumsum(2)[:, :, :-1]
    votes = (rng.random((w, n, 1)) > steps).sum(2).T
    if per_item is not None:
        rank = rng.random((n, w)).argsort(1).argsort(1)
        votes = np.where(rank < per_item, votes, ABSTAIN)
    return votes


def few_functions(rng, n=600, k=3):
    """Six functions of accuracy 0.5 to 0.85 that abstain from half of the items."""
    y = rng.integers(0, k, n)
    votes = voted(y, matrix_of(rng.uniform(0.15, 0.5, 6), k, rng), rng)
    return np.where(rng.random(votes.shape) < rng.uniform(0.3, 0.7, 6), ABSTAIN, votes), y


def one_sided(rng, n=600, k=3, each=2):
    """Two functions of each class, that fire on it more often than on others."""
    y = rng.integers(0, k, n)
    named = np.repeat(np.arange(k), each)
    hit, miss = rng.uniform(0.3, 0.7, k * each), rng.uniform(0.05, 0.15, k * each)
    rate = np.where(y[:, None] == named, hit, miss)
    return np.where(rng.random(rate.shape) < rate, named, ABSTAIN), y


def one_sided_two(rng):
    """Six functions of two classes, three of each."""
    return one_sided(rng, k=2, each=3)


def one_sided_rare(rng, n=1500):
    """Three functions of each of two classes, one of 10 %."""
    y = (rng.random(n) < 0.1).astype(int)
    named = np.arange(6) % 2
    hit, miss = rng.uniform(0.3, 0.7, 6), rng.uniform(0.02, 0.1, 6)
    rate = np.where(y[:, None] == named, hit, miss)
    return np.where(rng.random(rate.shape) < rate, named, ABSTAIN), y


def few_and_weak(rng, n=600, k=3):
    """Six functions with fixed coverage 0.25 and accuracy 0.6 to 0.8."""
    y = rng.integers(0, k, n)
    votes = voted(y, matrix_of(rng.uniform(0.2, 0.4, 6), k, rng), rng)
    return np.where(rng.random(votes.shape) < 0.75, ABSTAIN, votes), y


def many_functions(rng, n=1500, w=30):
    """Thirty one-sided functions of two classes, one of 30 %."""
    y = (rng.random(n) < 0.3).astype(int)
    named = np.arange(w) % 2
    rate = np.where(y[:, None] == named, 0.15, 0.04)
    return np.where(rng.random((n, w)) < rate, named, ABSTAIN), y


def copied_functions(rng, n=600, k=3):
    """Six functions, of which two repeat a third nine times in ten, with its abstentions."""
    votes, y = few_functions(rng, n, k)
    for copy in (4, 5):
        votes[:, copy] = np.where(rng.random(n) < 0.9, votes[:, 3], votes[:, copy])
    return votes, y


def independent(rng, n=600, k=3, w=20, per_item=5):
    """Twenty workers of error rates around 0.25, five votes an item."""
    y = rng.integers(0, k, n)
    return voted(y, matrix_of(rng.beta(3, 9, w), k, rng), rng, per_item), y


def copiers(rng, n=400, k=3, w=7, per_item=None):
    """Seven workers on all items; two repeat a third, whose error rate is 0.4, four in five."""
    y = rng.integers(0, k, n)
    rates = np.concatenate([rng.uniform(0.1, 0.3, w - 3), [0.4, 0.4, 0.4]])
    votes = voted(y, matrix_of(rates, k, rng), rng, per_item)
    for copy in (w - 2, w - 1):
        same = (rng.random(n) < 0.8) & (votes[:, w - 3] >= 0)
        votes[same, copy] = votes[same, w - 3]
    return votes, y


def copying_majority(rng, n=400, k=3):
    """Seven workers; four repeat a fifth, whose error rate is 0.25, nineteen times in twenty."""
    y = rng.integers(0, k, n)
    votes = voted(y, matrix_of([0.15, 0.15, 0.15, 0.25, 0.25, 0.25, 0.25], k, rng), rng)
    for copy in (4, 5, 6):
        same = rng.random(n) < 0.95
        votes[same, copy] = votes[same, 3]
    return votes, y


def copying_pair(rng, n=300, k=3):
    """Five workers, error rates 0.15 to 0.35; the last repeats the fourth nine times in ten."""
    y = rng.integers(0, k, n)
    votes = voted(y, matrix_of([0.15, 0.2, 0.2, 0.35, 0.35], k, rng), rng)
    same = rng.random(n) < 0.9
    votes[same, 4] = votes[same, 3]
    return votes, y


def rare_class(rng, n=1500):
    """A class of 2 %, twelve workers, five votes an item."""
    y = (rng.random(n) < 0.02).astype(int)
    matrices = np.stack([[[1 - a, a], [b, 1 - b]] for a, b in rng.uniform(0.02, 0.3, (12, 2))])
    return voted(y, matrices, rng, 5), y


def difficult(rng, n=600, k=3, w=12):
    """Three items in ten are difficult: each worker is led to one wrong class in half of them."""
    y = rng.integers(0, k, n)
    votes = voted(y, matrix_of(rng.uniform(0.05, 0.3, w), k, rng), rng, 5)
    lured = (rng.random(n) < 0.3)[:, None] & (rng.random((n, w)) < 0.5) & (votes >= 0)
    return np.where(lured, ((y + 1) % k)[:, None], votes), y


def guessed(rng, n=600, w=12):
    """A fifth of the items is guessed; classes of 55, 40 and 5 %."""
    y = rng.choice(3, n, p=[0.55, 0.4, 0.05])
    votes = voted(y, matrix_of(rng.uniform(0.05, 0.2, w), 3, rng), rng, 5)
    chance = (rng.random(n) < 0.2)[:, None] & (votes >= 0)
    return np.where(chance, rng.integers(0, 3, votes.shape), votes), y


def spammers(rng, n=600, k=3, w=15):
    """Nine of fifteen workers vote at random; seven votes an item."""
    y = rng.integers(0, k, n)
    rates = np.where(np.arange(w) < 9, 1 - 1 / k, 0.15)
    return voted(y, matrix_of(rates, k, rng), rng, 7), y


def spammers_one_class(rng, n=600, k=3, w=15):
    """Eight of fifteen workers nearly always name one class each; seven votes an item."""
    y = rng.integers(0, k, n)
    matrices = matrix_of(np.full(w, 0.15), k, rng)
    for i in range(8):
        matrices[i] = 0.9 * np.eye(k)[rng.integers(k)] + 0.1 / k
    return voted(y, matrices, rng, 7), y


def two_votes(rng, n=600, k=3, w=60):
    """Two votes an item by many workers of few votes."""
    y = rng.integers(0, k, n)
    return voted(y, matrix_of(rng.beta(3, 9, w), k, rng), rng, 2), y


def one_on_all(rng, n=500, k=4, w=100):
    """A worker who is right in 0.7 of all items, and two votes an item by a hundred others."""
    y = rng.integers(0, k, n)
    rates = np.r_[0.3, rng.uniform(0.05, 0.4, w)]
    votes = voted(y, matrix_of(rates, k, rng), rng)
    rank = rng.random((n, w)).argsort(1).argsort(1)
    votes[:, 1:] = np.where(rank < 2, votes[:, 1:], ABSTAIN)
    return votes, y


def copied_worker(rng, n=400, k=3):
    """Eight workers; three repeat a fourth, who is worse than the rest, nine times in ten."""
    y = rng.integers(0, k, n)
    votes = voted(y, matrix_of([0.35] * 4 + [0.25] * 4, k, rng), rng)
    for j in (1, 2, 3):
        copied = rng.random(n) < 0.9
        votes[:, j] = np.where(copied, votes[:, 0], rng.integers(0, k, n))
    return votes, y


def rare_and_hard(rng, n=2000, w=10):
    """A class of 2 % that workers see every other time; five votes an item."""
    y = (rng.random(n) < 0.02).astype(int)
    matrices = np.broadcast_to([[0.99, 0.01], [0.5, 0.5]], (w, 2, 2))
    return voted(y, matrices, rng, 5), y


def ten_classes(rng, n=600, k=10, w=20):
    """Ten classes, four votes an item."""
    y = rng.integers(0, k, n)
    return voted(y, matrix_of(rng.beta(4, 8, w), k, rng), rng, 4), y


def shared_confusion(rng, n=600, k=4, w=15):
    """Workers mistake one class for the next three times in ten, as all others do."""
    y = rng.integers(0, k, n)
    one = 0.62 * np.eye(k) + 0.3 * np.roll(np.eye(k), 1, 1) + 0.02
    return voted(y, np.stack([one] * w), rng, 5), y


#: Worlds of labelling functions, and of workers.
FUNCTIONS = (
    few_functions,
    few_and_weak,
    one_sided,
    one_sided_two,
    one_sided_rare,
    copied_functions,
    many_functions,
)
WORKERS = (
    independent,
    copying_pair,
    copiers,
    copying_majority,
    rare_class,
    difficult,
    guessed,
    spammers,
    spammers_one_class,
    two_votes,
    one_on_all,
    copied_worker,
    rare_and_hard,
    ten_classes,
    shared_confusion,
)


def table_of(votes):
    """Long table of the votes cast."""
    task, worker = np.nonzero(votes != ABSTAIN)
    return pd.DataFrame({"task": task, "worker": worker, "label": votes[task, worker]})


def shares(votes, k):
    """Smoothed shares of the votes, ``(count + 1/K) / (n + 1)``."""
    counts = np.stack([(votes == c).sum(1) for c in range(k)], 1)
    return (counts + 1 / k) / (counts.sum(1, keepdims=True) + 1)


def measured(p, y):
    """Accuracy with ties shared, log-loss, confidence less accuracy."""
    best = p >= p.max(1, keepdims=True) - 1e-12
    right = (best[np.arange(len(y)), y] / best.sum(1)).mean()
    loss = -np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean()
    return right, loss, p.max(1).mean() - right


def answered(votes, k, functions, **parameters):
    """Probabilities of all items, whether it was warned, and the model."""
    make = DawidSkene.weak_supervision if functions else DawidSkene
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = make(classes=np.arange(k), random_state=0, **parameters)
        model.set_params(solver__progress=False) if "solver" not in parameters else None
        model.fit(votes if functions else table_of(votes))
        loud = bool(said) or not model.verdict().ok
    out = np.full((len(votes), k), 1 / k)
    out[model.tasks_] = model.label_posterior_
    return out, loud, model


def world_scores(world: Callable, functions: bool, seeds) -> dict:
    """Mean scores by method over generated sets."""
    found: dict = {"ours": [], "counting": [], "Dawid-Skene": []}
    for seed in seeds:
        votes, y = world(np.random.default_rng([seed, len(world.__name__)]))
        k = max(int(votes.max()), int(y.max())) + 1
        ours, loud, _ = answered(votes, k, functions)
        found["ours"].append((*measured(ours, y), loud))
        found["counting"].append((*measured(shares(votes, k), y), np.nan))
        plain, _, _ = answered(votes, k, False, solver=Solver(method="ml", progress=False))
        found["Dawid-Skene"].append((*measured(plain, y), np.nan))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 10))
    parser.add_argument("--worlds", nargs="*")
    chosen = parser.parse_args()
    columns = ("world", "method", "accuracy", "worst less counting", "log-loss", "confidence")
    table = Table(*columns, "warned")
    for world in (*FUNCTIONS, *WORKERS):
        if chosen.worlds and world.__name__ not in chosen.worlds:
            continue
        found = world_scores(world, world in FUNCTIONS, range(*chosen.seeds))
        base = np.array(found["counting"])[:, 0]
        for method, rows in found.items():
            each = np.array(rows, float)
            mean = each.mean(0)
            worst = (each[:, 0] - base).min()
            row = (f"{mean[0]:.3f}", f"{worst:+.3f}", f"{mean[1]:.3f}", f"{mean[2]:+.3f}")
            table.add_row(world.__name__, method, *row, f"{mean[3]:.2f}")
            print(world.__name__, method, *row, f"{mean[3]:.2f}", flush=True)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
