"""Intervals from a stratified sample: design-based, so that no model has to be right.

The share of rows with a property is estimated by stratified prediction-powered inference
(Angelopoulos et al. 2023; Fisch et al. 2024, "Stratified prediction-powered inference"): the
stratified mean, corrected by how far the checked rows' predictions are from those of all rows, with
a tuned power of the predictions. Its interval is Bayesian, a Beta posterior in each stratum with a
weak prior shared out, as the normal approximation covers too seldom where few errors are seen. A
rate within a domain (a true class) has the interval of Korn and Graubard (1998), Jeffreys'
interval at the effective sample size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

#: Draws of the posterior: an interval's ends vary by 2 % of the posterior's spread.
_DRAWS = 10_000
#: Concentration that a stratum with both outcomes loses: with n checks the posterior variance of a
#: share is too small by ``(n - 1) / (n + 1)`` on average, which many small strata would add up;
#: with concentration n - 2 it is right. A single stratum has Jeffreys' interval and loses nothing.
_LOST = 2.0
#: Pseudo-counts of either outcome over all strata, between Jeffreys' 1/2 and the 1/3 whose median
#: is the observed share (Kerman 2011). Half of them go by the strata's sizes, half to where errors
#: are expected. Strata in which an outcome was not seen share all of its pseudo-counts: where only
#: one stratum has wrong labels and ten of ten are wrong there, that is Jeffreys' case. Each stratum
#: whose labels are almost surely wrong has Jeffreys' 1/2 at least: where that is too sure, a few
#: checks may see no right label among them.
_PRIOR, _SURE, _JEFFREYS = 0.4, 0.9, 0.5
#: Errors (or right labels) from which on predictions are tuned.
_LEAST_SEEN = 3


@dataclass(frozen=True)
class Estimate:
    """An estimate with its interval.

    Attributes:
        value: the estimate.
        low: lower end of the interval.
        high: upper end of the interval.
    """

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Width of the interval."""
        return self.high - self.low

    @property
    def complement(self) -> Estimate:
        """Estimate of one minus the share."""
        return Estimate(1 - self.value, 1 - self.high, 1 - self.low)

    def __str__(self) -> str:
        return f"{self.value:.1%} ({self.low:.1%} to {self.high:.1%})"


