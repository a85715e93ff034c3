"""Pareto k diagnostic of importance ratios between the posterior and an approximation of it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from nbmodels.errors import Caution, PosteriorWarning

#: Above this, importance ratios have no useful variance (Vehtari et al. 2024, section 3.2.4).
LIMIT = 0.7

#: Draws whose largest fifth are the five that a generalised Pareto distribution is fitted to.
_FEWEST = 25


def pareto_k(log_ratio: Float[np.ndarray, "*shape"]) -> float:
    """Pareto k of importance ratios (Yao et al. 2018, "Yes, but did it work?", section 2).

    Args:
        log_ratio: any shape, log posterior density (up to a constant) less that of the
            approximation, at draws of the approximation.

    Returns:
        Pareto k, or NaN with fewer than 25 draws, whose tail is too small to estimate it.
    """
    if np.size(log_ratio) < _FEWEST:
        return float("nan")
    from arviz_stats.base import array_stats

    return float(array_stats.psislw(np.ravel(log_ratio))[1])


def pareto_cautions(k: float, approximation: str) -> tuple[Caution, ...]:
    """A caution if an approximation is too far from the posterior.

    Args:
        k: its Pareto k.
        approximation: its name, which begins the message.
    """
    if k <= LIMIT:
        return ()
    if np.isnan(k):
        message = (
            f"how far {approximation} is from the posterior is unknown: Pareto k needs {_FEWEST} "
            "draws or more, all chains together"
        )
        return (Caution(PosteriorWarning, message),)
    message = (
        f"{approximation} is not the posterior: Pareto k is {k:.2f}, above {LIMIT} (1 or more: "
        "ratios without a mean); means may serve, intervals are not to be trusted: compare with "
        "method='gibbs'"
    )
    return (Caution(PosteriorWarning, message),)
