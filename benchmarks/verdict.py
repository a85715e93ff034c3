"""How often the verdict on a fit is bad: ``python benchmarks/verdict.py``.

Data from the fitted model, where it should be bad in at most 5 % of simulations, and from models
that break one assumption, where it should be in at least 95 %. Labels are flipped uniformly. The
columns are the share of bad verdicts; that of bad verdicts on fits whose suggested labels are
better than the given ones (a right model may fail to find its classes, and then a bad verdict is
right); that of each finding; the accuracy of the suggested labels beside that of the given ones;
and the cost of a verdict beside that of a fit.
"""

import argparse
import time
import warnings
from collections import Counter

import numpy as np
from rich.console import Console
from rich.table import Table

from nbmodels import (
    NbmodelsWarning,
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyMultinomialNB,
    RobustNDA,
    Solver,
)
from nbmodels.datasets import corrupt, uniform_noise


def normal(rng, y, k, d=10, correlation=0.0, dof=None, transform=None, spread=1.0):
    """Class means of standard deviation ``spread``, unit variances unless the tails are heavy."""
    means = rng.normal(0, spread, (k, d))
    covariance = np.full((d, d), correlation) + (1 - correlation) * np.eye(d)
    noise = rng.normal(size=(len(y), d)) @ np.linalg.cholesky(covariance).T
    if dof is not None:
        noise = rng.standard_t(dof, (len(y), d))
    x = means[y] + noise
    return x if transform is None else transform(x)


def joint_t(rng, y, k, d=10, dof=3.0):
    """One scale for all columns of a row."""
    scale = np.sqrt(rng.gamma(dof / 2, 2 / dof, (len(y), 1)))
    return rng.normal(0, 1.5, (k, d))[y] + rng.normal(size=(len(y), d)) / scale


def binary(rng, y, k, d=15, copies=1):
    """Independent columns, each ``copies`` times with a tenth of the cells drawn anew."""
    probs = rng.uniform(0.05, 0.6, (k, d))
    x = rng.random((len(y), d)) < probs[y]
    again = rng.random((len(y), d)) < probs[y]
    more = [np.where(rng.random(x.shape) < 0.1, again, x) for _ in range(copies - 1)]
    return np.hstack([x, *more]).astype(float)


def words(rng, y, k, d=100, concentration=None):
    """Documents of some 50 words; of a Dirichlet-multinomial where there is a concentration."""
    probs = rng.dirichlet(np.full(d, 0.5), k)
    length = 1 + rng.poisson(50, len(y))
    p = probs[y]
    if concentration is not None:
        drawn = rng.gamma(concentration * p + 1e-12)
        p = drawn / drawn.sum(1, keepdims=True)
    return rng.multinomial(length, p).astype(float)


def symbols(rng, y, k, d=8):
    probs = rng.dirichlet(np.ones(4), (k, d))
    return (rng.random((len(y), d, 1)) > probs[y].cumsum(-1)[..., :-1]).sum(-1)


def uniform(k, x, y, share, rng):
    return corrupt(y, uniform_noise(k, share), rng)


def by_feature(k, x, y, share, rng):
    """Labels that are wrong twice as often, or never, by the sign of the first column."""
    wrong = corrupt(y, uniform_noise(k, min(2 * share, 0.8)), rng)
    return np.where(x[:, 0] > np.median(x[:, 0]), wrong, y)


#: name: (features, estimator, noise, whether the model is right)
WORLDS = {
    "normal": (normal, NoisyGaussianNB.published, uniform, True),
    "normal, little apart": (
        lambda *a: normal(*a, spread=0.5),
        NoisyGaussianNB.published,
        uniform,
        True,
    ),
    "normal, full": (
        lambda *a: normal(*a, d=5, correlation=0.6),
        lambda **o: NoisyGaussianNB.published(covariance="full", **o),
        uniform,
        True,
    ),
    "t(3), RobustNDA diagonal": (
        joint_t,
        lambda **o: RobustNDA.published(covariance="diag", dof=3.0, **o),
        uniform,
        True,
    ),
    "binary": (binary, NoisyBernoulliNB.published, uniform, True),
    "words": (words, NoisyMultinomialNB.published, uniform, True),
    "symbols": (symbols, NoisyCategoricalNB.published, uniform, True),
    "t(3) under normal": (lambda *a: normal(*a, dof=3), NoisyGaussianNB.published, uniform, False),
    "correlation 0.6 under naive": (
        lambda *a: normal(*a, correlation=0.6),
        NoisyGaussianNB.published,
        uniform,
        False,
    ),
    "log-normal under normal": (
        lambda *a: normal(*a, transform=np.exp),
        NoisyGaussianNB.published,
        uniform,
        False,
    ),
    "columns twice under naive": (
        lambda *a: binary(*a, copies=2),
        NoisyBernoulliNB.published,
        uniform,
        False,
    ),
    "Dirichlet-multinomial under words": (
        lambda *a: words(*a, concentration=50),
        NoisyMultinomialNB.published,
        uniform,
        False,
    ),
    "noise by a feature under normal": (normal, NoisyGaussianNB.published, by_feature, False),
}


def run(world, k, share, n, seeds):
    """Names of the bad findings of each simulation, and accuracies and times."""
    features, estimator, noise, _ = WORLDS[world]
    out = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        y = rng.integers(0, k, n)
        x = features(rng, y, k)
        noisy = noise(k, x, y, share, rng)
        began = time.perf_counter()
        e = estimator(solver=Solver(progress=False), random_state=0)
        with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
            e.fit(x, noisy)
            fitted = time.perf_counter()
            e._verdict = None  # once more, to time it alone
            verdict = e.verdict()
        judged = time.perf_counter()
        right = np.mean(e.classes_[e.label_posterior_.argmax(1)] == y)
        times = fitted - began - (judged - fitted), judged - fitted
        out.append(([f.name for f in verdict.bad], np.mean(noisy == y), right, *times))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    console = Console()
    columns = (
        "world",
        "K",
        "noise",
        "bad",
        "though better",
        "findings",
        "given",
        "suggested",
        "fit",
        "verdict",
    )
    table = Table(*columns)
    for world, (*_, holds) in WORLDS.items():
        if args.only not in world:
            continue
        for k in (2, 5):
            for share in (0.1, 0.25, 0.4):
                found = run(world, k, share, args.rows, range(args.seeds))
                counts = Counter(name for names, *_ in found for name in names)
                said = ", ".join(f"{a} {b / len(found):.0%}" for a, b in counts.most_common())
                bad = np.mean([bool(names) for names, *_ in found])
                though = np.mean(
                    [bool(names) and right > given for names, given, right, *_ in found]
                )
                given, suggested, fit, verdict = np.median([f[1:] for f in found], axis=0)
                wanted = {True: "<= 5 %", False: ">= 95 %"}[holds]
                table.add_row(
                    world,
                    str(k),
                    f"{share:.0%}",
                    f"{bad:.1%} (wanted {wanted})",
                    f"{though:.1%}",
                    said,
                    f"{given:.3f}",
                    f"{suggested:.3f}",
                    f"{1e3 * fit:.0f} ms",
                    f"{1e3 * verdict:.0f} ms",
                )
                console.print(f"{world} {k} {share} {bad:.3f} {said}", style="dim")
        table.add_section()
    console.print(table)


if __name__ == "__main__":
    main()
