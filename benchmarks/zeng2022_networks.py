"""NLNN and NAL in the setting of Table 1 of Zeng et al. 2022, ours beside the paper's.

The paper does not print the networks' sizes or how they were trained; here one hidden layer of 128
units, 20 epochs of Adam a stage. Nothing is tuned towards the paper. ``zeng2022_table1.py`` has the
other methods of the table.
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np
from baselines import NAL, NLNN
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from nbmodels.papers import zeng2022

EXPECTED = Path(__file__).parents[1] / "tests" / "papers" / "expected" / "zeng2022_table1.json"


def scores(network, drawn, n_test, seed):
    """Accuracy and macro-AUC, in percent, on true labels of test rows."""
    x, seen = np.asarray(drawn.X), np.asarray(drawn.y_observed)
    true = np.asarray(drawn.y_true)[-n_test:]
    e = network(random_state=seed).fit(x[:-n_test], seen[:-n_test])
    p = e.predict_proba(x[-n_test:])
    auc = roc_auc_score(true, p, multi_class="ovr", labels=e.classes_)
    return 100 * np.mean(e.classes_[p.argmax(1)] == true), 100 * auc


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=5, help="100 in the paper")
    parser.add_argument("--rows", type=int, nargs="*", help="rows of the table; all by default")
    args = parser.parse_args()
    expected = json.loads(EXPECTED.read_text())
    table = Table("rho_kk", "n", "method", "ACC ours", "paper", "AUC ours", "paper")
    chosen = args.rows or range(len(expected["rows"]))
    for row in tqdm([expected["rows"][i] for i in chosen]):
        for network in (NLNN, NAL):
            found = []
            for seed in range(args.replicates):
                drawn = zeng2022.simulate(
                    jax.random.key(seed), n=row["n"], d=500, K=5, diagonal=tuple(row["rho_kk"])
                )
                found.append(scores(network, drawn, row["n"] // 5, seed))
            acc, auc = np.mean(found, 0)
            name = network.__name__
            table.add_row(
                str(row["rho_kk"]),
                str(row["n"]),
                name,
                f"{acc:.1f}",
                f"{row['acc'][name]}",
                f"{auc:.1f}",
                f"{row['auc'][name]}",
            )
    Console().print(table)


if __name__ == "__main__":
    main()
