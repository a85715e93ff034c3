"""Whether a noise matrix allows that predictions agree with noisy labels as often as they do."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from nbmodels.metrics.correction import TestRows

#: Standard errors beyond what is allowed: one side of the 90 % interval.
_SIGNIFICANT = 1.645


def contradiction(rows: TestRows, noise: Float[np.ndarray, "s observed k"]) -> str:
    """How predictions and labels contradict a noise matrix, as a sentence; empty if they do not.

    A prediction p agrees with the given label with the probability of the label p in the true
    class, so that even right predictions agree with no more labels than the noise leaves right. A
    corrected accuracy lies above 1 (or below 0) where they do.

    Args:
        rows: test rows.
        noise: draws of the noise matrix ``[observed, true]``.
    """
    n = rows.counts.sum()
    agreement = rows.counts[rows.given == rows.predicted].sum() / n
    predicted = np.bincount(rows.predicted, rows.counts, noise.shape[1]) / n
    mean = noise.mean(0)
    for bound, word, beyond in ((mean.max(1), "most", 1), (mean.min(1), "least", -1)):
        true = mean.argmax(1) if beyond > 0 else mean.argmin(1)
        drawn = noise[:, np.arange(len(mean)), true] @ predicted
        variance = predicted @ (bound * (1 - bound)) / n + drawn.var()
        allowed = predicted @ bound
        # rounding is no contradiction
        if beyond * (agreement - allowed) > _SIGNIFICANT * np.sqrt(variance) + 1e-9:
            return (
                f"Do not use the corrected scores: data and noise matrix contradict each other. "
                f"Predictions agree with {agreement:.1%} of the given labels, where the noise "
                f"matrix allows {allowed:.1%} at {word}: it is not that of these labels, or "
                "labels and predictions do not err independently."
            )
    return ""
