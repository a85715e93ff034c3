"""Convergence of several Markov chains: rank-normalised split R-hat, bulk and tail effective draws.

Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, "Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC", equations 3 to 14; Stan's
truncation of the autocorrelations (Geyer 1992, initial monotone sequence). As ArviZ computes them,
but for all quantities in one pass: ArviZ takes a millisecond or more for each, and chains that stop
by them are looked at again and again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

#: Quantities whose draws are transformed at a time.
_AT_ONCE = 500

#: Draws that spread less, relative to their size, are of a constant.
_CONSTANT = 1e-12


class Convergence(NamedTuple):
    """Of the worst of some quantities; those that do not vary are left out.

    Attributes:
        rhat: largest R-hat; 1 where nothing varies.
        bulk: smallest effective number of draws, of means.
        tail: smallest effective number of draws, of the 5 % and 95 % quantiles.
    """

    rhat: float
    bulk: float
    tail: float


def convergence(draws: Float[np.ndarray, "chains draws *shape"]) -> Convergence:
    """R-hat and effective draws of the worst quantity.

    Args:
        draws: ``(chains, draws, ...)``, at least four draws a chain. A chain counts as two halves.
    """
    flat = np.reshape(np.asarray(draws, float), (*draws.shape[:2], -1))
    spread, size = np.ptp(flat, (0, 1)), np.abs(flat).max((0, 1))
    flat = flat[..., spread > _CONSTANT * np.maximum(size, 1)]
    if not flat.shape[-1]:
        return Convergence(1.0, np.inf, np.inf)
    parts = [_each(flat[..., i : i + _AT_ONCE]) for i in range(0, flat.shape[-1], _AT_ONCE)]
    rhat, bulk, tail = (np.concatenate(one) for one in zip(*parts, strict=True))
    return Convergence(float(rhat.max()), float(bulk.min()), float(tail.min()))


def _halves(x: np.ndarray) -> np.ndarray:
    """``(2 chains, draws // 2, S)``; of an odd number the middle draw is left out."""
    half = x.shape[1] // 2
    return np.stack([x[:, :half], x[:, -half:]], 1).reshape(-1, half, x.shape[2])


def _each(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """R-hat, bulk and tail effective draws of ``(chains, draws, S)``, one of each quantity."""
    x, (low, high) = _halves(draws), np.quantile(draws, [0.05, 0.95], (0, 1))
    z = _ranked(x)
    folded = _ranked(np.abs(x - np.median(x, (0, 1))))
    tail = np.minimum(_effective(x <= low), _effective(x <= high))
    return np.maximum(_rhat(z), _rhat(folded)), _effective(z), tail


def _ranked(x: np.ndarray) -> np.ndarray:
    """Normal scores of the ranks among all draws of a quantity; ties share their mean rank."""
    from scipy.stats import rankdata

    flat = x.reshape(-1, x.shape[2])
    ranks = rankdata(flat, axis=0)
    return ndtri((ranks - 3 / 8) / (len(flat) + 1 / 4)).reshape(x.shape)


def _rhat(x: np.ndarray) -> np.ndarray:
    n = x.shape[1]
    within = np.maximum(x.var(1, ddof=1).mean(0), np.finfo(float).tiny)
    return np.sqrt((x.mean(1).var(0, ddof=1) + (n - 1) / n * within) / within)


def _effective(draws: np.ndarray) -> np.ndarray:
    """Effective draws of means of ``(chains, draws, S)``."""
    x = np.asarray(draws, float)
    chains, n, _ = x.shape
    gap = x - x.mean(1, keepdims=True)
    transformed = np.fft.rfft(gap, 2 * n, axis=1)
    covariance = np.fft.irfft(np.square(np.abs(transformed)), axis=1)[:, :n].mean(0) / n
    within = covariance[0] * n / (n - 1)
    pooled = covariance[0] + (x.mean(1).var(0, ddof=1) if chains > 1 else 0)
    constant = pooled < np.finfo(float).tiny
    rho = 1 - (within - covariance) / np.where(constant, 1, pooled)
    rho[0] = 1
    # sums of neighbouring lags, up to the first that is negative, made to fall
    pairs = rho[: n - n % 2].reshape(n // 2, 2, -1)
    sums = pairs.sum(1)[: max((n - 3) // 2, 1)]
    positive = np.logical_and.accumulate(np.concatenate([sums[:1] > -np.inf, sums[1:] >= 0]), 0)
    falling = np.minimum.accumulate(sums, 0)
    # the first even lag beyond counts where it is positive (Stan's bias correction)
    last = positive.sum(0)
    beyond = rho[np.minimum(2 * last, n - 1), np.arange(rho.shape[1])]
    tau = -1 + 2 * np.where(positive, falling, 0).sum(0) + np.maximum(beyond, 0)
    total = chains * n
    tau = np.maximum(tau, 1 / np.log10(total))
    return np.where(constant, total, total / tau)
