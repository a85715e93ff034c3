"""Intervals where rows belong to groups that share errors: ``python benchmarks/grouped_rows.py``.

Normal features of visits, a part of whose spread is the patient's; a patient is of one class, and a
label's error is the patient's with probability ``shared``, else its own. ``fit`` is told of the
patients. For each estimator: labels right as given and as corrected, the design effect (by how much
errors that patients share multiply the variance of a rate), and the share of true rates inside 90 %
intervals, with their mean width on the diagonal, as if rows were independent and as they come.
"""

import argparse
import os
import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import track
from rich.table import Table

import nbmodels as nb

LEVEL = 0.9
ESTIMATORS = {
    "NoisyGaussianNB": nb.NoisyGaussianNB,
    "NoisyLogisticRegression": nb.NoisyLogisticRegression,
}


class World(NamedTuple):
    """Patients, visits of each, classes, and how often an error is the patient's."""

    patients: int
    visits: int
    k: int
    shared: float


WORLDS = (
    World(150, 6, 2, 0.0),
    World(150, 6, 2, 0.5),
    World(150, 6, 2, 1.0),
    World(100, 5, 3, 0.3),
    World(40, 20, 3, 1.0),
)


def rates(k):
    """``[true, given]`` P(given | true)."""
    if k == 2:
        return np.array([[0.8, 0.2], [0.35, 0.65]])
    out = np.full((k, k), 0.3 / (k - 1))
    np.fill_diagonal(out, 0.7)
    out[0] = 0.1 / (k - 1)
    out[0, 0] = 0.9
    return out


def drawn(world, seed):
    """Features, true and given labels, and the patient of each visit."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(world.patients), world.visits)
    true = rng.integers(world.k, size=world.patients)[who]
    at, own = rng.random(world.patients)[who], rng.random(len(who))
    at = np.where(rng.random(len(who)) < world.shared, at, own)
    given = (at[:, None] > rates(world.k)[true].cumsum(1)).sum(1).clip(0, world.k - 1)
    x = 1.6 * rng.normal(size=(world.k, 6))[true] + rng.normal(size=(len(who), 6))
    return x + 0.7 * rng.normal(size=(world.patients, 6))[who], true, given, who


def held(model, truth):
    """Shares of diagonal and other rates inside their intervals, and the diagonal's mean width."""
    rates_ = model.posterior(keep="parameters", progress=False)["posterior"]["noise_matrix"]
    outside = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = rates_.quantile(outside, ("chain", "draw")).to_numpy()
    inside = (low <= truth.T) & (high >= truth.T)
    diagonal = np.eye(len(truth), dtype=bool)
    return inside[diagonal].mean(), inside[~diagonal].mean(), (high - low)[diagonal].mean()


def measured(world, seed, name):
    """A row for one fit."""
    x, true, given, who = drawn(world, seed)
    model = ESTIMATORS[name](random_state=0).fit(x, given, groups=who)
    effects = model.fitted_.design_effects
    with_groups = held(model, rates(world.k))
    model.fitted_ = replace(model.fitted_, copies=None)
    without = held(model, rates(world.k))
    return {
        **world._asdict(),
        "estimator": name,
        "given": np.mean(given == true),
        "right": np.mean(model.label_posterior_.argmax(1) == true),
        "effect": 1.0 if effects is None else effects.noise,
        **dict(zip(("diagonal", "others", "width"), without, strict=True)),
        **dict(zip(("diagonal_groups", "others_groups", "width_groups"), with_groups, strict=True)),
    }


def table_of(rows):
    """A row a world and estimator."""
    out = Table(
        "patients, visits, K, shared",
        "estimator",
        "given",
        "right",
        "effect",
        "independent: diagonal, others; width",
        "groups: diagonal, others; width",
        title=f"Rates inside {LEVEL:.0%} intervals",
    )
    for (*world, name), part in rows.groupby([*World._fields, "estimator"], sort=False):
        m = part.mean(numeric_only=True)
        out.add_row(
            ", ".join(f"{v:g}" for v in world),
            name,
            f"{m['given']:.2f}",
            f"{m['right']:.2f}",
            f"{m['effect']:.1f}",
            f"{m['diagonal']:.0%}, {m['others']:.0%}; {m['width']:.2f}",
            f"{m['diagonal_groups']:.0%}, {m['others_groups']:.0%}; {m['width_groups']:.2f}",
        )
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="data sets a row")
    parser.add_argument("--first-seed", type=int, default=0)
    args = parser.parse_args()
    jobs = [
        (world, args.first_seed + s, name)
        for world in WORLDS
        for s in range(args.seeds)
        for name in ESTIMATORS
    ]
    with warnings.catch_warnings(action="ignore"):
        rows = [measured(*job) for job in track(jobs, "fitting")]
    # a table is wide; a file has no width of its own
    Console(width=None if os.isatty(1) else 200).print(table_of(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
