"""Votes that are not independent given the class: an intraclass correlation, learned from votes.

Dawid and Skene's model multiplies the evidence of all votes on an item. Items differ in difficulty,
annotators follow the same misleading cue, and the product is then far too sure. With correlation
``r`` among votes, ``n`` of them carry the information of ``n / (1 + (n - 1) r)`` independent ones
(the design effect of cluster samples, Kish 1965, section 5.4), so that the posterior of an item is
raised to the power ``1 / (1 + (n - 1) r)``: its likeliest class stays. ``n`` counts votes by
information: ``(sum s)^2 / sum s^2`` with ``s^2`` the mutual information of an annotator's vote and
the class, since a vote that says nothing shares no error with others.

Votes identify a part of ``r`` (:mod:`nbmodels.fitting.item_effects`; of labelling functions, each
vote is predicted from the others on its item, the item deleted from the annotators' matrices, and
under too much certainty these predictions fail). The rest is hidden. A cue that misleads most
annotators makes them agree on a wrong class, and from votes alone that class is the true one.
``HIDDEN`` is the part of ``r`` that is assumed instead, the less the surer the votes show that they
are independent: where items differ visibly, they will do so in what is not seen, too. That there is
no correlation of ``LEAST`` must be shown twice: by items, and by pairs of annotators
(:mod:`nbmodels.fitting.uneven_pairs`), which few votes on an item or few shared items do not.

Where the annotators' matrices have more cells than there are votes, as of many classes, a row is
hardly more than the votes that it is to judge, unless a prior outweighs them. Each item is then
judged by matrices without its own votes (leave-one-out), and as that takes away a part of what
makes products of votes too sure, ``HIDDEN_OF_FEW`` is assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import expit

from nbmodels.channels import LabellingFunctions
from nbmodels.core.model import PRIOR
from nbmodels.core.short_rows import softmax
from nbmodels.fitting.em import Fit

#: Correlation of votes that votes cannot show, and odds against independence of crowds whose items
#: differ and of crowds of groups: an assumption, and no estimate.
HIDDEN, _ODDS = 0.5, np.array([7.0, 2.0])

#: The same of votes that are fewer than cells, whose items are judged by those of others.
HIDDEN_OF_FEW = 0.25

#: Part of what a cell of a matrix counts, from where on the vote itself is too much of it.
_OWN = 0.05

#: Least correlation of votes, by item or within a group, that is tested against independence.
LEAST = 0.05

#: Most votes that the correlation is learned from; whole items are drawn beyond that.
_MOST_VOTES = 100_000

#: Error of the correlation that ends the search; its standard error is larger by far.
_SEARCHED_TO = 1e-3

#: Standard errors by which classes must differ in their numbers of votes, and their fewest items.
_SURELY, _FEWEST_ITEMS = 4.0, 10

_TINY = 1e-300


@dataclass(frozen=True)
class VoteTable:
    """Votes on items as codes, one row a vote.

    Attributes:
        row: ``(V,)`` item.
        worker: ``(V,)`` annotator.
        label: ``(V,)`` class named.
        n_items: N.
        weights: ``(V,)`` what each vote counts for, less where votes are copies; None for 1.
    """

    row: Int[np.ndarray, " v"]
    worker: Int[np.ndarray, " v"]
    label: Int[np.ndarray, " v"]
    n_items: int
    weights: Float[np.ndarray, " v"] | None = None

    @classmethod
    def of_counts(cls, counts: sparse.csr_array, n_labels: int) -> VoteTable:
        """From ``(N, W * K)`` sums of what votes count for, one vote a cell."""
        cells = sparse.coo_array(counts)
        worker, label = np.divmod(cells.col.astype(int), n_labels)
        return cls(cells.row.astype(int), worker, label, counts.shape[0], cells.data)

    def counted(self, n_workers: int, n_observed: int) -> sparse.csr_array:
        """``(N, W * observed)`` sums of what the votes count for."""
        cells = self.row, self.worker * n_observed + self.label
        shape = self.n_items, n_workers * n_observed
        return sparse.coo_array((self.weight, cells), shape).tocsr()

    @property
    def weight(self) -> Float[np.ndarray, " v"]:
        """``(V,)`` what each vote counts for."""
        return np.ones(len(self.row)) if self.weights is None else self.weights

    def summed(self, values: Float[np.ndarray, "v k"]) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` sums of the votes' values by item."""
        return np.stack([np.bincount(self.row, v, self.n_items) for v in values.T], 1)

    def by_label(self, k: int) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` sums of what the votes on each item count for, by label."""
        cells = self.row * k + self.label
        return np.bincount(cells, self.weight, self.n_items * k).reshape(-1, k)

    def of_items(self) -> tuple[VoteTable, Int[np.ndarray, " m"]]:
        """Of the ``M`` items with votes alone, and which these are."""
        items, row = np.unique(self.row, return_inverse=True)
        return replace(self, row=row, n_items=len(items)), items

    def thinned(self, most: int) -> VoteTable:
        """The votes on randomly drawn items, at most so many."""
        if len(self.row) <= most:
            return self
        order = np.random.default_rng(len(self.row)).permutation(self.n_items)
        size = np.cumsum(np.bincount(self.row, minlength=self.n_items)[order])
        kept = np.zeros(self.n_items, bool)
        kept[order[size <= most]] = True
        return self._those(kept[self.row])

    def without(self, workers: Bool[np.ndarray, " w"]) -> VoteTable:
        """The votes of all but some annotators, on as many items."""
        return self._those(~workers[self.worker]) if workers.any() else self

    def _those(self, here: Bool[np.ndarray, " v"]) -> VoteTable:
        weights = None if self.weights is None else self.weights[here]
        row, worker, label = self.row[here], self.worker[here], self.label[here]
        return replace(self, row=row, worker=worker, label=label, weights=weights)


@dataclass(frozen=True)
class AnnotatorModel:
    """What a fit has learned of annotators and classes.

    Attributes:
        pseudo: ``(W, observed, C)`` votes and pseudo-votes; normalised they are the matrices.
        log_prior: ``(C,)`` logarithm of the classes' shares.
        resp: ``(N, C)`` responsibilities of the items fitted, by which they taught the matrices.
        abstains: whether the last label is an abstention, of all who do not vote on an item.
        power: ``(W,)`` what abstentions of each function count for; None for 1.
        repeated: pseudo-votes of each row that only say again what the annotator's votes on other
            classes do: no evidence of an accuracy besides them.
        guessed: share of the items on which all votes are guesses; the matrices are of the others.
    """

    pseudo: Float[np.ndarray, "w observed c"]
    log_prior: Float[np.ndarray, " c"]
    resp: Float[np.ndarray, "n c"]
    abstains: bool = False
    power: Float[np.ndarray, " w"] | None = None
    repeated: float = 0.0
    guessed: float = 0.0

    @property
    def matrices(self) -> Float[np.ndarray, "w observed c"]:
        """``(W, observed, C)`` P(label | class)."""
        return self.pseudo / self.pseudo.sum(1, keepdims=True)

    def information(self) -> Float[np.ndarray, " w"]:
        """``(W,)`` mutual information of an annotator's vote and the class, in nats."""
        matrix, shares = self.matrices, np.exp(self.log_prior)
        joint = matrix * shares
        ratio = np.log(np.maximum(matrix, _TINY) / np.maximum(joint.sum(2, keepdims=True), _TINY))
        return np.maximum((joint * ratio).sum((1, 2)), 0)

    @property
    def accuracy(self) -> Float[np.ndarray, " w"]:
        """``(W,)`` P(a vote is right) of each annotator, be the item guessed or not."""
        n_observed, n_classes = self.of_votes.pseudo.shape[1:]
        right = np.arange(n_classes) // (n_classes // n_observed)
        matrix, shares = self.matrices, np.exp(self.log_prior)
        voted = matrix[:, :n_observed].sum(1) @ shares
        following = (matrix[:, right, np.arange(n_classes)] @ shares) / voted
        return (1 - self.guessed) * following + self.guessed / n_observed

    def few(self, votes: VoteTable) -> bool:
        """Whether votes judge themselves: fewer than cells, and no prior outweighs them."""
        if self.abstains or self.pseudo.size <= float(votes.weight.sum()):
            return False
        own = self.resp[votes.row] * votes.weight[:, None]
        share = own * self.resp[votes.row] / self.pseudo[votes.worker, votes.label]
        return float(share.sum(1).mean()) > _OWN

    @property
    def of_votes(self) -> AnnotatorModel:
        """Of annotators given that they vote."""
        return replace(self, pseudo=self.pseudo[:, :-1], abstains=False) if self.abstains else self

    def evidence(self, votes: VoteTable) -> tuple[np.ndarray, np.ndarray]:
        """``(V, C)`` log-likelihoods of the votes and ``(C,)`` that of no vote, with the prior."""
        logs = np.log(np.maximum(self.matrices, _TINY))
        voted, weight = logs[votes.worker, votes.label], votes.weight[:, None]
        if not self.abstains:
            return voted * weight, self.log_prior
        power = np.ones(len(logs)) if self.power is None else self.power
        silent = logs[:, -1]
        return (voted - silent[votes.worker]) * weight, self.log_prior + power @ silent

    def deleted(self, votes: VoteTable) -> Float[np.ndarray, "v c"]:
        """``(V, C)`` log P(vote | class), by matrices from which the vote's own item is deleted."""
        own = self.resp[votes.row] * votes.weight[:, None]
        above = self.pseudo[votes.worker, votes.label] - own
        below = self.pseudo.sum(1)[votes.worker] - own
        return np.log(np.maximum(above, 1e-9) / np.maximum(below, 1e-9))


@dataclass(frozen=True)
class VoteDependence:
    """Intraclass correlation of votes.

    Attributes:
        correlation: by which posteriors are tempered.
        visible: what votes show of it.
        gain: nats by which the votes looked at are likelier under ``visible`` than under
            independence.
        effective: mean number of independent votes that an item's votes are worth.
        votes: mean number of votes of an item with votes.
        unsupported: share of these items whose likeliest class none of their votes names, of those
            whose class is not known otherwise; NaN without one.
        by_class: ratio of the mean number of votes on items of the class with most to that of the
            class with fewest, 1 where that may be chance; NaN where abstentions are evidence.
        copying: share of the annotators who copy from each other, as far as that was looked for.
        pooling: what the annotators' matrices are drawn to; ``"alike"`` where they are all one.
        shown: share of the votes whose annotators' accuracies other votes show.
        uneven: how unevenly pairs of annotators agree; about 1 where votes are independent.
        kept: of the class for which it is least, its share in proportion to the least that counts
            of votes suggest; NaN where there is no other evidence.
        alone: whether there is no other evidence of the classes.
        agreement: standard errors by which votes on an item agree more often than by chance; NaN
            where hardly any items have two.
    """

    correlation: float
    visible: float
    gain: float
    effective: float
    votes: float
    unsupported: float
    by_class: float = 1.0
    copying: float = 0.0
    pooling: str = "own"
    shown: float = 1.0
    uneven: float = 0.0
    kept: float = np.nan
    alone: bool = True
    agreement: float = np.nan


def effective_number(weights: Float[np.ndarray, " v"], votes: VoteTable) -> np.ndarray:
    """``(N,)`` number of votes on each item, counted by their information; 1 or more."""
    sums = np.bincount(votes.row, votes.weight * weights, votes.n_items)
    squares = np.bincount(votes.row, votes.weight * weights**2, votes.n_items)
    return np.maximum(sums**2 / np.maximum(squares, _TINY), 1)


def annotator_model(fit: Fit, name: str = "votes") -> AnnotatorModel:
    """Of a fit with a channel of annotators."""
    channel: Any = fit.model[name]
    pseudo = channel.pseudo_votes(fit.params[name], fit.rule)
    resp = np.asarray(fit.resp, float)
    shares = np.asarray(fit.point_of(PRIOR), float)
    if isinstance(channel, LabellingFunctions):
        power = np.broadcast_to(np.asarray(channel.power, float), len(pseudo))
        return AnnotatorModel(pseudo, shares, resp, True, power)
    repeated, guessed = (float(getattr(channel, one, 0.0)) for one in ("repeated", "guessed"))
    return AnnotatorModel(pseudo, shares, resp, repeated=repeated, guessed=guessed)


def fitted_to(fit: Fit, votes: VoteTable, name: str = "votes") -> AnnotatorModel:
    """:func:`annotator_model` with the weights by which items taught it: less where guessed."""
    model = annotator_model(fit, name)
    if model.abstains or not model.guessed:
        return model
    logs, _ = model.evidence(votes)
    sizes = np.bincount(votes.row, votes.weight, votes.n_items)[:, None]
    odds = (
        votes.summed(logs) + sizes * np.log(model.pseudo.shape[1]) + np.log(1 / model.guessed - 1)
    )
    return replace(model, resp=model.resp * expit(odds))


def held_out_score(model: AnnotatorModel, votes: VoteTable, correlation: float = 0.0) -> float:
    """Mean log-probability of each vote given the others on its item.

    Votes on items with one vote are passed over; without any other the score is 0.
    """
    some = votes.thinned(_MOST_VOTES)
    return _mean(leave_one_out(model, some, model.of_votes.deleted(some))(correlation))


def beside_others(votes: VoteTable) -> Bool[np.ndarray, " v"]:
    """``(V,)`` whether there is another vote on the item."""
    several: Bool[np.ndarray, " v"] = np.bincount(votes.row, minlength=votes.n_items)[votes.row] > 1
    return several


def leave_one_out(
    model: AnnotatorModel, votes: VoteTable, own: Float[np.ndarray, "v c"]
) -> Callable[[float], Float[np.ndarray, " u"]]:
    """Log-probability of each vote :func:`beside_others` given these, by the correlation.

    Args:
        model: of the annotators.
        votes: on any items.
        own: log P(vote | class) without what the vote's own item has taught.
    """
    several = beside_others(votes)
    weight = votes.weight
    counted = own * weight[:, None], model.log_prior
    logs, before = model.evidence(votes) if model.abstains else counted
    size = np.sqrt(model.information())[votes.worker]
    each = weight * size, weight * size**2
    sums, squares = (np.bincount(votes.row, x, votes.n_items)[votes.row] - x for x in each)
    left = np.maximum(sums, 0) ** 2 / np.maximum(squares, _TINY)
    left = np.maximum(left[several], 1)
    others = before + votes.summed(logs)[votes.row][several] - logs[several]
    probs = np.exp(own[several])

    def score(correlation: float) -> Float[np.ndarray, " u"]:
        power = 1 / (1 + (left - 1) * correlation)
        found: Float[np.ndarray, " u"] = np.log(
            np.einsum("vc,vc->v", softmax(others * power[:, None]), probs)
        )
        return found

    return score


def _mean(logs: Float[np.ndarray, " u"]) -> float:
    return float(np.mean(logs)) if len(logs) else 0.0


def assumed_dependence(
    visible: float, by_item: float = np.inf, by_group: float = 0.0, hidden: float = HIDDEN
) -> float:
    """The correlation to be assumed, by the one that votes show.

    With the probability ``p`` that votes depend on each other at all, a share ``hidden p`` of the
    dependence is taken for granted; what votes show adds to it:
    ``1 - (1 - hidden p) (1 - visible)``.

    Args:
        visible: correlation that votes show.
        by_item: logarithm of the Bayes factor of effects of items against independence.
        by_group: that of groups of annotators.
        hidden: part of it that is assumed where votes surely depend on each other.
    """
    odds = np.log(_ODDS) + np.array([by_item, by_group])
    return 1 - (1 - hidden * expit(np.logaddexp(*odds))) * (1 - visible)


def visible_dependence(model: AnnotatorModel, votes: VoteTable) -> tuple[float, float]:
    """The correlation by which held-out votes are likeliest, and their gain in nats."""
    some = votes.thinned(_MOST_VOTES)
    each = leave_one_out(model, some, model.of_votes.deleted(some))
    score = cache(lambda r: _mean(each(r)))
    options = {"xatol": _SEARCHED_TO}
    found = minimize_scalar(lambda r: -score(r), bounds=(0, 1), method="bounded", options=options)
    best = max([0.0, float(found.x), 1.0], key=score)
    return best, (score(best) - score(0.0)) * len(some.row)


def described(
    model: AnnotatorModel,
    votes: VoteTable,
    correlation: float,
    known: np.ndarray | None = None,
    visible: float = np.nan,
    gain: float = np.nan,
) -> VoteDependence:
    """A correlation with what it makes of the votes; ``known`` are items of a known class."""
    size = np.sqrt(model.information())[votes.worker]
    number = effective_number(size, votes)
    having = np.bincount(votes.row, minlength=votes.n_items)
    worth = (number / (1 + (number - 1) * correlation))[having > 0]
    n_observed, n_classes = model.of_votes.pseudo.shape[1:]
    best = model.resp.argmax(1) // (n_classes // n_observed)
    named = np.bincount(votes.row, best[votes.row] == votes.label, votes.n_items)
    inferred = having > 0 if known is None else (having > 0) & ~known
    return VoteDependence(
        correlation,
        visible,
        gain,
        float(worth.mean()),
        float(having[having > 0].mean()),
        float((named[inferred] == 0).mean()) if inferred.any() else np.nan,
        np.nan if model.abstains else _ratio_of_votes(model.resp, having, n_observed),
    )


def _ratio_of_votes(resp: Float[np.ndarray, "n c"], votes: np.ndarray, k: int) -> float:
    """Of the classes' mean numbers of votes an item, the largest to the smallest; 1 by chance."""
    by_class = resp[votes > 0].reshape(-1, k, resp.shape[1] // k).sum(2)
    number = votes[votes > 0].astype(float)
    size = by_class.sum(0)
    some = size >= _FEWEST_ITEMS
    if some.sum() < 2:
        return 1.0
    by_class, size = by_class[:, some], size[some]
    mean = number @ by_class / size
    spread = np.sqrt((by_class * (number[:, None] - mean) ** 2).sum(0)) / size
    most, least = mean.argmax(), mean.argmin()
    apart = mean[most] - mean[least] > _SURELY * np.hypot(spread[most], spread[least])
    return float(mean[most] / mean[least]) if apart else 1.0


def tempered_posterior(
    model: AnnotatorModel, votes: VoteTable, correlation: float, *, apart: bool = False
) -> Float[np.ndarray, "n c"]:
    """``(N, C)`` P(class | votes), each row raised to the power of its design effect.

    Args:
        model: annotators and classes.
        votes: on any items.
        correlation: of votes on an item, 0 to 1; 0 is Dawid and Skene's model.
        apart: whether each item, of those that taught the matrices, is judged by matrices from
            which it is deleted.
    """
    logs, before = model.evidence(votes)
    if apart:
        logs = model.deleted(votes) * votes.weight[:, None]
    whole = before + votes.summed(logs)
    number = effective_number(np.sqrt(model.information())[votes.worker], votes)
    return softmax(whole / (1 + (number - 1) * correlation)[:, None])
