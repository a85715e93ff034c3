"""Four ways to one posterior, beside each other: ``python benchmarks/agreement.py``.

Gibbs on the fast core and NUTS on the NumPyro program share no code but the priors: their posterior
means are to agree within Monte Carlo error. Columns: the largest difference of the two in standard
errors, over all entries of the noise matrices, shares and features, and the share of entries more
than two apart (5 % are to be expected); then how far the means of Gibbs, of variational Bayes and
of SVI are from NUTS's at most; the median of the latter two's standard deviations beside Gibbs's;
the larger R-hat of Gibbs and NUTS; and the seconds of each, compilation counted.

The models are those of ``sbc.py`` with data drawn from them, and the live-streaming messages, whose
13 classes make 170 coordinates (``--nuts`` asks for fewer draws): on the defaults; with a whole
pseudo-label in each cell of the noise matrix, where the defaults have a twelfth, which is the
harder to sample; and jointly, where naive Bayes is wrong: columns are copies of each other.
"""

import argparse
import time
import warnings
from functools import partial

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sbc import MODELS, pack

from nbmodels import NoisyBernoulliNB, Priors, Solver
from nbmodels.core import model as models
from nbmodels.fitting.em import fit
from nbmodels.posterior.sampling import sample

try:
    from real_data import DATA
except ImportError:  # run from elsewhere
    from benchmarks.real_data import DATA

STREAMS = DATA / "live_streaming.csv"
SIMULATED = [
    "Bernoulli",
    "categorical",
    "multinomial",
    "Gaussian",
    "Gaussian, full",
    "Student, full",
    "one error rate",
    "candidates",
    "annotators",
    "calibration",
    "graph",
]

STREAMED = {
    "live streaming": NoisyBernoulliNB,
    "live streaming, whole pseudo-labels": partial(
        NoisyBernoulliNB, noise="full", priors=Priors(noise_alpha=12)
    ),
    "live streaming, joint": NoisyBernoulliNB.published,
}

#: How each is drawn; the number of kept draws decides what a Monte Carlo error is.
METHODS = {
    "gibbs": {"draws": 2000, "thin": 4, "chains": 4},
    "nuts": {"draws": 1000, "warmup": 500, "chains": 4},
    "vb": {"draws": 1000, "chains": 4},
    "svi": {"draws": 1000, "chains": 4, "steps": 5000},
}


def posted(rng, y, k, users=6, each=2):
    """``(N, users)`` who has which item: every item has some users, of its own class mostly."""
    home = np.arange(users) % k
    odds = np.where(home == y[:, None], 4.0, 1.0)
    ranked = np.argsort(-np.log(odds) + np.log(rng.exponential(size=odds.shape)), 1)
    x = np.zeros(odds.shape)
    np.put_along_axis(x, ranked[:, :each], 1.0, 1)
    return x


def simulated(name, n_items, seed):
    """Data drawn from a model, fitted, with what draws its posterior."""
    made = MODELS[name]()
    key = jax.random.key(seed)
    if name == "graph":
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, n_items)
        labels = np.where(rng.random(n_items) < 0.15, 1 - y, y)
        parts = {"users": posted(rng, y, 2), "labels": labels}
    else:
        parts, *_ = models.simulate(made, key, n_items)
    packed = {n: pack(made[n], np.asarray(part)) for n, part in parts.items()}
    data = models.Data({models.PRIOR: None, **packed}, jnp.ones(n_items))
    fitted = fit(made, data, key=key)
    return lambda method, **how: sample(fitted, data, key, method=method, progress=False, **how)


def streams(make, seed):
    frame = pd.read_csv(STREAMS).drop(columns="true_label")
    noisy = frame.pop("label").to_numpy()
    e = make(random_state=seed, solver=Solver(progress=False)).fit(frame, noisy)
    return lambda method, **how: e.posterior(method, progress=False, **how)


def read(tree):
    """Means, standard errors, standard deviations and R-hats of all entries, as rows."""
    found = tree["posterior"].to_dataset()
    rhat, mcse = arviz_stats.rhat(tree), arviz_stats.mcse(tree)
    columns = []
    for name in found.data_vars:
        draws = found[name].stack(sample=("chain", "draw")).to_numpy()
        draws = draws.reshape(-1, draws.shape[-1])
        others = [np.ravel(np.asarray(part[name])) for part in (mcse, rhat)]
        columns.append(np.stack([draws.mean(1), others[0], draws.std(1), others[1]]))
    mean, error, spread, rhat = np.concatenate(columns, 1)
    moves = spread > 0
    return mean[moves], error[moves], spread[moves], rhat[moves]


def row(draw, methods):
    """The columns of one posterior, and what the results warned of."""
    told, took, said = {}, {}, []
    for method, how in methods.items():
        began = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            told[method] = read(draw(method, **how))
        took[method] = time.perf_counter() - began
        said += [f"{method}: {w.message}" for w in caught]
    (a, first, spread, r1), (b, second, _, r2) = told["gibbs"], told["nuts"]
    gap = np.abs(a - b) / np.hypot(first, second)
    off = (f"{np.abs(told[m][0] - b).max():.3f}" for m in ("gibbs", "vb", "svi"))
    wide = (f"{np.median(told[m][2] / spread):.2f}" for m in ("vb", "svi"))
    return (
        str(len(gap)),
        f"{gap.max():.1f}",
        f"{np.mean(gap > 2):.0%}",
        *off,
        *wide,
        f"{max(r1.max(), r2.max()):.3f}",
        ", ".join(f"{took[m]:.0f}" for m in methods),
    ), said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--items", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nuts", type=int, default=1000, help="kept draws of each NUTS chain")
    parser.add_argument("--only", nargs="*", choices=[*SIMULATED, *STREAMED], help="all by default")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    makers = {name: lambda name=name: simulated(name, args.items, args.seed) for name in SIMULATED}
    if STREAMS.exists():
        makers |= {n: lambda make=make: streams(make, args.seed) for n, make in STREAMED.items()}
    methods = {**METHODS, "nuts": {"draws": args.nuts, "warmup": args.nuts // 2, "chains": 4}}
    console = Console(width=140)
    table = Table(
        "posterior", "entries", "worst, s.e.", "over 2", "Gibbs off", "VB off", "SVI off",
        "VB sd", "SVI sd", "R-hat", "seconds",
    )  # fmt: skip
    for name, make in makers.items():
        if args.only and name not in args.only:
            continue
        told, said = row(make(), methods)
        table.add_row(name, *told)
        console.print(name, *told, sep="  ", style="dim")
        for sentence in said:
            console.print(f"  {sentence}", style="dim")
    console.print(table)


if __name__ == "__main__":
    main()
