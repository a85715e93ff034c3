"""NLNN and NAL in Tables 1 and 5 of Zeng et al. 2022."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.baselines import NAL, NLNN
from benchmarks.reproduce.data import printed
from benchmarks.reproduce.figures import lines
from benchmarks.reproduce.results import Cell, Result, beside, claim, variance_of_truth
from benchmarks.reproduce.zeng_simulation import simulate, title
from benchmarks.reproduce.zeng_table import HALF, B

NETWORKS = {"NLNN": NLNN, "NAL": NAL}

ABOUT = f"""The paper names the code of NAL, https://github.com/udibr/noisy_labels, and says
nothing of how either network was trained. Both are trained here as that code trains: two hidden
layers of 500 and 300 rectified units, dropout of one half, Adam, batches of 256, at most 40
passes, stopped when the loss of a tenth of the noisy labels has not fallen for five passes. NLNN
has five rounds of EM around that. A replicate is one draw of p and rho, its figure the mean over
the data sets from it (four of 500 rows, three of 1,000, else one); the range is that of a mean
over {B} data sets from one draw, or of one data set where there is one."""


@dataclass(frozen=True)
class Scale:
    """How much is run; ``rows`` of the table, all where None; most passes of a training."""

    draws: int
    rows: tuple[int, ...] | None = None
    epochs: int = 40


SCALES = {"toy": Scale(1, (0,), epochs=2), "quick": Scale(2, (0, 12)), "full": Scale(4)}
N_DATA_SETS = {500: 4, 1000: 3}
#: Networks from a seed, by name.
Makes = Mapping[str, Callable[[int], Any]]


def scores(network: Any, sim: Any) -> tuple[float, float]:
    """Accuracy and macro-AUC, in percent, on the true labels of the test rows."""
    x, given, true = (np.asarray(v) for v in (sim.X, sim.y_observed, sim.y_true[sim.test]))
    network.fit(x[sim.train], given[sim.train])
    p = network.predict_proba(x[sim.test])
    auc = roc_auc_score(true, p, multi_class="ovr", labels=network.classes_)
    return 100 * np.mean(network.classes_[p.argmax(1)] == true), 100 * auc


def seeded(network: Any, seed: int, **how: Any) -> Any:
    return network(random_state=seed, **how)


def draw(seed: int, row: dict[str, Any], proportions: Any, data_set: int) -> Any:
    truth, rest = jax.random.split(jax.random.key(seed))
    return simulate(jax.random.fold_in(rest, data_set), row, proportions, truth)


def replicates(
    row: dict[str, Any], proportions: Any, makes: Makes, draws: int
) -> dict[str, np.ndarray]:
    """``(draws, 2, 2)`` by network: mean and variance over the data sets of accuracy and AUC.

    Args:
        row: of a table.
        proportions: sizes of the classes.
        makes: by name, a network from a seed.
        draws: of p and rho.
    """
    n_data_sets = N_DATA_SETS.get(row["n"], 1)
    found: dict[str, list[np.ndarray]] = {name: [] for name in makes}
    for seed in range(draws):
        sims = [draw(seed, row, proportions, i) for i in range(n_data_sets)]
        for name, make in makes.items():
            each = [scores(make(seed), sim) for sim in sims]
            spread = np.var(each, 0, ddof=min(1, n_data_sets - 1))
            found[name].append(np.stack([np.mean(each, 0), spread]))
    return {name: np.array(values) for name, values in found.items()}


def row_cells(row: dict[str, Any], found: dict[str, np.ndarray]) -> Iterator[Cell]:
    """Accuracy and AUC of each network."""
    for i, (metric, label) in enumerate((("acc", "ACC %"), ("auc", "AUC %"))):
        for name, values in found.items():
            means, within = values[:, 0, i], values[:, 1, i]
            variance = variance_of_truth(means, within, N_DATA_SETS.get(row["n"], 1), B)
            column, paper = f"{label} {name}", row[metric][name]
            yield beside(title(row), column, means, paper, HALF, variance=variance)


def run(table: int, scale: Scale) -> Result:
    expected = printed(f"zeng2022_table{table}")
    proportions = tuple(expected["setting"]["proportions"])
    rows = [r for i, r in enumerate(expected["rows"]) if scale.rows is None or i in scale.rows]
    how = {"epochs": scale.epochs}
    makes = {name: partial(seeded, network, **how) for name, network in NETWORKS.items()}
    cells: list[Cell] = []
    means = []
    for row in rows:
        found = replicates(row, proportions, makes, scale.draws)
        cells += row_cells(row, found)
        means.append({name: values[:, 0, 0].mean() for name, values in found.items()})
    ours_wins = [
        m[name] < row["acc"]["INB"] for m, row in zip(means, rows, strict=True) for name in m
    ]
    better = [m[n] >= r["acc"][n] - 0.5 for m, r in zip(means, rows, strict=True) for n in m]
    found_claims = (
        claim(
            "INB, as printed, is ahead of both networks (ACC), most of the time",
            ours_wins,
            most=True,
        ),
        claim("both are at least as accurate as the paper's, half a point", better, ours=True),
    )
    return Result(tuple(cells), found_claims, (), figure(rows, means, table))


def figure(rows: list[Any], means: list[Any], table: int) -> Any:
    panels = {}
    for n in sorted({row["n"] for row in rows}):
        chosen = [(r, m) for r, m in zip(rows, means, strict=True) if r["n"] == n]
        x = [sum(r["rho_kk"]) / 2 for r, _ in chosen]
        panels[f"n = {n}"] = {
            name: (x, [m[name] for _, m in chosen], [r["acc"][name] for r, _ in chosen])
            for name in NETWORKS
        }
    return lines(panels, "rho_kk", "accuracy, %", f"Zeng et al. 2022, Table {table}, networks")
