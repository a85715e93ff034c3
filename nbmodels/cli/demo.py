"""Work behind ``nbmodels demo``: planted label errors in handwritten digits are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nbmodels.cli import report
from nbmodels.cli.clean import Scores
from nbmodels.cli.draws import Noise, collected

if TYPE_CHECKING:
    from rich.console import Console

    from nbmodels.datasets import NoisyDigits

#: Draws of the noise matrix, and of a small model by each of two samplers.
DRAWS: dict[str, Any] = {"draws": 160, "warmup": 800, "thin": 10}
GIBBS: dict[str, Any] = {"draws": 500, "warmup": 100}
NUTS: dict[str, Any] = {"draws": 200, "warmup": 200}
_QUIETLY: dict[str, Any] = {"chains": 2, "keep": "parameters", "progress": False}


@dataclass(frozen=True)
class Demonstration:
    """Results on handwritten digits with planted errors.

    Attributes:
        noise: the noise matrix with its intervals.
        posterior: ArviZ ``DataTree`` of the draws.
        corrected: the corrected labels, the true ones beside them.
        before: accuracy on clean images of a model that takes all labels for right.
        after: that of the noise-aware model.
        check: Gibbs against NUTS, as a sentence.
        cautions: why results may be unreliable, as sentences.
    """

    noise: Noise
    posterior: Any
    corrected: pd.DataFrame
    before: float
    after: float
    check: str
    cautions: list[str]


def demonstrate(data: NoisyDigits, seed: int, stage: Callable[[str], None]) -> Demonstration:
    """Fit, draw and cross-check.

    Args:
        data: images and labels.
        seed: of all randomness.
        stage: called with the name of every stage at its start.
    """
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    from nbmodels import NoisyGaussianNB, Solver

    names = data.names
    stage("fitting the model")
    # 20 directions hold nine tenths of the variance, and their covariances suit the Gaussian
    squeeze = PCA(20, random_state=seed).fit(data.x)
    x, x_test = squeeze.transform(data.x), squeeze.transform(data.x_test)
    model = NoisyGaussianNB(covariance="full", random_state=seed, solver=Solver(progress=False))
    model.fit(x, names[data.given])
    plain = QuadraticDiscriminantAnalysis().fit(x, names[data.given])
    stage("drawing from the posterior (Gibbs)")
    cautions: list[str] = []
    with collected(cautions):
        posterior = model.posterior("gibbs", **DRAWS, **_QUIETLY)
    stage("cross-checking with NUTS on two digits")
    check = _cross_check(data, seed)
    corrected = model.corrected_labels()
    corrected.insert(3, "truth", names[data.truth])
    resp = model.label_posterior_
    for k, name in enumerate(names):
        corrected[f"p_{name}"] = resp[:, k].round(6)
    test = names[data.y_test]
    before, after = plain.score(x_test, test), model.score(x_test, test)
    return Demonstration(Noise.of(posterior), posterior, corrected, before, after, check, cautions)


def _cross_check(data: NoisyDigits, seed: int) -> str:
    """Gibbs and NUTS on one small problem; the second reads the model's NumPyro program."""
    from sklearn.decomposition import PCA

    from nbmodels import NoisyGaussianNB, Solver

    digits = [1, 7]
    rows = np.flatnonzero(np.isin(data.truth, digits) & np.isin(data.given, digits))
    x = PCA(2, random_state=seed).fit_transform(data.x[rows])
    small = NoisyGaussianNB.published(
        covariance="full", random_state=seed, solver=Solver(progress=False)
    )
    small.fit(x, data.names[data.given[rows]])
    gibbs = Noise.of(small.posterior("gibbs", **GIBBS, **_QUIETLY))
    nuts = Noise.of(small.posterior("nuts", **NUTS, **_QUIETLY))
    gap = np.abs(gibbs.mean - nuts.mean).max()
    ends = max(np.abs(gibbs.low - nuts.low).max(), np.abs(gibbs.high - nuts.high).max())
    return (
        f"Gibbs against NUTS on {len(rows)} images of {' and '.join(data.names[digits])}: "
        f"noise matrices differ by at most {gap:.3f}, the ends of their intervals by {ends:.3f}"
    )


def introduce(console: Console, data: NoisyDigits) -> None:
    """Print what the data are."""
    wrong = int((data.given != data.truth).sum())
    console.print(
        f"[bold]Handwritten digits[/]: {len(data.x)} training images, {wrong} of their labels "
        f"made wrong (1 as 7, 3 as 8, 9 as 4, ...); {len(data.x_test)} clean test images",
        highlight=False,
    )


def show(console: Console, data: NoisyDigits, result: Demonstration) -> None:
    """Print all results."""
    given, true = data.names[data.given], data.names[data.truth]
    suggested = result.corrected["suggested"].to_numpy()
    p_wrong, rank = (result.corrected[name].to_numpy(float) for name in ("p_wrong", "rank"))
    scores = Scores.of(given, suggested, rank, true)
    rows = range(len(given))
    for part in (
        report.recovered_table(data.matrix, result.noise),
        report.doubtful_table(rows, given, suggested, p_wrong, rank, truth=true, count=5),
        report.scores_table(scores, "Planted errors"),
    ):
        console.print()
        console.print(part)
    console.print()
    console.print(
        "Accuracy on clean test images, trained on the wrong labels: "
        f"{result.before:.3f} taking them for right, [bold]{result.after:.3f}[/] modelling the "
        "noise",
        highlight=False,
    )
    console.print(result.check, highlight=False)
    for caution in result.cautions:
        report.warn(console, caution)
