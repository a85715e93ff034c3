"""Features, votes and labels in one model, beside each alone: ``python
benchmarks/several_sources.py``.

Right labels of :class:`nbmodels.JointNB`, of the features' estimator with votes beside y, which
cross-fits the features, and of the best answer by fewer sources: the labels as they are, the
features and labels, the votes, and the votes with the labels as those of one more annotator. Worlds
are columns of several kinds, most of which are not of their model, times votes of several kinds.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from nbmodels import (
    DawidSkene,
    JointNB,
    NbmodelsWarning,
    NoisyBernoulliNB,
    NoisyGaussianNB,
    NoisyMultinomialNB,
)
from nbmodels.datasets import corrupt, flip_noise, uniform_noise

CLASSES = range(3)
WORKERS, PER_ITEM = 8, 3

#: Items and points above and below the best answer by fewer sources that the summary counts.
SIZES, MUCH = (200, 600), 0.03


# Columns, given the true classes --------------------------------------------------------------


def right(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(0, 1.3, (3, 5))[y] + rng.normal(size=(len(y), 5))


def weak(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(0, 0.4, (3, 5))[y] + rng.normal(size=(len(y), 5))


def useless(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(len(y), 5))


def tails(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(0, 1.5, (3, 5))[y] + rng.standard_t(2, (len(y), 5))


def copies(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(0, 0.9, (3, 2))[y] + rng.normal(size=(len(y), 2))
    return np.repeat(x, 5, axis=1) + 0.1 * rng.normal(size=(len(y), 10))


def skewed(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.exp(rng.normal(0, 0.8, (3, 5))[y] + rng.normal(size=(len(y), 5)))


def clusters(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Of other groups than the classes."""
    group = rng.integers(4, size=len(y))
    x = rng.normal(0, 3, (4, 5))[group] + rng.normal(size=(len(y), 5))
    return x + rng.normal(0, 0.6, (3, 5))[y]


