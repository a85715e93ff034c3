"""Pairs of annotators: on how many items both vote, how often alike, and how often by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from nbmodels.core.short_rows import softmax
from nbmodels.fitting.vote_dependence import VoteTable

#: Votes on an item, and pairs of votes on items of one size, that are looked at.
_MOST_ON_ITEM, MOST_PAIRS = 50, 4_000_000

#: Pairs of annotators for which a table is worth having.
_FEW_PAIRS = 8_000_000

#: Pairs of votes that are compared at once.
_AT_ONCE = 400_000


def blocks(votes: VoteTable) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """``(n, m)`` positions of the votes on ``m`` items of ``n`` votes, and which of them pair.

    The latter are ``(p,)`` rows of the first and of the second vote of each pair.
    """
    size = np.bincount(votes.row, minlength=votes.n_items)
    order = np.argsort(votes.row, kind="stable")
    starts = np.cumsum(size) - size
    for n in np.unique(size[size > 1]):
        items = np.flatnonzero(size == n)
        first, second = np.triu_indices(int(n), 1)
        if n > _MOST_ON_ITEM:
            kept = np.random.default_rng(int(n)).permutation(len(first))[: _MOST_ON_ITEM**2 // 2]
            first, second = first[kept], second[kept]
        step = max(1, _AT_ONCE // len(first))
        items = items[: max(1, MOST_PAIRS // len(first))]
        for i in range(0, len(items), step):
            yield order[np.arange(n)[:, None] + starts[items[i : i + step]]], first, second


def pairs_of_votes(votes: VoteTable) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of votes on the same item, as positions; items of equal size together."""
    for at, first, second in blocks(votes):
        yield at[first].ravel(), at[second].ravel()


@dataclass(frozen=True)
class AnnotatorPairs:
    """Pairs of annotators who vote on the same items.

    Attributes:
        first: ``(P,)`` the one of the lower code.
        second: ``(P,)`` the other.
        shared: ``(P,)`` number of items on which both vote.
        agreed: ``(P,)`` number of those on which they vote alike.
    """

    first: Int[np.ndarray, " p"]
    second: Int[np.ndarray, " p"]
    shared: Float[np.ndarray, " p"]
    agreed: Float[np.ndarray, " p"]

    def __len__(self) -> int:
        return len(self.first)

    def those(self, which: np.ndarray) -> AnnotatorPairs:
        """Some of them, by a mask or by position."""
        return AnnotatorPairs(
            self.first[which], self.second[which], self.shared[which], self.agreed[which]
        )


def annotator_pairs(votes: VoteTable, n_workers: int) -> AnnotatorPairs:
    """All pairs with an item on which both vote, sorted."""
    keys, counts = _tallied(votes, n_workers)
    return AnnotatorPairs(*np.divmod(keys, n_workers), *counts)


def _tallied(votes: VoteTable, n_workers: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct numbers of pairs; ``(2, distinct)`` how often they occur, and how often alike."""
    found: list[tuple[np.ndarray, np.ndarray]] = []
    size = n_workers**2
    few = size <= _FEW_PAIRS
    table = np.zeros((2, size if few else 0))
    for at, first, second in blocks(votes):
        keys = _keys(votes.worker[at], first, second, n_workers).ravel()
        label = votes.label[at]
        alike = (label[first] == label[second]).ravel()
        if few:  # which need no sorting
            table[0] += np.bincount(keys, minlength=size)
            table[1] += np.bincount(keys[alike], minlength=size)
        else:
            distinct, place = np.unique(keys, return_inverse=True)
            number = np.bincount(place), np.bincount(place[alike], minlength=len(distinct))
            found.append((distinct, np.stack(number)))
    if few:
        keys = np.flatnonzero(table[0])
        return keys, table[:, keys]
    if not found:
        return np.zeros(0, int), np.zeros((2, 0))
    keys, place = np.unique(np.concatenate([keys for keys, _ in found]), return_inverse=True)
    sums = np.concatenate([counts for _, counts in found], 1)
    return keys, np.stack([np.bincount(place, row, len(keys)) for row in sums])


def _keys(worker: np.ndarray, first: np.ndarray, second: np.ndarray, n: int) -> np.ndarray:
    """``(p, m)`` numbers of the pairs of annotators, who may come in any order."""
    one, two = worker[first], worker[second]
    return np.minimum(one, two).astype(np.int64) * n + np.maximum(one, two)


def agreement_by_class(
    matrices: Float[np.ndarray, "w labels k"], pairs: AnnotatorPairs
) -> Float[np.ndarray, "p k"]:
    """P(two independent votes are alike | class) of each pair of annotators."""
    out = np.zeros((len(pairs), matrices.shape[2]))
    for label in range(matrices.shape[1]):
        one = np.ascontiguousarray(matrices[:, label])
        out += one[pairs.first] * one[pairs.second]
    return out


def expected_agreement(
    votes: VoteTable,
    pairs: AnnotatorPairs,
    by_class: Float[np.ndarray, "p k"],
    cluster: Int[np.ndarray, " w"],
    whole: Float[np.ndarray, "n k"],
    sums: Float[np.ndarray, "v k"],
) -> Float[np.ndarray, " p"]:
    """Number of items on which each pair agrees if its votes are independent given the class.

    The class is judged by votes of other clusters than the pair's.

    Args:
        votes: of all annotators.
        pairs: some of their pairs, sorted.
        by_class: from :func:`agreement_by_class`, of these pairs.
        cluster: ``(W,)`` cluster of each annotator.
        whole: log-likelihood of each item's votes.
        sums: that of all votes of a vote's cluster on its item.
    """
    n_workers = len(cluster)
    find = _places(pairs, n_workers)
    out = np.zeros(len(pairs))
    for at, first, second in blocks(votes):
        keys = _keys(votes.worker[at], first, second, n_workers)
        place = find(keys)
        pair, item = np.nonzero(place >= 0)
        place = place[pair, item]
        a, b = at[first[pair], item], at[second[pair], item]
        apart = (cluster[votes.worker[a]] != cluster[votes.worker[b]])[:, None]
        left = softmax(whole[votes.row[a]] - sums[a] - np.where(apart, sums[b], 0))
        out += np.bincount(place, np.einsum("pk,pk->p", left, by_class[place]), len(out))
    return out


def _places(pairs: AnnotatorPairs, n_workers: int) -> Callable[[np.ndarray], np.ndarray]:
    """A function from numbers of pairs to their positions in a sorted table, -1 where not there."""
    keys = pairs.first.astype(np.int64) * n_workers + pairs.second
    if n_workers**2 <= _FEW_PAIRS:
        table = np.full(n_workers**2, -1, np.int32)
        table[keys] = np.arange(len(keys))
        return table.__getitem__

    def searched(wanted: np.ndarray) -> np.ndarray:
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, place, -1)

    return searched
