"""When L2 of Chen et al. 2019 is ahead of naive Bayes on 20 Newsgroups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.chen_text import by_class, read, split
from benchmarks.reproduce.data import NEWSGROUPS
from benchmarks.reproduce.figures import lines
from benchmarks.reproduce.results import Result, Table, Target, claim
from nbmodels.papers import chen2019

ALPHAS = (1e-6, 1e-4, 1e-2, 1e-1, 1.0)


@dataclass(frozen=True)
class Scale:
    """Random splits; documents, all where None."""

    splits: int
    documents: int | None = None


def centroids(weights: np.ndarray, x: Any, alpha: float) -> np.ndarray:
    """``(k, v)`` log centroids from ``(N, k)`` weights of the documents."""
    counts = np.asarray((x.T @ weights).T) + alpha
    return np.log(counts / counts.sum(1, keepdims=True))


def one(x: Any, true: np.ndarray, seed: int) -> dict[tuple[str, float], float]:
    """Mean accuracy over the classes by method and smoothing; classes equally common."""
    train, possible, n_1, scored = split(x, true, 1, seed)
    k = possible.shape[1]
    y = np.eye(k)[true[train]] * (np.arange(len(train)) < n_1)[:, None]
    z = np.where(y.any(1, keepdims=True), 0, ~possible)
    weights = {
        "NB": y,
        "L1": np.asarray(chen2019.weights_1(y, z)),
        "L2": np.asarray(chen2019.weights_2(y, z)),
    }
    out = {}
    for alpha in ALPHAS:
        for name, w in weights.items():
            guess = np.asarray(x[scored] @ centroids(w, x[train], alpha).T).argmax(1)
            out[name, alpha] = float(np.nanmean(by_class(guess, true[scored], k)))
    return out


def run(scale: Scale) -> Result:
    x, true = read("20 Newsgroups", scale.documents)
    each = [one(x, true, seed) for seed in range(scale.splits)]
    mean = {key: float(np.mean([e[key] for e in each])) for key in each[0]}
    names = list(dict.fromkeys(name for name, _ in mean))
    rows = tuple((alpha, *(mean[name, alpha] for name in names)) for alpha in ALPHAS)
    table = Table("Accuracy by smoothing, mean over classes, %", ("pseudo-counts", *names), rows)
    best = max(mean["NB", alpha] for alpha in ALPHAS)
    beaten = [mean["L2", alpha] < best for alpha in ALPHAS]
    panel = {name: (np.log10(ALPHAS), [mean[name, a] for a in ALPHAS], None) for name in names}
    return Result(
        claims=(
            claim(
                "L2 is ahead of NB without smoothing",
                [mean["L2", 1e-6] > mean["NB", 1e-6]],
                ours=True,
            ),
            claim("no L2 reaches NB with its best smoothing", beaten, ours=True),
        ),
        tables=(table,),
        figure=lines(
            {"20 Newsgroups": panel}, "log10 pseudo-counts", "accuracy, %", "Figure 1 by smoothing"
        ),
    )


TARGET = Target(
    name="why-chen2019",
    paper="Chen et al. 2019",
    title="Why, Figure 1: L2 on 20 Newsgroups",
    about="""Figure 1's setting, the smoothing varied and nothing else. Classes count as equally
common, so that words alone decide.""",
    run=run,
    scales={"toy": Scale(1, 400), "quick": Scale(1, 4000), "full": Scale(5)},
    needs=(NEWSGROUPS,),
    why="""Smoothing decides. Naive Bayes without any gives a word that a class has not shown a
probability of zero, and one such word decides a document; L2 adds t times all documents to every
class, so that no word is unseen. It is thereby ahead of unsmoothed naive Bayes, as the paper says,
which smooths nothing, and behind naive Bayes that is smoothed as usual: what L2 gains is a
smoothing, and a coarse one, since it draws all centroids to the words of all documents
together.""",
)