def factor(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    common = 2 * rng.normal(size=(len(y), 1))
    return rng.normal(0, 0.8, (3, 6))[y] + rng.normal(size=(len(y), 6)) + common


def bursty(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Words that repeat themselves within a document."""
    share = rng.dirichlet(np.full(30, 0.5), 3)
    return np.stack([rng.multinomial(25, rng.dirichlet(6 * share[c] + 1e-3)) for c in y])


def answers(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Four questions, each asked five times."""
    found = rng.random((len(y), 4)) < rng.uniform(0.2, 0.8, (3, 4))[y]
    return np.repeat(found, 5, axis=1) ^ (rng.random((len(y), 20)) < 0.03)


class Columns(NamedTuple):
    """A kind of columns, and the estimator that is to read them."""

    drawn: Callable[[np.ndarray, np.random.Generator], np.ndarray]
    estimator: Any = NoisyGaussianNB


COLUMNS: Mapping[str, Columns] = {
    one.__name__: Columns(one)
    for one in (right, weak, useless, tails, copies, skewed, clusters, factor)
} | {"bursty": Columns(bursty, NoisyMultinomialNB), "answers": Columns(answers, NoisyBernoulliNB)}

#: Votes that are right, but for items that are hard, those copied from one worker, and spam.
VOTES = {"good": 0.78, "poor": 0.5, "copied": 0.65, "hard": 0.95, "spam": 0.75}
ERRORS: Mapping[str, Any] = {
    "uniform": uniform_noise(3, 0.25),
    "pair": flip_noise(3, {(0, 1): 0.4, (1, 2): 0.3}),
    "no labels": None,
}


def votes(kind: str, y: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """Three of eight workers an item; the first four copy, or give one label to all."""
    n, share = len(y), VOTES[kind]
    lead = np.where(rng.random(n) < share, y, rng.integers(3, size=n))
    hard = rng.random(n) < 0.4
    out = []
    for i in range(n):
        for worker in rng.choice(WORKERS, PER_ITEM, replace=False):
            is_right = rng.random() < (0.45 if kind == "hard" and hard[i] else share)
            vote = y[i] if is_right else (y[i] + rng.integers(1, 3)) % 3
            if kind == "copied" and worker < WORKERS // 2 and rng.random() < 0.95:
                vote = lead[i]
            if kind == "spam" and worker < WORKERS // 2 and rng.random() < 0.9:
                vote = worker % 3
            out.append((i, f"worker {worker}", vote))
    return pd.DataFrame(out, columns=["task", "worker", "label"])


# One world ------------------------------------------------------------------------------------


class Answers(NamedTuple):
    """Shares of right labels, and of the joint model its mean confidence and verdict."""

    fewer: float
    joint: float
    cross_fitted: float
    confidence: float
    passes: bool


def answered(columns: str, crowd: str, errors: str, n: int, seed: int) -> Answers:
    """All answers to one world."""
    rng = np.random.default_rng([seed, n, *map(ord, columns + crowd + errors)])
    y = rng.integers(3, size=n)
    drawn, estimator = COLUMNS[columns]
    x, table = drawn(y, rng).astype(float), votes(crowd, y, rng)
    rho = ERRORS[errors]
    given = None if rho is None else corrupt(y, rho, rng)
    how: dict[str, Any] = {"random_state": 0, "classes": CLASSES}

    def share(model: Any) -> float:
        return float((model.label_posterior_.argmax(1) == y).mean())

    fewer = [share(DawidSkene(**how).fit(table))]
    if given is not None:
        own = pd.DataFrame({"task": range(n), "worker": "label", "label": given})
        fewer += [float((given == y).mean()), share(estimator(**how).fit(x, given))]
        fewer += [share(DawidSkene(**how).fit(pd.concat([table, own])))]
    sources = {"columns": estimator(), "votes": DawidSkene()}
    joint = JointNB(sources, **how).fit({"columns": x, "votes": table}, given)
    crossed = estimator(**how).fit(x, given, votes=table)
    sure = float(joint.label_posterior_.max(1).mean())
    return Answers(max(fewer), share(joint), share(crossed), sure, joint.verdict().ok)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--columns", nargs="*", choices=COLUMNS, default=list(COLUMNS))
    parser.add_argument("--votes", nargs="*", choices=VOTES, default=list(VOTES))
    parser.add_argument("--errors", nargs="*", choices=ERRORS, default=list(ERRORS))
    parser.add_argument("--items", nargs="*", type=int, default=SIZES)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    shown = Table("columns, votes, errors", "items", "fewer", "joint", "cross-fitted", "verdict")
    found = []
    grid = itertools.product(args.columns, args.votes, args.errors, args.items)
    with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
        for columns, crowd, errors, n in grid:
            one = answered(columns, crowd, errors, n, args.seed)
            found.append(one)
            shares = (f"{100 * s:.1f}" for s in (one.fewer, one.joint, one.cross_fitted))
            said = "passes" if one.passes else "fails"
            shown.add_row(f"{columns}, {crowd}, {errors}", str(n), *shares, said)
    console = Console()
    console.print(shown)
    best, joint, crossed, sure, passes = np.array(found).T
    for name, own in (("joint", joint), ("cross-fitted", crossed)):
        gain = own - best
        lost = gain < -MUCH
        console.print(
            f"{name}: {100 * gain.mean():+.1f} points beside the best by fewer sources, at worst "
            f"{100 * gain.min():+.1f}, {lost.sum()} of {len(gain)} lose {100 * MUCH:.0f} or more"
        )
    lost = joint - best < -MUCH
    console.print(
        f"joint: confidence off by {np.abs(sure - joint).mean():.3f}; the verdict passes "
        f"{(lost & (passes == 1)).sum()} of the {lost.sum()} that lose"
    )


if __name__ == "__main__":
    main()
