"""Report of annotators: accuracy with intervals, spammers, and pairs who copy from each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy import stats
from scipy.special import softmax

from nbmodels.fitting.vote_dependence import AnnotatorModel, VoteTable, tempered_posterior

#: Fewest items that a pair must share, and least agreement beyond the expected one.
_LEAST_SHARED, _LEAST_EXCESS = 10, 0.1

#: Level of the test of all pairs together.
_LEVEL = 0.01

#: Votes on an item, and pairs of votes, that are looked at.
_MOST_ON_ITEM, _MOST_PAIRS = 50, 2_000_000


def annotator_report(
    model: AnnotatorModel, votes: VoteTable, names: np.ndarray, level: float
) -> pd.DataFrame:
    """Annotators with the quality of their votes, the most frequent first.

    Args:
        model: annotators and classes.
        votes: those that it was fitted to.
        names: ``(W,)`` of the annotators.
        level: probability inside the intervals.

    Returns:
        a frame with ``worker``, ``votes``, ``accuracy`` (expected share of right votes), ``low``
        and ``high`` (ends of its credible interval), ``spammer_score`` (0 where votes follow the
        class exactly, 1 where they do not depend on it; one less the score of Raykar and Yu 2012,
        section 2), and ``copies`` (a tuple of the workers with whom a worker agrees too often).
    """
    number = np.bincount(votes.worker, minlength=len(names))
    mean, variance = _accuracy(model, votes, number)
    # a Beta distribution of this mean and variance
    size = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-12) - 1, 1e-3)
    low, high = stats.beta.interval(level, mean * size, (1 - mean) * size)
    partners: dict[int, list[int]] = {}
    for a, b in copying_pairs(model, votes)[["first", "second"]].to_numpy(int):
        partners.setdefault(a, []).append(b)
        partners.setdefault(b, []).append(a)
    frame = pd.DataFrame(
        {
            "worker": names,
            "votes": number,
            "accuracy": mean,
            "low": low,
            "high": high,
            "spammer_score": 1 - _ranking_score(model.matrices),
            "copies": [tuple(names[sorted(partners.get(w, []))]) for w in range(len(names))],
        }
    )
    return frame.sort_values("votes", ascending=False, kind="stable").reset_index(drop=True)


def _accuracy(
    model: AnnotatorModel, votes: VoteTable, number: Int[np.ndarray, " w"]
) -> tuple[Float[np.ndarray, " w"], Float[np.ndarray, " w"]]:
    """Mean and variance of each accuracy: of the matrix given the classes, and of the classes."""
    n_observed, n_classes = model.of_votes.pseudo.shape[1:]
    right = np.arange(n_classes) // (n_classes // n_observed)
    mean, shares = model.accuracy, np.exp(model.log_prior)
    if model.abstains:
        within = mean * (1 - mean) / (number + 1)
    else:
        rates, sizes = model.matrices[:, right, np.arange(n_classes)], model.pseudo.sum(1)
        within = (shares**2 * rates * (1 - rates) / (sizes + 1)).sum(1)
    p = (model.resp[votes.row] * (right == votes.label[:, None])).sum(1)
    between = np.bincount(votes.worker, p * (1 - p), len(number)) / np.maximum(number, 1) ** 2
    return mean, within + between


def _ranking_score(matrices: Float[np.ndarray, "w observed c"]) -> Float[np.ndarray, " w"]:
    """Distance of the columns of each matrix, 1 for the identity and 0 where all are equal."""
    k = matrices.shape[2]
    # the sum over pairs of squared distances, from sums alone
    squares, sums = (matrices**2).sum((1, 2)), matrices.sum(2)
    return (k * squares - (sums**2).sum(1)) / (k * (k - 1))


def copying_pairs(model: AnnotatorModel, votes: VoteTable) -> pd.DataFrame:
    """Pairs of annotators who agree more often than their matrices and the classes explain.

    A pair's expected agreement is that of independent votes given the item's class, which is judged
    by the votes of all others. Difficult items make all pairs agree more often than that; only what
    exceeds the usual excess counts, tested at 1 % for all pairs together.

    Args:
        model: annotators and classes.
        votes: those that it was fitted to.

    Returns:
        a frame with ``first`` and ``second`` (codes of the annotators), ``shared`` items,
        ``agreement``, the ``expected`` one, and ``z``; those who agree too often, worst first.
    """
    logs, matrices = model.evidence(votes)[0], model.of_votes.matrices
    parts = [_compared(model, votes, logs, matrices, *pair) for pair in _pairs(votes)]
    if not parts:
        return pd.DataFrame(columns=["first", "second", "shared", "agreement", "expected", "z"])
    every = pd.concat(parts)
    every["variance"] = every["expected"] * (1 - every["expected"])
    usual = float((every["agreement"] - every["expected"]).mean())
    found = every.groupby(["first", "second"], as_index=False).agg(
        shared=("agreement", "size"),
        agreement=("agreement", "mean"),
        expected=("expected", "mean"),
        variance=("variance", "sum"),
    )
    found = found[found["shared"] >= _LEAST_SHARED]
    excess = found["agreement"] - found["expected"] - max(usual, 0.0)
    found["z"] = excess * found["shared"] / np.sqrt(np.maximum(found["variance"], 1e-9))
    beyond = (found["z"] > stats.norm.isf(_LEVEL / max(len(found), 1))) & (excess > _LEAST_EXCESS)
    kept = found[beyond].sort_values("z", ascending=False)
    return kept.drop(columns="variance").reset_index(drop=True)


def _pairs(votes: VoteTable) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of votes on the same item, as positions; items of equal size together."""
    size = np.bincount(votes.row, minlength=votes.n_items)
    order = np.argsort(votes.row, kind="stable")
    starts = np.cumsum(size) - size
    for n in np.unique(size[size > 1]):
        items = np.flatnonzero(size == n)
        first, second = np.triu_indices(min(n, _MOST_ON_ITEM), 1)
        step = max(1, 100_000 // len(first))
        items = items[: max(1, _MOST_PAIRS // len(first))]
        for i in range(0, len(items), step):
            at = starts[items[i : i + step], None]
            yield order[(at + first).ravel()], order[(at + second).ravel()]


def _compared(
    model: AnnotatorModel,
    votes: VoteTable,
    logs: Float[np.ndarray, "v c"],
    matrices: Float[np.ndarray, "w observed c"],
    a: Int[np.ndarray, " p"],
    b: Int[np.ndarray, " p"],
) -> pd.DataFrame:
    """Agreement of pairs of votes and its probability given the other votes on the item."""
    own = logs[a] + logs[b]
    one, two = (matrices[votes.worker[x]] for x in (a, b))
    left = softmax(np.log(np.maximum(model.resp[votes.row[a]], 1e-300)) - own, 1)
    low = np.minimum(votes.worker[a], votes.worker[b])
    return pd.DataFrame(
        {
            "first": low,
            "second": votes.worker[a] + votes.worker[b] - low,
            "agreement": (votes.label[a] == votes.label[b]).astype(float),
            "expected": (left * (one * two).sum(1)).sum(1),
        }
    )


def untempered(model: AnnotatorModel, votes: VoteTable) -> AnnotatorModel:
    """With the responsibilities of votes that are independent given the class."""
    return replace(model, resp=tempered_posterior(model, votes, 0.0))
