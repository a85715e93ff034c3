"""Table 3 of Denis et al. 2006: six UCI sets, with and without noise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.reproduce.data import printed
from benchmarks.reproduce.denis_fits import cross_validated
from benchmarks.reproduce.denis_sets import Prepared, prepare
from benchmarks.reproduce.figures import bars
from benchmarks.reproduce.results import (
    Cell,
    Claim,
    Result,
    Table,
    Target,
    beside,
    claim,
    variance_of_mean,
)

METHODS = ("MajCl", "NB", "NB-CCCN", "NB-CCCN-EM")
#: The closed form that stands beside the printed NB-CCCN.
OURS = {"NB-CCCN": "NB-CCCN'"}
#: Reconstruction chosen by ``why-denis2006-table3``.
CUT, MISSING, ALPHA = "documented", "left out", 1.0
#: Cross-validations that a figure of the paper is a mean of.
EXPERIMENTS = 10
#: Sets of other rows (433 of 434) or of cuts that are not known.
NOT_THE_SAME = ("House Votes", "Hepatitis")
NAMES = (
    "house_votes",
    "tic_tac_toe",
    "hepatitis",
    "breast_cancer",
    "breast_cancer_wisconsin",
    "balance_scale",
)


@dataclass(frozen=True)
class Scale:
    """Noise draws, each with one 10-fold cross-validation; sets of the table."""

    repeats: int
    sets: int = 6


def folds(found: Prepared, eta: np.ndarray, repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """``(10 repeats, N)`` training rows and given labels."""
    weights, labels = [], []
    for repeat in range(repeats):
        rng = np.random.default_rng(repeat)
        flipped = np.where(rng.random(len(found.y)) < eta[found.y], 1 - found.y, found.y)
        split = StratifiedKFold(10, shuffle=True, random_state=repeat)
        for train, _ in split.split(found.codes, found.y):
            weights.append(np.isin(np.arange(len(found.y)), train))
            labels.append(flipped)
    return np.array(weights), np.array(labels)


def run(scale: Scale) -> Result:
    cells: list[Cell] = []
    single: list[Cell] = []
    found: dict[tuple[str, str], Any] = {}
    rows = printed("denis2006_table3")["rows"][: scale.sets]
    for row in rows:
        prepared = prepare(row, CUT, MISSING)
        for noise in row["noise"]:
            weights, labels = folds(prepared, np.array(json.loads(noise)), scale.repeats)
            result = cross_validated(prepared, weights, labels, ALPHA)
            found[row["name"], noise] = means = by_experiment(result, scale.repeats)
            cells += set_cells(row, noise, means)
            single += set_cells(row, noise, means, experiments=1)
    tables = (as_printed(found), both_ways(cells, single))
    return Result(tuple(cells), claims(found), tables, figure(found, rows))


def by_experiment(result: Any, repeats: int) -> dict[str, dict[str, np.ndarray]]:
    """``(repeats,)`` means over the folds of each cross-validation."""
    return {
        name: {k: v.reshape(repeats, 10).mean(1) for k, v in figures.items()}
        for name, figures in result.items()
    }


def set_cells(
    row: dict[str, Any], noise: str, means: Any, experiments: int = EXPERIMENTS
) -> Iterator[Cell]:
    """Cells of one set, whose ranges are those of a mean over ``experiments``."""
    there = row["noise"][noise]
    title = f"{row['name']}, eta {noise}"

    def cell(column: str, name: str, key: str, figure: float, half: float, near: float) -> Cell:
        values = means[OURS.get(name, name)][key]
        variance = variance_of_mean(values, experiments)
        return beside(title, column, values, figure, half, near, variance=variance)

    for name, figure in there["acc"].items():
        tolerance = 0.02 if row["name"] in NOT_THE_SAME else 0.0
        yield cell(f"acc {name}", name, "acc", figure, 5e-4, tolerance)
    for name, figure in there["lk"].items():
        yield cell(f"lk {name}", name, "lk", figure, 0.5, 0.0)
    for name, rates in there.get("eta", {}).items():
        for i, figure in enumerate(rates):
            yield cell(f"eta{i} {name}", name, f"eta{i}", figure, 5e-3, 0.0)


def both_ways(cells: list[Cell], single: list[Cell]) -> Table:
    """Counts by how a cell counts as reproduced."""

    def near(cell: Cell) -> bool:
        slack = 0.02 if cell.column.startswith("acc") else abs(cell.paper) / 1000
        return cell.reproduced or abs(cell.ours - cell.paper) <= slack * (cell.column[:3] != "eta")

    rules = {
        f"range of a mean over {EXPERIMENTS} experiments (the count above)": cells,
        "range of one experiment": single,
    }
    rows = []
    for name, chosen in rules.items():
        for kind in ("acc", "lk", "eta"):
            mine = [c for c in chosen if c.column.startswith(kind)]
            tallies = sum(c.reproduced for c in mine), sum(near(c) for c in mine)
            rows.append((name, kind, *(f"{t} of {len(mine)}" for t in tallies)))
    columns = ("rule", "figure", "reproduced", "or within 2 points, a thousandth of lk")
    return Table("Counts by other rules", columns, tuple(rows))


def claims(found: Any) -> tuple[Claim, ...]:
    """What section 5.2 says."""

    def acc(name: str, noise: str, method: str) -> float:
        return float(found[name, noise][OURS.get(method, method)]["acc"].mean())

    clean, noisy = "[0, 0]", "[0.2, 0.5]"
    names = {name for name, _ in found}
    kept = names & {"House Votes", "Hepatitis", "Breast Cancer Wisconsin"}
    near = names & {"Tic Tac Toe", "Breast Cancer"}
    both = ("NB-CCCN", "NB-CCCN-EM")
    erased = [acc(n, clean, m) - acc(n, noisy, m) <= 0.05 for n in sorted(kept) for m in both]
    majority = [
        abs(acc(n, noisy, m) - acc(n, clean, "MajCl")) <= 0.1 for n in sorted(near) for m in both
    ]
    balance = names & {"Balance Scale"}
    lower = [acc(n, clean, m) - acc(n, noisy, m) > 0.1 for n in balance for m in both]
    better = [acc(n, noisy, m) - acc(n, noisy, "MajCl") > 0.1 for n in balance for m in both]
    return tuple(
        claim(text, cases)
        for text, cases in (
            (
                "House Votes, Hepatitis, Wisconsin: noise costs both methods 5 points at most",
                erased,
            ),
            ("Tic Tac Toe, Breast Cancer: within 10 points of the majority class", majority),
            ("Balance Scale: noise costs both methods more than 10 points", lower),
            ("Balance Scale: still more than 10 points above the majority class", better),
        )
        if cases
    )


def as_printed(found: Any) -> Table:
    """The closed form with the sums of eqs. (18) and (19)."""
    rows = tuple(
        (name, noise, *(float(means["NB-CCCN"][k].mean()) for k in ("acc", "lk", "eta0", "eta1")))
        for (name, noise), means in found.items()
    )
    columns = ("set", "eta", "accuracy", "log-likelihood", "eta0", "eta1")
    return Table("NB-CCCN with the sums of eqs. (18) and (19) as printed", columns, rows)


def figure(found: Any, rows: Any) -> Any:
    panels = {}
    for noise in ("[0, 0]", "[0.2, 0.5]"):
        panels[f"eta = {noise}"] = {
            method: [
                (
                    float(found[row["name"], noise][OURS.get(method, method)]["acc"].mean()),
                    row["noise"][noise]["acc"][method],
                )
                for row in rows
            ]
            for method in METHODS
        }
    return bars(
        panels,
        [row["name"].replace(" ", "\n", 1) for row in rows],
        "accuracy",
        "Denis et al. 2006, Table 3",
    )


TARGET = Target(
    name="denis2006-table3",
    paper="Denis et al. 2006",
    title="Table 3: six UCI sets",
    about=f"""10-fold cross-validation, scored on labels without noise; a replicate is one
