"""Clusters of annotators who copy from each other, and what their votes count for.

``m`` annotators who copy with probability ``c`` count as ``m / (1 + (m - 1) c)`` (the design effect
of cluster samples, Kish 1965, section 5.4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from nbmodels.fitting.vote_dependence import VoteTable

#: Columns of the table of pairs.
COLUMNS = ("first", "second", "shared", "agreement", "expected", "copied", "z")


@dataclass(frozen=True)
class Copies:
    """Clusters of annotators who copy from each other.

    Attributes:
        cluster: ``(W,)`` cluster of each annotator; who copies from nobody is one of their own.
        copied: ``(W,)`` mean probability of a copy within it, 0 for a cluster of one.
        pairs: frame with ``first`` and ``second`` (codes of the annotators), ``shared`` items,
            ``agreement``, the ``expected`` one, probability ``copied``, and ``z``, worst first.
    """

    cluster: Int[np.ndarray, " w"]
    copied: Float[np.ndarray, " w"]
    pairs: pd.DataFrame

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

    def powers(self) -> Float[np.ndarray, " w"]:
        """``(W,)`` what an annotator counts for where the whole cluster votes on all items."""
        sizes = np.bincount(self.cluster)[self.cluster]
        return 1 / (1 + (sizes - 1) * self.copied)

    def weights(self, votes: VoteTable) -> Float[np.ndarray, " v"]:
        """``(V,)`` what each vote counts for, by the votes of its cluster on its item."""
        if not self.found:
            return np.ones(len(votes.row))
        together = in_cluster(votes, self.cluster)
        sizes = np.bincount(together)[together]
        return 1 / (1 + (sizes - 1) * self.copied[votes.worker])

    def extended(self, known: Int[np.ndarray, " w"]) -> Copies:
        """For other annotators, by their codes among these, -1 for who copies from nobody."""
        own = np.arange(len(known)) + len(self.cluster)
        some = known >= 0
        cluster = np.where(some, self.cluster[np.maximum(known, 0)], own)
        return replace(self, cluster=cluster, copied=np.where(some, self.copied[known], 0.0))


def no_copies(n_workers: int) -> Copies:
    """Of annotators who are independent."""
    empty = pd.DataFrame({name: np.empty(0) for name in COLUMNS})
    return Copies(np.arange(n_workers), np.zeros(n_workers), empty)


def in_cluster(votes: VoteTable, cluster: np.ndarray) -> np.ndarray:
    """``(V,)`` number of each vote's item and cluster together."""
    key = votes.row.astype(np.int64) * (int(cluster.max()) + 1) + cluster[votes.worker]
    return np.unique(key, return_inverse=True)[1]
