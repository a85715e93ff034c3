"""Both ends of what labels allow: how many labels are wrong, and which end the verdict points to.

Simulated worlds of three classes, and live streaming, whose wrong labels are known. Each row is the
mean over sets of other seeds. ``--seeds`` names them, ``--only`` selects worlds by their beginning.

    python benchmarks/two_ends.py
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from nbmodels import (
    NoisyBernoulliNB,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
    NoisyNeighbours,
)
from nbmodels.datasets import corrupt
from nbmodels.diagnostics.findings import TWO_ENDS

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PAIR = np.array([[0.7, 0.0, 0.3], [0.3, 0.7, 0.0], [0.0, 0.3, 0.7]])
#: Distance of the classes' means, in standard deviations, and what their labels' errors are.
WORLDS = {
    "clear, 30 % to the next class": (6.0, "pair"),
    "clear, no noise": (6.0, "none"),
    "overlap, no noise": (2.2, "none"),
    "overlap, 30 % to the next class": (2.2, "pair"),
    "overlap, errors near borders": (3.0, "border"),
    "clear, half of a third of space wrong": (6.0, "region"),
}
N = 600


def _any(classifier: Any) -> Callable[[], Any]:
    return lambda: NoisyLabelClassifier(classifier, random_state=0)


ESTIMATORS: dict[str, Callable[[], Any]] = {
    "Gaussian naive Bayes": lambda: NoisyGaussianNB(random_state=0),
    "regression": lambda: NoisyLogisticRegression(random_state=0),
    "15 neighbours": _any(KNeighborsClassifier(15)),
    "tree of depth 4": _any(DecisionTreeClassifier(max_depth=4, random_state=0)),
    "random forest": _any(RandomForestClassifier(100, random_state=0)),
    "boosted trees": _any(GradientBoostingClassifier(random_state=0)),
    "NoisyNeighbours": lambda: NoisyNeighbours(random_state=0),
}


def simulated(apart: float, errors: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, true classes and given labels of one set."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, N)
    angle = 2 * np.pi * np.arange(3) / 3
    means = apart / np.sqrt(3) * np.column_stack([np.cos(angle), np.sin(angle)])
    x = means[y] + rng.normal(size=(N, 2))
    if errors == "pair":
        return x, y, corrupt(y, PAIR, rng)
    if errors == "border":
        logs = -0.5 * 0.35 * ((x[:, None] - means) ** 2).sum(2)
        probs = np.exp(logs - logs.max(1, keepdims=True))
        upto = (probs / probs.sum(1, keepdims=True)).cumsum(1)
        return x, y, (upto < rng.random((N, 1))).sum(1)
    if errors == "region":
        hit = (x[:, 0] > np.quantile(x[:, 0], 2 / 3)) & (rng.random(N) < 0.5)
        return x, y, np.where(hit, (y + 1) % 3, y)
    return x, y, y


def _noise(y: np.ndarray, given: np.ndarray) -> np.ndarray:
    counts = np.zeros((3, 3))
    np.add.at(counts, (y, given), 1)
    return counts / counts.sum(1, keepdims=True)


def one(make: Callable[[], Any], x: Any, y: np.ndarray, given: np.ndarray) -> dict[str, float]:
    """What a fit says of one set."""
    model = make().fit(x, given)
    truth = _noise(y, given)
    own = model.noise_matrix_.T
    right = model.label_posterior_[np.arange(N), given]
    out = {
        "wrong": np.mean(given != y),
        "by the fit": 1 - right.mean(),
        "error of the matrix": np.abs(own - truth).max(),
        "labels right after": np.mean(model.label_posterior_.argmax(1) == y),
    }
    other = model.fitted_.separable
    if other is not None:
        found = {f.name: f for f in model.verdict().findings}[TWO_ENDS]
        errors = [out["error of the matrix"], np.abs(other.transition - truth).max()]
        out |= {
            "without overlap": other.share_wrong,
            "error of its matrix": errors[1],
            "one end within 0.05": min(errors) <= 0.05,
            "verdict prefers it": found.bad,
        }
    return out


def worlds(seeds: range, only: str) -> Iterator[dict[str, Any]]:
    """Means over the sets of each world, by estimator."""
    for world, about in WORLDS.items():
        if not world.startswith(only):
            continue
        for name, make in ESTIMATORS.items():
            rows = [one(make, *simulated(*about, seed)) for seed in seeds]
            yield {"world": world, "estimator": name, **pd.DataFrame(rows).astype(float).mean()}


def live_streaming(seeds: range) -> dict[str, float]:
    """Both ends on random halves of the messages, and on all of them."""
    frame = pd.read_csv(DATA / "live_streaming.csv")
    x, given = frame.drop(columns=["label", "true_label"]), frame["label"].astype(str)
    truth = frame["true_label"].astype(str)
    aucs = []
    for seed in seeds:
        rows = np.random.default_rng(seed).permutation(len(frame))[: int(0.8 * len(frame))]
        model = NoisyBernoulliNB(random_state=0).fit(x.iloc[rows], given.iloc[rows])
        near = NoisyNeighbours(random_state=0).fit(x.iloc[rows], given.iloc[rows])
        wrong = given.iloc[rows].to_numpy() != truth.iloc[rows].to_numpy()
        found = [m.corrected_labels() for m in (model, near)]
        scores = [one["p_wrong"].to_numpy(float) for one in found]
        rank = -found[0]["rank"].to_numpy(float)
        aucs.append([roc_auc_score(wrong, s) for s in (*scores, sum(scores), rank)])
    model = NoisyBernoulliNB(random_state=0).fit(x, given)
    held, classes = model.noise_range_.holds(given, truth)
    print(model.noise_range_.sentence)
    names = ("AUC of the fit", "of NoisyNeighbours", "of their mean", "of the ranks")
    means = dict(zip(names, np.mean(aucs, 0), strict=True))
    return {**means, "range holds the share": held, "classes held": np.nansum(classes)}


def main() -> None:
    """Print all worlds, then live streaming."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 10), metavar=("FIRST", "LAST"))
    parser.add_argument("--only", default="", help="beginning of the names of worlds")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(*given.seeds)
    for row in worlds(seeds, given.only):
        values = {k: v for k, v in row.items() if not isinstance(v, str)}
        shown = ", ".join(f"{k} {v:.3f}" for k, v in values.items())
        print(f"{row['world']} | {row['estimator']}: {shown}", flush=True)
    if "live streaming".startswith(given.only) and DATA.exists():
        print(", ".join(f"{k} {float(v):.3f}" for k, v in live_streaming(seeds).items()))


if __name__ == "__main__":
    main()
