"""Whether votes are those of graders on an ordered scale: likelihoods of held-out votes.

Each vote is predicted by the others on its item, under annotators with free matrices and under
graders (:class:`nbmodels.channels.OrderedAnnotators`), in both without what the vote itself has
taught, and in both tempered by the correlation that is assumed of votes which show none: without
that a gain may be one of certainty alone. The gain of the graders is surely above 0 where it is
many of its standard errors, which count votes on an item as one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from nbmodels.fitting.fit import Fit
from nbmodels.fitting.vote_dependence import (
    HIDDEN,
    AnnotatorModel,
    VoteTable,
    annotator_model,
    beside_others,
    leave_one_out,
)

#: Most votes, of whole items, that graders are fitted to: a few seconds of work.
MOST_VOTES = 4_000

#: Mean distance of two labels of an item that differ, in proportion to that of labels without
#: order, from which on graders are not fitted; standard errors of a gain that is sure.
_NEAR, _SURELY = 0.9, 4.0


class OrderedGain(NamedTuple):
    """Held-out votes under graders beside annotators with free matrices.

    Attributes:
        free: mean log-probability of a vote under free matrices.
        ordered: that under graders.
        errors: the gain of all votes in its standard errors.
    """

    free: float
    ordered: float
    errors: float

    @property
    def sure(self) -> bool:
        """Whether graders surely predict held-out votes better."""
        return self.errors > _SURELY


def seem_ordered(votes: VoteTable, rank: Int[np.ndarray, " k"]) -> bool:
    """Whether labels of an item that differ are rather neighbours on a scale.

    Args:
        votes: on all items.
        rank: ``(K,)`` place of each class on the scale.
    """
    k = len(rank)
    sums = votes.by_label(k)
    pairs = sums.T @ sums * (1 - np.eye(k))
    if not pairs.sum():
        return False
    named = pairs.sum(1)
    chance = np.outer(named, named) * (1 - np.eye(k))
    apart = np.abs(np.subtract.outer(rank, rank))
    mean, expected = ((some * apart).sum() / some.sum() for some in (pairs, chance))
    return bool(mean < _NEAR * expected)


def ordered_gain(
    free: AnnotatorModel, ordered: Fit, votes: VoteTable, rank: Int[np.ndarray, " k"], name: str
) -> OrderedGain | None:
    """Gain of graders on held-out votes; None where no item has several.

    Args:
        free: annotators with free matrices, fitted to these votes.
        ordered: a fit of graders to them.
        votes: labels in the order of the classes.
        rank: ``(K,)`` place of each class on the scale.
        name: of the channel of ``ordered``.
    """
    several = beside_others(votes)
    if not several.any():
        return None
    graded = VoteTable(votes.row, votes.worker, rank[votes.label], votes.n_items, votes.weights)
    channel: Any = ordered.model[name]
    resp = np.asarray(ordered.resp, float)[votes.row] * votes.weight[:, None]
    own = channel.deleted(ordered.params[name], votes.worker, graded.label, resp)
    under_free = leave_one_out(free, votes, free.of_votes.deleted(votes))(HIDDEN)
    under_ordered = leave_one_out(annotator_model(ordered, name), graded, own)(HIDDEN)
    by_item = np.bincount(votes.row[several], under_ordered - under_free, votes.n_items)
    error = np.sqrt((by_item**2).sum() - by_item.sum() ** 2 / len(np.unique(votes.row[several])))
    errors = by_item.sum() / max(float(error), 1e-12)
    return OrderedGain(float(under_free.mean()), float(under_ordered.mean()), float(errors))
