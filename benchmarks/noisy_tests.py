"""Coverage of corrected accuracies, and the test of independence.

Test labels are wrong at random within a class; the classifier's errors go mostly to the next class.
The noise matrix is known, or drawn from its prior and known by draws of its posterior given 60
checked labels of each class. In the last worlds labels and predictions err together, which the
test on checked rows has to find.
"""

import argparse
from itertools import product

import numpy as np
import pandas as pd
from rich.console import Console

from nbmodels.metrics import noisy_test_scores


def classifier(k, accuracy):
    """``[predicted, true]``: seven in ten errors go to the next class."""
    others = (1 - accuracy) * 0.3 / (k - 1)
    out = np.full((k, k), others)
    out[np.arange(k), np.arange(k)] = accuracy
    out[(np.arange(k) + 1) % k, np.arange(k)] += (1 - accuracy) * 0.7
    return out


def noise_matrix(k, share, rng):
    """``[observed, true]`` with a common error rate and flips of random preference."""
    flips = rng.dirichlet(np.full(k - 1, 2.0), k) * share
    out = np.zeros((k, k))
    for t in range(k):
        out[np.arange(k) != t, t] = flips[t]
        out[t, t] = 1 - share
    return out


def drawn(matrix, true, rng):
    """A label for each true class, by the columns of a matrix."""
    return (rng.random(len(true)) > matrix.cumsum(0)[:, true]).sum(0).clip(0, len(matrix) - 1)


def prior_and_posterior(centre, rng, strength=10.0, checked=60, draws=400):
    """A noise matrix about a centre, and its posterior draws given checked labels of each class."""
    prior = strength * centre.T
    matrix = np.stack([rng.dirichlet(column) for column in prior])
    counts = np.stack([rng.multinomial(checked, column) for column in matrix])
    gamma = rng.standard_gamma(counts + prior, (draws, *counts.shape))
    return matrix.T, np.swapaxes(gamma / gamma.sum(2, keepdims=True), 1, 2)


def repeat(k, n, share, known, copied, rng, checked=0):
    """One test set: whether intervals hold, how wide they are, and the test's verdict."""
    true = rng.choice(k, n, p=rng.dirichlet(np.full(k, 10.0)))
    accuracy = 0.85
    matrix = noise_matrix(k, share, rng)
    noise = matrix
    if not known:
        matrix, noise = prior_and_posterior(matrix, rng)
    given = drawn(matrix, true, rng)
    predicted = drawn(classifier(k, accuracy), true, rng)
    # a classifier that learned the annotators' mistakes
    both = (given != true) & (rng.random(n) < copied)
    predicted[both] = given[both]
    trusted = {row: true[row] for row in range(checked)} if checked else None
    names = np.arange(k)
    seed = int(rng.integers(2**31))
    options = {"draws": 400, "random_state": seed, "classes": names, "trusted": trusted}
    found = noisy_test_scores(given, predicted, noise, **options)
    held = found.accuracy.low <= accuracy <= found.accuracy.high
    test = found.independence
    return {
        "covered": held,
        "width": found.accuracy.width,
        "bias": found.accuracy.value - accuracy,
        "uncorrected": found.given["accuracy"],
        "rejected": np.nan if test is None else not test.ok,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--classes", type=int, nargs="*", default=[2, 3, 10])
    parser.add_argument("--rows", type=int, nargs="*", default=[200, 1000, 5000])
    parser.add_argument("--noise", type=float, nargs="*", default=[0.1, 0.25, 0.4])
    args = parser.parse_args()
    console = Console(width=160)
    held = product(args.classes, args.rows, args.noise, (True, False), (0.0,), (0,))
    tested = product((3,), (1000,), (0.2,), (True,), (0.0, 0.2, 0.5), (50, 200))
    table = []
    for k, n, share, known, copied, checked in (*held, *tested):
        rngs = (np.random.default_rng([args.seed, k, n, i]) for i in range(args.repeats))
        found = [repeat(k, n, share, known, copied, rng, checked) for rng in rngs]
        mean = pd.DataFrame(found).astype(float).mean()
        row = {
            "classes": k,
            "rows": n,
            "noise": share,
            "matrix": "known" if known else "drawn",
            "copied": copied,
            "checked": checked,
            "coverage": f"{mean['covered']:.1%}",
            "width": f"{mean['width']:.3f}",
            "bias": f"{mean['bias']:+.4f}",
            "uncorrected": f"{mean['uncorrected']:.3f}",
            "rejected": "" if np.isnan(mean["rejected"]) else f"{mean['rejected']:.1%}",
        }
        table.append(row)
        console.print(" | ".join(map(str, row.values())), highlight=False)
    console.print(pd.DataFrame(table).to_string(index=False))


if __name__ == "__main__":
    main()
