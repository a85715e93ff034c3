"""Standard errors of annotators' accuracies: observed information (Louis 1982).

True classes are not known. What that leaves open is shared: were one annotator better than thought,
those who disagree would be worse. Louis (1982, *Finding the observed information matrix when using
the EM algorithm*, eq. 3.2): the information of the observed data is that of known classes, less the
covariance of the items' scores under their responsibilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from nbmodels.fitting.vote_dependence import AnnotatorModel, VoteTable

#: Parameters that are taken together at most; an eigendecomposition of as many takes half a second.
_MOST = 1_000

#: Pseudo-votes of an accuracy's prior. Fits of few votes have more, which say what votes say.
_PSEUDO_VOTES = 3.0

#: Least pseudo-votes of each row about the annotator's accuracy; fits have more, which is assumed
#: and not learned.
_LEAST_OF_ROW = 1.5

#: Least distance of a rate from 0 and from 1, and least information: of logits that vary by 3.
_MARGIN, _LEAST = 0.02, 0.1


def accuracy_variance(
    model: AnnotatorModel, votes: VoteTable, right: Int[np.ndarray, " c"]
) -> Float[np.ndarray, " w"]:
    """``(W,)`` variance of each annotator's accuracy, the classes of the items being open.

    The parameters are the logits of the annotators' rates of right votes, one a class, and the
    shares of the classes. Of more than 1,000 rates in all each annotator has one instead, by which
    those of all classes rise or fall together; of more than 1,000 annotators each is taken by
    itself, as if the others were known.

    Args:
        model: annotators who do not abstain, and classes.
        votes: those that it was fitted to.
        right: ``(C,)`` label that is right of each class.
    """
    n_workers, n_classes = len(model.pseudo), len(right)
    if n_workers * n_classes <= _MOST:
        return _of_each_class(model, votes, right)
    rates = model.matrices[:, right, np.arange(n_classes)]
    sizes = model.pseudo.sum(1) - model.repeated
    spread = np.exp(model.log_prior) ** 2 * rates * (1 - rates) / (sizes + 1)
    of_known = spread.sum(1) * (1 - model.guessed) ** 2
    shared = _of_all_classes if n_workers <= _MOST else of_each_alone
    return of_known + shared(model, votes, right)


def of_each_alone(
    model: AnnotatorModel, votes: VoteTable, right: Int[np.ndarray, " c"]
) -> Float[np.ndarray, " w"]:
    """``(W,)`` variance by open classes of the share of right votes, the matrices being known."""
    p = (model.resp[votes.row] * (right == votes.label[:, None])).sum(1)
    number = np.bincount(votes.worker, minlength=len(model.pseudo))
    return np.bincount(votes.worker, p * (1 - p), len(number)) / np.maximum(number, 1) ** 2


def _of_each_class(
    model: AnnotatorModel, votes: VoteTable, right: Int[np.ndarray, " c"]
) -> Float[np.ndarray, " w"]:
    """Variance of the accuracies, with a rate of each class."""
    n_workers, n_classes = len(model.pseudo), len(right)
    n_rates, at = n_workers * n_classes, np.arange(n_workers)
    covariance = _inverse(_information(model, votes, right, np.arange(n_classes)))
    shape = n_workers, n_classes, n_workers, n_classes
    of_each = covariance[:n_rates, :n_rates].reshape(shape)[at, :, at]
    slope = np.exp(model.log_prior) * _variance_of_hits(model, right)
    variance: Float[np.ndarray, " w"] = np.einsum("wc,wcd,wd->w", slope, of_each, slope)
    return variance * (1 - model.guessed) ** 2


def _of_all_classes(
    model: AnnotatorModel, votes: VoteTable, right: Int[np.ndarray, " c"]
) -> Float[np.ndarray, " w"]:
    """Variance by open classes, where the rates of all classes rise or fall together."""
    together = np.zeros(len(right), int)
    known = _by_group(_scores(model, votes, right)[1], together) + _precision(model, 1)[:, 0]
    whole = np.diag(_inverse(_information(model, votes, right, together)))[: len(known)]
    slope = _variance_of_hits(model, right) @ np.exp(model.log_prior)
    return slope**2 * np.maximum(whole - 1 / np.maximum(known[:, 0], _LEAST), 0)


def _variance_of_hits(
    model: AnnotatorModel, right: Int[np.ndarray, " c"]
) -> Float[np.ndarray, "w c"]:
    """Of one vote; also the slope of a rate in its logit."""
    rates = model.matrices[:, right, np.arange(len(right))].clip(_MARGIN, 1 - _MARGIN)
    variance: Float[np.ndarray, "w c"] = rates * (1 - rates)
    return variance


def _scores(
    model: AnnotatorModel, votes: VoteTable, right: Int[np.ndarray, " c"]
) -> tuple[Float[np.ndarray, "v c"], Float[np.ndarray, "w c"]]:
    """Score of each vote in the logit of a class's rate, and information of known classes."""
    n_workers, n_classes = len(model.pseudo), len(right)
    rates = model.matrices[:, right, np.arange(n_classes)].clip(_MARGIN, 1 - _MARGIN)[votes.worker]
    score = ((right == votes.label[:, None]) - rates) * votes.weight[:, None]
    of_votes = model.resp[votes.row] * rates * (1 - rates) * votes.weight[:, None]
    known = [np.bincount(votes.worker, column, n_workers) for column in of_votes.T]
    return score, np.stack(known, 1)


