"""The level of the noise by two halves of the users, which need no calibration.

Scores of neighbours that are calibrated to labels hardly identify how many of these are wrong: weak
scores and few errors explain the labels as well as strong scores and many errors. What separates
them needs no calibration. The votes of two halves of the users agree with each other as far as
both are right, and with the labels as far as these are right, too: three views that are independent
given the class identify the errors of each (Anandkumar et al. 2014, Journal of Machine Learning
Research 15; of two classes, Ratner et al. 2019, AAAI 33). Users are split in several ways, over
which log-likelihoods are averaged, since these are the same votes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from nbmodels.data.validation import row_blocks
from nbmodels.fitting.graph_folds import numbers_of_items, numbers_of_users, whole_numbers_mixed
from nbmodels.fitting.neighbours import Graph, NeighbourVotes, scores_without_own
from nbmodels.fitting.noise_levels import LEVELS, matrices_at

#: Levels on either side of a well-identified estimate, in shares of it.
_NEAR = np.array([-0.3, -0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2, 0.3])

#: Ways to split the users, and those of graphs of many edges, whose halves hardly differ.
_SPLITS, _FEW_SPLITS, _MANY_EDGES = 8, 2, 200_000

#: Cells of a table of levels, classes and triples of votes up to which all splits are evaluated.
_CELLS = 1_000_000

#: Share of a vote by which ties are broken.
_TIE = 1e-6

#: Steps of EM for the errors of the votes, and pseudo-votes of each cell and, at most, of each row:
#: of many classes votes would seem more erroneous than they are, and labels less.
_STEPS, _PSEUDO, _PSEUDO_ROW = 60, 0.5, 2.0

#: A probability is bounded below by this.
_TINY = 1e-300


class Halves(NamedTuple):
    """Labels of items, and the votes of each half of their users.

    Attributes:
        votes: ``(S, 2, N)`` from :func:`votes_of_halves`.
        codes: ``(N,)`` given labels, negative where there is none.
        weights: ``(N,)`` row weights.
    """

    votes: Int[np.ndarray, "s 2 n"]
    codes: Int[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]


class NoiseByHalves(NamedTuple):
    """What a full noise matrix by two halves of the users follows from.

    Attributes:
        halves: labels and votes.
        prior: ``(K, K)`` ``[true, observed]`` pseudo-labels, the mean of the matrix's prior.
    """

    halves: Halves
    prior: Float[np.ndarray, "k k"]


class NoiseLevels(NamedTuple):
    """Noise of one form at several levels.

    Attributes:
        share: ``(L,)`` shares of wrong labels, rising.
        matrices: ``(L, K, K)`` ``[true, observed]`` at each.
        halves: ``(L,)`` log-likelihood of labels and of the votes of each half of the users, at
            each.
    """

    share: Float[np.ndarray, " l"]
    matrices: Float[np.ndarray, "l k k"]
    halves: Float[np.ndarray, " l"]

    @property
    def marginal(self) -> float:
        """Logarithm of the likelihood of these, all levels as likely beforehand."""
        width = np.gradient(self.share)
        best = float(self.halves.max())
        return best + float(np.log(np.average(np.exp(self.halves - best), weights=width)))


def levels_of(
    matrix: Float[np.ndarray, "k k"], halves: Halves, largest: float = 1.0
) -> NoiseLevels:
    """Levels of noise of the form of a matrix, many of them near its own.

    Args:
        matrix: ``[true, observed]`` P(observed | true).
        halves: labels and votes.
        largest: error rate of some items beside the mean, which must be possible, too.
    """
    level = float(1 - np.diag(matrix / matrix.sum(1, keepdims=True)).mean())
    every = np.unique([*LEVELS, *(level * (1 + _NEAR))])
    possible, _ = matrices_at(matrix, every * largest)
    share, matrices = matrices_at(matrix, possible / largest)
    return NoiseLevels(share, matrices, evidence_of_halves(halves, matrices))


def votes_of_halves(
    graph: Graph,
    resp: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " n"],
    shares: Float[np.ndarray, " k"],
) -> Int[np.ndarray, "s 2 n"]:
    """What most neighbours by each half of the users are labelled as; K where there are none.

    Halves and ties hang on no order of items and users, and users of the same items are of the same
    half: their votes are one.

    Args:
        graph: the items' edges.
        resp: ``(N, K)`` the given labels, rows of zeros where there is none.
        weights: ``(N,)`` row weights.
        shares: ``(K,)`` shares of the given labels.
    """
    k = len(shares)
    items = numbers_of_items(graph.edges, resp, weights)
    users = numbers_of_users(graph.edges, items)
    ties = whole_numbers_mixed(items[:, None] + np.arange(k, dtype=np.uint64))
    ties = _TIE * (ties / 2.0**64)
    known = resp * weights[:, None]
    n_splits = _SPLITS if graph.edges.nnz < _MANY_EDGES else _FEW_SPLITS
    out = np.empty((n_splits, 2, len(items)), int)
    for s in range(n_splits):
        first = whole_numbers_mixed(users + np.uint64(s)) % 2 == 0
        for half, taken in enumerate((first, ~first)):
            part = Graph(graph.edges[:, np.flatnonzero(taken)])
            (scores,) = scores_without_own([NeighbourVotes(1.0)], part, known, shares)
            best = (scores + np.log(shares) + ties).argmax(1)
            out[s, half] = np.where(np.ptp(scores, axis=1) > _TIE, best, k)
    return out


def evidence_of_halves(
    halves: Halves, matrices: Float[np.ndarray, "l k k"]
) -> Float[np.ndarray, " l"]:
    """Log-likelihood of labels and votes under matrices of the noise.

    Shares of the classes and errors of the votes, which are those of both halves, are fitted to
    each matrix.

    Args:
        halves: labels and votes.
        matrices: ``(L, K, K)`` ``[true, observed]`` P(observed | true).
    """
    n_levels, k, _ = matrices.shape
    found = []
    for split in range(len(halves.votes)):
        triples, count = counted_triples(halves, split, k)
        blocks = row_blocks(n_levels, k * len(count))
        parts = [_of_triples(triples, count, matrices[levels]) for levels in blocks]
        found.append(np.concatenate(parts))
        if len(found) * n_levels * k * len(count) > _CELLS:
            break
    return np.mean(found, axis=0)


def counted_triples(
    halves: Halves, split: int, k: int
) -> tuple[Int[np.ndarray, "3 u"], Float[np.ndarray, " u"]]:
    """Labels with the votes of both halves, of which the lower is first, and how often they occur.

    Args:
        halves: labels and votes.
        split: one of the ways to split the users.
        k: number of classes, which stands for no label and no vote.
    """
    labels = np.where(halves.codes < 0, k, halves.codes)
    low, high = np.sort(halves.votes[split], axis=0)
    number = (labels * (k + 1) + low) * (k + 1) + high
    _, first, at = np.unique(number, return_index=True, return_inverse=True)
    triples = np.stack([labels, low, high])[:, first]
    return triples, np.bincount(at.ravel(), halves.weights, len(first))


def pseudo_votes(k: int) -> float:
    """Pseudo-votes of each cell of the votes' errors."""
    return min(_PSEUDO, _PSEUDO_ROW / k)


