"""Whether classifiers of another kind side with the labels that a fit would change.

A fit that takes chance or a wrong model's errors for wrong labels contradicts labels that other
classifiers predict as given. Two are asked: a nonlinear classifier of other items' labels, and, of
few rows, the labels of the nearest rows. Both share the fit's labels but neither its model nor its
view of the classes.

Both predict given labels, and where errors have a direction these are no classes: of a class that
is called another one in two fifths of the cases, a classifier of few labels predicts many items as
that other one, and seems to side with the given labels. So their probabilities of given labels are
multiplied by the inverse of the noise matrix of the fit before they are asked (the backward
correction of Patrini et al. 2017; of two classes a shifted threshold, Natarajan et al. 2013).
Errors that are alike in all classes change no answer. A direction that the fit invents would make
them agree with it: it counts only where their own held-out predictions, held to what the matrix
allows, say surely more of the given labels than held to errors alike in all classes, as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.fitted_model import FittedModel, given_codes
from nbmodels.fitting.nearest import nearest_labels, shares_nearby
from nbmodels.fitting.options import FEW_ROWS
from nbmodels.fitting.reference import Reference, nonlinear_predictions
from nbmodels.fitting.reference_scores import poorer_jointly
from nbmodels.fitting.separable import Separable
from nbmodels.fitting.sides import HARMFUL_BY_NEIGHBOURS, Sides, sides_of

#: Whose opinion it is.
_CLASSIFIER = "cross-validated predictions of a nonlinear classifier"
_NEIGHBOURS = "the labels of the nearest rows"

#: Condition number of a noise matrix from which on labels say next to nothing of the classes.
_ILL_CONDITIONED = 100.0

#: Standard errors by which neighbours must predict the given labels worse not to be asked, and by
#: which errors with a direction must explain them better.
_SURELY = 2.0

#: Part of a uniform distribution in predictions, since no label is impossible.
_LEAST = 0.01


def least_favourable(
    fitted: FittedModel,
    codes: Int[np.ndarray, " n"],
    free: Bool[np.ndarray, " n"],
    reference: Reference,
    nearby: Float[np.ndarray, "n k"] | None,
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
        reference: predictions of a nonlinear classifier.
        nearby: shares of the labels of each row's neighbours, zero where it has none; None where
            they are not to be asked.
        peers: other predicted labels.

    Returns:
        the opinion, and whose it is.
    """
    suggested = fitted.label_posterior.argmax(1)
    predicted = reference.classes
    labels = np.where(free, codes, -1)
    classes = true_classes(reference, fitted, labels)
    found = sides_of(classes[free], codes[free], suggested[free]), _CLASSIFIER
    if nearby is None:
        return found
    known = np.asarray(nearby.any(1))
    votes = nearby.argmax(1)
    both = free & known & (predicted >= 0) & (codes >= 0)
    for peer in (predicted, *peers):
        gap = (peer == codes)[both].astype(float) - (votes == codes)[both]
        if not both.any() or gap.mean() > _SURELY * gap.std() / np.sqrt(len(gap)):
            return found
    classes = _to_all(known, _corrected(nearby[known], fitted, labels[known]))
    other = sides_of(classes[free], codes[free], suggested[free], HARMFUL_BY_NEIGHBOURS)
    return min(found, (other, _NEIGHBOURS), key=lambda one: one[0].belief)


def true_classes(
    reference: Reference, fitted: FittedModel, codes: Int[np.ndarray, " n"]
) -> Int[np.ndarray, " n"]:
    """``(N,)`` true classes by a nonlinear classifier of other items' labels, errors corrected.

    Args:
        reference: its predictions of given labels.
        fitted: the fit, whose noise matrix counts where it has a direction that the labels show.
        codes: given labels, -1 where there is none or the row was checked.

    Returns:
        -1 where nothing is predicted.
    """
    known = reference.classes >= 0
    return _to_all(known, _corrected(np.exp(reference.logs[known]), fitted, codes[known]))


def _to_all(known: Bool[np.ndarray, " n"], classes: Int[np.ndarray, " m"]) -> Int[np.ndarray, " n"]:
    """Classes of the known rows as one of each row, -1 elsewhere."""
    out = np.full(len(known), -1)
    out[known] = classes
    return out


