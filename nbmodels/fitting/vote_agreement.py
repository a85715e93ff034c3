"""How much oftener than by chance two votes on an item agree: without it votes show no class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from nbmodels.fitting.vote_dependence import VoteTable

#: Votes by all annotators' shares of labels that an annotator's own are shrunk by.
_SHRUNK = 5.0

#: Standard errors by which votes agree beyond chance, from where they show who is right.
LEAST_AGREEMENT = 2.0

#: Number of votes among which classes behind them are looked for, at most.
_MOST_VOTES = 10_000

#: Shuffled tables of votes, and steps of EM to the likelihood of each.
_SHUFFLED, _STEPS = 20, 50

#: Fewest items with two votes, whose spread is the standard error.
_FEWEST = 20


def beyond_chance(votes: VoteTable, n_workers: int, n_labels: int) -> float:
    """Standard errors by which votes on an item agree more often than independent ones would.

    By chance two annotators agree as often as their shares of labels have it. Items are
    independent of each other. A few who know the classes are lost among many who guess: where
    pairs do not agree, the likelihood of a class behind the votes counts, beside that of shuffled
    votes.

    Args:
        votes: on all items.
        n_workers: number of annotators.
        n_labels: number of classes that a vote may name.

    Returns:
        NaN where hardly any items have two votes.
    """
    weight = votes.weight
    cells = votes.worker * n_labels + votes.label
    named = np.bincount(cells, weight, n_workers * n_labels).reshape(-1, n_labels)
    overall = named.sum(0) / max(named.sum(), 1e-12)
    shares = (named + _SHRUNK * overall) / (named.sum(1, keepdims=True) + _SHRUNK)
    each = weight[:, None] * shares[votes.worker]
    alike = _pairs(votes.by_label(n_labels), np.bincount(votes.row, weight**2, votes.n_items))
    chance = _pairs(
        votes.summed(each), np.bincount(votes.row, np.square(each).sum(1), votes.n_items)
    )
    gain = (alike - chance)[np.bincount(votes.row, minlength=votes.n_items) > 1]
    spread = float(np.sqrt(np.square(gain).sum()))
    if len(gain) < _FEWEST or spread == 0:
        return np.nan
    found = float(gain.sum()) / spread
    if found >= LEAST_AGREEMENT:
        return found
    likelier = _beyond_shuffled(votes.thinned(_MOST_VOTES).of_items()[0], shares)
    return likelier if likelier >= LEAST_AGREEMENT else found


def _beyond_shuffled(votes: VoteTable, shares: Float[np.ndarray, "w l"]) -> float:
    """Standard deviations by which a class behind the votes is likelier than by chance.

    A permutation test: by chance, each annotator's labels are in any order of their items. The
    maximum of a likelihood finds classes in any votes, the more so the more annotators there are.

    Args:
        votes: on all items.
        shares: of each annotator's labels.
    """
    place = np.argsort(votes.worker, kind="stable")
    rng = np.random.default_rng(len(place))  # the same votes have the same answer
    by_chance = []
    for _ in range(_SHUFFLED):
        order = np.lexsort((rng.random(len(place)), votes.worker))
        label = np.empty_like(votes.label)
        label[place] = votes.label[order]
        by_chance.append(_log_factor(replace(votes, label=label), shares))
    spread = max(float(np.std(by_chance, ddof=1)), 1.0)
    return (_log_factor(votes, shares) - float(np.mean(by_chance))) / spread


def _log_factor(votes: VoteTable, shares: Float[np.ndarray, "w l"]) -> float:
    """Nats by which votes are likelier under classes than if each annotator's were independent.

    Of the one-coin model (Dawid and Skene 1979, with one accuracy an annotator), by EM from the
    shares of votes; accuracies have a uniform prior, the class shares one item each.

    Args:
        votes: on all items.
        shares: of each annotator's labels.
    """
    n_workers, k = shares.shape
    worker, label, weight = votes.worker, votes.label, votes.weight
    number = np.bincount(worker, weight, n_workers)
    resp = votes.by_label(k) + 1 / k
    resp /= resp.sum(1, keepdims=True)
    log_likelihood = 0.0
    for _ in range(_STEPS):
        right = np.bincount(worker, weight * resp[votes.row, label], n_workers)
        accuracy = (right + 1) / (number + 2)
        wrong = np.log((1 - accuracy) / max(k - 1, 1))
        prior = np.log((resp.sum(0) + 1) / (len(resp) + k))
        # each vote adds the same to all classes, and more to that which it names
        more = weight * (np.log(accuracy) - wrong)[worker]
        table = prior + replace(votes, weights=more).by_label(k)
        inside = logsumexp(table, axis=1, keepdims=True)
        log_likelihood = float(inside.sum() + weight @ wrong[worker])
        resp = np.exp(table - inside)
    return log_likelihood - float(weight @ np.log(shares[worker, label]))


def _pairs(sums: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Sums over the pairs of an item's votes of their products, from sums over its votes."""
    return (np.square(sums).sum(1) - own) / 2
