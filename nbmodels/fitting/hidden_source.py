"""Annotators who copy nearly all votes from a source that does not vote, by a likelihood ratio.

Where half of a few annotators do, a fit takes the source for the truth: they seem to be right in
most votes, and agree as often as expected. All others then agree with each other more often than
they should. On an item of class ``y`` the source names ``s``, which is ``y`` with probability
``b``; members of the group name ``s``, and all others ``y``, each with an accuracy of their own.
Independent votes are the case ``b = 1``, so that the likelihood ratio of the two models is a test
of the group.

The group is those who seem to be right most often. Errors that depend on the class or on how
difficult an item is raise the ratio, too: it has to be large and the source worse than its members
seem to be, and of many annotators nobody is accused by it (of the real crowds in
``benchmarks/records/crowds.md``, with 25 annotators and more, most would have a group).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import logsumexp

from nbmodels.fitting.vote_dependence import VoteTable

#: Most annotators and classes of whom the two models are fitted, and most votes times classes that
#: they are fitted to, within a fifth of a second: 4,000 votes show copies by 12 nats and more.
_MOST_ANNOTATORS, _MOST_CLASSES, _MOST_CELLS = 12, 10, 12_000

#: Fewest annotators outside of the group, by whose agreement it is judged.
_FEWEST_OUTSIDE = 3

#: Least log-likelihood ratio, largest accuracy of the source, and least probability of a copy of
#: each member. Of 416 simulated crowds without copies (good, poor, difficult, confused, ordered,
#: one-sided, spam; ``benchmarks/records/crowds.md``) at most one had such a group, of 64 with
#: copies 47.
_RATIO, _SOURCE, _COPIED = 4.0, 0.85, 0.8

#: Accuracies of the others and of the source at which the fits of a group begin.
_BEGINS = ((0.6, 0.75), (0.8, 0.6))

#: Right and wrong pseudo-votes of an accuracy, pseudo-items of a class.
_RIGHT, _WRONG, _SHARE = 1.0, 0.5, 1.0

#: Steps of EM at most, and their end in nats.
_STEPS, _END = 300, 5e-3


class HiddenSource(NamedTuple):
    """A group that copies from a source that does not vote.

    Attributes:
        members: ``(W,)`` whether each annotator is one.
        copied: ``(W,)`` probability with which a member's vote is the source's beyond chance.
        right: accuracy of the source.
        ratio: log-likelihood ratio to independent votes.
    """

    members: Bool[np.ndarray, " w"]
    copied: Float[np.ndarray, " w"]
    right: float
    ratio: float


class _Fit(NamedTuple):
    log_likelihood: float
    accuracy: Float[np.ndarray, " w"]
    source: float


def hidden_source(votes: VoteTable, n_workers: int, k: int) -> HiddenSource | None:
    """The group whose votes are surely likelier as copies; None where there is none.

    Args:
        votes: that were cast.
        n_workers: W.
        k: number of classes.
    """
    number = np.bincount(votes.worker, minlength=n_workers)
    voting = int((number > 0).sum())
    if not _FEWEST_OUTSIDE + 2 <= voting <= _MOST_ANNOTATORS or k > _MOST_CLASSES:
        return None
    some = votes.thinned(max(_MOST_CELLS // k, 1))
    items, row = np.unique(some.row, return_inverse=True)
    votes = replace(some, row=row, n_items=len(items))
    nobody = np.zeros(n_workers, bool)
    alone = _fitted(votes, n_workers, k, nobody, np.full(n_workers, 0.7), 1.0)
    members = _most_accurate(alone.accuracy, number)
    if voting - members.sum() < _FEWEST_OUTSIDE:
        return None
    fits = [
        _fitted(votes, n_workers, k, members, np.where(members, alone.accuracy, others), source)
        for others, source in _BEGINS
    ]
    best = max(fits, key=lambda one: one.log_likelihood)
    ratio = best.log_likelihood - alone.log_likelihood
    copied = np.where(members, np.clip((k * best.accuracy - 1) / max(k - 1, 1), 0, 1), 0)
    if ratio < _RATIO or best.source > _SOURCE or copied[members].min() < _COPIED:
        return None
    return HiddenSource(members, copied, best.source, ratio)


def _most_accurate(
    accuracy: Float[np.ndarray, " w"], number: Float[np.ndarray, " w"]
) -> Bool[np.ndarray, " w"]:
    """The upper of two groups with the least variance of logits within them (two means)."""
    logit = np.log(accuracy) - np.log1p(-accuracy)
    order = np.argsort(np.where(number > 0, -logit, np.inf), kind="stable")[: (number > 0).sum()]
    z, n = logit[order], number[order].astype(float)
    sizes = range(2, len(order))
    size = min(sizes, key=lambda m: _variance(z[:m], n[:m]) + _variance(z[m:], n[m:]))
    return np.isin(np.arange(len(accuracy)), order[:size])


def _variance(values: np.ndarray, weights: np.ndarray) -> float:
    return float(weights @ (values - np.average(values, weights=weights)) ** 2)


def _fitted(
    votes: VoteTable,
    n_workers: int,
    k: int,
    members: Bool[np.ndarray, " w"],
    accuracy: Float[np.ndarray, " w"],
    source: float,
) -> _Fit:
    """EM of the accuracies, of the source's, and of the shares of the classes."""
    named, inside = np.eye(k, dtype=bool)[votes.label], members[votes.worker]
    number = np.bincount(votes.worker, minlength=n_workers)
    has = np.bincount(votes.row[inside], minlength=votes.n_items) > 0
    eye, shares, last = np.eye(k, dtype=bool), np.full(k, 1 / k), -np.inf
    for _ in range(_STEPS):
        right, wrong = np.log(accuracy), np.log1p(-accuracy) - np.log(max(k - 1, 1))
        logs = np.where(named, right[votes.worker, None], wrong[votes.worker, None])
        of_class, of_source = (votes.summed(logs * part[:, None]) for part in (~inside, inside))
        with np.errstate(divide="ignore"):
            link = np.log(np.where(eye, source, (1 - source) / max(k - 1, 1)))
        joint = np.log(shares)[:, None] + of_class[:, :, None] + link + of_source[:, None, :]
        total = logsumexp(joint, axis=(1, 2))
        joint = np.exp(joint - total[:, None, None])
        y, s = joint.sum(2), joint.sum(1)
        resp = np.where(inside[:, None], s[votes.row], y[votes.row])
        hits = np.bincount(votes.worker, (resp * named).sum(1), n_workers)
        accuracy = (hits + _RIGHT) / (number + _RIGHT + _WRONG)
        if members.any():
            alike = np.trace(joint[has].sum(0))
            source = float((alike + _RIGHT) / (has.sum() + _RIGHT + _WRONG))
        shares = (y.sum(0) + _SHARE) / (votes.n_items + k * _SHARE)
        log_likelihood = float(total.sum())
        if log_likelihood - last < _END:
            break
        last = log_likelihood
    return _Fit(log_likelihood, accuracy, source)
