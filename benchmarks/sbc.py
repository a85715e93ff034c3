"""Simulation-based calibration of Gibbs and NUTS: ``python benchmarks/sbc.py``.

For every kind of model, parameters from the prior, data from the parameters, draws given the data:
the rank of each true value among the draws must be uniform, and nine in ten of the 90 % intervals
must hold it. The p-value is that of the worst quantity's chi-square test, times the number of
quantities (Bonferroni).

Calibration is of the whole posterior, the exchanged names of the classes included. Chains begin at
draws of the prior, and one chain must visit whatever has mass: so the priors here hold the names
(21 pseudo-labels right to two wrong), and classes overlap enough for labels to move.

A graph is no generative model of its edges, only one of factors: which user has which item is fixed
here, and classes are drawn from the model's own law given the edges, all labellings enumerated.
"""

import argparse
import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np
from calibration import calibrated, ranks
from jax.scipy.special import gammaln
from rich.console import Console
from rich.table import Table
from simulation import data_sets, gibbs_of_all, nuts_of_all

from nbmodels.channels import (
    Annotators,
    CandidateSets,
    FixedTransition,
    SymmetricTransition,
    Transition,
    TrustedLabels,
)
from nbmodels.class_priors import Calibration, FixedProportions, Proportions
from nbmodels.core import model as models
from nbmodels.emissions import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    DiagonalStudent,
    FullGaussian,
    FullStudent,
    Multinomial,
    Users,
)

K = 2
LABELS = (Transition, SymmetricTransition, FixedTransition, TrustedLabels, CandidateSets)
REAL = {"kappa": 2.0, "shape": 3.0, "rate": 3.0}
FULL = {"kappa": 2.0, "extra_dof": 4.0, "scale": 4.0}


def noisy():
    return Transition.of(K, alpha=1.0, diagonal=20.0)


def model(prior=None, **others):
    return {"class_prior": prior or Proportions.of(K, 4.0), **others}


MODELS = {
    "Bernoulli": lambda: model(x=Bernoulli.of(3, K), labels=noisy()),
    "categorical": lambda: model(x=Categorical.of((2, 3), K), labels=noisy()),
    "multinomial": lambda: model(x=Multinomial.of(4, K, 40.0), labels=noisy()),
    "Gaussian": lambda: model(x=DiagonalGaussian.of(2, K, **REAL), labels=noisy()),
    "Gaussian, full": lambda: model(x=FullGaussian.of(2, K, **FULL), labels=noisy()),
    "Gaussian, tied": lambda: model(x=FullGaussian.of(2, K, tied=True, **FULL), labels=noisy()),
    "Student": lambda: model(x=DiagonalStudent.of(2, K, **REAL), labels=noisy()),
    "Student, full": lambda: model(x=FullStudent.of(2, K, **FULL), labels=noisy()),
    "Student, tied": lambda: model(x=FullStudent.of(2, K, tied=True, **FULL), labels=noisy()),
    "mixed": lambda: model(
        x=Bernoulli.of(2, K), z=DiagonalGaussian.of(1, K, **REAL), labels=noisy()
    ),
    "one error rate": lambda: model(
        x=Bernoulli.of(3, K), labels=SymmetricTransition.of(K, diagonal=8.0)
    ),
    "known noise": lambda: model(
        x=Bernoulli.of(3, K),
        labels=FixedTransition(prior=jnp.array([[0.8, 0.2], [0.3, 0.7]])),
    ),
    "trusted labels": lambda: model(
        x=Bernoulli.of(3, K), labels=noisy(), trusted=TrustedLabels.of(K)
    ),
    "candidates": lambda: model(x=Bernoulli.of(3, K), sets=CandidateSets.of(K)),
    "annotators": lambda: model(votes=Annotators.of(3, K, alpha=1.0, diagonal=20.0)),
    "known shares": lambda: model(
        FixedProportions(prior=jnp.array([0.6, 0.4])), x=Bernoulli.of(3, K), labels=noisy()
    ),
    "calibration": lambda: model(
        Calibration.of(K, log_slope_sd=0.5, bias_sd=1.0), x=Bernoulli.of(2, K), labels=noisy()
    ),
    "graph": lambda: model(users=Users.of(6, K, alpha=1.5), labels=noisy()),
}

#: Items of each data set, and of a graph, whose labellings are enumerated.
ITEMS, SMALL = 40, 10


def pack(component, raw):
    return component.pack(raw, K) if isinstance(component, LABELS) else component.pack(raw)


def edges():
    """``(10, 6)`` each item has two of the six users."""
    pairs = list(itertools.combinations(range(6), 2))[:SMALL]
    out = np.zeros((SMALL, 6))
    for i, pair in enumerate(pairs):
        out[i, list(pair)] = 1
    return out


def graph(model, key, n_items):
    """Draw from the law of a graph's model given its edges, no label having been seen."""
    x = jnp.asarray(edges())
    every = jnp.asarray(list(itertools.product(range(K), repeat=n_items)))
    alpha, shares = (model[n].prior.concentration for n in ("users", "class_prior"))

    def law(y):
        counts = x.T @ jax.nn.one_hot(y, K)
        classes = jax.nn.one_hot(y, K).sum(0)
        users = gammaln(alpha + counts).sum() - gammaln((alpha + counts).sum(1)).sum()
        return users + gammaln(shares + classes).sum()

    first, *others = jax.random.split(key, 4)
    y = every[jax.random.categorical(first, jax.vmap(law)(every))]
    hot = jax.nn.one_hot(y, K)
    q = {
        "class_prior": model["class_prior"].prior.posterior(hot.sum(0), "draw"),
        "users": model["users"].prior.posterior(x.T @ hot, "draw"),
        "labels": model["labels"].prior,
    }
    read = {n: model[n].likelihood_params(q[n], "draw", k) for n, k in zip(q, others, strict=True)}
    values = models.values(model, read)
    labels = model["labels"].simulate(jax.random.fold_in(key, 1), values["labels"], y)
    return {"users": x, "labels": labels}, y, values


def run(name, n_sets, method, seed):
    made = MODELS[name]()
    first, second = jax.random.split(jax.random.key(seed))
    graphs = name == "graph"
    data, values = data_sets(
        made,
        first,
        n_sets,
        SMALL if graphs else ITEMS,
        pack,
        graph if graphs else models.simulate,
    )
    return {"gibbs": gibbs_of_all, "nuts": nuts_of_all}[method](made, data, values, second)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=1000, help="data sets of each model")
    parser.add_argument("--nuts", type=int, default=300, help="data sets for NUTS; 0 for none")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    table = Table("model", "sampler", "sets", "quantities", "worst p", "covered by 90 %", "seconds")
    jobs = [(name, "gibbs", args.sets) for name in args.models]
    if args.nuts:
        jobs += [("Bernoulli", "nuts", args.nuts)]
    console = Console(width=120)
    for name, method, n_sets in jobs:
        began = time.perf_counter()
        names, truth, draws = run(name, n_sets, method, args.seed)
        found = ranks(truth, draws)
        each = [calibrated(found[:, q], draws.shape[1]) for q in range(len(names))]
        worst = min(range(len(names)), key=lambda q: each[q].p_value)
        low, high = (f([e.coverage for e in each]) for f in (min, max))
        row = (
            name,
            method,
            str(n_sets),
            str(len(names)),
            f"{min(1, each[worst].p_value * len(names)):.3f} ({names[worst]})",
            f"{low:.1%} to {high:.1%}",
            f"{time.perf_counter() - began:.0f}",
        )
        console.print(*row, sep="  ", style="dim")
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    main()