experiment, a draw of the noise with one cross-validation, and the range that of a mean over
{EXPERIMENTS} experiments, as in the paper. Laplace smoothing (alpha = {ALPHA:g}), missing cells
left out, Hepatitis cut at the values of its documentation: the reconstruction chosen by [the
search below](#why-table-3-how-the-sets-were-prepared), by log-likelihoods of naive Bayes without
noise alone. The printed figures of NB-CCCN stand beside the closed form whose sums are taken
first: with the sums as printed flip rates come out near zero on three of the sets, where the paper
reports 0.2 and 0.6, so that it cannot have computed what it prints. Two points of accuracy are
allowed on House Votes and Hepatitis, which are not the same to the row or the cell, and nothing
elsewhere; the last table counts by other rules.""",
    run=run,
    scales={"toy": Scale(1, 1), "quick": Scale(2), "full": Scale(10)},
    needs=tuple(f"uci/{name}.csv" for name in NAMES),
    why="""*Labels with noise*: the figures of naive Bayes on Tic Tac Toe, Breast Cancer, Wisconsin
and Balance Scale are those of fewer wrong labels than stated, see [the
experiment](#why-table-3-how-much-noise-there-was); that is 8 of the cells missed. *NB-CCCN-EM with
noise* (11 missed): the noise was less on Balance Scale, EM began elsewhere or had not converged on
Tic Tac Toe, and one draw of the noise may have served all experiments on Hepatitis; five cells have
no cause. On the other sets it hardly matters where EM begins: see [the
experiment](#why-table-3-nb-cccn-em-with-noise). *Log-likelihoods
of NB-CCCN* (11 of 12 missed): the paper's hardly differ between labels with and without noise,
although noise alone adds the entropy of a label to each row, and on Balance Scale it is above the
maximum of the likelihood; they cannot be those of the rows with their given labels, and which they
are is not said. *Flip rates*: ours are near the stated ones where features tell the class (House
Votes, Wisconsin). Wisconsin's printed 0.02 and 0.05 are likely 0.2 and 0.5 misprinted: noise of a
twentieth would leave the log-likelihood near that without any. *Log-likelihoods without noise* of
naive Bayes are one to two nats off in some thousand on three sets (folds), Hepatitis is 2 % off
(cuts). *House Votes*: 435 rows, one of them with nothing but missing cells, which is left out; the
paper's 433 is a miscount or leaves out one more. *NB-CCCN's accuracy without noise* (5 of 6
missed, by 0.2 to 4 points): how it joins pairs of attributes is neither as printed, see above, nor
as here. *Majority class of Balance Scale*: the classes are of one size, so that folds decide.""",
)
