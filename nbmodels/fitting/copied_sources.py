"""Annotators who copy a part of their votes from one of them: a likelihood of all votes.

On an item of class ``k`` annotator ``w`` takes over the vote of a source with probability ``c_w``,
and votes by their own matrix otherwise: a vote for label ``j`` has the probability
``(1 - c_w) R_w[j, k] + c_w [the source votes for j]``. Classes, matrices and ``c_w`` are fitted
together by EM, so that neither the copies are taken for the truth nor the truth for copies, and one
test pools all who copy from one source.

Difficult items make all annotators agree too often with each other. So what is compared is a model
of which all follow the source with one probability with a model in which some do so more often than
the others. The score of a group is the log-likelihood ratio of the two, less the penalty of the
Bayesian information criterion and the logarithm of the number of such groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.special import gammaln

from nbmodels.core.short_rows import softmax
from nbmodels.fitting.copies import Sources, agreeing, clusters_of, labels_of_sources, vote_probs
from nbmodels.fitting.one_accuracy import drawn_to_accuracy
from nbmodels.fitting.vote_dependence import VoteTable
from nbmodels.fitting.vote_pairs import AnnotatorPairs, annotator_pairs

#: Fewest items that two annotators must share.
LEAST_SHARED = 10

#: Least probability of a copy beyond that with which all others follow the source.
_BEYOND = 0.2

#: Score from where a group is taken for one: odds of a hundred, the level of 1 %.
_SURELY = np.log(100)

#: Sources of which each round fits the model, and most votes, times classes, that it is fitted to.
_MOST_SOURCES, MOST_CELLS = 12, 60_000

#: Part of the agreement that a hidden source would cause up to which members follow a
#: visible one: less than a half, since the classes fitted explain some of it.
_SHARED = 0.3

#: Rounds, each of which finds one source.
_ROUNDS = 6

#: Steps of EM to a rough and to a final fit, and its end in nats.
_ROUGH, _FINAL, _END = 10, 40, 0.02

#: First probabilities of a copy, and those that are compared.
_BEGIN, _TRIED = 0.2, np.linspace(0, 0.95, 20)


class _Group(NamedTuple):
    """Annotators who follow a source more often than all others do.

    Attributes:
        score: log-likelihood ratio with its penalties; of a rough fit at first.
        source: whom they follow.
        partners: all who might.
        members: those who do.
        rest: with which probability the others follow the source.
        copied: with which the members do.
        resp: ``(N, K)`` responsibilities of the fit.
        among: probability of a copy between two members, beyond what the source explains.
    """

    score: float
    source: int
    partners: Int[np.ndarray, " p"]
    members: Int[np.ndarray, " m"]
    rest: float
    copied: float
    resp: Float[np.ndarray, "n k"]
    among: float = 0.0

    @property
    def is_sure(self) -> bool:
        """Whether there is one, beyond doubt."""
        # where all follow the source as much, the excess may be an error of that model
        beyond = self.copied - self.rest >= max(_BEYOND, self.rest)
        return self.score >= _SURELY and beyond

    @property
    def is_explained(self) -> bool:
        """Whether the source is the reason why members agree.

        Where they share something else, such as the kinds of items that they are good at, two agree
        as copies with probability ``c``, of which the source explains ``c^2``.
        """
        return self.among <= _SHARED * self.copied / (1 + self.copied)


def find_sources(
    votes: VoteTable,
    n_workers: int,
    k: int,
    promising: Int[np.ndarray, " w"],
    begin: Float[np.ndarray, "n k"],
) -> tuple[Sources, bool]:
    """Groups of annotators who copy from one of them, the clearest first.

    The second answer is whether others seem to copy from a source that does not vote.

    Args:
        votes: that were cast, by classes at most ``MOST_CELLS``.
        n_workers: W.
        k: number of classes.
        promising: codes of the annotators, the one who is most likely a source first.
        begin: class probabilities of the items to begin at, besides shares of the votes.
    """
    even = np.full((n_workers, k, k), 1 / k), np.full(k, 1 / k)
    found = Sources(np.full(n_workers, -1), np.zeros(n_workers), *even)
    pairs = annotator_pairs(votes, n_workers)
    pairs = pairs.those(pairs.shared >= LEAST_SHARED)
    if len(pairs) < 2:
        return found, False
    mixture = _Mixture.of(votes, n_workers, k)
    starts, hidden = [mixture.counted, begin[np.unique(votes.row)]], False
    for _ in range(_ROUNDS):
        groups = [
            group
            for source in promising[:_MOST_SOURCES]
            for resp in starts
            if (group := mixture.rough(found, int(source), pairs, resp)) is not None
        ]
        # a rough score of less than nothing hardly becomes one that is sure
        hopeful = sorted((g for g in groups if g.score > 0), key=lambda g: -g.score)[:2]
        if not hopeful:
            break
        scored = [mixture.scored(found, g, starts[-1]) for g in hopeful]
        hidden |= any(g.is_sure and not g.is_explained for g in scored)
        sure = [g for g in scored if g.is_sure and g.is_explained]
        if not sure:
            break
        found, resp = mixture.extended(found, max(sure, key=lambda g: g.score))
        starts = [resp]
    return found, hidden


class _Fitted(NamedTuple):
    """A fit: its log-likelihood, probabilities of a copy, responsibilities, matrices, shares."""

    score: float
    part: Float[np.ndarray, " levels"]
    resp: Float[np.ndarray, "n k"]
    matrices: Float[np.ndarray, "w observed k"]
    shares: Float[np.ndarray, " k"]


@dataclass(frozen=True)
class _Mixture:
    """Votes of which some are copies, and what is needed to fit that model.

    Attributes:
        votes: those fitted.
        items: ``(N, V)`` the votes of each item.
        cells: ``(W * K, V)`` those of each annotator for each label.
        counted: ``(N, K)`` shares of votes, smoothed.
    """

    votes: VoteTable
    n_workers: int
    items: sparse.csr_array
    cells: sparse.csr_array
    counted: Float[np.ndarray, "n k"]

    @classmethod
    def of(cls, votes: VoteTable, n_workers: int, k: int) -> _Mixture:
        # items without votes say nothing
        row = np.unique(votes.row, return_inverse=True)[1]
        votes = replace(votes, row=row, n_items=int(row.max()) + 1)
        at, ones = np.arange(len(row)), np.ones(len(row))
        items = sparse.coo_array((ones, (row, at)), (votes.n_items, len(row))).tocsr()
        cell = votes.worker * k + votes.label
        cells = sparse.coo_array((ones, (cell, at)), (n_workers * k, len(row))).tocsr()
        counts = items @ np.eye(k)[votes.label] + 1 / k
        return cls(votes, n_workers, items, cells, counts / counts.sum(1, keepdims=True))

    def fitted(
        self,
        source: Int[np.ndarray, " w"],
        part: Float[np.ndarray, " levels"],
        resp: Float[np.ndarray, "n k"],
        level: Int[np.ndarray, " w"] | None = None,
        steps: int = _FINAL,
    ) -> _Fitted:
        """The mode by EM; annotators of one level have the same probability of a copy."""
        votes, old = self.votes, -np.inf
        both, same = agreeing(votes, source)
        of = (np.arange(self.n_workers) if level is None else level)[votes.worker]
        shared = np.bincount(of, both, len(part))
        copied = (np.where(same, part[of], 0.0))[:, None]
        for step in range(steps):
            own = self.cells @ (resp[votes.row] * (1 - copied))
            matrices = drawn_to_accuracy(own.reshape(self.n_workers, -1, resp.shape[1]))
            shares = (resp.sum(0) + 1) / (len(resp) + resp.shape[1])
            probs = vote_probs(matrices[votes.worker, votes.label], both * part[of], same)
            logs = np.log(shares) + self.items @ np.log(probs)
            resp, score = softmax(logs), float(np.logaddexp.reduce(logs, 1).sum())
            copied = (part[of] * same)[:, None] / probs
            number = np.bincount(of, (copied * resp[votes.row]).sum(1), len(part))
            part = np.minimum(number / np.maximum(shared, 1), _TRIED[-1])
            if step > 2 and score - old < _END:
                break
            old = score
        return _Fitted(score, part, resp, matrices, shares)

    def rough(
        self, found: Sources, source: int, pairs: AnnotatorPairs, resp: Float[np.ndarray, "n k"]
    ) -> _Group | None:
        """The likeliest group of a source; None where too few share enough items with it."""
        shared = np.zeros(self.n_workers)
        for one, other in ((pairs.first, pairs.second), (pairs.second, pairs.first)):
            shared[one[other == source]] = pairs.shared[other == source]
        cluster = clusters_of(found.source)
        free = (found.source < 0) & (cluster != cluster[source])
        partners = np.flatnonzero((shared >= LEAST_SHARED) & free)
        if len(partners) < 2:
            return None
        whom, part = found.source.copy(), found.part.copy()
        whom[partners], part[partners] = source, _BEGIN
        fit = self.fitted(whom, part, resp, steps=_ROUGH)
        logs = self._by_part(fit, whom, partners)
        score, members, rest, copied = _best_split(logs, shared[partners])
        score -= np.log(self.n_workers)
        return _Group(score, source, partners, partners[members], rest, copied, fit.resp)

    def _by_part(
        self, fit: _Fitted, whom: np.ndarray, partners: np.ndarray
    ) -> Float[np.ndarray, "p tried"]:
        """Log-likelihood of each partner's votes, by the probability of a copy."""
        both, same = agreeing(self.votes, whom)
        at = np.flatnonzero(both & np.isin(self.votes.worker, partners))
        worker, resp = self.votes.worker[at], fit.resp[self.votes.row[at]]
        own, same = fit.matrices[worker, self.votes.label[at]], same[at]
        out = np.empty((len(partners), len(_TRIED)))
        for i, c in enumerate(_TRIED):
            logs = np.log((vote_probs(own, np.full(len(at), c), same) * resp).sum(1))
            out[:, i] = np.bincount(worker, logs, self.n_workers)[partners]
        return out

    def scored(self, found: Sources, group: _Group, resp: Float[np.ndarray, "n k"]) -> _Group:
        """With the score of final fits."""
        whom = found.source.copy()
        whom[group.partners] = group.source
        level, before = np.zeros(self.n_workers, int), np.flatnonzero(found.source >= 0)
        level[before] = 2 + np.arange(len(before))
        known = found.part[before]
        alike = level.copy()
        level[group.members] = 1
        apart = self.fitted(whom, np.r_[group.rest, group.copied, known], group.resp, level)
        begin = np.r_[group.rest, 0.0, known]
        null = max(self.fitted(whom, begin, q, alike).score for q in (resp, apart.resp))
        shared = agreeing(self.votes, whom)[0] & np.isin(self.votes.worker, group.members)
        penalty = np.log(shared.sum()) / 2 + np.log(self.n_workers)
        penalty += _log_choose(len(group.partners), np.array(len(group.members)))
        rest, copied = (float(c) for c in apart.part[:2])
        score = float(apart.score - null - penalty)
        among = self._among(apart, group.source, group.members, copied)
        return group._replace(score=score, rest=rest, copied=copied, resp=apart.resp, among=among)

    def _among(
        self, fit: _Fitted, source: int, members: Int[np.ndarray, " m"], copied: float
    ) -> float:
        """How often two members agree beyond what class and source explain, as copies."""
        votes, k = self.votes, fit.resp.shape[1]
        whom = np.full(self.n_workers, -1)
        whom[members] = source
        named = labels_of_sources(votes, whom)
        at = np.flatnonzero(named >= 0)
        row, eye = votes.row[at], np.eye(k)
        items = sparse.coo_array((np.ones(len(at)), (row, np.arange(len(at)))))
        items = sparse.csr_array(items)
        cast = items @ eye[votes.label[at]]
        number = cast.sum(1)
        agreed = ((cast**2).sum(1) - number) / 2
        pairs = (number**2 - number) / 2
        expected = np.zeros(len(number))
        for c in range(k):  # P(label | class, vote of the source) of each vote's annotator
            probs = (1 - copied) * fit.matrices[votes.worker[at], :, c] + copied * eye[named[at]]
            squares = items @ (probs**2).sum(1)
            expected += fit.resp[: len(number), c] * (((items @ probs) ** 2).sum(1) - squares) / 2
        left = pairs.sum() - expected.sum()
        return float((agreed.sum() - expected.sum()) / left) if left > 0 else 0.0

    def extended(self, found: Sources, group: _Group) -> tuple[Sources, np.ndarray]:
        """With one group more, and the responsibilities of the fit."""
        source, part = found.source.copy(), found.part.copy()
        source[group.members], part[group.members] = group.source, group.copied
        fit = self.fitted(source, part, group.resp)
        part = np.where(source >= 0, fit.part, 0.0)
        return Sources(source, part, fit.matrices, fit.shares), fit.resp


def _best_split(
    logs: Float[np.ndarray, "p tried"], shared: Float[np.ndarray, " p"]
) -> tuple[float, Bool[np.ndarray, " p"], float, float]:
    """Score, members, and both probabilities of the best split of partners into two groups."""
    number = len(logs)
    sizes, best = np.arange(1, number), (-np.inf, np.zeros(number, bool), 0.0, 0.0)
    choices = _log_choose(number, sizes)
    null = logs.sum(0).max()
    for i, j in zip(*np.triu_indices(len(_TRIED), 1), strict=True):
        if _TRIED[j] - _TRIED[i] < _BEYOND - 1e-9:
            continue
        gain = logs[:, j] - logs[:, i]
        order = np.argsort(-gain)
        scores = np.cumsum(gain[order])[:-1] - np.log(np.cumsum(shared[order])[:-1]) / 2 - choices
        at = int(scores.argmax())
        score = float(logs[:, i].sum() + scores[at] - null)
        if score > best[0]:
            members = np.zeros(number, bool)
            members[order[: at + 1]] = True
            best = score, members, float(_TRIED[i]), float(_TRIED[j])
    return best


def _log_choose(n: int, m: np.ndarray) -> np.ndarray:
    return np.asarray(gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1))
