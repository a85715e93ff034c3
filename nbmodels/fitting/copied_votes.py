"""Annotators who copy from each other, found by counting votes, and what their votes are worth.

A fit takes copied votes for independent evidence, and a group of copies for the truth: its own
residuals then show nothing. So copies are sought before any fit, by classes that votes weighted by
each annotator's one accuracy suggest. Of a pair, the expected agreement is that of independent
votes given the class, which all annotators but the pair and those whom they copy suggest. With
probability ``c`` of a copy the agreement is ``c + (1 - c) expected``. Difficult items make all
pairs agree more than expected; the median pair is the measure, tested at 1 % for all pairs
together (Bonferroni).

``m`` annotators who copy with probability ``c`` count as ``m / (1 + (m - 1) c)`` (the design effect
of cluster samples, Kish 1965, section 5.4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy import sparse, stats

from nbmodels.fitting.vote_dependence import VoteTable, softmax

#: Fewest items that a pair must share, and least probability of a copy beyond the usual one.
_LEAST_SHARED, _LEAST_COPIED = 10, 0.5

#: Level of the test of all pairs together.
_LEVEL = 0.01

#: Votes on an item, and pairs of votes, that are looked at; fewest items of those.
_MOST_ON_ITEM, _MOST_PAIRS, _FEWEST_ITEMS = 50, 4_000_000, 100

#: Pairs of votes that are compared at once.
_AT_ONCE = 400_000

#: Rounds in which clusters grow; a pair joins if its test is at least this part of the largest.
_ROUNDS, _PART = 6, 0.7

#: Steps from shares of votes to classes, and part of the evidence that counts: near to counting,
#: and of a fit.
_BEGINS = ((2, 0.5), (30, 1.0))

#: Right and wrong pseudo-votes of an accuracy; pseudo-votes by which a matrix is drawn to it.
_PSEUDO, _STRENGTH = (2.0, 1.0), 5.0

_COLUMNS = ["first", "second", "shared", "agreement", "expected", "copied", "z"]


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
        together, _ = _in_cluster(votes, self.cluster)
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
    empty = pd.DataFrame({name: np.empty(0) for name in _COLUMNS})
    return Copies(np.arange(n_workers), np.zeros(n_workers), empty)


def find_copies(votes: VoteTable, n_workers: int, n_labels: int, abstains: bool) -> Copies:
    """Clusters of annotators who agree more often than their accuracies and the classes explain.

    Args:
        votes: that were cast.
        n_workers: W.
        n_labels: K.
        abstains: whether no vote is an outcome, too, on which a pair agrees.
    """
    none = no_copies(n_workers)
    table = _with_abstentions(votes, n_workers, n_labels) if abstains else votes
    if table is None:
        return none
    tried = [none, *_grown(table, none, n_labels, _BEGINS[0])]
    if len(tried) == 1:
        return none
    scores = [_pairwise_score(table, one, n_labels) for one in tried]
    return tried[int(np.argmax(scores))]


def _grown(votes: VoteTable, none: Copies, k: int, begin: tuple[int, float]) -> Iterator[Copies]:
    """Clusters to which the pairs of the largest tests are added, round by round."""
    found, n_workers = none, len(none.cluster)
    for _ in range(_ROUNDS):
        tested = _tested(votes, found, n_workers, k, begin)
        joined = tested[tested["z"] >= _PART * tested["z"].max()]
        apart = found.cluster[joined["first"]] != found.cluster[joined["second"]]
        if not apart.any():
            return
        found = _clustered(pd.concat([found.pairs, joined[apart]]), n_workers)
        yield found


def _pairwise_score(votes: VoteTable, copies: Copies, k: int) -> float:
    """Composite log-likelihood of pairs of votes (Varin, Reid and Firth 2011), penalised.

    A vote is in several pairs, by which the sum is divided. The penalty is that of the Bayesian
    information criterion, for one probability of a copy each annotator in a cluster.
    """
    n_workers = len(copies.cluster)
    logs, matrices = _counted(votes, copies.weights(votes), n_workers, k, _BEGINS[-1])
    shares = softmax(votes.summed(logs)).mean(0)
    total, number = 0.0, 0
    for a, b in _pairs(votes):
        one, two = (matrices[votes.worker[x], votes.label[x]] for x in (a, b))
        apart, copied = (one * two) @ shares, ((one + two) / 2) @ shares
        together = copies.cluster[votes.worker[a]] == copies.cluster[votes.worker[b]]
        c = np.where(together, copies.copied[votes.worker[a]], 0.0)
        same = votes.label[a] == votes.label[b]
        total += np.log(np.maximum((1 - c) * apart + c * same * copied, 1e-12)).sum()
        number += len(a)
    each = 2 * number / len(votes.row)
    sizes = np.bincount(copies.cluster)
    free = (sizes[sizes > 1] - 1).sum()
    return float(total / max(each, 1) - free * np.log(max(len(votes.row), 2)) / 2)


def _clustered(pairs: pd.DataFrame, n_workers: int) -> Copies:
    a, b = pairs["first"].to_numpy(int), pairs["second"].to_numpy(int)
    graph = sparse.coo_array((np.ones(len(a)), (a, b)), (n_workers, n_workers))
    _, cluster = sparse.csgraph.connected_components(graph.tocsr(), directed=False)
    at, copied = cluster[a], pairs["copied"].to_numpy()
    mean = np.bincount(at, copied, n_workers) / np.maximum(np.bincount(at, minlength=n_workers), 1)
    ordered = pairs.sort_values("z", ascending=False).reset_index(drop=True)
    return Copies(cluster, mean[cluster], ordered)


def _with_abstentions(votes: VoteTable, n_workers: int, n_labels: int) -> VoteTable | None:
    """With a row of label K where a function abstains; None where there are too many functions."""
    most = _MOST_PAIRS // max(n_workers * (n_workers - 1) // 2, 1)
    items = np.unique(votes.row)
    if most < min(_FEWEST_ITEMS, len(items)):
        return None
    items = np.sort(np.random.default_rng(len(items)).permutation(items)[:most])
    label = np.full((len(items), n_workers), n_labels)
    at = np.searchsorted(items, votes.row)
    here = (at < len(items)) & (items[np.minimum(at, len(items) - 1)] == votes.row)
    label[at[here], votes.worker[here]] = votes.label[here]
    row, worker = np.divmod(np.arange(label.size), n_workers)
    return VoteTable(row, worker, label.ravel(), len(items))


def _in_cluster(votes: VoteTable, cluster: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``(V,)`` number of each vote's item and cluster together, and ``(V,)`` cluster."""
    own = cluster[votes.worker]
    key = votes.row.astype(np.int64) * (int(cluster.max()) + 1) + own
    return np.unique(key, return_inverse=True)[1], own


