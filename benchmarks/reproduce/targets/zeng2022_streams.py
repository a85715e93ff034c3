"""Figure 3 of Zeng et al. 2022: messages of live streaming."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.reproduce.data import SHARED, STREAMS
from benchmarks.reproduce.results import Result, Target
from benchmarks.reproduce.zeng_real import accuracies, summary

#: Splits that a figure of the paper is a mean of.
SPLITS = 100


@dataclass(frozen=True)
class Scale:
    """Random splits into 80 % and 20 %; 100 in the paper."""

    splits: int


def read() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, observed and golden labels."""
    frame = pd.read_csv(SHARED / STREAMS)
    given, true = (frame.pop(name).to_numpy() for name in ("label", "true_label"))
    return frame.to_numpy(float), given, true


def run(scale: Scale) -> Result:
    x, given, true = read()
    each = []
    for seed in range(scale.splits):
        order = np.random.default_rng(seed).permutation(len(true))
        train, test = np.split(order, [len(true) * 4 // 5])
        rows = (x[test], true[test])
        each.append(accuracies(x[train], given[train], true[train], rows, 1.0, seed))
    return summary(each, SPLITS, -7.32, 3.7)


TARGET = Target(
    name="zeng2022-streams",
    paper="Zeng et al. 2022",
    title="Figure 3, live streaming",
    about=f"""1,416 messages, 22 binary features, 13 classes, 19.4 % of the labels wrong; 80 % for
training with the observed labels, the rest scored on the golden ones. Smoothing by one
pseudo-item, as in scikit-learn. A replicate is one split, the range that of a mean over {SPLITS}
splits. The figure is a box plot without numbers; the text has two.""",
    run=run,
    scales={"toy": Scale(1), "quick": Scale(2), "full": Scale(20)},
    needs=(STREAMS,),
    why="""The paper's two figures contradict each other: INB is said to gain 3.7 points over
NB(wrong) and to be very close to NB(correct), so that the latter is some 3.7 points above
NB(wrong), not 7.32. Ours is 3.8 above it, and 7.32 is about twice that. What is not met is the
gain of INB, which is none here, whatever the smoothing: people err on messages that look alike, so
that the noise follows the features, where INB assumes that it does not, and the 22 features
overlap, where it assumes independence. Both networks, and `NoisyBernoulliNB` on its defaults, are
above NB(correct) with the same noisy labels, so that independence costs more than the noise does.
See [the experiment](#why-section-42-smoothing-and-words).""",
)
