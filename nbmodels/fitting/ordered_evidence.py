"""Whether votes are those of graders on an ordered scale: likelihoods of held-out votes.

Each vote is predicted by the others on its item, under annotators with free matrices and under
graders (:class:`nbmodels.channels.OrderedAnnotators`), in both without what the vote itself has
taught. The gain of the graders is surely above 0 where it is many of its standard errors, which
count votes on an item as one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from nbmodels.fitting.fit import Fit
from nbmodels.fitting.vote_dependence import (
    AnnotatorModel,
    VoteTable,
    annotator_model,
    beside_others,
    leave_one_out,
)


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
    under_free = leave_one_out(free, votes, free.of_votes.deleted(votes))(0.0)
    under_ordered = leave_one_out(annotator_model(ordered, name), graded, own)(0.0)
    by_item = np.bincount(votes.row[several], under_ordered - under_free, votes.n_items)
    error = np.sqrt((by_item**2).sum() - by_item.sum() ** 2 / len(np.unique(votes.row[several])))
    errors = by_item.sum() / max(float(error), 1e-12)
    return OrderedGain(float(under_free.mean()), float(under_ordered.mean()), float(errors))