def _tested(
    votes: VoteTable, so_far: Copies, n_workers: int, k: int, begin: tuple[int, float]
) -> pd.DataFrame:
    """Pairs who agree too often, given the clusters that are known."""
    logs, matrices = _counted(votes, so_far.weights(votes), n_workers, k, begin)
    together, own = _in_cluster(votes, so_far.cluster)
    sums = np.stack([np.bincount(together, x) for x in logs.T], 1)[together]
    whole = votes.summed(logs)
    agreeing = _Agreeing(matrices)
    parts = [agreeing.compared(votes, own, whole, sums, *pair) for pair in _pairs(votes)]
    if not parts:
        return no_copies(n_workers).pairs
    found = _by_pair(parts, n_workers)
    found = found[found["shared"] >= _LEAST_SHARED].copy()
    for name in ("agreement", "expected"):
        found[name] /= found["shared"]
    left = np.maximum(1 - found["expected"], 1e-6)
    copied: pd.Series = (found["agreement"] - found["expected"]) / left
    usual = max(float(copied.median()), 0.0) if len(found) else 0.0
    found["copied"] = np.clip(copied - usual, 0, 1)
    among = found["expected"] + usual * left
    spread = np.sqrt(np.maximum(among * (1 - among), 1e-4) / found["shared"])
    found["z"] = (found["agreement"] - among) / spread
    beyond = found["z"] > stats.norm.isf(_LEVEL / max(len(found), 1))
    return found[beyond & (found["copied"] > _LEAST_COPIED)][_COLUMNS]


