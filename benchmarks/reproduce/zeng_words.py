"""20 Newsgroups as section 4.2 of Zeng et al. 2022 has it: binary words, 20 % uniform noise."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from benchmarks.reproduce.data import NEWSGROUPS, SHARED

N_WORDS, N_TRAIN, K = 7302, 15_076, 20
CHOICES = ("largest", "summed")


@cache
def counts(documents: int | None) -> tuple[Any, dict[str, np.ndarray], np.ndarray]:
    """Word counts, scores of the words by how their TF-IDF is taken together, and classes."""
    frame = pd.read_parquet(SHARED / NEWSGROUPS)
    if documents:
        frame = frame.sample(documents, random_state=0)
    table = sparse.csr_array(CountVectorizer().fit_transform(frame["text"]))
    weights = sparse.csr_array(TfidfTransformer().fit_transform(table))
    scores = {
        "largest": weights.max(axis=0).toarray().ravel(),
        "summed": np.asarray(weights.sum(axis=0)).ravel(),
    }
    return table, scores, pd.factorize(frame["label"], sort=True)[0]


def words(choice: str, documents: int | None = None) -> tuple[Any, np.ndarray]:
    """Binary features of the words with the highest TF-IDF, and classes."""
    table, scores, y = counts(documents)
    best = np.sort(np.argsort(-scores[choice], kind="stable")[:N_WORDS])
    return sparse.csr_array((table[:, best] > 0).astype(float)), y


def split(
    y: np.ndarray, seed: int, pairs: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training rows, their labels with 20 % noise, and test rows.

    Args:
        y: ``(n,)`` classes.
        seed: of the split and the noise.
        pairs: whether a wrong label is that of the next class, rather than of any other.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    train, test = np.split(order, [len(y) * N_TRAIN // 18_846])
    wrong = rng.random(len(train)) < 0.2
    step = np.ones(len(train), int) if pairs else rng.integers(1, K, len(train))
    return train, np.where(wrong, (y[train] + step) % K, y[train]), test