@dataclass(frozen=True)
class Sample:
    """A stratified random sample.

    Attributes:
        stratum: ``(n,)`` stratum of each checked row, from 0; none is without one.
        sizes: ``(H,)`` rows of each stratum, checked or not.
        inverse: ``(n,)`` inverse inclusion probabilities, up to a factor in each stratum; None
            where they are equal in each.
    """

    stratum: Int[np.ndarray, " n"]
    sizes: Int[np.ndarray, " strata"]
    inverse: Float[np.ndarray, " n"] | None = None

    @property
    def checks(self) -> Int[np.ndarray, " strata"]:
        """``(H,)`` checked rows of each stratum."""
        return np.bincount(self.stratum, minlength=len(self.sizes))

    @property
    def share(self) -> Float[np.ndarray, " strata"]:
        """``(H,)`` share of each stratum in all rows."""
        return self.sizes / self.sizes.sum()

    @property
    def portions(self) -> Float[np.ndarray, " n"]:
        """``(n,)`` weights of the rows in the mean of their stratum."""
        if self.inverse is None:
            return (1 / self.checks)[self.stratum]
        return self.inverse / self.totals(self.inverse)[self.stratum]

    @property
    def weights(self) -> Float[np.ndarray, " n"]:
        """``(n,)`` inverse inclusion probabilities."""
        return self.sizes[self.stratum] * self.portions

    @property
    def mean_variance(self) -> Float[np.ndarray, " n"]:
        """``(n,)`` factor of each row's squared deviation, in the variance of the mean."""
        n = self.checks
        of_stratum = self.share**2 * (1 - n / self.sizes) * n / np.maximum(n - 1, 1)
        return of_stratum[self.stratum] * self.portions**2

    def centred(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Values less the mean of their stratum."""
        return values - self.means(values)[self.stratum]

    def means(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " strata"]:
        """``(H,)`` estimated means of the strata."""
        if self.inverse is None:
            return self.totals(values) / self.checks
        # not by portions: the mean of equal values is to be that value in all digits
        return self.totals(self.inverse * values) / self.totals(self.inverse)

    def totals(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " strata"]:
        """``(H,)`` sums over the checked rows of each stratum."""
        return np.bincount(self.stratum, values, len(self.sizes))

    def effective(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " strata"]:
        """``(H,)`` rows of a simple random sample that would tell as much of the share of ones.

        By Kish's formula where all outcomes of a stratum are alike, else by the variance of the
        weighted mean: where rows are wrong that are drawn more often, unequal weights are a gain.
        """
        portions, n, mean = self.portions, self.checks, self.means(y)
        kish = 1 / self.totals(portions**2)
        variance = self.totals((portions * self.centred(y)) ** 2)
        spread = mean * (1 - mean)
        found = np.divide(spread, variance, out=kish.copy(), where=spread > 0)
        return np.clip(found, kish / 2, 2 * n)


def stratified_share(
    sample: Sample,
    outcome: np.ndarray,
    predicted: Float[np.ndarray, " n"],
    predicted_means: Float[np.ndarray, " strata"],
    rng: np.random.Generator,
    level: float = 0.9,
    *,
    suspected: Float[np.ndarray, " strata"] | None = None,
) -> Estimate:
    """Share of all rows that have a property, from the checked ones.

    Args:
        sample: the checked rows' strata.
        outcome: ``(n,)`` whether a checked row has the property.
        predicted: ``(n,)`` a prediction of it.
        predicted_means: ``(H,)`` mean prediction over all rows of each stratum.
        rng: of the posterior draws.
        level: probability of the interval.
        suspected: ``(H,)`` mean P(wrong label) of each stratum; None where it is what is predicted.
    """
    y = np.asarray(outcome, float)
    n, total, seen, found = sample.checks, sample.sizes.sum(), sample.totals(y), sample.means(y)
    plain = float(sample.share @ found)
    power, factor = _power(sample, y, predicted)
    gap = predicted_means - sample.means(predicted)
    value = plain + power * float(sample.share @ gap)

    effective = sample.effective(y)
    mixed = (seen > 0) & (seen < n)
    lost = _LOST * (1 - 1 / len(n))
    known = np.where(mixed, np.maximum(effective - lost, 0.5), effective)
    suspects = (predicted_means if suspected is None else suspected) > _SURE
    ones = _prior(sample.share, predicted_means, suspects, seen == 0)
    zeros = _prior(sample.share, predicted_means, suspects, seen == n)
    rate = rng.beta(known * found + ones, known * (1 - found) + zeros, (_DRAWS, len(n)))
    # the rows that were not checked are drawn, too: the share is that of these rows
    draws = (n * found + rng.binomial(sample.sizes - n, rate)).sum(1) / total
    draws = value + np.sqrt(factor) * (draws - plain)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    least, most = seen.sum() / total, 1 - (n - seen).sum() / total
    low = least if not seen.any() else max(low, least)
    high = most if not (n - seen).any() else min(high, most)
    return Estimate(float(np.clip(value, low, high)), float(low), float(high))


def _prior(
    share: Float[np.ndarray, " strata"],
    predicted_means: Float[np.ndarray, " strata"],
    suspects: Bool[np.ndarray, " strata"],
    unseen: Bool[np.ndarray, " strata"],
) -> Float[np.ndarray, " strata"]:
    """``(H,)`` pseudo-counts of an outcome in each stratum.

    Args:
        share: ``(H,)`` share of each stratum in all rows.
        predicted_means: ``(H,)`` mean prediction over all rows of each stratum.
        suspects: ``(H,)`` strata whose labels are almost surely wrong.
        unseen: ``(H,)`` strata of whose checked rows none has the outcome.
    """
    expected = share * np.sqrt(np.clip(predicted_means * (1 - predicted_means), 1e-12, 1))
    by_size, by_errors = (
        np.where(unseen, a / max(a[unseen].sum(), 1e-300), a / a.sum()) for a in (share, expected)
    )
    shared = _PRIOR / 2 * (by_size + by_errors)
    return np.where(suspects, np.maximum(shared, _JEFFREYS), shared)


def _power(
    sample: Sample, y: Float[np.ndarray, " n"], predicted: Float[np.ndarray, " n"]
) -> tuple[float, float]:
    """Power of the predictions (PPI++, Angelopoulos et al. 2024) and the factor of the variance.

    Powers are clipped to [0, 1], as in the paper. One power for all strata: with ten rows in each,
    a power of its own would cost more than it gains. Zero, with factor 1, where few errors are seen
    or nothing is gained.
    """
    few = min(y.sum(), len(y) - y.sum())
    if few < _LEAST_SEEN:
        return 0.0, 1.0
    factor = sample.mean_variance
    dy, df = sample.centred(y), sample.centred(np.asarray(predicted, float))
    yy, ff, yf = (float(factor @ (a * b)) for a, b in ((dy, dy), (df, df), (dy, df)))
    if yy <= 0 or ff <= 0 or yf <= 0:
        return 0.0, 1.0
    # predictions that hardly differ among the checked rows would be blown up beyond probabilities
    power = min(yf / ff, 1.0)
    unexplained = 1 - power * (2 * yf - power * ff) / yy
    # one power was fitted; what counts is the number of rows of the rarer outcome, of which one is
    # taken for badly predicted even where all seen are well predicted
    left = max(unexplained, 1 / few) * few / (few - 2)
    return (power, left) if left < 1 else (0.0, 1.0)


def domain_rate(
    sample: Sample, domain: np.ndarray, outcome: np.ndarray, level: float = 0.9
) -> Estimate:
    """Share with a property among the rows of a domain, such as a true class.

    Args:
        sample: the checked rows' strata.
        domain: ``(n,)`` whether a checked row is in the domain.
        outcome: ``(n,)`` whether it has the property; of no effect outside.
        level: probability of the interval.
    """
    weight = sample.weights * domain
    if not domain.any():
        return Estimate(float("nan"), 0.0, 1.0)
    value = float(weight @ outcome / weight.sum())
    if (sample.checks == sample.sizes).all():
        return Estimate(value, value, value)
    effective = float(weight.sum() ** 2 / (weight @ weight))
    # linearised variance of the ratio, by strata
    score = sample.centred(domain * (outcome - value))
    factor = sample.mean_variance * sample.sizes.sum() ** 2
    variance = float(factor @ score**2) / weight.sum() ** 2
    if variance > 0:
        effective = float(np.clip(value * (1 - value) / variance, effective / 2, domain.sum()))
    return Estimate(value, *jeffreys(value, effective, level))


def jeffreys(value: float, n: float, level: float = 0.9) -> tuple[float, float]:
    """Jeffreys' interval of a share (Brown, Cai and DasGupta 2001), for any effective ``n``."""
    a, b = value * n + 0.5, (1 - value) * n + 0.5
    low = 0.0 if value <= 0 else float(special.betaincinv(a, b, (1 - level) / 2))
    high = 1.0 if value >= 1 else float(special.betaincinv(a, b, (1 + level) / 2))
    return low, high
