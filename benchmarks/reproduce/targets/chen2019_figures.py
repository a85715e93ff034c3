"""Figures 1-4 of Chen et al. 2019: accuracy by class on Reuters and 20 Newsgroups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.chen_text import FIGURES, SETS, accuracies, read
from benchmarks.reproduce.data import NEWSGROUPS, REUTERS
from benchmarks.reproduce.figures import lines
from benchmarks.reproduce.results import Claim, Result, Table, Target, claim

#: Pseudo-counts of a word: hardly any, as the paper smooths nothing.
ALPHA = 1e-6


@dataclass(frozen=True)
class Scale:
    """Random splits; documents of each set, all where None."""

    splits: int
    documents: int | None = None


def over_splits(values: list[np.ndarray]) -> np.ndarray:
    """``(k,)`` means over the splits in which a class has documents, NaN where none has."""
    return np.asarray(np.ma.masked_invalid(values).mean(0).filled(np.nan))


def run(scale: Scale) -> Result:
    found: dict[tuple[str, int], dict[str, np.ndarray]] = {}
    for name in SETS:
        x, true = read(name, scale.documents)
        for number in FIGURES:
            each = [accuracies(x, true, number, ALPHA, seed) for seed in range(scale.splits)]
            found[name, number] = {m: mean([e[m] for e in each]) for m in each[0]}
    rows = tuple(
        (name, number, method, float(np.nanmean(values)))
        for (name, number), methods in found.items()
        for method, values in methods.items()
    )
    columns = ("set", "figure", "method", "accuracy, mean over classes, %")
    table = Table("Accuracies", columns, rows)
    return Result(claims=claims(found), tables=(table,), figure=figure(found))


def mean(accuracies: Any) -> np.ndarray:
    """Means over the splits, NaN for a class without scored documents in any of them."""
    return np.ma.masked_invalid(accuracies).mean(0).filled(np.nan)


def claims(found: Any) -> tuple[Claim, ...]:
    """What section 5 says; averages are over classes, as in its figures."""

    def ahead(number: int, first: str, second: str, classes: bool = False) -> list[bool]:
        pairs = [(found[name, number][first], found[name, number][second]) for name in SETS]
        if classes:
            return [bool(ok) for a, b in pairs for ok in a >= b]
        return [bool(np.nanmean(a) >= np.nanmean(b)) for a, b in pairs]

    chance = [
        bool(np.nanmean(found[name, 2][m]) > 100 / len(found[name, 2][m]))
        for name in SETS
        for m in ("L1", "L2")
    ]
    lower = [
        bool(np.nanmean(found[name, 2][m]) < np.nanmean(found[name, 1][m]))
        for name in SETS
        for m in ("L1", "L2")
    ]
    return (
        claim("Figure 1: L1 is more accurate than NB on average", ahead(1, "L1", "NB")),
        claim("Figure 1: L2 is more accurate than NB on average", ahead(1, "L2", "NB")),
        claim("Figure 1: L1 for most classes", ahead(1, "L1", "NB", True), most=True),
        claim("Figure 1: L2 for most classes", ahead(1, "L2", "NB", True), most=True),
        claim("Figure 2: negative labels alone give more than chance", chance),
        claim("Figure 2: less than Figure 1", lower),
        claim("Figure 3: L* is more accurate than NB on average", ahead(3, "L*", "NB")),
        claim("Figure 4: NB is more accurate on the training set", ahead(4, "NB", "L*")),
    )


def figure(found: Any) -> Any:
    panels = {}
    for (name, number), methods in found.items():
        panels[f"{number}, {name}"] = {
            m: (list(range(1, 1 + len(values))), list(values), None)
            for m, values in methods.items()
        }
    return lines(panels, "class", "accuracy, %", "Chen et al. 2019, Figures 1-4")


TARGET = Target(
    name="chen2019-figures",
    paper="Chen et al. 2019",
    title="Figures 1-4: Reuters and 20 Newsgroups",
    about=f"""The paper prints curves by class without numbers; its sentences are checked. Reuters
here are its eight largest single-label topics, the paper has ten. Documents are cut into
lower-case words, rare and very common ones left out, which the paper does not describe. NB, L1, L2
and L* are the closed forms with t = 2; EM, which the paper does not have, sums over the classes
that are not excluded. The paper smooths nothing, so words get {ALPHA:g} pseudo-counts; class
shares have the same weights as the words.""",
    run=run,
    scales={"toy": Scale(1, 400), "quick": Scale(1, 2000), "full": Scale(5)},
    needs=(REUTERS, NEWSGROUPS),
    why="See [the experiment on smoothing](#why-figure-1-l2-on-20-newsgroups).",
)
