"""Scores of items from the labels of their neighbours, the other items of their users.

An item's own label is left out of its users' counts exactly, so that scores learned from given
labels are predictions of labels that they have not seen (leave-one-out). Scores are relative to the
shares of the classes: users without other items, and items without users, score zero everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

#: Neighbours' worth of the class shares in a share of votes.
_SMOOTHING = 0.5


#: What repeated edges between a user and an item say: each as much as the first, each less than the
#: one before, or nothing.
COUNT, LOG, ONCE = READINGS = ("count", "log", "once")


def has_repeats(edges: sparse.csr_array) -> bool:
    """Whether some pairs of a user and an item count more than others."""
    return bool(edges.nnz) and float(np.ptp(edges.data)) > 0


def read_repeats(edges: sparse.csr_array, reading: str | None) -> sparse.csr_array:
    """``(n, users)`` what edges count under one of :data:`READINGS`; as they are where None.

    A single edge counts 1 under each of them.
    """
    if reading is None or reading == COUNT:
        return edges
    out = edges.copy()
    out.data = np.log2(1 + edges.data) if reading == LOG else 1.0 * (edges.data > 0)
    return out


@dataclass(frozen=True)
class Graph:
    """A user-item graph as a list of its edges.

    Attributes:
        edges: ``(N, users)`` numbers of edges.
        reading: of repeated ones by which :attr:`edges` were made; None where there is no choice.
    """

    edges: sparse.csr_array
    reading: str | None = None

    @classmethod
    def read(cls, edges: sparse.csr_array, reading: str | None) -> Graph:
        """A graph whose repeated edges count as under one of :data:`READINGS`."""
        return cls(read_repeats(edges, reading), reading)

    @cached_property
    def item(self) -> Int[np.ndarray, " e"]:
        """Item of each pair with an edge, rising."""
        return np.repeat(np.arange(self.edges.shape[0]), np.diff(self.edges.indptr))

    @property
    def user(self) -> Int[np.ndarray, " e"]:
        """Its user."""
        return self.edges.indices

    @property
    def count(self) -> Float[np.ndarray, " e"]:
        """Its number of edges."""
        return self.edges.data

    @cached_property
    def _by_item(self) -> sparse.csr_array:
        shape = (self.edges.shape[0], self.edges.nnz)
        ones = np.ones(self.edges.nnz)
        return sparse.csr_array((ones, np.arange(self.edges.nnz), self.edges.indptr), shape=shape)

    def summed(self, values: Float[np.ndarray, "e k"]) -> Float[np.ndarray, "n k"]:
        """Sums over the edges of each item."""
        return np.asarray(self._by_item @ values)

    def counts(self, resp: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "users k"]:
        """Number of edges of each user to each class."""
        return np.asarray(self.edges.T @ resp)

    def without_own(
        self, counts: Float[np.ndarray, "users k"], resp: Float[np.ndarray, "n k"]
    ) -> Float[np.ndarray, "e k"]:
        """By edge, its user's counts less what its item added to them."""
        rest = counts[self.user] - self.count[:, None] * resp[self.item]
        # what is left of a sum after one of its terms is taken away may round below zero
        return np.maximum(rest, 0)


class Evidence(Protocol):
    """A kind of score."""

    def scores(
        self,
        graph: Graph,
        heard: Float[np.ndarray, "e k"],
        counts: Float[np.ndarray, "users k"],
        shares: Float[np.ndarray, " k"],
    ) -> Float[np.ndarray, "n k"]:
        """Scores of items.

        Args:
            graph: the items' edges.
            heard: by edge, its user's counts, without the item itself where it is among them.
            counts: those of all users, by which scores are scaled.
            shares: of the classes.
        """

    def describe(self) -> dict[str, Any]:
        """Settings, for a table."""


