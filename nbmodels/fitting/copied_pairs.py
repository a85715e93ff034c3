"""Two annotators of whom one copies now and then from the other: a likelihood ratio for each pair.

With probability ``c`` a vote of a pair is a copy of the other's vote. The classes are those that
all other votes suggest, and the noise matrices are fitted to the pair's own votes, with copies and
without; in the fit of all others the pair's votes count for half where they agree. So agreement on
wrong labels, which independent annotators seldom share, says more than agreement on right ones.

Roots of twice the log of the ratio are about normal where nobody copies. Difficult items make all
pairs agree too often: the copying of the median pair is the null hypothesis, and the spread of the
roots of all other pairs the unit (an empirical null, Efron 2004). The level is that of all pairs
together (Bonferroni): one crowd in a hundred without copies would have a pair accused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from nbmodels.core.short_rows import softmax
from nbmodels.fitting.one_accuracy import drawn_to_accuracy
from nbmodels.fitting.vote_dependence import VoteTable
from nbmodels.fitting.vote_pairs import AnnotatorPairs

#: Level of the test of all pairs together.
LEVEL = 0.01

#: Probabilities of a copy that are tried, the least that is reported, and steps of EM under each.
_TRIED, _LEAST, _STEPS = np.array([0, 0.05, *np.arange(0.1, 1.0, 0.1)]), 0.2, 12

#: Part of the votes of a pair that count on items on which it agrees.
_HALF = 0.5

#: Pairs from which on others show what is usual: those of ten annotators.
_FEWEST = 45

#: Standard errors by which the agreement, however right or wrong, is more than independent votes'.
_AGREE = 2.0

#: Pairs times votes up to which all pairs are tested, in a second or two.
_MOST = 400_000

#: Upper quartile of a normal distribution.
_QUARTILE = float(stats.norm.ppf(0.75))

#: From weights of the votes to log-likelihoods of each vote, and their sums for each item.
Evidence = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def copying_pair(
    votes: VoteTable, pairs: AnnotatorPairs, n_workers: int, k: int, evidence: Evidence
) -> tuple[int, float] | None:
    """The pair whose agreement copies explain best, where it is more than chance and usual.

    Args:
        votes: that were cast.
        pairs: with items enough in common.
        n_workers: W.
        k: number of classes.
        evidence: of votes that have these weights.

    Returns:
        its number among the pairs, and its probability of a copy; None without such a pair.
    """
    if len(pairs) < _FEWEST or len(pairs) * len(votes.row) > _MOST:
        return None
    at = np.full((votes.n_items, n_workers), -1)
    at[votes.row, votes.worker] = np.arange(len(votes.row))
    level = float(stats.norm.isf(LEVEL / len(pairs)))
    first = _likelihoods(votes, pairs, at, k, evidence, np.ones(len(votes.row)))
    top = int(_roots(first, 0).argmax())
    if _roots(first, 0)[top] <= level:
        return None
    # the votes of those who copy draw the classes, and with them all other pairs
    halved = _halved(votes, at, int(pairs.first[top]), int(pairs.second[top]))
    again = _likelihoods(votes, pairs, at, k, evidence, halved)
    others = np.arange(len(pairs)) != top
    usual = int(np.median(again.argmax(1)[others]))
    roots = _roots(again, usual)
    unit = max(float(np.quantile(roots[others], 0.75)) / _QUARTILE, 1.0)
    copied = float(_TRIED[again[top].argmax()])
    surely = roots[top] > level * unit and copied - _TRIED[usual] >= _LEAST
    return (top, copied) if surely and _agrees(votes, pairs, at, top, k, evidence) else None


def _agrees(
    votes: VoteTable,
    pairs: AnnotatorPairs,
    at: Int[np.ndarray, "n w"],
    top: int,
    k: int,
    evidence: Evidence,
) -> bool:
    """Whether a pair agrees more often than independent votes would.

    A few wrong labels in common are rare where annotators are mostly right, and a ratio of
    likelihoods makes too much of them.
    """
    one, other = int(pairs.first[top]), int(pairs.second[top])
    logs, whole = evidence(_halved(votes, at, one, other))
    both = np.flatnonzero((at[:, [one, other]] >= 0).all(1))
    a, b = at[both, one], at[both, other]
    rest = softmax(whole[both] - logs[a] - logs[b])
    first, second = (drawn_to_accuracy(np.eye(k)[votes.label[x]].T @ rest) for x in (a, b))
    share = rest @ (first * second).sum(0)
    agreement, expected = np.mean(votes.label[a] == votes.label[b]), share.mean()
    spread = np.sqrt(max((share * (1 - share)).sum(), 1.0)) / len(both)
    beyond = agreement - expected
    return bool(beyond > _AGREE * spread and beyond > _LEAST * (1 - expected))


def _roots(likelihoods: Float[np.ndarray, "p c"], usual: int) -> Float[np.ndarray, " p"]:
    """Roots of twice the gain over the usual probability of a copy; none where it is no more."""
    gain = likelihoods.max(1) - likelihoods[:, usual]
    return np.sqrt(2 * np.maximum(gain, 0)) * (likelihoods.argmax(1) > usual)


def _likelihoods(
    votes: VoteTable,
    pairs: AnnotatorPairs,
    at: Int[np.ndarray, "n w"],
    k: int,
    evidence: Evidence,
    weights: Float[np.ndarray, " v"],
) -> Float[np.ndarray, "p c"]:
    """Log-likelihood of each pair's votes under each probability of a copy."""
    out = []
    for one, other in zip(pairs.first, pairs.second, strict=True):
        logs, whole = evidence(weights * _halved(votes, at, int(one), int(other)))
        both = np.flatnonzero((at[:, [one, other]] >= 0).all(1))
        a, b = at[both, one], at[both, other]
        rest = softmax(whole[both] - logs[a] - logs[b])
        out.append(_profile(rest, votes.label[a], votes.label[b], k))
    return np.array(out)


def _halved(
    votes: VoteTable, at: Int[np.ndarray, "n w"], one: int, other: int
) -> Float[np.ndarray, " v"]:
    """Weights of all votes, with those of a pair for half where it agrees."""
    cells = at[:, [one, other]]
    cells = cells[(cells >= 0).all(1)]
    weights = np.ones(len(votes.row))
    weights[cells[votes.label[cells[:, 0]] == votes.label[cells[:, 1]]].ravel()] = _HALF
    return weights


def _profile(
    rest: Float[np.ndarray, "n k"], a: Int[np.ndarray, " n"], b: Int[np.ndarray, " n"], k: int
) -> Float[np.ndarray, " c"]:
    """Log-likelihood of two annotators' votes at the likeliest matrices, by EM.

    Args:
        rest: classes as all others suggest them.
        a: votes of the first.
        b: votes of the second.
        k: number of classes.
    """
    c = _TRIED[:, None, None]
    hot = [np.eye(k)[votes].T for votes in (a, b)]
    matrices = [drawn_to_accuracy(one @ rest)[None] for one in hot]
    copied = c / 2 * (a == b)[:, None] * rest
    for step in range(_STEPS + 1):
        of_a, of_b = (m[:, votes] for m, votes in zip(matrices, (a, b), strict=True))
        parts = (1 - c) * rest * of_a * of_b, copied * of_a, copied * of_b
        total = sum(part.sum(2, keepdims=True) for part in parts)
        if step < _STEPS:
            own = (parts[0] + parts[1]) / total, (parts[0] + parts[2]) / total
            matrices = [drawn_to_accuracy(one @ votes) for one, votes in zip(hot, own, strict=True)]
    return np.log(total[..., 0]).sum(1)
