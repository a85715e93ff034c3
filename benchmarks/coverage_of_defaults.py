"""Coverage of the noise matrix on the defaults: ``python benchmarks/coverage_of_defaults.py``.

Data of each estimator's own model, with a random noise matrix each; the estimator as it comes,
everything it selects or learns included; and the share of true rates that lie inside the 90 %
intervals of ``posterior()``. A rate that is zero, which no central interval holds, counts as inside
where the lower end is below 0.01. Of some cases the model is wrong: ``copies`` are binary features
of which each is there four times; others have heavy tails, two clusters a class, or gross errors.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from crowd_worlds import table_of, voted
from graph_worlds import mixed_users
from rich.console import Console
from rich.progress import track
from rich.table import Table

import nbmodels as nb
from nbmodels.datasets import corrupt, flip_noise, uniform_noise
from nbmodels.errors import NbmodelsWarning

#: Of the intervals, and the lower end from which on they exclude a rate of zero.
LEVEL, ZERO = 0.9, 0.01


def uniform(k, rng):
    """One error rate, about a quarter."""
    return uniform_noise(k, rng.uniform(0.15, 0.35))


def random(k, rng):
    """A rate for every pair of classes; about three quarters are right."""
    out = np.zeros((k, k))
    for true in range(k):
        right = rng.uniform(0.6, 0.9)
        out[np.arange(k) != true, true] = rng.dirichlet(np.ones(k - 1)) * (1 - right)
        out[true, true] = right
    return out


def pair(k, rng):
    """Labels move to the next class, in about a quarter of the items."""
    rates = rng.uniform(0.15, 0.35, k)
    return flip_noise(k, {(j, (j + 1) % k): rates[j] for j in range(k)})


NOISE = {"uniform": uniform, "random": random, "pair": pair}


def binary(n, k, rng, d=20, concentration=1.0):
    y = rng.integers(k, size=n)
    probs = rng.beta(concentration, concentration, (k, d))
    return (rng.random((n, d)) < probs[y]).astype(int), y


def copies(n, k, rng):
    x, y = binary(n, k, rng, d=5)
    return np.repeat(x, 4, 1) ^ (rng.random((n, 20)) < 0.05), y


def words(n, k, rng):
    y = rng.integers(k, size=n)
    probs = rng.dirichlet(np.full(60, 0.5), k)
    return np.stack([rng.multinomial(rng.poisson(12) + 1, probs[j]) for j in y]), y


def normal(n, k, rng, d=5):
    y = rng.integers(k, size=n)
    return rng.normal(0, 1.2, (k, d))[y] + rng.normal(size=(n, d)), y


def symbols(n, k, rng, d=10):
    y = rng.integers(k, size=n)
    probs = rng.dirichlet(np.ones(4), (k, d))
    steps = np.cumsum(probs[y], 2)[..., :-1]
    return pd.DataFrame((rng.random((n, d, 1)) > steps).sum(2).astype(str)), y


def regression(n, k, rng, d=5):
    """Classes drawn from a multinomial logistic regression."""
    x = rng.normal(size=(n, d))
    logits = x @ rng.normal(0, 2.0, (d, k))
    return x, np.argmax(logits + rng.gumbel(size=(n, k)), 1)


def correlated(n, k, rng, d=5):
    """Normal classes, each with a covariance of its own."""
    y = rng.integers(k, size=n)
    means, factors = rng.normal(0, 1.2, (k, d)), rng.normal(size=(k, d, d)) / np.sqrt(d)
    noise = rng.normal(size=(n, 1, d)) @ (factors + 0.7 * np.eye(d))[y]
    return means[y] + noise[:, 0], y


def heavy_tails(n, k, rng, d=5):
    """Student's t with two degrees of freedom."""
    y = rng.integers(k, size=n)
    return rng.normal(0, 1.8, (k, d))[y] + rng.standard_t(2, size=(n, d)), y


def clusters(n, k, rng, d=5):
    """Two clusters a class."""
    y, part = rng.integers(k, size=n), rng.integers(2, size=n)
    return rng.normal(0, 2.2, (k, 2, d))[y, part] + rng.normal(size=(n, d)), y


def gross_errors(n, k, rng, d=5):
    """A logistic regression of which three cells in a hundred are 50 times too large."""
    x, y = regression(n, k, rng, d)
    return np.where(rng.random(x.shape) < 0.03, 50 * x, x), y


def two_tables(n, k, rng):
    y = rng.integers(k, size=n)
    real = rng.normal(size=(k, 3))[y] + rng.normal(size=(n, 3))
    probs = rng.beta(1, 1, (k, 10))
    return {"real": real, "binary": (rng.random((n, 10)) < probs[y]).astype(int)}, y


def joint(**options):
    """One model of two tables."""
    sources = {"real": nb.NoisyGaussianNB(), "binary": nb.NoisyBernoulliNB()}
    return nb.JointNB(sources, **options)


def shared_items(n, k, rng):
    """Users of some items each, mostly of one class: interactions (users, items)."""
    world = mixed_users(rng, n, k)
    return world.edges.T, world.classes


def one_label(data):
    """One noisy label an item, beside features of ``data``."""

    def observed(n, k, noise, rng):
        x, y = data(n, k, rng)
        rho = NOISE[noise](k, rng)
        given = corrupt(y, rho, rng)
        if np.bincount(given, minlength=k).min() < 2 or np.bincount(y, minlength=k).min() < 2:
            return None
        return (x, given), rho

    return observed


