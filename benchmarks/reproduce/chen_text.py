"""Reuters and 20 Newsgroups with positive and negative labels, and accuracies by class."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks.reproduce.data import NEWSGROUPS, REUTERS, SHARED
from nbmodels import PartialLabelNB
from nbmodels.papers import chen2019

SETS = {"Reuters": REUTERS, "20 Newsgroups": NEWSGROUPS}
#: Methods of each figure, the share of documents in S1 and in S2, and where they are scored.
FIGURES = {
    1: (("NB", "L1", "L2", "EM"), 0.1, 0.1, "test"),
    2: (("L1", "L2", "EM"), 0.0, 0.9, "test"),
    3: (("NB", "L*"), 0.1, 0.0, "test"),
    4: (("NB", "L*"), 0.1, 0.0, "training"),
}
ESTIMATORS = {"NB": "L1", "L1": "L1", "L2": "L2", "L*": "star", "EM": "em"}


@cache
def read(name: str, documents: int | None = None) -> tuple[Any, np.ndarray]:
    """Counts of words, and classes as codes, of all documents or of some drawn at random."""
    frame = pd.read_parquet(SHARED / SETS[name])
    if documents:
        frame = frame.sample(min(documents, len(frame)), random_state=0)
    vectorizer = CountVectorizer(min_df=5, max_df=0.3, stop_words="english")
    return vectorizer.fit_transform(frame["text"]), pd.factorize(frame["label"], sort=True)[0]


def possible_classes(true: np.ndarray, k: int, n_positive: int, key: Any) -> np.ndarray:
    """``(n, k)`` booleans: one class possible in S1, the first documents; one excluded in S2."""
    possible = ~(np.asarray(chen2019.draw_negative(key, np.asarray(true), k)) > 0)
    possible[:n_positive] = np.eye(k, dtype=bool)[true[:n_positive]]
    return possible


def split(x: Any, true: np.ndarray, figure: int, seed: int) -> tuple[Any, ...]:
    """Training documents, their possible classes, size of S1, and documents for scoring."""
    _, share_1, share_2, where = FIGURES[figure]
    rng = np.random.default_rng((seed, figure))
    order = rng.permutation(len(true))
    n_1, n_2 = round(share_1 * len(true)), round(share_2 * len(true))
    train = order[: n_1 + n_2]
    scored = train if where == "training" else order[n_1 + n_2 :]
    key = jax.random.key(int(rng.integers(2**31)))
    possible = possible_classes(true[train], int(true.max()) + 1, n_1, key)
    return train, possible, n_1, scored


def by_class(found: np.ndarray, true: np.ndarray, k: int) -> np.ndarray:
    """``(k,)`` percent of each class's documents that are found, NaN where there is none."""
    with np.errstate(invalid="ignore"):
        hits = np.bincount(true[found == true], minlength=k)
        return 100 * hits / np.bincount(true, minlength=k)


def accuracies(
    x: Any, true: np.ndarray, figure: int, alpha: float, seed: int
) -> dict[str, np.ndarray]:
    """Accuracy by class of each method of a figure, in one split."""
    train, possible, n_1, scored = split(x, true, figure, seed)
    out = {}
    for method in FIGURES[figure][0]:
        rows = slice(n_1 if method == "NB" else None)
        model = PartialLabelNB(estimator=ESTIMATORS[method], t=2.0, alpha=alpha)
        model.fit(x[train][rows], possible[rows])
        out[method] = by_class(model.predict(x[scored]), true[scored], possible.shape[1])
    return out
