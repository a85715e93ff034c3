"""How far draws of an approximation are from the posterior: the shape k of their ratios' tail."""

from __future__ import annotations

import numpy as np

#: Above this, importance ratios have no useful variance (Vehtari et al. 2024, section 3.2.4).
LIMIT = 0.7


def pareto_k(log_ratio: np.ndarray) -> float:
    """Pareto k of importance ratios (Yao et al. 2018, "Yes, but did it work?", section 2).

    Args:
        log_ratio: any shape, log posterior density (up to a constant) less that of the
            approximation, at draws of the approximation.
    """
    from arviz_stats.base import array_stats

    return float(array_stats.psislw(np.ravel(log_ratio))[1])


def sentence(k: float, what: str) -> tuple[str, ...]:
    """The complaint, if there is one, about ``what`` is not the posterior."""
    if k <= LIMIT:
        return ()
    return (
        f"{what} is not the posterior: Pareto k is {k:.2f}, above {LIMIT} (1 or more: ratios "
        "without a mean); means may serve, intervals are not to be trusted: compare with "
        "method='gibbs'",
    )
