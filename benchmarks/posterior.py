"""How fast the noise matrix's posterior is drawn: ``python benchmarks/posterior.py``.

First 20 Newsgroups, 18,846 documents and 7,302 words in 20 classes with 20 % planted noise: four
chains of 500 Gibbs draws of the noise matrix and the class shares, on the defaults and jointly at
several weights of the words. At weight 1 naive Bayes counts dependent words as if each were news;
the defaults cross-fit the words and calibrate their scores. Then Gibbs against NUTS where both
can run (K = 5, 200 binary features, 2,000 items): effective draws a second, the least of any entry
of the noise matrix and of the shares, warm-up and compilation counted and not.
"""

import argparse
import time
import warnings

import arviz_stats
import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from nbmodels import Joint, NoisyBernoulliNB
from nbmodels.datasets import corrupt, uniform_noise

try:
    from real_data import NEWS, texts
except ImportError:  # run from elsewhere
    from benchmarks.real_data import NEWS, texts

console = Console(width=120)


def mixing(tree):
    """Largest R-hat and smallest number of effective draws of the noise matrix and the shares."""
    names = [n for n in ("class_prior", "noise_matrix") if n in tree["posterior"]]
    rhat, ess = (f(tree, var_names=names) for f in (arviz_stats.rhat, arviz_stats.ess))
    worst = max(float(np.nanmax(rhat[n])) for n in names)
    return worst, min(float(np.nanmin(ess[n])) for n in names)


def drawn(model, *args, **options):
    """Draws, the seconds they took, and what was said of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        tree = model.posterior(*args, random_state=1, **options)
        seconds = time.perf_counter() - began
    return tree, seconds, [str(w.message) for w in caught]


def newsgroups(weights, warmup, vocabulary):
    found, y = texts()
    x = found[f"{vocabulary} TF-IDF"]["binary"]
    rho = uniform_noise(20, 0.2)
    noisy = corrupt(y, rho, np.random.default_rng(0))
    table = Table(
        "words", "fit, s", "4 x 500 draws, s", "R-hat", "least ESS",
        "covered by 90 %", "mean |error| of rho",
        title=f"20 Newsgroups, Gibbs, words of {vocabulary} TF-IDF",
    )  # fmt: skip
    models = {"defaults": NoisyBernoulliNB(random_state=0)}
    for weight in weights:
        model = NoisyBernoulliNB.published(
            alpha=0.1, random_state=0, training=Joint(weight=weight, size_power=0.0)
        )
        models[f"joint, weight {weight:g}"] = model
    for name, model in models.items():
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x, noisy)
        fitted = time.perf_counter() - began
        tree, seconds, words = drawn(model, draws=500, chains=4, warmup=warmup)
        rhat, ess = mixing(tree)
        draws = tree["posterior"]["noise_matrix"].to_numpy().reshape(-1, 20, 20)
        low, high = np.quantile(draws, [0.05, 0.95], 0)
        inside = np.mean((low <= rho) & (rho <= high))
        error = np.abs(draws.mean(0) - rho).mean()
        table.add_row(
            name, f"{fitted:.1f}", f"{seconds:.0f}", f"{rhat:.3f}", f"{ess:.0f}",
            f"{inside:.0%}", f"{error:.4f}",
        )  # fmt: skip
        for sentence in words:
            console.print(f"{name}: {sentence}", style="dim")
    console.print(table)


def against_nuts(nuts_draws, nuts_warmup):
    rng = np.random.default_rng(0)
    k, d, n = 5, 200, 2000
    y = rng.integers(k, size=n)
    probs = np.clip(rng.beta(2, 2, d)[:, None] + 0.08 * rng.normal(size=(d, k)), 0.02, 0.98)
    x = (rng.random((n, d)) < probs[:, y].T).astype(float)
    noisy = corrupt(y, uniform_noise(k, 0.2), rng)
    model = NoisyBernoulliNB.published(random_state=0).fit(x, noisy)
    table = Table(
        "method", "draws", "seconds, all", "R-hat", "least ESS", "ESS a second",
        title=f"K = {k}, d = {d}, N = {n}: the same posterior by both",
    )  # fmt: skip
    rates, means = [], []
    runs = [
        ("gibbs", {"draws": 2000, "chains": 4}),
        ("nuts", {"draws": nuts_draws, "warmup": nuts_warmup, "chains": 2}),
    ]
    for method, options in runs:
        tree, seconds, words = drawn(model, method, **options)
        rhat, ess = mixing(tree)
        rates.append(ess / seconds)
        means.append(tree["posterior"]["noise_matrix"].mean(("chain", "draw")).to_numpy())
        chains = f"{options['chains']} x {options['draws']}"
        table.add_row(
            method, chains, f"{seconds:.1f}", f"{rhat:.3f}", f"{ess:.0f}", f"{rates[-1]:.2f}"
        )
        for sentence in words:
            console.print(f"{method}: {sentence}", style="dim")
    console.print(table)
    gap = np.abs(means[0] - means[1]).max()
    console.print(f"Gibbs has {rates[0] / rates[1]:.0f} times the rate; means differ by {gap:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weights", type=float, nargs="*", default=[1.0, 0.3])
    parser.add_argument("--vocabulary", choices=["summed", "largest"], default="summed")
    parser.add_argument("--warmup", type=int, default=200)
    parser.add_argument("--nuts-draws", type=int, default=100)
    parser.add_argument("--nuts-warmup", type=int, default=100)
    parser.add_argument("--only", choices=["newsgroups", "nuts"])
    args = parser.parse_args()
    console.print(f"jax {jax.__version__}")
    if args.only != "nuts":
        if NEWS.exists():
            newsgroups(args.weights, args.warmup, args.vocabulary)
        else:
            console.print(f"{NEWS.name} is not here: 20 Newsgroups left out")
    if args.only != "newsgroups":
        against_nuts(args.nuts_draws, args.nuts_warmup)


if __name__ == "__main__":
    main()
