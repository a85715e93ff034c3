"""What counts of votes say before any fit: how often votes are right, and how frequent classes are.

A fit learns from votes on the same items how far annotators agree. Two things it cannot learn. Of
votes that are alone on their items it sees the shares of labels only, which any accuracies explain
with some shares of the classes. And of two classes that annotators confuse, one may take nearly all
items of both: its matrices then say that annotators name either label, and held-out votes are
predicted as well; of few items one may take nearly all that there are. Counts limit both. Pairs of
votes on an item are alike with probability ``a^2 + (1 - a)^2 / (K - 1)`` where each is right with
probability ``a`` and errs evenly, whatever the shares of the classes; and these are the shares of
the votes, less what such errors add.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from nbmodels.channels import Annotators
from nbmodels.channels.alike_annotators import AlikeAnnotators
from nbmodels.class_priors import HeldProportions, Proportions
from nbmodels.fitting.vote_dependence import VoteTable

#: Least part of what is between guesses and right votes, where all annotators are alike: items then
#: keep their votes.
_LEAST_RIGHT = 0.2

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

#: Most items by which the shares of the classes are held in any case, and number of items beyond
#: which they are fewer, in inverse proportion to its square.
_NEAR, _FEW_ITEMS = 100, 200


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
    sums, squares = votes.by_label(k), (votes.weight**2).sum()
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


class SharesHeld(NamedTuple):
    """``(K,)`` pseudo-items by which votes hold the shares of the classes.

    Attributes:
        fits: of fits.
        draws: of posterior draws, which would count the votes twice; they are held only where votes
            alone would lose a class, and by no more items than show the shares as surely as
            counts of votes do.
    """

    fits: Float[np.ndarray, " k"]
    draws: Float[np.ndarray, " k"]

    def of(self, shares: Proportions) -> HeldProportions:
        """These shares of the classes, or of as many equal sub-types of each, held."""
        each = len(shares.prior.concentration) // len(self.fits)
        fits, draws = (np.repeat(items / each, each) for items in self)
        return shares.with_items(fits, draws)


def held_by(several: Iterable[SharesHeld | None]) -> SharesHeld | None:
    """By the pseudo-items of several tables of votes; None where none holds."""
    known = [one for one in several if one is not None]
    if not known:
        return None
    fits, draws = (np.sum(items, axis=0) for items in zip(*known, strict=True))
    return SharesHeld(fits, draws)


class Expected(NamedTuple):
    """``(K,)`` shares of the classes that counts of votes suggest.

    Attributes:
        seen: mean shares of the votes on an item.
        true: these less what errors add to them, as far as annotators who differ show it.
        n_voted: number of items with votes.
        variance: of ``true``, mean over the classes.
    """

    seen: Float[np.ndarray, " k"]
    true: Float[np.ndarray, " k"]
    n_voted: int
    variance: float

    @property
    def n_known(self) -> float:
        """Number of items of known class whose shares would be as sure; at most all."""
        of_one = float((self.true * (1 - self.true)).mean())
        return min(max(of_one / max(self.variance, 1e-12) - 1, 0.0), self.n_voted)


def expected_shares(votes: VoteTable, k: int) -> Expected:
    """By counts of votes and their mean accuracy.

    Shares less even errors are those of the votes, their distances from ``1 / K`` multiplied. So is
    their standard error, and annotators who name one label for all items make it large: with few
    of them uneven shares are theirs and not the classes'. The two are averaged by their variances
    (James and Stein), that of the classes' shares about those of the votes as of a flat Dirichlet.
    """
    sums = votes.by_label(k)
    n_votes = sums.sum(1, keepdims=True)
    voted = n_votes[:, 0] > 0
    seen = (sums[voted] / n_votes[voted]).mean(0)
    right = mean_accuracy(votes, k)
    above = np.maximum(seen - (1 - right) / max(k - 1, 1), 0)
    less = above / max(above.sum(), 1e-12)
    known = _reliability(votes, seen, n_votes[:, 0], right)
    variance = _flat_variance(k) * (1 - known)
    return Expected(seen, seen + known * (less - seen), int(voted.sum()), variance)


def _flat_variance(k: int) -> float:
    """Variance of a class's share under a flat Dirichlet."""
    return (k - 1) / (k**2 * (k + 1))


def _reliability(
    votes: VoteTable,
    seen: Float[np.ndarray, " k"],
    n_votes: Float[np.ndarray, " n"],
    right: float,
) -> float:
    """Part of the variance of shares less errors that is of the classes, from 0 to 1.

    Args:
        votes: on all items.
        seen: mean shares of the votes on an item.
        n_votes: what the votes on each item count for.
        right: probability that a vote is right.
    """
    k, n_workers = len(seen), 1 + votes.worker.max()
    kept = right - (1 - right) / max(k - 1, 1)  # what is left of a distance from 1 / K
    if n_workers < 2 or kept <= 0:
        return 0.0
    each = votes.weight / n_votes[votes.row] / (n_votes > 0).sum()
    named = np.bincount(votes.worker * k + votes.label, each, n_workers * k).reshape(-1, k)
    apart = named - named.sum(1, keepdims=True) * seen
    error = n_workers / (n_workers - 1) * (apart**2).sum(0).mean() / kept**2
    flat = _flat_variance(k)
    return float(flat / (flat + error))


def held_near(votes: VoteTable, k: int) -> SharesHeld:
    """The shares of the classes near those of the votes, where items are few.

    Of few items one class may take nearly all, those of an annotator who always names it. Shares
    are held between those of the votes and these less the errors, which annotators need not make
    evenly. Of many items the hold would only hide that a class loses items, see :func:`held_fast`.
    """
    seen, true, n, _ = expected_shares(votes, k)
    items = min(n, _NEAR) * min(1, (_FEW_ITEMS / n) ** 2)
    return SharesHeld(items * (seen + true) / 2, np.zeros(k))


def least_kept(shares: Float[np.ndarray, " k"], votes: VoteTable) -> float:
    """Of the class that has lost most items, its share in proportion to the least that counts say.

    Args:
        shares: of the classes, as a fit has found them.
        votes: that it was fitted to.
    """
    expected = expected_shares(votes, len(shares))
    seen, true = expected.seen, expected.true
    least = np.minimum(seen, true)
    return float((shares[least > 0] / least[least > 0]).min())


def held_fast(shares: Float[np.ndarray, " k"], votes: VoteTable) -> SharesHeld | None:
    """The shares of the classes at those that counts suggest, where one has lost items to another.

    A class may be rarer than its votes, most of which are then errors, or rarer than they are less
    the errors, where annotators err to another label; to be far rarer than both is implausible.

    Args:
        shares: of the classes, as a fit has found them.
        votes: that it was fitted to.

    Returns:
        None where no class has.
    """
    if least_kept(shares, votes) >= _LEAST_PART:
        return None
    expected = expected_shares(votes, len(shares))
    return SharesHeld(
        _HELD * expected.n_voted * expected.true, _HELD * expected.n_known * expected.true
    )


def alike(votes: VoteTable, k: int) -> tuple[Float[np.ndarray, "k k"], Float[np.ndarray, " k"]]:
    """Matrix of all annotators and shares of the classes that leave votes as they are.

    Returns ``(observed, K)`` and ``(K,)``. An item with one vote is of the class it names with one
    probability, :func:`mean_accuracy`, whatever the class: the matrix and the shares are what a
    first step of EM makes of such responsibilities. Votes that agree by chance are still taken to
    be right more often than others.
    """
    right = max(mean_accuracy(votes, k), 1 / k + _LEAST_RIGHT * (1 - 1 / k))
    sums = votes.by_label(k)
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
