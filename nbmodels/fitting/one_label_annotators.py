"""Annotators who name one label whatever the item is, or only items of one class.

All who are right about items of that class agree with such an annotator, whose votes hardly differ
from knowing the class: a likelihood of copies takes the agreement for copying, and two who always
name the same label seem to know what all others do not. So the search for copies
(:mod:`nbmodels.fitting.copied_votes`) is without their votes.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from nbmodels.fitting.vote_dependence import VoteTable

#: Least share of one label in the votes of such an annotator, and largest share of it in the votes
#: of all others on the same items: where nearly all items are of one class, anybody names it.
_OWN, _OF_OTHERS = 0.95, 0.9


def names_one_label(votes: VoteTable, n_workers: int, n_labels: int) -> Bool[np.ndarray, " w"]:
    """Whether each annotator names nearly always one label, where others do not.

    Args:
        votes: that were cast.
        n_workers: W.
        n_labels: K.
    """
    cells = votes.worker * n_labels + votes.label
    counts = np.bincount(cells, minlength=n_workers * n_labels).reshape(n_workers, n_labels)
    number, top = counts.sum(1), counts.argmax(1)
    found = (number > 0) & (counts.max(1) >= _OWN * number)
    if not found.any():
        return found
    mine = np.flatnonzero(found[votes.worker])
    named = top[votes.worker[mine]]
    keys, size = np.unique(votes.row * n_labels + votes.label, return_counts=True)
    wanted = votes.row[mine] * n_labels + named
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    same = np.where(keys[at] == wanted, size[at], 0) - (votes.label[mine] == named)
    others = np.bincount(votes.row, minlength=votes.n_items)[votes.row[mine]] - 1
    alike, of_all = (np.bincount(votes.worker[mine], x, n_workers) for x in (same, others))
    return found & (alike <= _OF_OTHERS * of_all)
