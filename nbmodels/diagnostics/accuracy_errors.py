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

#: Annotators up to whom errors are taken together; an eigendecomposition of as many takes a second.
_MOST = 1_000

#: Pseudo-votes of an accuracy's prior. Fits of few votes have more, which say what votes say.
_PSEUDO_VOTES = 3.0

#: Least distance of a rate from 0 and from 1, and least information: of a standard error of 1/2.
_MARGIN, _LEAST = 0.02, 4.0


def unknown_classes(
    model: AnnotatorModel, votes: VoteTable, right: Int[np.ndarray, " c"]
) -> Float[np.ndarray, " w"]:
    """``(W,)`` variance of each accuracy that is due to classes that are not known.

    One parameter an annotator: how much all diagonal rates of their matrix rise or fall. Beside
    these, the shares of the classes are open. Of more than 1,000 annotators each is taken by
    itself, as if the others were known.

    Args:
        model: annotators and classes.
        votes: those that it was fitted to.
        right: ``(C,)`` label that is right of each class.
    """
    n_workers, n_classes = len(model.pseudo), len(right)
    shares, resp = np.exp(model.log_prior), model.resp
    rates = model.matrices[:, right, np.arange(n_classes)].clip(_MARGIN, 1 - _MARGIN)[votes.worker]
    hit = right == votes.label[:, None]
    slope = np.where(hit, 1 / rates, -1 / (1 - rates))
    own, score = resp[votes.row], slope * votes.weight[:, None]
    known = np.bincount(votes.worker, (own * slope * score).sum(1), n_workers)
    accuracy = model.accuracy.clip(_MARGIN, 1 - _MARGIN)
    known += _PSEUDO_VOTES / (accuracy * (1 - accuracy))
    if n_workers > _MOST:
        mean = (own * score).sum(1, keepdims=True)
        lost = np.bincount(votes.worker, (own * (score - mean) ** 2).sum(1), n_workers)
        return 1 / np.maximum(known - lost, _LEAST) - 1 / np.maximum(known, _LEAST)
    between = -_covariance_of_scores(score, shares, model, votes)
    at = np.arange(n_workers)
    between[at, at] += known
    n_items = len(resp)
    between[n_workers:, n_workers:] += n_items * (np.diag(shares) - np.outer(shares, shares))
    values, vectors = np.linalg.eigh(between)
    variance = (vectors[:n_workers] ** 2 / np.maximum(values, _LEAST)).sum(1)
    return np.maximum(variance - 1 / np.maximum(known, _LEAST), 0)


def _covariance_of_scores(
    score: Float[np.ndarray, "v c"],
    shares: Float[np.ndarray, " c"],
    model: AnnotatorModel,
    votes: VoteTable,
) -> Float[np.ndarray, "p p"]:
    """Sum over the items of the covariance of their scores: of annotators, then of log-shares."""
    n_items, n_classes = model.resp.shape
    shape = n_items, len(model.pseudo)
    total: Any = 0.0
    mean: Any = 0.0
    for c in range(n_classes):
        of_votes = sparse.csr_array((score[:, c], (votes.row, votes.worker)), shape=shape)
        of_class = np.tile((np.arange(n_classes) == c) - shares, (n_items, 1))
        scores = sparse.hstack([of_votes, of_class], format="csr")
        weighted = scores * model.resp[:, [c]]
        total, mean = total + scores.T @ weighted, mean + weighted
    return np.asarray((total - mean.T @ mean).toarray())
