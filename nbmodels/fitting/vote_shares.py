"""What counts of votes say before any fit: how often votes are right, and how frequent classes are.

A fit learns from votes on the same items how far annotators agree. Two things it cannot learn. Of
votes that are alone on their items it sees the shares of labels only, which any accuracies explain
with some shares of the classes. And of two classes that annotators confuse, one may take nearly all
items of both: its matrices then say that annotators name either label, and held-out votes are
predicted as well. Counts limit both. Pairs of votes on an item are alike with probability
``a^2 + (1 - a)^2 / (K - 1)`` where each is right with probability ``a`` and errs evenly, whatever
the shares of the classes; and these are the shares of the votes, less what such errors add.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from nbmodels.channels import Annotators
from nbmodels.channels.alike_annotators import AlikeAnnotators
from nbmodels.fitting.vote_dependence import VoteTable

#: Votes of an annotator on shared items, or part of all of theirs, that show their accuracy; least
#: part of the votes by such annotators, below which accuracies are not learned.
_SHOWN_VOTES, _SHOWN_PART, LEAST_SHOWN = 30, 0.5, 0.5

#: Pairs of votes that stand for what is assumed of agreement, that of smoothed shares.
_PSEUDO_PAIRS = 10.0

#: Pseudo-votes of each row of the matrix of annotators who are alike, in multiples of the votes of
#: the busiest annotator.
_FIRM = 10.0

#: Part of the share that counts suggest below which a class has lost items to another, and items in
#: proportion to those of the votes by which it is then held.
_LEAST_PART, _HELD = 0.7, 1.0


def shown_votes(
    votes: VoteTable, n_workers: int, known: Bool[np.ndarray, " n"]
) -> Float[np.ndarray, " w"]:
    """``(W,)`` number of each annotator's votes that are beside others, or on known classes."""
    beside = (np.bincount(votes.row, minlength=votes.n_items) > 1) | known
    return np.bincount(votes.worker, beside[votes.row], n_workers)


def shown_share(votes: VoteTable, n_workers: int, known: Bool[np.ndarray, " n"]) -> float:
    """Share of the votes whose annotators' accuracies other votes or known classes show."""
    cast = np.bincount(votes.worker, minlength=n_workers)
    enough = np.minimum(_SHOWN_PART * cast, _SHOWN_VOTES)
    return float(np.average(shown_votes(votes, n_workers, known) >= enough, weights=cast))


def mean_accuracy(votes: VoteTable, k: int) -> float:
    """Probability that a vote is right, by how often two votes on an item are alike."""
    sums, squares = _by_label(votes, k), (votes.weight**2).sum()
    alike, pairs = (sums**2).sum() - squares, (sums.sum(1) ** 2).sum() - squares
    smoothed = _smoothed(k)
    prior = smoothed**2 + (1 - smoothed) ** 2 / max(k - 1, 1)
    agreement = (alike / 2 + _PSEUDO_PAIRS * prior) / (pairs / 2 + _PSEUDO_PAIRS)
    return float((1 + np.sqrt((k - 1) * max(k * agreement - 1, 0))) / k)


def assumed_votes(k: int) -> Float[np.ndarray, " 2"]:
    """Right and wrong pseudo-votes that stand for what is assumed of the mean accuracy."""
    smoothed = _smoothed(k)
    return _PSEUDO_PAIRS * np.array([smoothed, 1 - smoothed])


def _smoothed(k: int) -> float:
    """Share of right votes by smoothed shares of one vote."""
    return (1 + 1 / k) / 2


def items_held(shares: Float[np.ndarray, " k"], votes: VoteTable) -> Float[np.ndarray, " k"] | None:
    """Pseudo-items that hold the shares of the classes where one has lost items to another.

    A class may be rarer than its votes, most of which are then errors, or rarer than they are less
    the errors, where annotators err to another label; to be far rarer than both is implausible.

    Args:
        shares: of the classes, as a fit has found them.
        votes: that it was fitted to.

    Returns:
        None where no class has.
    """
    k = len(shares)
    sums = _by_label(votes, k)
    sums = sums[sums.sum(1) > 0]
    seen = (sums / sums.sum(1, keepdims=True)).mean(0)
    right = mean_accuracy(votes, k)
    wrong = (1 - right) / max(k - 1, 1)
    true = np.maximum(seen - wrong, 0) / max((seen - wrong).clip(0).sum(), 1e-12)
    if (shares >= _LEAST_PART * np.minimum(seen, true)).all():
        return None
    return _HELD * len(sums) * true


def alike(votes: VoteTable, k: int) -> tuple[Float[np.ndarray, "k k"], Float[np.ndarray, " k"]]:
    """Matrix of all annotators and shares of the classes that leave votes as they are.

    Returns ``(observed, K)`` and ``(K,)``. An item with one vote is of the class it names with one
    probability, :func:`mean_accuracy`, whatever the class: the matrix and the shares are what a
    first step of EM makes of such responsibilities.
    """
    right = mean_accuracy(votes, k)
    sums = _by_label(votes, k)
    seen = (sums.sum(0) + 1 / k) / (sums.sum() + 1)
    joint = seen[:, None] * np.where(np.eye(k, dtype=bool), right, (1 - right) / max(k - 1, 1))
    return joint / joint.sum(0), joint.sum(0)


def all_alike(channel: Annotators, votes: VoteTable, each: int) -> Annotators:
    """Annotators held to one matrix, under which items keep their votes.

    Args:
        channel: of as many annotators.
        votes: on all items.
        each: number of sub-types of a class.
    """
    n_annotators, n_observed, _ = channel.prior.concentration.shape
    matrix = np.repeat(alike(votes, n_observed)[0], each, 1)
    firm = _FIRM * (1 + np.bincount(votes.worker).max())
    held = AlikeAnnotators.sharing(n_annotators, 1 + firm * matrix)
    return replace(held, pseudo=assumed_votes(n_observed))


def _by_label(votes: VoteTable, k: int) -> Float[np.ndarray, "n k"]:
    """Sums of what the votes on each item count for, by label."""
    cells = votes.row * k + votes.label
    return np.bincount(cells, votes.weight, votes.n_items * k).reshape(-1, k)