def votes(n, k, noise, rng, annotators=8, per_item=3):
    """Votes of three of eight annotators on an item, each with a noise matrix of its own."""
    y = rng.integers(k, size=n)
    rates = np.stack([NOISE[noise](k, rng).T for _ in range(annotators)])
    return (table_of(voted(y, rates, rng, per_item)),), rates


class Case(NamedTuple):
    """An estimator with data of its own model.

    Attributes:
        make: the estimator.
        observed: from (n, K, kind of noise, generator) to arguments of ``fit`` and the true rates,
            (..., K, K); None where a class has fewer than two labels.
        rates: the posterior's variable that holds the rates.
    """

    make: Callable[..., Any]
    observed: Callable[..., Any]
    rates: str = "noise_matrix"


CASES = {
    "NoisyBernoulliNB": Case(nb.NoisyBernoulliNB, one_label(binary)),
    "NoisyBernoulliNB, weak": Case(
        nb.NoisyBernoulliNB, one_label(partial(binary, concentration=3.0))
    ),
    "NoisyBernoulliNB, copies": Case(nb.NoisyBernoulliNB, one_label(copies)),
    "NoisyMultinomialNB": Case(nb.NoisyMultinomialNB, one_label(words)),
    "NoisyGaussianNB": Case(nb.NoisyGaussianNB, one_label(normal)),
    "NoisyCategoricalNB": Case(nb.NoisyCategoricalNB, one_label(symbols)),
    "NoisyLogisticRegression": Case(nb.NoisyLogisticRegression, one_label(regression)),
    "NoisyLabelClassifier": Case(nb.NoisyLabelClassifier, one_label(normal)),
    "RobustNDA": Case(nb.RobustNDA, one_label(correlated)),
    "JointNB": Case(joint, one_label(two_tables)),
    "CollaborativeClassifier": Case(nb.CollaborativeClassifier, one_label(shared_items)),
    "DawidSkene": Case(nb.DawidSkene, votes, "votes_transitions"),
    "NoisyGaussianNB, heavy tails": Case(nb.NoisyGaussianNB, one_label(heavy_tails)),
    "NoisyGaussianNB, clusters": Case(nb.NoisyGaussianNB, one_label(clusters)),
    "NoisyLogisticRegression, gross errors": Case(
        nb.NoisyLogisticRegression, one_label(gross_errors)
    ),
}


class Found(NamedTuple):
    """What one fit covers.

    Attributes:
        diagonal: share of the diagonal inside its intervals.
        others: share of the other cells inside theirs.
        bias: mean error of the diagonal's posterior means.
        width: mean width of the diagonal's intervals.
        warned: whether the fit issued a warning.
    """

    diagonal: float
    others: float
    bias: float
    width: float
    warned: bool


def covered(case, n, k, noise, seed, draws):
    """One data set, one default fit; None where a class has fewer than two labels."""
    observed = case.observed(n, k, noise, np.random.default_rng(seed))
    if observed is None:
        return None
    data, rho = observed
    with warnings.catch_warnings(record=True, action="always") as caught:
        fitted = case.make(random_state=seed).fit(*data)
    with warnings.catch_warnings(action="ignore"):  # few draws
        tree = fitted.posterior(draws=draws, chains=2, progress=False)
    drawn = tree["posterior"][case.rates].to_numpy().reshape(-1, *rho.shape)
    ends = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], 0)
    inside = ((ends[0] <= rho) | ((rho == 0) & (ends[0] < ZERO))) & (rho <= ends[1])
    own = np.eye(k, dtype=bool)
    return Found(
        inside[..., own].mean(),
        inside[..., ~own].mean(),
        (drawn.mean(0) - rho)[..., own].mean(),
        (ends[1] - ends[0])[..., own].mean(),
        any(issubclass(w.category, NbmodelsWarning) for w in caught),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replicates", type=int, default=30)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--items", type=int, nargs="*", default=[100, 300, 1000, 5000])
    parser.add_argument("--classes", type=int, nargs="*", default=[2, 3, 10])
    parser.add_argument("--noise", nargs="*", default=list(NOISE), choices=list(NOISE))
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seed", type=int, default=0, help="of the first data set")
    parser.add_argument("--quick", action="store_true", help="K = 3, 300 and 1,000 items, 8 sets")
    args = parser.parse_args()
    if args.quick:
        args.items, args.classes, args.replicates = [300, 1000], [3], 8
    rows = [(c, n, k, r) for c in args.only for k in args.classes for n in args.items
            for r in args.noise]  # fmt: skip
    table = Table("estimator", "K", "n", "noise", "diagonal", "others", "bias", "width",
                  "warned", "sets", "s a set")  # fmt: skip
    try:
        for name, n, k, noise in track(rows, transient=True):
            seeds = range(args.seed, args.seed + args.replicates)
            begun = time.perf_counter()
            found = [covered(CASES[name], n, k, noise, s, args.draws) for s in seeds]
            found = [f for f in found if f is not None]
            if not found:
                continue
            mean = Found(*np.mean(np.array(found, float), 0))
            table.add_row(
                name, f"{k}", f"{n:,}", noise, f"{mean.diagonal:.0%}", f"{mean.others:.0%}",
                f"{mean.bias:+.3f}", f"{mean.width:.3f}", f"{mean.warned:.0%}", f"{len(found)}",
                f"{(time.perf_counter() - begun) / len(seeds):.1f}",
            )  # fmt: skip
    except KeyboardInterrupt:
        pass  # what there is
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
