"""How Denis et al. 2006 may have prepared the UCI sets: a search by log-likelihoods."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.reproduce.data import printed
from benchmarks.reproduce.denis_sets import CUTS, MISSING, Prepared, prepare
from benchmarks.reproduce.results import Result, Table, Target
from benchmarks.reproduce.targets.denis2006_table3 import NAMES

#: Pseudo-items a value and class; the last spreads one over the values of an attribute.
ALPHAS = (0.0, 0.5, 1.0, "1 / values")


@dataclass(frozen=True)
class Scale:
    """Number of sets and of cuts tried."""

    sets: int = 6
    cuts: int = len(CUTS)


def log_likelihood(found: Prepared, rows: np.ndarray, alpha: float | str) -> float:
    """Log-likelihood of the rows under naive Bayes fitted to them."""
    codes, y = found.codes[rows], found.y[rows]
    total = 0.0
    for k in (0, 1):
        mine = codes[y == k]
        total += len(mine) * np.log(len(mine) / len(y))
        for j, size in enumerate(found.sizes):
            counts = np.bincount(mine[mine[:, j] >= 0, j], minlength=size)
            pseudo = 1 / size if isinstance(alpha, str) else alpha
            probs = (counts + pseudo) / (counts.sum() + pseudo * size)
            seen = counts > 0
            total += float(counts[seen] @ np.log(probs[seen]))
    return total


def of_set(row: dict, alpha: float | str, missing: str, cut: str) -> float:
    """Mean over the folds, as in the table."""
    found = prepare(row, cut, missing)
    split = StratifiedKFold(10, shuffle=True, random_state=0).split(found.codes, found.y)
    return float(np.mean([log_likelihood(found, train, alpha) for train, _ in split]))


def run(scale: Scale) -> Result:
    rows = printed("denis2006_table3")["rows"][: scale.sets]
    goal = [row["noise"]["[0, 0]"]["lk"]["NB"] for row in rows]
    tried = []
    for alpha, missing, cut in product(ALPHAS, MISSING, CUTS[: scale.cuts]):
        ours = [of_set(row, alpha, missing, cut) for row in rows]
        gap = float(np.abs(np.subtract(ours, goal)).sum())
        tried.append((str(alpha), missing, cut, *(round(v) for v in ours), round(gap)))
    tried.sort(key=lambda line: line[-1])
    names = tuple(row["name"] for row in rows)
    best = Table(
        f"The best ten of {len(tried)} reconstructions",
        ("alpha", "missing cells", "cuts of Hepatitis", *names, "sum of differences"),
        (("", "the paper", "", *(round(v) for v in goal), ""), *tried[:10]),
    )
    return Result(tables=(best,))


TARGET = Target(
    name="why-denis2006-table3",
    paper="Denis et al. 2006",
    title="Why, Table 3: how the sets were prepared",
    about="""Smoothing, handling of missing cells and cuts of numeric columns are not said. The
paper does print the log-likelihood of naive Bayes without noise, which has no random part but the
folds: one exact figure a set. All combinations of four smoothings, four ways with missing cells
and five cuts of Hepatitis (the only set with numeric columns) are compared with these six figures,
and with nothing else: no accuracy, nothing with noise.""",
    run=run,
    scales={"toy": Scale(1, 1), "quick": Scale(), "full": Scale()},
    needs=tuple(f"uci/{name}.csv" for name in NAMES),
    why="""One reconstruction fits all six sets best: Laplace smoothing, missing cells left out,
Hepatitis cut at the values that its documentation lists. Five sets are met within two nats in some
thousand; Hepatitis stays 2 % off, so that its cuts were others still. Accuracies, which the search
did not see, follow: without noise all of NB's and NB-CCCN-EM's are within two points, where
without smoothing and with ten cuts of equal counts Hepatitis was not.""",
)
