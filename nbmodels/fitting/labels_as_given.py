"""Labels whose features do not surely predict held-out labels: nothing identifies their noise.

Labels stay as they are, and the noise is that of the prior, or of checked rows. Which labels are
most doubtful needs no such evidence: they are ranked by the plain classifier of the given labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from inference.arrays import on_device
from nbmodels.channels.fixed import fixed_at
from nbmodels.core.families import FullNormal
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.empirical_bayes import fit_with_learned_priors
from nbmodels.fitting.fit import Fit, noise_at_prior
from nbmodels.fitting.label_sources import VOTES
from nbmodels.fitting.options import FitOptions, finished
from nbmodels.fitting.progress import Report

#: Probability that labels are noisy where nothing is known of it; with it, every label stays.
EVEN = 0.5

#: Standard deviation of a calibration that must not move, and the logarithm of a slope at which
#: scores count for nothing.
_FIXED_SD, _NO_SLOPE = 1e-3, -30.0


def as_given(
    model: Model,
    data: Data,
    null: Data,
    plain: Float[np.ndarray, " k1"],
    shares: Float[np.ndarray, " k"] | None,
    options: FitOptions,
    report: Report | None = None,
) -> tuple[Fit, Float[np.ndarray, "n k"], tuple[Fit, Data]]:
    """Labels under the noise of the prior, without scores and with the plain classifier's slope.

    Rows that were checked by hand need no features to show the noise, which is learned from them.

    Args:
        model: of the labels, with the scores as their class prior.
        data: labels and out-of-fold scores.
        null: the same with scores of zero.
        plain: ``(1 + K,)`` calibration of the plain classifier.
        shares: ``(K,)`` of the given labels, where scores hold them; None where they do not. All
            classes are taken to be alike: a rare class's labels are no less right than others.
        options: of the fits.
        report: called now and then with the iterations and the value they improve.

    Returns:
        the fit to ``null``; ``(N, K)`` responsibilities under the plain classifier; and what draws
        are of, the same fit with the noise open, and data without labels but those of checked rows.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    k = len(plain) - 1
    alike = np.zeros(k)
    bias = alike if shares is None else -np.exp(plain[0]) * np.log(shares)
    checks = _checked_labels(model, null, k)
    learned = None
    if checks is not null and (np.asarray(checks.parts["labels"]) < k).any():
        held = {**model, PRIOR: _held(model[PRIOR], _NO_SLOPE, alike)}
        learned = finished(options.fit(held, checks, report=report))
    ranked, without = (
        finished(options.fit(_at_known_noise(model, slope, b, learned), d, report=report))
        for slope, b, d in ((plain[0], bias, data), (_NO_SLOPE, alike, null))
    )
    channel = {name: c for name, c in model.items() if name == "labels"}
    about = {n: c.prior if learned is None else learned.params[n] for n, c in channel.items()}
    host = partial(jax.tree.map, np.asarray)
    drawn = replace(
        without,
        model=host({**without.model, **channel}),
        params=host({**without.params, **about}),
    )
    return without, ranked.resp, (drawn, host(checks))


def _checked_labels(model: Model, data: Data, n_classes: int) -> Data:
    """The same data with the given labels of checked rows alone; they show what noise there is."""
    if "labels" not in data.parts:
        return data
    labels = np.asarray(data.parts["labels"])
    kept = np.where(checked_rows(model, data, len(labels)), labels, n_classes)
    return replace(data, parts={**data.parts, "labels": on_device(kept.astype(labels.dtype))})


def _held(prior: Any, log_slope: float, bias: Float[np.ndarray, " k"]) -> Any:
    """A calibration that does not move."""
    mean = np.concatenate([[log_slope], bias])
    precision = _FIXED_SD**-2.0 * np.eye(len(mean))
    return replace(prior, prior=FullNormal(on_device(mean), on_device(precision)))


def _at_known_noise(
    model: Model, log_slope: float, bias: Float[np.ndarray, " k"], learned: Fit | None
) -> Model:
    """With the calibration held, and the noise at that of the checked rows, or of the prior."""
    out = {**model, PRIOR: _held(model[PRIOR], log_slope, bias)}
    if "labels" in model:
        noise = noise_at_prior(model["labels"], "map")
        out["labels"] = fixed_at(noise if learned is None else learned.transitions["labels"])
    return out


def of_votes(
    null: Fit,
    model: Model,
    data: Data,
    learned: Sequence[str],
    options: FitOptions,
    report: Report | None = None,
) -> Fit:
    """The votes' own model without the features, with the calibration for new items beside it.

    As :class:`nbmodels.DawidSkene` does, it is fitted as if votes were independent and tempered
    afterwards: tempered votes say less than the shares of the classes, which a rare class
    would then lose to the others.

    Args:
        null: a fit to labels and votes with scores of zero.
        model, data, learned: labels and votes without the scores, and components whose prior is
            learned.
        options: of the fits.
        report: called now and then with the iterations and the value they improve.
    """
    powers = {name: power for name, power in data.powers.items() if name != VOTES}
    loose = replace(data, parts={**data.parts, PRIOR: None}, powers=powers)
    fit = finished(fit_with_learned_priors(model, loose, learned, options, report=report))
    resp = fit.resp ** np.reshape(data.powers.get(VOTES, 1.0), (-1, 1))
    own = null.params[PRIOR]
    shares = np.asarray(fit.point_of(PRIOR), own.mean.dtype)
    calibration = replace(own, mean=np.concatenate([own.mean[:1], shares]))
    return replace(
        fit,
        model={**fit.model, PRIOR: null.model[PRIOR]},
        params={**fit.params, PRIOR: calibration},
        resp=resp / resp.sum(1, keepdims=True),
    )
