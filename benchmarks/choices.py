"""What choosing costs where the right model is known: ``python benchmarks/choices.py``.

The simulated features of ``verdict.py`` with uniform noise. Every candidate is fitted as it is:
joint models as published, cross-fitted ones, a logistic regression, and ours with everything chosen
by held-out noisy labels. The columns are the median over seeds of the AUC for wrong labels, the
largest amount by which ours fell below the best candidate of its seed, and the median of the
accuracy of the suggested labels beside that of the given ones.
"""

import argparse
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from verdict import WORLDS, uniform

from nbmodels import (
    AutoNoisyClassifier,
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyMultinomialNB,
    RobustNDA,
    Solver,
)

#: Candidates by kind of features.
REALS = {
    "normal": NoisyGaussianNB.published,
    "normal, full": lambda **o: NoisyGaussianNB.published(covariance="full", **o),
    "normal, cross-fitted": lambda **o: NoisyGaussianNB(noise="full", **o, training="cross_fit"),
    "Student": lambda **o: RobustNDA.published(covariance="diag", dof=4.0, **o),
    "Student, full": lambda **o: RobustNDA.published(covariance="full", dof=4.0, **o),
    "regression": NoisyLabelClassifier,
}
BINARY = {
    "Bernoulli": NoisyBernoulliNB.published,
    "Bernoulli, cross-fitted": lambda **o: NoisyBernoulliNB(
        noise="full", **o, training="cross_fit"
    ),
    "regression": NoisyLabelClassifier,
}
COUNTS = {
    "words": NoisyMultinomialNB.published,
    "words, cross-fitted": lambda **o: NoisyMultinomialNB(noise="full", **o, training="cross_fit"),
    "presence": lambda **o: NoisyBernoulliNB.published(binarize=0.0, **o),
    # on standardised columns: raw counts that tell the classes apart take five times as long
    "regression": lambda **o: NoisyLabelClassifier(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)), **o
    ),
}
SYMBOLS = {
    "symbols": NoisyCategoricalNB.published,
    "symbols, cross-fitted": lambda **o: NoisyCategoricalNB(
        noise="full", **o, training="cross_fit"
    ),
}
WORLDS_AND_CANDIDATES = {
    "normal": (REALS, {"own defaults": NoisyGaussianNB, "auto": AutoNoisyClassifier}),
    "normal, full": (REALS, {"own defaults": NoisyGaussianNB, "auto": AutoNoisyClassifier}),
    "t(3) under normal": (REALS, {"auto": AutoNoisyClassifier}),
    "correlation 0.6 under naive": (REALS, {"auto": AutoNoisyClassifier}),
    "log-normal under normal": (REALS, {"auto": AutoNoisyClassifier}),
    "binary": (BINARY, {"own defaults": NoisyBernoulliNB, "auto": AutoNoisyClassifier}),
    "columns twice under naive": (BINARY, {"auto": AutoNoisyClassifier}),
    "words": (COUNTS, {"own defaults": NoisyMultinomialNB, "auto": AutoNoisyClassifier}),
    "Dirichlet-multinomial under words": (COUNTS, {"auto": AutoNoisyClassifier}),
    "symbols": (SYMBOLS, {"own defaults": NoisyCategoricalNB}),
}


def quality(make, x, noisy, y, seed):
    """AUC of wrong labels, and accuracy of the suggested ones."""
    with warnings.catch_warnings(action="ignore"):
        e = make(random_state=seed, solver=Solver(progress=False)).fit(x, noisy)
    resp = e.label_posterior_
    auc = roc_auc_score(noisy != y, 1 - resp[np.arange(len(y)), noisy])
    return auc, np.mean(resp.argmax(1) == y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--noise", type=float, default=0.25)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    console = Console()
    k = 3
    table = Table("features", "method", "AUC", "most below the best", "suggested", "given")
    for world, (candidates, ours) in WORLDS_AND_CANDIDATES.items():
        if args.only not in world:
            continue
        found = {name: [] for name in (*candidates, *ours)}
        given = []
        for seed in range(args.seeds):
            rng = np.random.default_rng(seed)
            y = rng.integers(0, k, args.rows)
            x = WORLDS[world][0](rng, y, k)
            noisy = uniform(k, x, y, args.noise, rng)
            given.append(np.mean(noisy == y))
            for name, make in {**candidates, **ours}.items():
                found[name].append(quality(make, x, noisy, y, seed))
        best = np.max([np.array(found[name])[:, 0] for name in candidates], axis=0)
        for name, pairs in found.items():
            auc, right = np.array(pairs).T
            below = f"{np.max(best - auc):.3f}" if name in ours else ""
            row = f"{np.median(auc):.3f}", below, f"{np.median(right):.3f}"
            table.add_row(world, name, *row, f"{np.median(given):.3f}")
            console.print(world, name, *row, style="dim")
        table.add_section()
    console.print(table)


if __name__ == "__main__":
    main()
