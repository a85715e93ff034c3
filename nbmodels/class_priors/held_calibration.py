"""Calibration of scores whose slope leaves the shares of the classes where they are held."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jax import Array
from jaxtyping import Float
from scipy import optimize
from scipy.special import logsumexp

from inference.arrays import on_device
from inference.pytree import register_dataclass
from nbmodels.class_priors.calibration import Calibration
from nbmodels.core.families import DrawKey, FullNormal
from nbmodels.core.short_rows import softmax

#: Slopes times the scores' spread at which known shares are kept, and cells of the table of scores
#: by which, at most.
_SLOPES, _SHOWN_CELLS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0), 100_000

#: Standard deviation, at most, of a known share's logarithm: a rare class is not left open.
_MOST_SD = 0.3

#: Part of the least share by which mean probabilities may differ from the shares.
_CLOSE = 0.02

_TINY = np.finfo(float).tiny


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class HeldCalibration(Calibration):
    """``P(y = k | scores) = softmax(exp(u) (scores - centre) + b)_k``, with ``b`` held.

    A classifier's scores hold the shares of the classes that it was trained on. Where these are
    uneven, a steep slope makes the most frequent class the only one, whatever the prior of the
    biases; of scores less their means it makes the classes more certain and leaves their shares
    about where they are.

    Attributes:
        prior: normal of ``u``, then ``b``; shape ``(1 + K,)``, of fits.
        drawn: that of draws, which would count twice what holds the shares.
        centre: ``(K,)`` mean scores, or thresholds of the scores that leave known shares.

    Examples:
        Scores that say nothing but that ants are frequent, at five times their slope:

        >>> import numpy as np
        >>> from nbmodels.class_priors import Calibration, HeldCalibration
        >>> scores = Calibration.pack(np.log(np.tile([0.8, 0.2], (20, 1))))
        >>> held = HeldCalibration.near(np.array([0.6, 0.4]), (0.1, 3), scores, np.ones(20), 2.0)
        >>> at = held.prior.mean.at[0].set(np.log(5))
        >>> print(np.exp(held.log_probs(at, scores))[0].round(1))
        [0.6 0.4]
        >>> print(np.exp(Calibration.of(2).log_probs(at.at[1:].set(0), scores))[0].round(3))
        [0.999 0.001]
    """

    drawn: FullNormal
    centre: Float[Array, " k"]

    @classmethod
    def near(
        cls,
        shares: Float[np.ndarray, " k"],
        log_sds: tuple[Any, Any],
        scores: Float[Array, "n k"],
        weights: Any,
        log_slope_sd: float,
    ) -> HeldCalibration:
        """Shares of the classes near given ones.

        Args:
            shares: ``(K,)`` of the classes.
            log_sds: ``(K,)`` prior standard deviation of their logarithms, in fits and in draws.
            scores: ``(N, K)``, packed.
            weights: ``(N,)`` row weights.
            log_slope_sd: prior standard deviation of the logarithm of the slope.
        """
        table = np.asarray(scores, float)
        centre = np.average(table, 0, np.asarray(weights, float))
        mean = np.average(softmax(table - centre), 0, np.asarray(weights, float))
        about = np.log(shares / mean)
        return cls._about(about, log_sds, centre, log_slope_sd)

    @classmethod
    def near_of_likelihoods(
        cls, shares: Float[np.ndarray, " k"], log_sds: tuple[Any, Any], log_slope_sd: float
    ) -> HeldCalibration:
        """As :meth:`near`, of scores that are log-likelihoods, which do not hold the shares."""
        return cls._about(np.log(shares), log_sds, np.zeros(len(shares)), log_slope_sd)

    @classmethod
    def keeping(
        cls,
        shares: Float[np.ndarray, " k"],
        scores: Float[Array, "n k"],
        weights: Any,
        log_slope_sd: float,
    ) -> HeldCalibration:
        """Known shares of the classes, whatever the slope, and whatever shares the scores hold.

        Under each of several slopes there are biases for which probabilities are the shares on
        average: logarithms of the shares at a slope of 0, and about a multiple of a steep slope.
        Prior mean and centre are those of the nearest line (weighted least squares). The standard
        deviation is that of the logarithms of shares among as many items, and of the line.

        Args:
            shares: ``(K,)`` of the population.
            scores: ``(N, K)``, packed.
            weights: ``(N,)`` row weights.
            log_slope_sd: prior standard deviation of the logarithm of the slope.
        """
        rows = np.flatnonzero(np.asarray(weights) > 0)
        some = rows[:: -(-len(rows) * len(shares) // _SHOWN_CELLS)] if len(rows) else rows
        table, each = np.asarray(scores, float)[some], np.asarray(weights, float)[some]
        spread, biases = float(table.std()) if len(table) else 0.0, [np.log(shares)]
        slopes = np.array(_SLOPES if spread > 0 else _SLOPES[:1])
        for slope in slopes[1:]:
            biases.append(_biases(slope / spread * table, each, shares, biases[-1]))
        # the steeper the slope, the less probabilities depend on the biases
        size = 1 / (1 + slopes[:, None])
        line = np.column_stack([np.ones(len(slopes)), -slopes / max(spread, _TINY)])
        (bias, centre), *_ = np.linalg.lstsq(size * line, size * np.stack(biases), rcond=None)
        off = np.square(size * (np.stack(biases) - line @ np.stack([bias, centre]))).sum(0)
        off /= np.square(size).sum()
        number = max(float(np.sum(weights)), 1.0)
        sd = np.minimum(np.sqrt((1 - shares) / (shares * number) + off), _MOST_SD)
        return cls._about(bias, (sd, sd), centre, log_slope_sd)

    @classmethod
    def _about(
        cls, bias: np.ndarray, log_sds: tuple[Any, Any], centre: np.ndarray, log_slope_sd: float
    ) -> HeldCalibration:
        fits, draws = (Calibration.of(len(bias), 0.0, log_slope_sd, bias, sd) for sd in log_sds)
        return cls(prior=fits.prior, drawn=draws.prior, centre=on_device(centre, float))

    def log_probs(
        self, likelihood_params: Float[Array, " p"], data: Float[Array, "n k"] | None
    ) -> Float[Array, "n k"]:
        """``(N, K)``; of an item without scores ``(1, K)``, those of the centre."""
        return super().log_probs(likelihood_params, self._centred(data))

    def stats(
        self,
        likelihood_params: Float[Array, " p"],
        resp: Float[Array, "n k"],
        data: Float[Array, "n k"],
        key: DrawKey = None,
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        return super().stats(likelihood_params, resp, data - self.centre, key)

    def probs(self, values: dict[str, Any], data: Array | None) -> Float[Array, "*n k"]:
        return super().probs(values, self._centred(data))

    def log_class_probs(self, values: dict[str, Any], data: Array | None) -> Float[Array, "*n k"]:
        return super().log_class_probs(values, self._centred(data))

    def for_draws(self) -> HeldCalibration:
        return replace(self, prior=self.drawn)

    def biased(self, scores: Any) -> Any:
        return scores - np.asarray(self.centre)

    def of_scores(self, mean: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        own = super().of_scores(mean)
        return np.concatenate([own[:1], own[1:] - np.exp(own[0]) * np.asarray(self.centre)])

    def from_scores(self, at: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        own = super().from_scores(at)
        return np.concatenate([own[:1], own[1:] + np.exp(own[0]) * np.asarray(self.centre)])

    def _centred(self, data: Array | None) -> Array | None:
        return None if data is None else data - self.centre


def _biases(
    scores: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " n"],
    shares: Float[np.ndarray, " k"],
    start: Float[np.ndarray, " k"],
) -> Float[np.ndarray, " k"]:
    """``(K,)`` biases under which mean probabilities are the shares: a minimum that is unique."""

    def value(bias: np.ndarray) -> tuple[float, np.ndarray]:
        logs = scores + bias
        log_sums = logsumexp(logs, axis=1)
        mean = np.average(np.exp(logs - log_sums[:, None]), 0, weights)
        return float(np.average(log_sums, weights=weights) - shares @ bias), mean - shares

    close = {"gtol": _CLOSE * float(shares.min())}
    found = optimize.minimize(value, start, jac=True, method="L-BFGS-B", options=close)
    # up to a constant, which changes no probability
    return np.asarray(found.x - found.x.mean() + np.log(shares).mean())