@dataclass(frozen=True)
class UserEvidence:
    """Log-evidence of users whose proportions are integrated out, to zeroth order.

    Each edge counts ``log (n_k + alpha K pi_k) / pi_k``: the user's proportion of a class, relative
    to its share. These are the collapsed updates of
    :mod:`nbmodels.fitting.collapsed_updates` with a power that is calibrated, not chosen.

    Attributes:
        alpha: concentration of the users' proportions, a number or (users, classes).
    """

    alpha: Any

    def scores(
        self,
        graph: Graph,
        heard: Float[np.ndarray, "e k"],
        counts: Float[np.ndarray, "users k"],
        shares: Float[np.ndarray, " k"],
    ) -> Float[np.ndarray, "n k"]:
        if np.ndim(self.alpha):
            own = np.broadcast_to(self.alpha, counts.shape)
            logs = np.log(heard + own[graph.user])
        else:
            prior = float(self.alpha) * len(shares) * shares
            logs = np.log((heard + prior) / shares)
        logs = logs - logs.mean(1, keepdims=True)
        return graph.summed(graph.count[:, None] * logs)

    def describe(self) -> dict[str, Any]:
        many = np.ndim(self.alpha) > 0
        return {"evidence": "users", "alpha": np.nan if many else float(self.alpha), "power": 0.0}


@dataclass(frozen=True)
class NeighbourVotes:
    """Logarithm of the share of each class among the neighbours, relative to its own share.

    Attributes:
        power: of a user's number of neighbours by which the user's votes are divided: 0 counts
            every neighbour alike (wvRN; Macskassy and Provost 2007), so that users of many items
            outvote others; 1 gives every user one vote.
    """

    power: float

    def scores(
        self,
        graph: Graph,
        heard: Float[np.ndarray, "e k"],
        counts: Float[np.ndarray, "users k"],
        shares: Float[np.ndarray, " k"],
    ) -> Float[np.ndarray, "n k"]:
        logs = np.log(self.shares(graph, heard, counts, shares) / shares)
        return logs - logs.mean(1, keepdims=True)

    def shares(
        self,
        graph: Graph,
        heard: Float[np.ndarray, "e k"],
        counts: Float[np.ndarray, "users k"],
        shares: Float[np.ndarray, " k"],
    ) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` shares of the votes; arguments as of :meth:`scores`."""
        votes = graph.summed(self._weights(graph.count, heard.sum(1))[:, None] * heard)
        size = counts.sum(1)
        # a typical vote: the mean over edges of what one adds
        typical = np.sum(self._weights(size, size) * size) / max(np.sum(size), 1e-300)
        typical = typical if typical > 0 else 1.0
        votes = votes / typical + _SMOOTHING * shares
        return votes / votes.sum(1, keepdims=True)

    def _weights(
        self, count: Float[np.ndarray, " e"], size: Float[np.ndarray, " e"]
    ) -> Float[np.ndarray, " e"]:
        heard = size > 1e-9
        return np.where(heard, count * np.where(heard, size, 1.0) ** -self.power, 0.0)

    def describe(self) -> dict[str, Any]:
        return {"evidence": "votes", "alpha": np.nan, "power": self.power}


def scores_without_own(
    kinds: Sequence[Evidence],
    graph: Graph,
    resp: Float[np.ndarray, "n k"],
    shares: Float[np.ndarray, " k"],
) -> list[Float[np.ndarray, "n k"]]:
    """Scores of the graph's own items, each by all others, one table a kind.

    Args:
        kinds: of scores.
        graph: the graph.
        resp: responsibilities times row weights; rows of zeros where nothing is known.
        shares: of the classes.
    """
    counts = graph.counts(resp)
    heard = graph.without_own(counts, resp)
    return [kind.scores(graph, heard, counts, shares) for kind in kinds]


def scores_of_new(
    kind: Evidence,
    edges: sparse.csr_array,
    counts: Float[np.ndarray, "users k"],
    shares: Float[np.ndarray, " k"],
) -> Float[np.ndarray, "n k"]:
    """Scores of new items.

    Args:
        kind: of score.
        edges: ``(n, users)`` the new items' numbers of edges.
        counts: of the users, from all items of the fit.
        shares: of the classes.
    """
    graph = Graph(edges)
    return kind.scores(graph, counts[graph.user], counts, shares)
