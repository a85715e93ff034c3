"""Clusters of annotators who copy from each other, and what their votes count for.

Where the source is known, a vote that agrees with it counts as much as it is likely to be an own
one, which is less where it is wrong, and any other is an own vote. Otherwise ``m`` annotators who
copy with probability ``c`` count as ``m / (1 + (m - 1) c)`` (the design effect of cluster samples,
Kish 1965, section 5.4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy import sparse

from nbmodels.core.short_rows import softmax
from nbmodels.fitting.vote_dependence import VoteTable

#: Fewest followers of a source that is named. Votes have no order: of two who agree, either may be
#: the source, and of 61 simulated pairs 34 had the wrong one. Two followers who agree with each
#: other no more than one source explains show which of the three it is.
LEAST_FOLLOWERS = 2

#: Columns of the table of pairs.
COLUMNS = ("first", "second", "shared", "agreement", "expected", "copied", "z")


@dataclass(frozen=True)
class Sources:
    """Whom each annotator copies from, in a mixture of own votes and copies.

    Attributes:
        source: ``(W,)`` code of the source, -1 without one.
        part: ``(W,)`` probability of a copy, 0 without a source.
        matrices: ``(W, K, K)`` P(label of an own vote | class).
        shares: ``(K,)`` of the classes.
    """

    source: Int[np.ndarray, " w"]
    part: Float[np.ndarray, " w"]
    matrices: Float[np.ndarray, "w observed k"]
    shares: Float[np.ndarray, " k"]

    @property
    def found(self) -> bool:
        """Whether anybody copies."""
        return bool((self.source >= 0).any())

    @property
    def named(self) -> Int[np.ndarray, " w"]:
        """``(W,)`` code of the source, -1 without one and where it might be the other way round."""
        followers = np.bincount(self.source[self.source >= 0], minlength=len(self.source))
        shown = (self.source >= 0) & (followers[self.source] >= LEAST_FOLLOWERS)
        return np.where(shown, self.source, -1)

    def weights(self, votes: VoteTable) -> Float[np.ndarray, " v"]:
        """``(V,)`` probability that each vote is an own one, given all votes on its item."""
        both, same = agreeing(votes, self.source)
        own, part = self.matrices[votes.worker, votes.label], self.part[votes.worker]
        probs = vote_probs(own, part * both, same)
        resp = softmax(np.log(self.shares) + votes.summed(np.log(probs)))
        return 1 - ((part * same)[:, None] / probs * resp[votes.row]).sum(1)

    def extended(self, known: Int[np.ndarray, " w"]) -> Sources:
        """For other annotators, by their codes among these, -1 for who copies from nobody."""
        place = np.full(len(self.source) + 1, -1)  # the last is for no source
        place[known[known >= 0]] = np.flatnonzero(known >= 0)
        source = np.where(known >= 0, place[self.source[known]], -1)
        # of a new one nothing is known, so that their votes say nothing of who copies
        even = np.full_like(self.matrices[0], 1 / len(self.shares))
        matrices = np.where((known >= 0)[:, None, None], self.matrices[known], even)
        return replace(self, source=source, part=self.part[known], matrices=matrices)


@dataclass(frozen=True)
class Copies:
    """Clusters of annotators who copy from each other.

    Attributes:
        cluster: ``(W,)`` cluster of each annotator; who copies from nobody is one of their own.
        copied: ``(W,)`` mean probability of a copy within it, 0 for a cluster of one.
        pairs: frame with ``first`` and ``second`` (codes of the annotators), ``shared`` items,
            ``agreement``, the ``expected`` one, probability ``copied``, and ``z``, worst first.
        sources: whom each copies from, where that is known.
    """

    cluster: Int[np.ndarray, " w"]
    copied: Float[np.ndarray, " w"]
    pairs: pd.DataFrame
    sources: Sources | None = None

    @property
    def found(self) -> bool:
        """Whether there are any."""
        return len(self.pairs) > 0

    @property
    def share(self) -> float:
        """Share of the annotators who copy."""
        return 1 - float((np.bincount(self.cluster)[self.cluster] == 1).mean())

    def partners(self, worker: int) -> Int[np.ndarray, " m"]:
        """Codes of the others in a cluster."""
        same = self.cluster == self.cluster[worker]
        same[worker] = False
        return np.flatnonzero(same)

    def holds(self, other: Copies) -> bool:
        """Whether all who copy by another search are in one cluster of this one."""
        inside = np.bincount(other.cluster)[other.cluster] > 1
        return len(np.unique(self.cluster[inside])) == 1

    def followed(
        self, votes: VoteTable
    ) -> tuple[Int[np.ndarray, " w"], Float[np.ndarray, " w"], Bool[np.ndarray, " w"]]:
        """Whom each annotator copies from, and how often.

        Returns:
            ``(W,)`` code of the source, -1 without one; ``(W,)`` expected share of the votes that
            are copies, 0 without a source; ``(W,)`` whether it is shown who copies from whom.
        """
        n_workers = len(self.cluster)
        if self.sources is None:
            none = np.zeros(n_workers)
            return np.full(n_workers, -1), none, none.astype(bool)
        source = self.sources.source
        copied = np.bincount(votes.worker, 1 - self.sources.weights(votes), n_workers)
        number = np.maximum(np.bincount(votes.worker, minlength=n_workers), 1)
        return source, np.where(source >= 0, copied / number, 0.0), self.sources.named >= 0

    def powers(self) -> Float[np.ndarray, " w"]:
        """``(W,)`` what an annotator counts for where the whole cluster votes on all items."""
        sizes = np.bincount(self.cluster)[self.cluster]
        return 1 / (1 + (sizes - 1) * self.copied)

    def weights(self, votes: VoteTable) -> Float[np.ndarray, " v"]:
        """``(V,)`` what each vote counts for, by the votes of its cluster on its item."""
        if not self.found:
            return np.ones(len(votes.row))
        if self.sources is not None:
            return self.sources.weights(votes)
        together = in_cluster(votes, self.cluster)
        sizes = np.bincount(together)[together]
        return 1 / (1 + (sizes - 1) * self.copied[votes.worker])

    def extended(self, known: Int[np.ndarray, " w"]) -> Copies:
        """For other annotators, by their codes among these, -1 for who copies from nobody."""
        own = np.arange(len(known)) + len(self.cluster)
        some = known >= 0
        cluster = np.where(some, self.cluster[np.maximum(known, 0)], own)
        sources = None if self.sources is None else self.sources.extended(known)
        copied = np.where(some, self.copied[known], 0.0)
        return replace(self, cluster=cluster, copied=copied, sources=sources)


def no_copies(n_workers: int) -> Copies:
    """Of annotators who are independent."""
    empty = pd.DataFrame({name: np.empty(0) for name in COLUMNS})
    return Copies(np.arange(n_workers), np.zeros(n_workers), empty)


def in_cluster(votes: VoteTable, cluster: np.ndarray) -> np.ndarray:
    """``(V,)`` number of each vote's item and cluster together."""
    key = votes.row.astype(np.int64) * (int(cluster.max()) + 1) + cluster[votes.worker]
    return np.unique(key, return_inverse=True)[1]


