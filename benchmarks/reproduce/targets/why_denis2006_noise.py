"""How much noise Denis et al. 2006 had in the noisy half of Table 3: a search by naive Bayes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from benchmarks.reproduce.data import printed
from benchmarks.reproduce.denis_fits import cross_validated
from benchmarks.reproduce.denis_sets import Prepared, prepare
from benchmarks.reproduce.results import Result, Table, Target, claim
from benchmarks.reproduce.targets import denis2006_table3 as table3

STATED = (0.2, 0.5)
ETA0 = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
ETA1 = (0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
#: Least spreads, half a unit of the last printed digit, so that nothing is divided by zero.
LEAST = np.array([5e-4, 0.5, 5e-4])


@dataclass(frozen=True)
class Scale:
    """Draws of the noise in the search and after it, and sets."""

    draws: int
    repeats: int
    sets: int = 6


def indicators(found: Prepared) -> tuple[np.ndarray, np.ndarray]:
    """``(N, S)`` indicators of values, and ``(S, S)`` which are of one attribute."""
    columns = [found.codes[:, [j]] == np.arange(size) for j, size in enumerate(found.sizes)]
    member = np.repeat(np.eye(len(found.sizes)), found.sizes, axis=1)
    return np.concatenate(columns, 1).astype(float), member.T @ member


def naive_bayes(
    found: Prepared, weights: np.ndarray, labels: np.ndarray, repeats: int
) -> np.ndarray:
    """``(repeats, 3)`` accuracy and log-likelihood of naive Bayes, accuracy of the majority class.

    Args:
        found: the set.
        weights: ``(folds, N)`` ones for training rows.
        labels: ``(folds, N)`` given labels.
        repeats: number of cross-validations that the folds are of.
    """
    onehot, together = indicators(found)
    groups = weights[:, :, None] * np.eye(2)[labels]
    counts = np.einsum("fnk,ns->fks", groups, onehot) + table3.ALPHA
    share = groups.sum(1) / groups.sum((1, 2))[:, None]
    joint = np.log(share)[:, None] + onehot @ np.swapaxes(
        np.log(counts / (counts @ together)), 1, 2
    )
    test = 1 - weights
    right = (joint.argmax(2) == found.y) * test
    majority = (share.argmax(1)[:, None] == found.y) * test
    seen = np.take_along_axis(joint, labels[:, :, None], 2)[..., 0] * weights
    each = np.stack([right.sum(1) / test.sum(1), seen.sum(1), majority.sum(1) / test.sum(1)], 1)
    return each.reshape(repeats, 10, 3).mean(1)


def off(found: Prepared, eta: tuple[float, float], there: np.ndarray, draws: int) -> np.ndarray:
    """How far the paper's figures are from a mean over ten draws, in its standard deviations."""
    weights, labels = table3.folds(found, np.array(eta), draws)
    each = naive_bayes(found, weights.astype(float), labels, draws)
    spread = np.maximum(each.std(0, ddof=1) * np.sqrt(1 / 10 + 1 / draws), LEAST)
    return np.abs(each.mean(0) - there) / spread


def searched(row: dict[str, Any], draws: int) -> dict[tuple[float, float], np.ndarray]:
    """Distances of the paper's three figures by noise."""
    found = prepare(row, table3.CUT, table3.MISSING)
    noisy = row["noise"][json.dumps(STATED)]
    there = np.array([noisy["acc"]["NB"], noisy["lk"]["NB"], noisy["acc"]["MajCl"]])
    # the log-likelihood of naive Bayes without noise tells how far the preparation is off
    clean = naive_bayes(found, *clean_folds(found), 1)[0, 1]
    there[1] += clean - row["noise"]["[0, 0]"]["lk"]["NB"]
    return {eta: off(found, eta, there, draws) for eta in product(ETA0, ETA1)}


def clean_folds(found: Prepared) -> tuple[np.ndarray, np.ndarray]:
    weights, labels = table3.folds(found, np.zeros(2), 1)
    return weights.astype(float), labels


def predicted(row: dict[str, Any], eta: tuple[float, float], repeats: int) -> list[bool]:
    """Cells of the two new methods in the range at a noise; the search did not see them."""
    found = prepare(row, table3.CUT, table3.MISSING)
    weights, labels = table3.folds(found, np.array(eta), repeats)
    means = table3.by_experiment(cross_validated(found, weights, labels, table3.ALPHA), repeats)
    cells = table3.set_cells(row, json.dumps(STATED), means)
    return [c.reproduced for c in cells if "NB-CCCN" in c.column]


def run(scale: Scale) -> Result:
    rows, best, nearer = [], {}, []
    for row in printed("denis2006_table3")["rows"][: scale.sets]:
        distances = searched(row, scale.draws)
        best[row["name"]] = eta = min(distances, key=lambda e: distances[e].max())
        tallies = [predicted(row, e, scale.repeats) for e in dict.fromkeys((STATED, eta))]
        nearer.append(sum(tallies[-1]) >= sum(tallies[0]))
        within = [f"{a:g}, {b:g}" for (a, b), d in distances.items() if d.max() <= 2]
        shown = (" / ".join(f"{d:.1f}" for d in distances[e]) for e in (STATED, eta))
        counts = (f"{sum(t)} of {len(t)}" for t in (tallies[0], tallies[-1]))
        rows.append(
            (row["name"], *shown, f"{eta[0]:g}, {eta[1]:g}", "; ".join(within) or "none", *counts)
        )
    columns = (
        "set",
        "paper's distance at 0.2, 0.5: accuracy / log-likelihood of NB / majority",
        "at the best noise",
        "best eta0, eta1",
        "all within two standard deviations",
        "NB-CCCN and -EM cells in the range, 0.2, 0.5",
        "at the best noise",
    )
    return Result(
        claims=(
            claim("the best noise gives at least as many of the other cells", nearer, ours=True),
        ),
        tables=(Table("Noise by the three figures of naive Bayes", columns, tuple(rows)),),
    )


TARGET = Target(
    name="why-denis2006-noise",
    paper="Denis et al. 2006",
    title="Why, Table 3: how much noise there was",
    about="""A search over 54 pairs of flip rates. For each set, the accuracy and the
log-likelihood of naive Bayes and the accuracy of the majority class, all with noise, are compared
with the mean over ten experiments, each with a draw of its own; distances are in standard
deviations of that mean. The log-likelihood is taken relative to that without noise. The cells of
NB-CCCN and NB-CCCN-EM are not looked at by the search; the last two columns say how many of them
are in the range.""",
    run=run,
    scales={"toy": Scale(2, 1, 1), "quick": Scale(5, 2, 3), "full": Scale(30, 10)},
    needs=table3.TARGET.needs,
    why="""*Tic Tac Toe* and *Balance Scale*: the figures of naive Bayes are those of flip rates of
0.1 and 0.4, and some 7 and 13 standard deviations from those of the stated 0.2 and 0.5. *Breast
Cancer* fits 0.1 and 0.4, too; with the stated rates no draw has a majority of the other class,
which the paper's 0.327 has in 7 % of the folds. *Wisconsin* fits 0.2 and 0.45. *Hepatitis* fits
the stated rates, and so does *House Votes* but for the majority's share, which is that of one row
less. So naive Bayes saw less noise than stated on four of the six sets. The cells of the two new
methods do not follow: at the best noise no more of them are reproduced, but for accuracy and
log-likelihood of NB-CCCN-EM on Balance Scale. Naive Bayes alone fits one draw of the stated noise
on Wisconsin and Breast Cancer, too: see [the experiment on
NB-CCCN-EM](#why-table-3-nb-cccn-em-with-noise).""",
)
