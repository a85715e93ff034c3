"""Whether classifiers of another kind side with the labels that a fit would change.

A fit that takes chance or a wrong model's errors for wrong labels contradicts labels that other
classifiers predict as given. Two are asked: a nonlinear classifier of other items' labels, and, of
few rows, the labels of the nearest rows. Both share the fit's labels but neither its model nor its
view of the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.nearest import nearest_labels
from nbmodels.fitting.options import FEW_ROWS
from nbmodels.fitting.reference import (
    HARMFUL_BY_NEIGHBOURS,
    Sides,
    nonlinear_predictions,
    sides_of,
)
from nbmodels.fitting.separable import Separable, most_frequent

#: Whose opinion it is.
_CLASSIFIER = "cross-validated predictions of a nonlinear classifier"
_NEIGHBOURS = "the labels of the nearest rows"

#: Standard errors by which neighbours must predict the given labels worse not to be asked.
_SURELY = 2.0


def given_codes(fitted: FittedModel) -> Int[np.ndarray, " n"]:
    """``(N,)`` given labels of the rows that count, -1 where there is none."""
    n, k = len(fitted.fit.resp), len(fitted.names)
    codes = np.asarray(fitted.data.parts["labels"])[:n]
    return np.where((codes < k) & (np.asarray(fitted.data.weights)[:n] > 0), codes, -1)


def least_favourable(
    fitted: FittedModel,
    codes: Int[np.ndarray, " n"],
    free: Bool[np.ndarray, " n"],
    reference: Int[np.ndarray, " n"],
    votes: Int[np.ndarray, " n"] | None,
    peers: Sequence[Int[np.ndarray, " n"]] = (),
) -> tuple[Sides, str]:
    """What is predicted of labels that would be changed, by the less favourable opinion.

    The reference is learned from the same labels as the fit and errs together with it: of few rows
    both take chance for structure. Neighbours err otherwise. They are asked, too, unless they
    predict the given labels surely worse than the reference or one of its peers.

    Args:
        fitted: the fit.
        codes: given labels, -1 where there is none.
        free: whether the class of the row was not checked.
        reference: classes that a nonlinear classifier predicts, -1 where it does not.
        votes: most frequent label of each row's neighbours, -1 where there is none; None where they
            are not to be asked.
        peers: other predicted classes.

    Returns:
        the opinion, and whose it is.
    """
    suggested = fitted.label_posterior.argmax(1)
    found = sides_of(reference[free], codes[free], suggested[free]), _CLASSIFIER
    if votes is None:
        return found
    both = free & (votes >= 0) & (reference >= 0) & (codes >= 0)
    for peer in (reference, *peers):
        gap = (peer == codes)[both].astype(float) - (votes == codes)[both]
        if not both.any() or gap.mean() > _SURELY * gap.std() / np.sqrt(len(gap)):
            return found
    asked = votes[free], codes[free], suggested[free]
    other = sides_of(*asked, HARMFUL_BY_NEIGHBOURS), _NEIGHBOURS
    return min(found, other, key=lambda one: one[0].belief)


def votes_of(near: Separable | None, n_rows: int) -> Int[np.ndarray, " n"] | None:
    """``(N,)`` most frequent label of each row's neighbours, of few rows; else None."""
    if near is None or n_rows > FEW_ROWS:
        return None
    votes = np.full(n_rows, -1)
    votes[near.rows] = near.votes
    return votes


def belief_in_joint(
    fitted: FittedModel, points: Float[np.ndarray, "n d"] | Any, copies: Any
) -> float:
    """How far a joint fit's changes are to be believed; see :attr:`Sides.belief`.

    Args:
        fitted: a joint fit to few rows.
        points: items in the space of their features; where they are sparse or None, nobody is
            asked.
        copies: rows that stay in one fold, see :func:`nbmodels.fitting.scores.stratified_folds`.

    Returns:
        1 where nobody could be asked, or rows were checked: what they show is in the fit already.
    """
    k, checked = len(fitted.names), "trusted" in fitted.data.parts
    if checked or points is None or sparse.issparse(points):
        return 1.0
    codes = given_codes(fitted)
    found = nonlinear_predictions(points, codes, k, copies)
    if found is None:
        return 1.0
    near = nearest_labels(points, codes, k, copies=copies)
    votes = None
    if near is not None:
        votes = np.full(len(codes), -1)
        votes[near.rows] = most_frequent(near)
    free = ~checked_rows(fitted.fit.model, fitted.data, len(codes))
    return least_favourable(fitted, codes, free, found.classes, votes)[0].belief