def _corrected(
    given: Float[np.ndarray, "n k"],
    fitted: FittedModel,
    codes: Int[np.ndarray, " n"],
) -> Int[np.ndarray, " n"]:
    """``(n,)`` the likeliest true class by P(given label) and the noise of a fit.

    Args:
        given: P(given label | features) of each row, by labels of other rows.
        fitted: the fit; the labels themselves where its matrix has no inverse, a class has no
            label, or errors with a direction do not surely explain the given labels better.
        codes: given labels, -1 where there is none.
    """
    matrix = fitted.noise_matrix
    assert matrix is not None  # labels are compared
    if np.linalg.cond(matrix) > _ILL_CONDITIONED:
        return given.argmax(1)
    rows = codes >= 0
    # of a class that no label names nothing is predicted
    if not np.bincount(codes[rows], minlength=len(matrix)).all():
        return given.argmax(1)
    shares = np.linalg.solve(matrix, given.T)
    alike = _held_to_alike(matrix, given[rows], codes[rows])
    gain = _held_to(matrix, shares[:, rows], codes[rows]) - alike
    # the matrix was learned from these labels, the other one has one parameter
    learned = matrix.size - len(matrix) - 1
    if gain.sum() <= max(learned, _SURELY * gain.std() * np.sqrt(len(gain))):
        return given.argmax(1)
    return np.asarray(shares.argmax(0))


def _held_to_alike(
    matrix: Float[np.ndarray, "k k"], given: Float[np.ndarray, "n k"], codes: Int[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """As :func:`_held_to`, of errors alike in all classes, as many on the average of the classes.

    The eigenvalues of their matrix are 1 and one less every other than its own, which need no
    solver.
    """
    k = len(matrix)
    rate = 1 - np.trace(matrix) / k
    off = rate / max(k - 1, 1)
    own = 1 - rate - off
    if own * _ILL_CONDITIONED < 1:
        return np.full(len(codes), -np.log(k))
    shares = (given.T - off) / own
    return _held_to(off + own * np.eye(k), shares, codes)


def _held_to(
    matrix: Float[np.ndarray, "k k"],
    shares: Float[np.ndarray, "k n"],
    codes: Int[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """``(n,)`` log-probability of the given labels, predictions moved to what the noise allows.

    P(given label) is a mixture of the columns of the noise matrix: its weights are those that the
    inverse gives, without negative ones.

    Args:
        matrix: ``[observed, true]``.
        shares: by the inverse of the matrix, of predicted labels.
        codes: given labels.
    """
    shares = np.maximum(shares, 0)
    shares /= np.maximum(shares.sum(0), np.finfo(float).tiny)
    # of the given labels alone: the row of each
    allowed = np.sum(matrix[codes] * shares.T, 1)
    return np.log((1 - _LEAST) * allowed + _LEAST / len(matrix))


def nearby_of(near: Separable | None, n_rows: int) -> Float[np.ndarray, "n k"] | None:
    """``(N, K)`` shares of the labels of each row's neighbours, of few rows; else None."""
    if near is None or n_rows > FEW_ROWS:
        return None
    return _by_row(near.rows, near.nearby, n_rows)


def _by_row(
    rows: Int[np.ndarray, " m"], shares: Float[np.ndarray, "m k"], n_rows: int
) -> Float[np.ndarray, "n k"]:
    out = np.zeros((n_rows, shares.shape[1]))
    out[rows] = shares
    return out


def belief_in_joint(
    fitted: FittedModel, points: Float[np.ndarray, "n d"] | Any, copies: Any
) -> float:
    """How far a joint fit's changes are to be believed; see :attr:`Sides.belief`.

    Not at all where a nonlinear classifier surely predicts held-out labels better without noise: a
    fit by its scores then has more right labels, and predicts new rows. Thresholds of a few columns
    beside others, 400 rows: 86 to 90 of 100 labels were right, and 74 to 80 new rows, for 93 to 97
    and 89 to 95 of the sets whose joint fit was not taken.

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
    if poorer_jointly(fitted, found, codes) is not None:
        return 0.0
    near = nearest_labels(points, codes, k, copies=copies)
    nearby = None if near is None else _by_row(near.rows, shares_nearby(near), len(codes))
    free = ~checked_rows(fitted.fit.model, fitted.data, len(codes))
    return least_favourable(fitted, codes, free, found, nearby)[0].belief
