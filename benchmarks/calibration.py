"""Simulation-based calibration: do the draws of a sampler have the rank that truth should have?

Where parameters come from the prior and data from the parameters, the rank of the true value among
independent draws of the posterior is uniform, whatever the quantity (Cook, Gelman and Rubin 2006;
Talts et al. 2018, "Validating Bayesian inference algorithms with simulation-based calibration").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats


class Calibrated(NamedTuple):
    """What the ranks of one quantity say.

    Attributes:
        p_value: of the chi-square test of uniform ranks.
        coverage: share of simulations whose central interval holds the truth.
        nominal: probability that interval has, as near to the wanted one as ranks come.
    """

    p_value: float
    coverage: float
    nominal: float


def ranks(truth: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """``(simulations, quantities)`` number of draws below the truth, 0 to ``draws``.

    Args:
        truth: ``(simulations, quantities)``.
        draws: ``(simulations, draws, quantities)``, close to independent within a simulation.
    """
    return np.sum(draws < truth[:, None], 1)


def calibrated(rank: np.ndarray, n_draws: int, *, bins: int = 20, level: float = 0.9) -> Calibrated:
    """Test of the ranks of one quantity.

    Args:
        rank: ``(simulations,)`` from :func:`ranks`.
        n_draws: number of draws behind each rank; one less than a multiple of ``bins``.
        bins: of the histogram.
        level: probability of the central interval.

    Raises:
        ValueError: bins of unequal probability.
    """
    if (n_draws + 1) % bins:
        raise ValueError(f"n_draws: one more than {n_draws} is no multiple of {bins} bins")
    counts = np.bincount(rank * bins // (n_draws + 1), minlength=bins)
    tail = round((1 - level) / 2 * (n_draws + 1))
    inside = (rank >= tail) & (rank <= n_draws - tail)
    nominal = 1 - 2 * tail / (n_draws + 1)
    return Calibrated(float(stats.chisquare(counts).pvalue), float(inside.mean()), nominal)
