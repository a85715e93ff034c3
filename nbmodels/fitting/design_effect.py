"""Design effect: how many independent labels the labels of grouped rows are worth (Kish 1965).

Visits of one patient, or copies of a row, may share a wrong label. Labels alike within groups by an
intraclass correlation rho say as much of the noise as ``n / (1 + (m - 1) rho)`` independent ones
would, where a label's group has m of them on average. Whether labels are wrong is not known; their
probabilities of being wrong, less those of labels of the same class, stand for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class DesignEffects(NamedTuple):
    """Ratios of the variance of an estimate to that under independent rows, 1 or more.

    Attributes:
        noise: of rates of the noise matrix, from errors that groups share.
        shares: of the class shares, from classes that groups share.
    """

    noise: float
    shares: float


def design_effects(
    groups: Int[np.ndarray, " n"],
    codes: Int[np.ndarray, " n"],
    resp: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " n"],
) -> DesignEffects:
    """Design effects of a noise matrix and of class shares.

    Args:
        groups: code of each row's group.
        codes: given labels, negative or K and more where there is none.
        resp: P(true class) of each row.
        weights: row weights; rows of weight 0 do not count.

    Returns:
        both ratios; 1 where no group has two labels.

    Examples:
        Of 50 pairs of rows every second pair is wrong, both rows of it: 100 labels are worth 50.

        >>> import numpy as np
        >>> from nbmodels.fitting.design_effect import design_effects
        >>> pairs = np.repeat(np.arange(50), 2)
        >>> true = (pairs // 2) % 2
        >>> given = np.where(pairs % 2 == 0, true, 1 - true)
        >>> design_effects(pairs, given, np.eye(2)[true], np.ones(100)).noise
        2.0
    """
    k = resp.shape[1]
    rows = np.flatnonzero((weights > 0) & (codes >= 0) & (codes < k))
    if len(rows) == 0:
        return DesignEffects(1.0, 1.0)
    resp, group = resp[rows], np.unique(groups[rows], return_inverse=True)[1]
    wrong = 1 - resp[np.arange(len(rows)), codes[rows]]
    usual = (wrong @ resp) / np.maximum(resp.sum(0), np.finfo(float).tiny)
    return DesignEffects(
        _design_effect(group, (wrong - resp @ usual)[:, None]),
        _design_effect(group, resp - resp.mean(0)),
    )


def padded_groups(
    groups: Int[np.ndarray, " n"] | None, length: int
) -> Int[np.ndarray, " length"] | None:
    """Groups of rows and of those that pad them, each of which is its own.

    Args:
        groups: first row of each row's group; None where each row is its own.
        length: number of rows with padding.

    Returns:
        ``(length,)``; None where there are no groups.
    """
    if groups is None:
        return None
    return np.concatenate([groups, np.arange(len(groups), length)])


def of_groups(
    values: Float[np.ndarray, "*more n"], groups: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "*more g"]:
    """Sums over the rows of each group.

    Args:
        values: of the rows, along the last axis.
        groups: code of each row's group.
    """
    first, code = np.unique(groups, return_inverse=True)
    out = np.zeros((*np.shape(values)[:-1], len(first)))
    np.add.at(out.T, code, np.asarray(values).T)
    return out


def _design_effect(group: Int[np.ndarray, " n"], gap: Float[np.ndarray, "n c"]) -> float:
    """From the products of all pairs of rows of a group: the moment estimate of their correlation.

    Args:
        group: codes from 0 up.
        gap: what is compared, less its mean.
    """
    size = np.bincount(group)
    total = of_groups(gap.T, group)
    pairs = float((size * (size - 1.0)).sum())
    square = float((gap**2).sum())
    if pairs == 0 or square == 0:
        return 1.0
    correlation = ((total**2).sum() - square) / pairs / (square / len(gap))
    others = float((size**2.0).sum() / size.sum()) - 1
    return 1 + others * float(np.clip(correlation, 0, 1))
