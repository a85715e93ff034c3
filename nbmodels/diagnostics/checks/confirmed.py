"""Does a joint fit to a graph confirm its own labels? A cross-fitted one beside it shows that.

A graph's users learn what its items are taken for. In a joint fit these are mostly the given labels
themselves, which their neighbours then seem to confirm: few of them would be wrong. Cross-fitted,
the same edges count as far as they predict labels that they have not seen. Where that predicts
labels surely better, the joint fit has learned its errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

from nbmodels.diagnostics.checks import remedies
from nbmodels.diagnostics.checks.base import Check, Measurement, always

#: Least log-probability that counts, so that a few labels that are hardly possible do not decide.
_LEAST = np.log(0.01)

#: Standard errors by which labels must be likelier.
_ERRORS = 2.0


@dataclass(frozen=True)
class Confirmed:
    """A joint fit beside a cross-fitted one.

    Attributes:
        joint: ``(n,)`` log-probability of each label by a joint fit that has not seen it.
        crossed: ``(n,)`` the same where the graph is cross-fitted.
        weights: ``(n,)`` row weights, above 0.
        wrong: shares of wrong labels by both, on average.
    """

    joint: Float[np.ndarray, " n"]
    crossed: Float[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]
    wrong: tuple[float, float]


def _confirmed(at: Confirmed, threshold: float) -> Measurement | None:
    if len(at.weights) < 2:
        return None
    gain = np.maximum(at.crossed, _LEAST) - np.maximum(at.joint, _LEAST)
    effect = float(np.average(gain, weights=at.weights))
    spread = np.sqrt(np.sum(at.weights**2 * (gain - effect) ** 2)) / at.weights.sum()
    z = float(effect / max(spread, np.finfo(float).tiny))
    bad = z > _ERRORS and effect > threshold
    return Measurement(effect, bad, bad, z, float(norm.sf(z)))


def _sentence(at: Confirmed, found: Measurement) -> str:
    joint, crossed = (f"{100 * share:.1f} %" for share in at.wrong)
    return (
        "edges that learn from the labels of other items predict held-out labels better than this "
        f"joint fit, by {found.effect:.2f} nats a label; by them {crossed} of the given labels "
        f"would be wrong, and by this fit {joint}: it has learned its own errors"
    )


CHECKS: tuple[Check[Confirmed], ...] = (
    Check(
        "own labels",
        "Do cross-fitted edges predict labels no better than the joint fit?",
        _confirmed,
        0.02,
        _sentence,
        always(remedies.OPEN_GRAPH),
        "cross-fitted edges do not predict labels surely better",
    ),
)