def agreeing(
    votes: VoteTable, source: Int[np.ndarray, " w"]
) -> tuple[Bool[np.ndarray, " v"], Bool[np.ndarray, " v"]]:
    """``(V,)`` whether the source of a vote's annotator votes on the item, and votes alike."""
    named = labels_of_sources(votes, source)
    return named >= 0, named == votes.label


def labels_of_sources(votes: VoteTable, source: Int[np.ndarray, " w"]) -> Int[np.ndarray, " v"]:
    """``(V,)`` label that the source of a vote's annotator names on the item, -1 where none."""
    size = len(source)
    keys = votes.row.astype(np.int64) * size + votes.worker
    order = np.argsort(keys)
    whom = source[votes.worker]
    wanted = votes.row.astype(np.int64) * size + np.maximum(whom, 0)
    place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    return np.where((whom >= 0) & (keys[place] == wanted), votes.label[place], -1)


def vote_probs(
    own: Float[np.ndarray, "v k"], part: Float[np.ndarray, " v"], same: Bool[np.ndarray, " v"]
) -> Float[np.ndarray, "v k"]:
    """Probability of each vote given the class, where a part of the votes are copies."""
    return (1 - part)[:, None] * own + (part * same)[:, None]


def clusters_of(source: Int[np.ndarray, " w"]) -> Int[np.ndarray, " w"]:
    """``(W,)`` number of each annotator's cluster of sources and copies."""
    at = np.flatnonzero(source >= 0)
    graph = sparse.coo_array((np.ones(len(at)), (at, source[at])), (len(source),) * 2)
    return np.asarray(sparse.csgraph.connected_components(graph.tocsr(), directed=False)[1])
