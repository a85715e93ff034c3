"""Uncertainty of a noise matrix on one simulated data set, by three methods.

A paper's simulation (Zeng et al. 2022, section 4.1, made smaller) gives binary features whose
labels are wrong in a known way. The same model is then fitted by variational Bayes, sampled by
Gibbs on the fast core, and sampled by NUTS on the paper's reference model in NumPyro, which shares
no code with the other two.

Run it with ``python examples/noise_matrix.py``; it takes a few minutes, most of them by NUTS.
"""

from __future__ import annotations

import argparse

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from inference.nuts import nuts
from nbmodels import NoisyBernoulliNB
from nbmodels.papers import zeng2022


def main(seed: int, n: int) -> None:
    console = Console()
    d, n_classes = 400, 3
    truth = zeng2022.simulate(jax.random.key(seed), n=n, d=d, K=n_classes, diagonal=(0.6, 0.8))
    X, y = np.asarray(truth.X), np.asarray(truth.y_observed)
    wrong = np.mean(y != np.asarray(truth.y_true))
    console.print(f"{n} items, {d} binary features, {wrong:.0%} of the labels are wrong")

    # 1. CAVI: posterior means, in a moment. `noise_matrix_[j, k]` is P(labelled j | truly k).
    #    `published` is the paper's joint model, for the sake of 3.
    model = NoisyBernoulliNB.published(solver="vb", random_state=seed).fit(X, y)

    # 2. Gibbs: draw the true labels given the parameters, the parameters given the labels, repeat.
    gibbs = model.posterior("gibbs", draws=1000, chains=2, random_state=seed)
    gibbs_rho = gibbs["posterior"]["noise_matrix"].to_numpy().reshape(-1, n_classes, n_classes)

    # 3. NUTS on the reference model, written from the paper in its notation, the true label summed
    #    out. Its priors are those of the variational fit, so the two posteriors are the same.
    with jax.enable_x64(True):
        samples, _ = nuts(
            lambda: zeng2022.binary(X, y, n_classes),
            jax.random.key(seed + 1),
            draws=300,
            warmup=200,
            chains=2,
            # elsewhere chains stay in modes where the classes have other names
            start={"pi": model.class_prior_, "p": np.exp(model.feature_log_prob_).T},
        )
    nuts_rho = samples["rho"].reshape(-1, n_classes, n_classes)

    table = Table("labelled", "truly", "planted", "VB", "Gibbs 90 %", "NUTS 90 %")
    for j in range(n_classes):
        for k in range(n_classes):
            table.add_row(
                str(j),
                str(k),
                f"{float(truth.rho[j, k]):.2f}",
                f"{model.noise_matrix_[j, k]:.2f}",
                "{:.2f} - {:.2f}".format(*np.quantile(gibbs_rho[:, j, k], [0.05, 0.95])),
                "{:.2f} - {:.2f}".format(*np.quantile(nuts_rho[:, j, k], [0.05, 0.95])),
            )
    console.print(table)
    suggested = model.corrected_labels()["suggested"].to_numpy()
    console.print(
        f"labels right as given: {1 - wrong:.1%}, as suggested: "
        f"{np.mean(suggested == np.asarray(truth.y_true)):.1%}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--n", type=int, default=600)
    arguments = parser.parse_args()
    main(arguments.seed, arguments.n)
