"""Cut, joint and mixed posterior beside each other: ``python benchmarks/semi_modular.py``.

Worlds where the joint model is right (features strong, weak, words, normal), where pairs of columns
depend on each other, where columns are copies; and texts of 20 Newsgroups with labels changed at
random (``--data`` names the parquet file). For each posterior of the noise matrix, the share of
true rates inside intervals of 90 %, their mean width, and the squared error of the means, summed
over the matrix; the weight of the joint posterior in the mixed one, and how often the test of the
feedback rejects at 5 %, which is a false alarm where the joint model is right. "least error" is the
pool by the weight of least squared error, ``min(1, tr(S_cut - S_joint)+ / |d|^2)``.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from coverage_of_defaults import CASES, LEVEL, NOISE, ZERO, binary
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.feature_extraction.text import CountVectorizer

import nbmodels as nb
from nbmodels.datasets import corrupt
from nbmodels.posterior.semi_modular import CONFLICT, mixed

WAYS = ("cut", "joint", "mixed", "least error", "default")


def pairs(n, k, rng):
    """Binary features in pairs, of which three items in ten share the random number."""
    y = rng.integers(k, size=n)
    probs = rng.beta(1.0, 1.0, (k, 20))
    u = rng.random((n, 20))
    same = rng.random((n, 10)) < 0.3
    u[:, 1::2] = np.where(same, u[:, ::2], u[:, 1::2])
    return (u < probs[y]).astype(int), y


def weak_copies(n, k, rng):
    """Ten weak binary features, each there twice, a copy differing in one item out of ten."""
    x, y = binary(n, k, rng, d=10, concentration=3.0)
    return np.repeat(x, 2, 1) ^ (rng.random((n, 20)) < 0.1), y


def news(path):
    """Texts of as many groups as there are classes: 500 words, their presence."""
    table = pd.read_parquet(path)
    groups = np.array(sorted(table["label"].unique()))

    def drawn(n, k, rng):
        of = rng.choice(groups, k, replace=False)
        rows = table[table["label"].isin(of)]
        rows = rows.sample(n, random_state=int(rng.integers(2**31)))
        words = CountVectorizer(max_features=500, binary=True, stop_words="english", min_df=2)
        x = words.fit_transform(rows["text"].str.partition("\n\n")[2])
        return x.toarray(), np.searchsorted(np.sort(of), rows["label"])

    return drawn


WORLDS = {
    "right": ("NoisyBernoulliNB", binary),
    "right, weak": ("NoisyBernoulliNB", CASES["NoisyBernoulliNB, weak"].data),
    "right, words": ("NoisyMultinomialNB", CASES["NoisyMultinomialNB"].data),
    "right, normal": ("NoisyGaussianNB", CASES["NoisyGaussianNB"].data),
    "dependent pairs": ("NoisyBernoulliNB", pairs),
    "weak copies": ("NoisyBernoulliNB", weak_copies),
    "copies": ("NoisyBernoulliNB", CASES["NoisyBernoulliNB, copies"].data),
}


def matrices(tree):
    """``(draws, K, K)`` noise matrices."""
    drawn = tree["posterior"]["noise_matrix"].to_numpy()
    return drawn.reshape(-1, *drawn.shape[2:])


def least_error(cut, joint, rng):
    """Draws pooled by the weight of least squared error."""
    gain = np.sum(cut.var(0)) - np.sum(joint.var(0))
    distance = np.sum(np.square(cut.mean(0) - joint.mean(0)))
    weight = min(1.0, max(gain, 0.0) / distance)
    return np.where(rng.random((len(cut), 1, 1)) < weight, joint, cut)


def measured(drawn, rho):
    """Coverage of the diagonal and of other cells, widths, squared error of the means."""
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], 0)
    inside = ((low <= rho) | ((rho == 0) & (low < ZERO))) & (rho <= high)
    off = ~np.eye(len(rho), dtype=bool)
    error = np.sum(np.square(drawn.mean(0) - rho))
    return np.diag(inside).mean(), inside[off].mean(), np.diag(high - low).mean(), error


def one(name, data, n, k, noise, seed, draws):
    """All ways on one data set, with weight and p-value; None where a class has no labels."""
    rng = np.random.default_rng(seed)
    x, y = data(n, k, rng)
    rho = NOISE[noise](k, rng)
    given = corrupt(y, rho, rng)
    if np.bincount(given, minlength=k).min() < 2:
        return None
    solver = nb.Solver(progress=False)
    with warnings.catch_warnings(action="ignore"):
        fitted = getattr(nb, name)(random_state=seed, solver=solver).fit(x, given)
        how = {"draws": draws, "chains": 2, "progress": False}
        cut, joint = (fitted.posterior(feedback=f, **how) for f in ("cut", "joint"))
        both = mixed(cut, joint, rng)
    weight = both.attrs["feedback_weight"]
    cut, joint, both = map(matrices, (cut, joint, both))
    default = joint if fitted.chosen_.get("training") == "joint" else cut
    ways = cut, joint, both, least_error(cut, joint, rng), default
    return [(*measured(drawn, rho), weight, weight <= CONFLICT) for drawn in ways]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--items", type=int, nargs="*", default=[100, 300, 1000])
    parser.add_argument("--classes", type=int, default=3)
    parser.add_argument("--noise", default="random", choices=list(NOISE))
    parser.add_argument("--only", nargs="*", default=list(WORLDS), choices=[*WORLDS, "news"])
    parser.add_argument("--data", help="20 Newsgroups as parquet, for the world news")
    parser.add_argument("--seed", type=int, default=0, help="of the first data set")
    parser.add_argument("--quick", action="store_true", help="300 items, 8 sets")
    args = parser.parse_args()
    if args.quick:
        args.items, args.replicates = [300], 8
    worlds = dict(WORLDS)
    if args.data:
        worlds["news"] = ("NoisyBernoulliNB", news(args.data))
    cells = [(w, n) for w in args.only for n in args.items]
    table = Table("world", "n", "sets", "weight", "rejects", *WAYS)
    try:
        for world, n in track(cells, transient=True):
            seeds = range(args.seed, args.seed + args.replicates)
            found = [one(*worlds[world], n, args.classes, args.noise, s, args.draws) for s in seeds]
            found = np.array([f for f in found if f is not None], float)
            if not len(found):
                continue
            mean = found.mean(0)
            table.add_row(
                world, f"{n:,}", f"{len(found)}", f"{mean[0, 4]:.2f}", f"{mean[0, 5]:.0%}",
                *(f"{m[0]:.0%} {m[1]:.0%}\n{m[2]:.3f} {m[3]:.4f}" for m in mean),
            )  # fmt: skip
    except KeyboardInterrupt:
        pass  # what there is
    Console(width=120).print(table)
    print("each way: coverage of the diagonal and of other cells; width; squared error")


if __name__ == "__main__":
    main()
