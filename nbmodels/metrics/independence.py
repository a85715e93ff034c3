"""Tests, on checked rows, of what corrected scores assume of the test labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

#: Permutations of the given labels within the true classes.
_PERMUTATIONS = 2000
#: Cells (permutations x rows) that are held at once.
_CELLS = 2_000_000
#: P-value below which an assumption is rejected.
_LEVEL = 0.05


@dataclass(frozen=True)
class Independence:
    """Whether checked rows contradict the assumptions of corrected scores.

    Attributes:
        n_checked: number of checked rows.
        agreement: share of checked rows whose given label is what was predicted.
        expected: that share if given labels are independent of predictions given the true class.
        p_value: of independence, by permutation of the given labels within true classes
            (conditional permutation test); two-sided.
        wrong: share of wrong given labels among the checked rows.
        expected_wrong: that share by the noise matrix.
        noise_p_value: of the noise matrix's share of wrong labels, by simulation of labels from its
            draws; two-sided.

    Examples:
        >>> import warnings
        >>> import numpy as np
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> from nbmodels.metrics import noisy_test_scores
        >>> rng = np.random.default_rng(0)
        >>> noise = uniform_noise(2, 0.2)
        >>> truth = rng.integers(0, 2, 400)
        >>> given = corrupt(truth, noise, rng)
        >>> checked = {row: truth[row] for row in range(150)}
        >>> own = corrupt(truth, noise, rng)
        >>> # one classifier errs by itself, the other repeats most errors of the labels
        >>> for predicted in (own, np.where(rng.random(400) < 0.4, given, own)):
        ...     with warnings.catch_warnings(record=True, action="always") as caught:
        ...         found = noisy_test_scores(given, predicted, noise, trusted=checked)
        ...     print(found.independence.n_checked, found.independence.ok, len(caught))
        150 True 0
        150 False 1
    """

    n_checked: int
    agreement: float
    expected: float
    p_value: float
    wrong: float
    expected_wrong: float
    noise_p_value: float

    @property
    def ok(self) -> bool:
        """Whether neither assumption is rejected, at 5 % for both together."""
        return min(self.p_value, self.noise_p_value) >= _LEVEL / 2

    @property
    def sentence(self) -> str:
        """The result, as a sentence."""
        if self.ok:
            return (
                f"The {self.n_checked} checked rows do not contradict the assumptions "
                f"(independence p = {self.p_value:.2f}, noise matrix p = {self.noise_p_value:.2f})."
            )
        reasons = []
        if self.p_value < _LEVEL / 2:
            more = "more" if self.agreement > self.expected else "less"
            reasons.append(
                f"given labels agree with predictions {more} often than they would if both erred "
                f"independently ({self.agreement:.1%} against {self.expected:.1%}, "
                f"p = {self.p_value:.3f})"
            )
        if self.noise_p_value < _LEVEL / 2:
            reasons.append(
                f"{self.wrong:.1%} of the labels are wrong where the noise matrix expects "
                f"{self.expected_wrong:.1%} (p = {self.noise_p_value:.3f})"
            )
        return (
            f"Scores are of the {self.n_checked} checked rows alone, since there "
            f"{' and '.join(reasons)}."
        )


def check_independence(
    given: Int[np.ndarray, " m"],
    predicted: Int[np.ndarray, " m"],
    true: Int[np.ndarray, " m"],
    noise: Float[np.ndarray, "s observed k"],
    rng: np.random.Generator,
) -> Independence:
    """Test on checked rows whether labels and predictions err independently, as often as expected.

    The first statistic is the number of rows on which label and prediction agree, as that is what
    biases scores: shared errors raise every score against given labels beyond its correction.

    Args:
        given: ``(m,)`` codes of the given labels.
        predicted: ``(m,)`` codes of the predictions.
        true: ``(m,)`` codes of the true classes.
        noise: draws of the noise matrix ``[observed, true]``.
        rng: of permutations and simulated labels.
    """
    m = len(true)
    order = np.argsort(true, kind="stable")
    g, c, t = given[order], predicted[order], true[order]
    right = np.diagonal(noise, axis1=1, axis2=2)
    agreements, wrong = [], []
    for start in range(0, _PERMUTATIONS, size := max(1, _CELLS // m)):
        shape = (min(size, _PERMUTATIONS - start), m)
        # rows of one true class are shuffled among themselves: random keys, sorted within classes
        shuffled = g[np.argsort(t + rng.random(shape), axis=1)]
        agreements.append((shuffled == c).sum(1))
        drawn = right[(start + np.arange(shape[0])) % len(right)][:, t]
        wrong.append((rng.random(shape) >= drawn).sum(1))
    agreed, erred = (g == c).sum(), (g != t).sum()
    return Independence(
        m,
        float(agreed / m),
        float(np.concatenate(agreements).mean() / m),
        _two_sided(agreed, np.concatenate(agreements)),
        float(erred / m),
        float(1 - right.mean(0)[t].mean()),
        _two_sided(erred, np.concatenate(wrong)),
    )


def _two_sided(seen: float, simulated: np.ndarray) -> float:
    """Twice the smaller tail, what was seen counted in."""
    tails = (simulated >= seen).sum(), (simulated <= seen).sum()
    return float(min(1.0, 2 * (min(tails) + 1) / (len(simulated) + 1)))
