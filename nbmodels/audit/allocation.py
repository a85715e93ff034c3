"""Stratification and sample allocation by P(wrong), bounded against a useless P(wrong).

Neyman's allocation samples strata in proportion to the standard deviation of the outcome, here
``sqrt(p (1 - p))`` (Neyman 1934; Fisch et al. 2024, section 4). Where P(wrong) is right it is best;
where it is useless, the unequal weights alone make the answer wider. So the intensity is flattened,
``sqrt(p (1 - p) + c)``, until unequal weights cost no more than a given share of the variance.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

#: Most that unequal weights may multiply the variance by where P(wrong) is useless: 3 % of a width.
INFLATION = 1.06
#: Checked rows of a stratum, on average, and the largest number of strata.
_CHECKS = 10
_MOST_STRATA = 20
#: Checked rows that a stratum has at least where an audit stopped early.
_FEWEST = 4
#: Jump of ``arcsin(sqrt(P(wrong)))`` at which strata are cut, if it is so near (in strata).
_JUMP = 0.05
_NEAR = 0.45


def intensity(
    p_wrong: Float[np.ndarray, " n"], inflation: float = INFLATION
) -> Float[np.ndarray, " n"]:
    """Flattened Neyman intensities of sampling, with mean 1.

    Args:
        p_wrong: ``(N,)`` probability that each label is wrong.
        inflation: bound on Kish's design effect ``mean(r) mean(1 / r)``, which is the factor of the
            variance where P(wrong) says nothing.
    """
    spread = p_wrong * (1 - p_wrong)
    low, high = -30.0, 3.0  # of the logarithm of c; flat enough at its upper end
    for _ in range(50):
        middle = (low + high) / 2
        r = np.sqrt(spread + np.exp(middle))
        low, high = (middle, high) if r.mean() * (1 / r).mean() > inflation else (low, middle)
    r = np.sqrt(spread + np.exp(high))
    return r / r.mean()


def inclusion(p_wrong: Float[np.ndarray, " n"], n_checks: int) -> Float[np.ndarray, " n"]:
    """``(N,)`` wanted inclusion probabilities, at most 1, which sum to ``n_checks``."""
    r = intensity(p_wrong)
    certain = np.zeros(len(r), bool)
    while True:
        rest = n_checks - certain.sum()
        pi = np.where(certain, 1.0, r * (rest / max(r[~certain].sum(), 1e-300)))
        more = (pi > 1) & ~certain
        if not more.any():
            return pi
        certain |= more


def stratify(
    p_wrong: Float[np.ndarray, " n"], n_checks: int, rng: np.random.Generator
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " strata"]]:
    """Strata of P(wrong) with about as many checks each, and their numbers of checks.

    Rows are sorted by P(wrong), equal ones in random order, and cut where the inclusion
    probabilities sum up to equal parts, or at a jump of P(wrong) nearby: a stratum of sure and
    unsure rows would seldom show an error, and then a large one.

    Args:
        p_wrong: ``(N,)`` probability that each label is wrong.
        n_checks: rows to be checked, 1 to N.
        rng: breaks ties.

    Returns:
        ``(N,)`` stratum of each row, by rising P(wrong); ``(H,)`` checks in each stratum.
    """
    n = len(p_wrong)
    parts = int(np.clip(n_checks // _CHECKS, 1, _MOST_STRATA))
    order = np.lexsort((rng.random(n), p_wrong))
    pi = inclusion(p_wrong, n_checks)[order]
    cuts = _cuts(np.arcsin(np.sqrt(p_wrong[order])), np.cumsum(pi) * (parts / n_checks), parts)
    strata = np.empty(n, int)
    strata[order] = np.searchsorted(cuts, np.arange(n), "right")
    sizes = np.bincount(strata)
    wanted = np.bincount(strata[order], pi)
    checks = np.clip(np.floor(wanted).astype(int), 1, sizes)
    while left := n_checks - checks.sum():  # the largest remainders are rounded up
        room = checks < sizes if left > 0 else checks > 1
        checks[np.argmax(np.where(room, np.sign(left) * (wanted - checks), -np.inf))] += np.sign(
            left
        )
    return strata, checks


def _cuts(
    scale: Float[np.ndarray, " n"], reached: Float[np.ndarray, " n"], parts: int
) -> Int[np.ndarray, " cuts"]:
    """First row of each stratum but the lowest, among sorted rows.

    Args:
        scale: ``(n,)`` sorted P(wrong), on the scale of constant variance.
        reached: ``(n,)`` cumulated inclusion probabilities, in parts.
        parts: number of strata.
    """
    jumps = np.diff(scale, prepend=scale[0])
    cuts = []
    for part in range(1, parts):
        first, last = np.searchsorted(reached, [part - _NEAR, part + _NEAR])
        at = first + int(np.argmax(jumps[first : last + 1]))
        even = int(np.searchsorted(reached, part - 1e-9)) + 1
        cuts.append(at if jumps[at] > _JUMP else even)
    found = np.unique(np.asarray(cuts, int))
    return found[(found > 0) & (found < len(scale))]


def joined(
    checks: Int[np.ndarray, " strata"],
    sizes: Int[np.ndarray, " strata"],
    p_wrong: Float[np.ndarray, " strata"],
) -> Int[np.ndarray, " strata"]:
    """Strata joined to neighbours until each has a few checks, where an audit stopped early.

    A stratum with one or two checks would say nothing of the spread of its rows. The one with the
    fewest is joined to the neighbour with the nearer P(wrong), until none has too few.

    Args:
        checks: ``(H,)`` checked rows of each stratum.
        sizes: ``(H,)`` rows of each stratum.
        p_wrong: ``(H,)`` mean P(wrong) of each stratum.

    Returns:
        ``(H,)`` joined stratum of each, from 0, in the same order.
    """
    group = np.arange(len(checks))
    while True:
        found = np.bincount(group, checks)
        mean = np.bincount(group, sizes * p_wrong) / np.bincount(group, sizes)
        scale = np.arcsin(np.sqrt(np.clip(mean, 0, 1)))
        least = int(np.argmin(found))
        if found[least] >= _FEWEST or len(found) == 1:
            return group
        gaps = np.abs(np.diff(scale, prepend=-np.inf, append=np.inf))
        lower = least - 1 if gaps[least] <= gaps[least + 1] else least
        group = group - (group > lower)
