"""What heavy tails do to normal discriminant analysis of noisy labels, beside Student's classes.

Features of each class have the tails of a t distribution with three degrees of freedom, 30 % of the
labels are wrong: error of the noise matrix, AUC of finding the wrong labels, and accuracy of
:class:`nbmodels.RobustNDA` with normal classes (Bootkrajang and Kaban 2011), with Student's of the
right tails, and with tails that are learned.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score

from nbmodels import NbmodelsWarning, RobustNDA
from nbmodels.papers import bootkrajang2011 as page

#: Features and classes.
SETTINGS = ((2, 3), (4, 4), (6, 5))
MODELS: dict[str, Any] = {"normal": None, "Student, 3": 3.0, "Student, learned": "learn"}


def one(key: Any, n: int, d: int, n_classes: int) -> dict[str, tuple[float, ...]]:
    """Mean and largest error of the noise matrix, AUC, accuracy and degrees of freedom."""
    sim = jax.tree.map(np.asarray, page.simulate(key, n, d, n_classes, 1.0, 0.3, 3.0))
    out = {}
    for name, dof in MODELS.items():
        m = RobustNDA.published(dof=dof).fit(sim.x, sim.y_hat)
        gap = np.abs(m.noise_matrix_ - sim.rho)
        auc = roc_auc_score(sim.y_hat != sim.y, m.corrected_labels()["p_wrong"])
        right = np.mean(m.predict(sim.x) == sim.y)
        out[name] = gap.mean(), gap.max(), auc, right, np.nan if m.dof_ is None else m.dof_
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    keys = jax.random.split(jax.random.key(args.seed), args.repeats)
    columns = ("features, classes", "model", "mean error", "largest", "AUC", "accuracy", "dof")
    table = Table(*columns, title=f"t(3) features, {args.items} items, 30 % of labels wrong")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        for d, k in SETTINGS:
            each = [one(key, args.items, d, k) for key in keys]
            for name in MODELS:
                mean = np.mean([found[name] for found in each], 0)
                table.add_row(f"{d}, {k}", name, *(f"{value:.3f}" for value in mean))
    Console().print(table)


if __name__ == "__main__":
    main()
