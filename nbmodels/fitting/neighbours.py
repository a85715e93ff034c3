"""Scores of items from the labels of their neighbours, the other items of their users.

An item's own label is left out of its users' counts exactly, so that scores learned from given
labels are predictions of labels that they have not seen (leave-one-out). Scores are relative to the
shares of the classes: users without other items, and items without users, score zero everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from nbmodels.core.short_rows import row_sums

#: Neighbours' worth of the class shares in a share of votes.
_SMOOTHING = 0.5

#: Cells of a table by edge and class that is made at a time: half a megabyte.
_BLOCK = 1 << 16


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
    def degree(self) -> Float[np.ndarray, " n"]:
        """Number of edges of each item."""
        return np.asarray(self.edges.sum(1), float)

    @cached_property
    def is_plain(self) -> bool:
        """Whether each edge counts one."""
        return bool(np.all(self.count == 1))

    @cached_property
    def _by_user(self) -> sparse.csr_array:
        return sparse.csr_array(self.edges.T)

    def by_item(self, values: Float[np.ndarray, " e"]) -> sparse.csr_array:
        """``(N, users)`` with other values in the place of the numbers of edges."""
        return sparse.csr_array((values, self.user, self.edges.indptr), shape=self.edges.shape)

    def counts(self, resp: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "users k"]:
        """Number of edges of each user to each class."""
        return np.asarray(self._by_user @ resp)


#: By item, what it added to its users' counts for each of its edges; None where it is not in them.
Own = Float[np.ndarray, "n k"] | None


class Evidence(Protocol):
    """A kind of score."""

    def scores(
        self,
        graph: Graph,
        counts: Float[np.ndarray, "users k"],
        own: Own,
        shares: Float[np.ndarray, " k"],
    ) -> Float[np.ndarray, "n k"]:
        """Scores of items by what their users did beside them.

        Args:
            graph: the items' edges.
            counts: of all users.
            own: what each item added to them, which it is not to see.
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
        counts: Float[np.ndarray, "users k"],
        own: Own,
        shares: Float[np.ndarray, " k"],
    ) -> Float[np.ndarray, "n k"]:
        prior = self.alpha if np.ndim(self.alpha) else self.alpha * len(shares) * shares
        table = _summed_logs(graph, counts, own, np.asarray(prior, float))
        if not np.ndim(self.alpha):  # what is the same for every edge is taken off their sum
            table -= np.outer(graph.degree, np.log(shares))
        return _centred(table)

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
        counts: Float[np.ndarray, "users k"],
        own: Own,
        shares: Float[np.ndarray, " k"],
    ) -> Float[np.ndarray, "n k"]:
        return _centred(np.log(self.shares(graph, counts, own, shares) / shares))

    def shares(
        self,
        graph: Graph,
        counts: Float[np.ndarray, "users k"],
        own: Own,
        shares: Float[np.ndarray, " k"],
    ) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` shares of the votes; arguments as of :meth:`scores`."""
        total = row_sums(counts)
        size = total[graph.user]
        if own is not None:
            size = size - graph.count * row_sums(own)[graph.item]
        weights = self._weights(graph.count, size)
        # an item's own votes are taken off the sum, which spares a table by edge and class
        votes = np.asarray(graph.by_item(weights) @ counts)
        if own is not None:
            votes -= own * np.asarray(graph.by_item(weights * graph.count).sum(1))[:, None]
        # what is left of a sum after some of its terms are taken away may round below zero
        votes = np.maximum(votes, 0)
        # a typical vote: the mean over edges of what one adds
        typical = np.sum(self._weights(total, total) * total) / max(np.sum(total), 1e-300)
        typical = typical if typical > 0 else 1.0
        votes = votes / typical + _SMOOTHING * shares
        return votes / row_sums(votes)[:, None]

    def _weights(
        self, count: Float[np.ndarray, " e"], size: Float[np.ndarray, " e"]
    ) -> Float[np.ndarray, " e"]:
        known = size > 1e-9
        return np.where(known, count * np.where(known, size, 1.0) ** -self.power, 0.0)

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
    return [kind.scores(graph, counts, resp, shares) for kind in kinds]


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
    return kind.scores(Graph(edges), counts, None, shares)


def _centred(table: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    return table - (row_sums(table) / table.shape[1])[:, None]


def _summed_logs(
    graph: Graph, counts: Float[np.ndarray, "users k"], own: Own, prior: Float[np.ndarray, "*s k"]
) -> Float[np.ndarray, "n k"]:
    """``(N, K)`` sums over edges of ``log(count + prior)``, each item's own part left out.

    Args:
        graph: the items' edges.
        counts, own: as of :meth:`Evidence.scores`.
        prior: ``(K,)`` or ``(users, K)`` pseudo-counts.
    """
    n, k = graph.edges.shape[0], counts.shape[1]
    start, user = graph.edges.indptr, graph.user
    raised, least = counts + prior, prior.min()
    out = np.empty((n, k))
    for first, last in _blocks(start, k):
        at = slice(start[first], start[last])
        count = graph.count[at]
        rest = np.take(raised, user[at], axis=0)
        if own is not None:
            part = np.take(own, graph.item[at], axis=0)
            if not graph.is_plain:
                part *= np.repeat(count, k).reshape(-1, k)
            rest -= part
            # what is left of a sum after one of its terms is taken away may round below the prior
            np.maximum(rest, least, out=rest)
        np.log(rest, out=rest)
        of_block = (count, np.arange(len(rest)), start[first : last + 1] - start[first])
        out[first:last] = sparse.csr_array(of_block, shape=(last - first, len(rest))) @ rest
    return out


def _blocks(start: Int[np.ndarray, " m"], k: int) -> Iterator[tuple[int, int]]:
    """First and last item, exclusive, of blocks whose edges' tables fit into a core's cache.

    Args:
        start: ``(N + 1,)`` number of edges before each item.
        k: number of classes.
    """
    first, n = 0, len(start) - 1
    while first < n:
        most = start[first] + max(_BLOCK // k, 1)
        last = max(int(np.searchsorted(start, most, side="right")) - 1, first + 1)
        yield first, last
        first = last
