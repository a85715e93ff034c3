"""How smoothing and the choice of words move section 4.2 of Zeng et al. 2022."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.reproduce.data import NEWSGROUPS, STREAMS
from benchmarks.reproduce.results import Result, Table, Target, claim
from benchmarks.reproduce.targets.zeng2022_streams import read
from benchmarks.reproduce.zeng_real import accuracies
from benchmarks.reproduce.zeng_words import CHOICES, split, words

METHODS = ("NB(wrong)", "INB", "NB(correct)")
#: Pseudo-items; the first are none but for the logarithm's sake.
ALPHAS = (1e-10, 0.01, 0.1, 1.0)


@dataclass(frozen=True)
class Scale:
    """Splits of the messages, of which 20 Newsgroups has one; documents, all where None."""

    splits: int
    documents: int | None = None


def run(scale: Scale) -> Result:
    rows = []
    for choice, pairs, alpha in product(CHOICES, (False, True), ALPHAS):
        x, y = words(choice, scale.documents)
        train, given, test = split(y, 0, pairs)
        each = [accuracies(x[train], given, y[train], (x[test], y[test]), alpha, 0, METHODS)]
        noise = "mistakes to the next class" if pairs else "uniform mistakes"
        rows.append(line(f"20 Newsgroups, {choice} TF-IDF, {noise}", alpha, each))
    x, given, true = read()
    for kind in ("all rows", "rows with a right label"):
        for alpha in ALPHAS:
            each = []
            for seed in range(scale.splits):
                order = np.random.default_rng(seed).permutation(len(true))
                train, test = np.split(order, [len(true) * 4 // 5])
                if kind != "all rows":
                    test = test[given[test] == true[test]]
                part = (x[test], true[test])
                each.append(
                    accuracies(x[train], given[train], true[train], part, alpha, seed, METHODS)
                )
            rows.append(line(f"live streaming, scored on {kind}", alpha, each))
    news = [row for row in rows if row[0].startswith("20")]
    messages = [row for row in rows if row[0].startswith("live")]
    return Result(
        claims=(
            claim(
                "20 Newsgroups: the effect is smaller than the paper's",
                [r[-1] > -12.85 for r in news],
                ours=True,
            ),
            claim(
                "live streaming: it is 3 to 5 points",
                [-5 < r[-1] < -3 for r in messages],
                ours=True,
            ),
        ),
        tables=(Table("Accuracy, %", ("setting", "smoothing", *METHODS, "dACC"), tuple(rows)),),
    )


def line(name: str, alpha: float, each: list[dict[str, float]]) -> tuple:
    means = [float(np.mean([e[m] for e in each])) for m in METHODS]
    return (name, alpha, *means, means[0] - means[2])


TARGET = Target(
    name="why-zeng2022-real",
    paper="Zeng et al. 2022",
    title="Why, section 4.2: smoothing and words",
    about="""NB on wrong and on correct labels and INB as printed, by smoothing, choice of words,
kind of mistakes and rows that are scored.""",
    run=run,
    scales={"toy": Scale(1, 400), "quick": Scale(1, 2000), "full": Scale(5)},
    needs=(NEWSGROUPS, STREAMS),
    why="""*20 Newsgroups*: without any smoothing the effect is -6 to -7 points, and -8 to -10
where all mistakes of a class are to one other; smoothed it is -1 to -4, and -3 to -6. The paper's
-12.85 is met by none, and nearest by naive Bayes without smoothing and mistakes that are not
spread evenly; what it had of either is not said. INB falls below naive Bayes in 11 of the 12
settings with smoothing: words that repeat each other count as so much further evidence, so that EM
trusts the words and not the labels. *Live streaming*: the effect is between -3.5 and -4.2 points
whatever is done, half of the printed -7.32, and INB gains nothing.""",
)
