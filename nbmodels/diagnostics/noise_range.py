"""Identification bounds of label noise: the share of wrong labels at both ends of what data allow.

Errors that depend on the features and classes that overlap have one likelihood (Menon, van Rooyen
and Natarajan 2018 call the former instance-dependent noise). One end takes errors to be independent
of the features given the class; the other takes classes to be functions of the features, so that
whatever the labels of near items disagree on is error (:mod:`nbmodels.fitting.separable`). What is
true lies between them where both play a part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from nbmodels.data.readable import Readable
from nbmodels.diagnostics.checks.checked import CheckedEnds
from nbmodels.diagnostics.findings import INDEPENDENT, SEPARABLE

#: Probability of the intervals, and the upper end from which on one holds a rate of one.
LEVEL, _ALL = 0.9, 0.99

#: Shares of wrong labels that both intervals together leave possible, from which on they say
#: little even where they overlap.
_WIDE = 0.1

#: What decides between the ends.
_CHECK = "check some rows by hand"


@dataclass(frozen=True)
class End:
    """The noise under one assumption.

    Attributes:
        assumes: the assumption, in words.
        share: of the given labels, that is wrong.
        share_interval: its interval.
        right: ``(K,)`` P(given label is right | true class).
        right_intervals: ``(K, 2)`` their intervals.

    Examples:
        The end that assumes no overlap, of 200 ants and bees, of which a fifth has the other label:

        >>> import numpy as np
        >>> from nbmodels import NoisyGaussianNB
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> animals = rng.integers(2, size=200)
        >>> lengths = 2.0 * animals[:, None] + rng.normal(size=(200, 3))
        >>> y = np.array(["ant", "bee"])[corrupt(animals, uniform_noise(2, 0.2), rng)]
        >>> model = NoisyGaussianNB(random_state=0).fit(lengths, y)
        >>> end = model.noise_range_.separable
        >>> print(f"{end.share:.0%} of the labels are wrong {end.assumes}")
        22% of the labels are wrong if classes do not overlap, so that near items are of one class
        >>> print(end.right_intervals.shape)  # of each class, low and high
        (2, 2)
    """

    assumes: str
    share: float
    share_interval: tuple[float, float]
    right: Float[np.ndarray, " k"]
    right_intervals: Float[np.ndarray, "k 2"]

    @classmethod
    def of(
        cls,
        assumes: str,
        transition: Float[np.ndarray, "k k"],
        share: float,
        rates: Float[np.ndarray, "s k k"],
        shares: Float[np.ndarray, " s"],
        level: float = LEVEL,
    ) -> End:
        """An end from its point estimates and draws, equal-tailed intervals.

        Args:
            assumes: the assumption, in words.
            transition: ``(K, K)`` P(observed | true).
            share: of wrong labels.
            rates: ``(S, K, K)`` draws of the transition.
            shares: ``(S,)`` draws of the share of wrong labels.
            level: probability of the intervals.
        """
        outside = [(1 - level) / 2, (1 + level) / 2]
        low, high = np.quantile(shares, outside)
        right = np.diagonal(np.asarray(transition, float))
        drawn = np.quantile(np.diagonal(rates, axis1=1, axis2=2), outside, axis=0).T
        # an estimate that is averaged over models may lie outside the draws of one of them
        return cls(
            assumes,
            share,
            (float(min(low, share)), float(max(high, share))),
            right,
            np.column_stack([np.minimum(drawn[:, 0], right), np.maximum(drawn[:, 1], right)]),
        )


@dataclass(frozen=True)
class NoiseRange(Readable):
    """Both ends of what labels and features allow.

    Attributes:
        names: ``(K,)`` names of the classes.
        independent: errors do not depend on the features given the class; classes may overlap.
        separable: classes do not overlap; errors may depend on the features.
        n_neighbours: number of neighbours whose labels were votes.
        z: mean gain in held-out log-probability of the labels at the separable end, in standard
            errors; NaN where it could not be compared.
        level: probability of the intervals.
        checked: labels that were checked by hand beside both ends; None without enough of them.

    Examples:
        Of 200 ants and bees, of which a fifth has the other label:

        >>> import numpy as np
        >>> from nbmodels import NoisyGaussianNB
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> animals = rng.integers(2, size=200)
        >>> lengths = 2.0 * animals[:, None] + rng.normal(size=(200, 3))
        >>> y = np.array(["ant", "bee"])[corrupt(animals, uniform_noise(2, 0.2), rng)]
        >>> model = NoisyGaussianNB(random_state=0).fit(lengths, y)
        >>> both = model.noise_range_
        >>> low, high = both.share
        >>> print(f"between {low:.0%} and {high:.0%} of the labels are wrong")
        between ...% and ...% of the labels are wrong
        >>> print(both.overlap)  # the intervals of the two ends
        True
    """

    names: np.ndarray
    independent: End
    separable: End
    n_neighbours: int
    z: float
    level: float = LEVEL
    checked: CheckedEnds | None = None

    @property
    def share(self) -> tuple[float, float]:
        """Smallest and largest share of wrong labels, intervals included."""
        both = [*self.independent.share_interval, *self.separable.share_interval]
        return min(both), max(both)

    @property
    def right(self) -> Float[np.ndarray, "k 2"]:
        """``(K, 2)`` smallest and largest P(right | true class), intervals included."""
        both = np.hstack([self.independent.right_intervals, self.separable.right_intervals])
        return np.column_stack([both.min(1), both.max(1)])

    @property
    def overlap(self) -> bool:
        """Whether the intervals of the two shares have a value in common."""
        (a, b), (c, d) = self.independent.share_interval, self.separable.share_interval
        return max(a, c) <= min(b, d)

    @property
    def sentence(self) -> str:
        """Both shares, with what each assumes, and whether data or checks decide between them."""
        one, other = (
            f"{100 * end.share:.1f} % ({100 * end.share_interval[0]:.1f} to "
            f"{100 * end.share_interval[1]:.1f})"
            for end in (self.independent, self.separable)
        )
        shares = (
            f"{one} of the given labels are wrong {self.independent.assumes}, and {other} "
            f"{self.separable.assumes}"
        )
        if self.overlap:
            shares = f"{shares}; these intervals overlap"
        if self.checked is not None:
            return f"{shares}. {self.checked.sentence}"
        low, high = self.share
        if self.overlap and high - low > _WIDE:
            return f"{shares}, and leave {100 * low:.1f} to {100 * high:.1f} % possible: {_CHECK}"
        if self.overlap:
            return shares
        if self.z > 2:
            return f"{shares}. Held-out labels are surely likelier under the latter"
        return f"{shares}. Labels and features cannot tell which: {_CHECK}"

    def table(self) -> pd.DataFrame:
        """A row for the share of wrong labels and one for each class's share of right ones.

        Returns:
            columns ``independent``, ``independent_low``, ``independent_high``, the same for
            ``separable``, and ``low`` and ``high``, the range with both intervals.
        """
        out: dict[str, Any] = {}
        for name, end in (("independent", self.independent), ("separable", self.separable)):
            interval = np.vstack([end.share_interval, end.right_intervals])
            out[name] = [end.share, *end.right]
            out[f"{name}_low"], out[f"{name}_high"] = interval.T
        out["low"], out["high"] = np.vstack([self.share, self.right]).T
        index = ["share wrong", *(f"{name} right" for name in self.names)]
        return pd.DataFrame(out, index=index)

    def holds(self, given: Any, truth: Any) -> tuple[bool, np.ndarray]:
        """Whether the range holds the noise of known true labels.

        No central interval of a rate holds one: where all labels of a class are right, its upper
        end is to be 0.99 or more.

        Args:
            given: ``(n,)`` given labels.
            truth: ``(n,)`` true labels.

        Returns:
            for the share of wrong labels, and ``(K,)`` for each class's share of right ones, NaN
            for a class of which there is no true label.
        """
        given, truth = np.asarray(given).astype(str), np.asarray(truth).astype(str)
        right = np.array(
            [
                np.mean(given[truth == name] == name) if (truth == name).any() else np.nan
                for name in self.names.astype(str)
            ]
        )
        low, high = self.right.T
        high = np.where((right == 1) & (high >= _ALL), 1.0, high)
        inside = np.where(np.isnan(right), np.nan, (low <= right) & (right <= high))
        share = float(np.mean(given != truth))
        return self.share[0] <= share <= self.share[1], inside


def noise_range(
    names: np.ndarray,
    transition: Float[np.ndarray, "k k"],
    share: float,
    rates: Float[np.ndarray, "s k k"],
    shares: Float[np.ndarray, "s k"],
    separable: Any,
    z: float,
    seed: int,
    noisy: float = 1.0,
    checked: CheckedEnds | None = None,
) -> NoiseRange:
    """Both ends from a fit with its draws, and from the votes of neighbours.

    Args:
        names: ``(K,)`` names of the classes.
        transition: ``(K, K)`` P(observed | true) of the fit.
        share: of wrong labels, by the fit.
        rates: ``(S, K, K)`` draws of the transition.
        shares: ``(S, K)`` draws of the shares of the classes.
        separable: the other end, a :class:`nbmodels.fitting.separable.Separable`.
        z: see :class:`NoiseRange`.
        seed: of the draws of the other end.
        noisy: probability that labels are noisy at all. Where the interval of the fit's own end
            leaves out no more than the probability that they are not, it begins at no wrong label.
        checked: labels that were checked by hand beside both ends, or None.
    """
    # rounding may leave a little less than nothing
    wrong = np.maximum(1 - np.einsum("skk,sk->s", rates, shares), 0)
    one = End.of(INDEPENDENT, transition, share, rates, wrong)
    if 1 - noisy > (1 - LEVEL) / 2:
        one = replace(one, share_interval=(0.0, one.share_interval[1]))
    far = separable.end
    drawn, wrong = far.draws(len(rates), seed)
    other = End.of(SEPARABLE, far.transition, far.share_wrong, drawn, wrong)
    return NoiseRange(names, one, other, far.n_neighbours, z, checked=checked)