def _counted(
    votes: VoteTable, weights: np.ndarray, n_workers: int, k: int, begin: tuple[int, float]
) -> tuple[np.ndarray, np.ndarray]:
    """``(V, K)`` evidence of votes, and ``(W, labels, K)`` matrices, each drawn to one accuracy.

    Labels beyond the classes are abstentions, which are no evidence.
    """
    (steps, power), cast = begin, votes.label < k
    named, n_labels = np.where(cast, votes.label, 0), max(k, int(votes.label.max()) + 1)
    cell, voted = votes.worker * n_labels + votes.label, np.bincount(votes.worker, cast, n_workers)
    eye, part = np.eye(n_labels, k, dtype=bool), (weights * cast)[:, None]
    logs = np.where(np.arange(k) == named[:, None], np.log(2.0), 0.0) * part
    for _ in range(steps):
        resp = softmax(power * votes.summed(logs))[votes.row]
        counts = np.stack([np.bincount(cell, r, n_workers * n_labels) for r in resp.T], 1)
        counts = counts.reshape(n_workers, n_labels, k)
        hits = (counts * eye).sum((1, 2))
        right = ((hits + _PSEUDO[0]) / (voted + sum(_PSEUDO)))[:, None, None]
        one = np.where(eye, right, (1 - right) / max(k - 1, 1))
        of_votes = _normalised(counts[:, :k] + _STRENGTH * one[:, :k])
        logs = np.log(of_votes[votes.worker, named]) * part
    one[:, k:] = 0.5
    return power * logs, _normalised(counts + _STRENGTH * _normalised(one))


def _normalised(matrices: np.ndarray) -> np.ndarray:
    return matrices / matrices.sum(1, keepdims=True)


def _pairs(votes: VoteTable) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of votes on the same item, as positions; items of equal size together."""
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
        items = items[: max(1, _MOST_PAIRS // len(first))]
        for i in range(0, len(items), step):
            at = starts[items[i : i + step], None]
            yield order[(at + first).ravel()], order[(at + second).ravel()]


class _Agreeing:
    """Agreement of pairs of votes, and its probability if they are independent.

    Args:
        matrices: ``(W, labels, K)`` P(label | class) of each annotator.
    """

    def __init__(self, matrices: Float[np.ndarray, "w labels k"]) -> None:
        n_workers, _, k = matrices.shape
        self._matrices, self._both = matrices, None
        if n_workers**2 * k <= _MOST_PAIRS * 2:
            self._both = np.einsum("alk,blk->abk", matrices, matrices, optimize=True)

    def compared(
        self,
        votes: VoteTable,
        cluster: Int[np.ndarray, " v"],
        whole: Float[np.ndarray, "n k"],
        sums: Float[np.ndarray, "v k"],
        a: Int[np.ndarray, " p"],
        b: Int[np.ndarray, " p"],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Keys of the pairs of annotators, and ``(3, pairs)`` sums: items, agreement, expected.

        The class is judged by votes of other clusters than the pair's.
        """
        apart = (cluster[a] != cluster[b])[:, None]
        left = softmax(whole[votes.row[a]] - sums[a] - np.where(apart, sums[b], 0))
        one, two = votes.worker[a], votes.worker[b]
        low, high = np.minimum(one, two), np.maximum(one, two)
        if self._both is not None:
            both = self._both[low, high]
        else:
            both = np.einsum("plk,plk->pk", self._matrices[low], self._matrices[high])
        same = (votes.label[a] == votes.label[b]).astype(float)
        keys = low.astype(np.int64) * len(self._matrices) + high
        return _grouped(keys, np.stack([np.ones(len(a)), same, np.einsum("pk,pk->p", left, both)]))


def _grouped(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys, and the sums of the values' columns that have them."""
    if keys.max() < 4 * len(keys):  # many pairs of few annotators need no sorting
        sums = np.stack([np.bincount(keys, x) for x in values])
        distinct = np.flatnonzero(sums[0])
        return distinct, sums[:, distinct]
    distinct, at = np.unique(keys, return_inverse=True)
    return distinct, np.stack([np.bincount(at, x, len(distinct)) for x in values])


def _by_pair(parts: list[tuple[np.ndarray, np.ndarray]], n_workers: int) -> pd.DataFrame:
    keys, sums = _grouped(*(np.concatenate(one, -1) for one in zip(*parts, strict=True)))
    first, second = np.divmod(keys, n_workers)
    columns = dict(zip(("shared", "agreement", "expected"), sums, strict=True))
    return pd.DataFrame({"first": first, "second": second, **columns})
