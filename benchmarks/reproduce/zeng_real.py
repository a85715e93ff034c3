"""The five methods of section 4.2 of Zeng et al. 2022 on real data, scored on golden labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.naive_bayes import BernoulliNB

from benchmarks.baselines import NAL, NLNN
from benchmarks.reproduce.results import (
    Cell,
    Result,
    Table,
    beside,
    claim,
    variance_of_mean,
)
from nbmodels import NoisyBernoulliNB

#: Methods of the figures, in their order; the last is ours, on its defaults.
METHODS = ("NB(wrong)", "INB", "NLNN", "NAL", "NB(correct)")
OURS = "NoisyBernoulliNB"


def accuracies(
    x: Any,
    given: np.ndarray,
    true: np.ndarray,
    test: Any,
    alpha: float,
    seed: int,
    only: Any = None,
) -> dict[str, float]:
    """Percent of right predictions by method.

    Args:
        x: ``(n, d)`` binary features of the training rows.
        given: ``(n,)`` observed labels.
        true: ``(n,)`` golden labels.
        test: features and golden labels of the test rows.
        alpha: pseudo-items of each value of a feature in each class.
        seed: of the networks and of ours.
        only: names of the methods to run; all by default.
    """
    x_test, y_test = test
    dense = x.toarray() if sparse.issparse(x) else x
    makes = {
        "NB(wrong)": lambda: BernoulliNB(alpha=alpha).fit(x, given),
        "INB": lambda: NoisyBernoulliNB.published(alpha=alpha).fit(x, given),
        "NLNN": lambda: NLNN(random_state=seed).fit(dense, given),
        "NAL": lambda: NAL(random_state=seed).fit(dense, given),
        "NB(correct)": lambda: BernoulliNB(alpha=alpha).fit(x, true),
        OURS: lambda: NoisyBernoulliNB(random_state=seed).fit(x, given),
    }
    out = {}
    for name, make in makes.items():
        if only is None or name in only:
            networks = name in ("NLNN", "NAL") and sparse.issparse(x_test)
            rows = x_test.toarray() if networks else x_test
            out[name] = float(100 * np.mean(make().predict(rows) == y_test))
    return out


def summary(each: list[dict[str, float]], splits: int, effect: float, gain: float | None) -> Result:
    """Cells, claims and figure from the accuracies of all splits.

    Args:
        each: accuracies by method of each split.
        splits: number of them that a figure of the paper is a mean of.
        effect: printed mislabelling effect.
        gain: printed gain of INB over naive Bayes, if any.
    """
    found = {name: np.array([e[name] for e in each]) for name in each[0]}

    def cell(column: str, name: str, other: str, paper: float, half: float) -> Cell:
        values = found[name] - found[other]
        variance = variance_of_mean(values, splits)
        return beside("mean over splits", column, values, paper, half, variance=variance)

    cells = [cell("dACC", "NB(wrong)", "NB(correct)", effect, 5e-3)]
    if gain is not None:
        cells.append(cell("gain of INB", "INB", "NB(wrong)", gain, 0.05))
    means = {name: float(values.mean()) for name, values in found.items()}
    rivals = [name for name in ("NB(wrong)", "NLNN", "NAL") if name in means]
    claims = (
        claim("INB outperforms the other methods", [means["INB"] > means[name] for name in rivals]),
        claim(
            "INB is very close to NB(correct), within a point",
            [abs(means["INB"] - means["NB(correct)"]) <= 1],
        ),
        claim(
            f"{OURS} on its defaults outperforms them",
            [means[OURS] > means[name] for name in rivals],
            ours=True,
        ),
        claim(
            f"{OURS} on its defaults is within a point of NB(correct) or above",
            [means[OURS] >= means["NB(correct)"] - 1],
            ours=True,
        ),
    )
    rows = tuple(
        (name, float(values.mean()), float(np.std(values, ddof=min(1, len(values) - 1))))
        for name, values in found.items()
    )
    table = Table("Accuracy, %", ("method", "mean", "standard deviation over splits"), rows)
    return Result(tuple(cells), claims, (table,), boxes(found))


def boxes(found: dict[str, np.ndarray]) -> Any:
    """Accuracies over the splits, a box a method, as in the paper."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axis = figure.subplots()
    axis.boxplot(list(found.values()), tick_labels=list(found))
    axis.set_ylabel("accuracy, %")
    axis.grid(alpha=0.3, axis="y")
    return figure
