"""Coverage of the noise matrix where the model is wrong: ``python benchmarks/intervals.py``.

Binary features that are copies of one another: each of four is there four times, a copy differing
from it in one item out of twenty. Naive Bayes counts copies as news. Intervals of 90 % of the flip
rates by Gibbs at several weights of the features, and of cross-fitted features, as
they are and after the open-faced sandwich; and how much the means vary from one set of items to the
next, beside how much the draws of a set do.
"""

import argparse
import warnings
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from nbmodels import NoisyBernoulliNB
from nbmodels.channels import Transition
from nbmodels.class_priors import Proportions
from nbmodels.core.model import Data
from nbmodels.emissions import Bernoulli
from nbmodels.fitting import em as fitting
from nbmodels.posterior.datatree import item_log_likelihood
from nbmodels.posterior.gibbs import gibbs_draws
from nbmodels.posterior.sandwich import jackknife, stretch

K, BASE, COPIES = 2, 4, 4
RHO = np.array([[0.85, 0.15], [0.25, 0.75]])  # [true, observed]


def simulated(rng, n_items):
    """Items whose features are copied, with noisy labels."""
    y = rng.integers(K, size=n_items)
    probs = np.where(np.arange(K)[:, None] == 0, 0.25, 0.75)
    x = rng.random((n_items, BASE)) < probs[y]
    copies = np.repeat(x, COPIES, 1) ^ (rng.random((n_items, BASE * COPIES)) < 0.05)
    labels = (rng.random(n_items) < np.where(y == 0, RHO[0, 1], RHO[1, 1])).astype(int)
    return copies.astype(float), labels


def joint(x, labels, weight, key, draws):
    """Noise matrices ``(draws, K, K)`` ``[true, observed]`` and log-likelihoods of the items."""
    model = {
        "class_prior": Proportions.of(K),
        "labels": Transition.of(K, alpha=1.0, diagonal=3.0),
        "x": replace(Bernoulli.of(BASE * COPIES, K), weight=weight),
    }
    parts = {"class_prior": None, "labels": Transition.pack(labels, K), "x": Bernoulli.pack(x)}
    data = Data(parts, jnp.ones(len(x)))
    first, second = jax.random.split(key)
    fitted = fitting.fit(model, data, key=first)
    drawn = gibbs_draws(
        fitted, data, second,
        draws=draws, warmup=100, chains=1, thin=1, keep="small", report=None,
    )  # fmt: skip
    return drawn.transitions["labels"][0], drawn.log_likelihood[0]


def cross_fitted(x, labels, key, draws):
    """The same, where features learn out of fold from the given labels alone."""
    seed = int(jax.random.randint(key, (), 0, 2**31 - 1))
    e = NoisyBernoulliNB(noise="full", random_state=seed, training="cross_fit")
    with warnings.catch_warnings(action="ignore"):
        tree = e.fit(x, labels).posterior(draws=draws, chains=1, progress=False)
    rho = tree["posterior"]["noise_matrix"].to_numpy()[0]
    return np.swapaxes(rho, 1, 2), item_log_likelihood(tree).to_numpy()[0]


def intervals(rho, log_likelihood):
    """Logits of the two flip rates: plain draws, and stretched ones."""
    flips = np.stack([rho[:, 0, 1], rho[:, 1, 0]], 1)
    logit = np.log(flips / (1 - flips))
    centre = logit.mean(0)
    matrix = stretch(jackknife(logit, log_likelihood), np.cov(logit.T))
    return logit, centre + (logit - centre) @ matrix.T


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--weights", type=float, nargs="*", default=[1.0, 0.5, 0.25])
    parser.add_argument("--only", help='one weight, or "cross-fitted"')
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    truth = np.log(np.array([RHO[0, 1] / RHO[0, 0], RHO[1, 0] / RHO[1, 1]]))
    ways = {f"{w:g}": partial(joint, weight=w) for w in args.weights} | {
        "cross-fitted": cross_fitted
    }
    ways = {name: way for name, way in ways.items() if args.only in (None, name)}
    table = Table(
        "weight", "bias of the logits", "means vary, of draws",
        "covered, plain", "covered, sandwich", "widening",
    )  # fmt: skip
    for name, way in ways.items():
        rng = np.random.default_rng(0)
        inside, means, spread, wide = [], [], [], []
        for i in range(args.replicates):
            both = intervals(
                *way(*simulated(rng, args.items), key=jax.random.key(i), draws=args.draws)
            )
            ends = [np.quantile(d, [0.05, 0.95], 0) for d in both]
            inside.append([(e[0] <= truth) & (truth <= e[1]) for e in ends])
            means.append(both[0].mean(0))
            spread.append(both[0].std(0))
            wide.append((ends[1][1] - ends[1][0]) / (ends[0][1] - ends[0][0]))
        plain, stretched = np.mean(inside, (0, 2))
        bias = np.mean(means, 0) - truth
        table.add_row(
            name, f"{bias[0]:+.2f}, {bias[1]:+.2f}",
            f"{np.mean(np.std(means, 0) / np.mean(spread, 0)):.2f}",
            f"{plain:.0%}", f"{stretched:.0%}", f"{np.mean(wide):.2f}",
        )  # fmt: skip
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