def _of_triples(
    triples: Int[np.ndarray, "3 u"],
    count: Float[np.ndarray, " u"],
    matrices: Float[np.ndarray, "l k k"],
) -> Float[np.ndarray, " l"]:
    """Likelihood of labels and pairs of votes, each ``count`` times."""
    n_levels, k, _ = matrices.shape
    label, first, second = triples
    cast = np.eye(k + 1)[first][:, :k] + np.eye(k + 1)[second][:, :k]
    by_label = np.eye(k + 1)[label][:, :k].T * count
    ones, pseudo = np.ones((n_levels, k, 1)), pseudo_votes(k)
    of_label = np.concatenate([matrices, ones], 2)[:, :, label]
    # votes begin with the errors that they have beside the labels
    errors = np.broadcast_to(_rows(by_label @ cast + pseudo), (n_levels, k, k))
    shares = np.broadcast_to(_rows(by_label.sum(1) + pseudo), (n_levels, k))
    for step in range(_STEPS + 1):
        of_vote = np.concatenate([errors, ones], 2)
        joint = shares[:, :, None] * of_label * of_vote[:, :, first] * of_vote[:, :, second]
        total = np.maximum(joint.sum(1), _TINY)
        if step == _STEPS:
            break
        resp = joint * (count / total)[:, None, :]
        shares = _rows(resp.sum(2) + pseudo)
        errors = _rows(resp @ cast + pseudo)
    penalty = pseudo * np.log(np.maximum(errors, _TINY)).sum((1, 2))
    return np.log(total) @ count + penalty


def _rows(table: Float[np.ndarray, "*s k"]) -> Float[np.ndarray, "*s k"]:
    return table / table.sum(-1, keepdims=True)