def _by_group(
    values: Float[np.ndarray, "w c"], group: Int[np.ndarray, " c"]
) -> Float[np.ndarray, "w g"]:
    """Sums over the classes of each group."""
    return values @ (group[:, None] == np.arange(group.max() + 1))


def _precision(model: AnnotatorModel, each: int) -> Float[np.ndarray, "w g g"]:
    """That of the prior of each annotator's ``each`` logits.

    Rows of a matrix vary about the annotator's accuracy, as far as fits have learned.
    """
    mean = model.accuracy.clip(_MARGIN, 1 - _MARGIN)
    information = (mean * (1 - mean))[:, None, None]
    if each == 1:
        return _PSEUDO_VOTES * information
    pseudo = max(model.repeated, _LEAST_OF_ROW)
    shared = pseudo / (_PSEUDO_VOTES + each * pseudo)
    return information * pseudo * (np.eye(each) - shared * np.ones((each, each)))


def _information(
    model: AnnotatorModel,
    votes: VoteTable,
    right: Int[np.ndarray, " c"],
    group: Int[np.ndarray, " c"],
) -> Float[np.ndarray, "p p"]:
    """Observed information of annotators' logits by group of classes, and of log-shares."""
    score, known = _scores(model, votes, right)
    shares, resp = np.exp(model.log_prior), model.resp
    n_workers, each = len(model.pseudo), int(group.max()) + 1
    (n_items, n_classes), n_rates = resp.shape, n_workers * each
    total: Any = 0.0
    mean: Any = 0.0
    for c in range(n_classes):
        cells = votes.row, votes.worker * each + group[c]
        of_votes = sparse.csr_array((score[:, c], cells), shape=(n_items, n_rates))
        of_class = np.tile((np.arange(n_classes) == c) - shares, (n_items, 1))
        scores = sparse.hstack([of_votes, of_class], format="csr")
        weighted = scores * resp[:, [c]]
        total, mean = total + scores.T @ weighted, mean + weighted
    found = -np.asarray((total - mean.T @ mean).toarray())
    at = np.arange(n_rates)
    found[at, at] += _by_group(known, group).ravel()
    worker, one, other = np.ogrid[:n_workers, :each, :each]
    found[worker * each + one, worker * each + other] += _precision(model, each)
    found[n_rates:, n_rates:] += n_items * (np.diag(shares) - np.outer(shares, shares))
    return found


def _inverse(information: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    """Covariance, no standard error of which is above 3."""
    values, vectors = np.linalg.eigh(information)
    return (vectors / np.maximum(values, _LEAST)) @ vectors.T
