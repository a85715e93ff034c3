"""Labels whose features do not surely predict held-out labels: nothing identifies their noise.

Labels stay as they are, and the noise is that of the prior. Which labels are most doubtful needs no
such evidence: they are ranked by the plain classifier of the given labels.
"""

from __future__ import annotations

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
from nbmodels.fitting.fit import Fit, noise_at_prior
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
        of the prior are of, the same fit with the noise open, and data without labels.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    alike = np.zeros(len(plain) - 1)
    bias = alike if shares is None else -np.exp(plain[0]) * np.log(shares)
    ranked, without = (
        finished(options.fit(_from_prior(model, slope, b), d, report=report))
        for slope, b, d in ((plain[0], bias, data), (_NO_SLOPE, alike, null))
    )
    channel = {name: c for name, c in model.items() if name == "labels"}
    parts = dict(null.parts)
    if "labels" in parts:
        parts["labels"] = on_device(np.full_like(parts["labels"], len(alike)))
    host = partial(jax.tree.map, np.asarray)
    drawn = replace(
        without,
        model=host({**without.model, **channel}),
        params=host({**without.params, **{name: c.prior for name, c in channel.items()}}),
    )
    return without, ranked.resp, (drawn, host(replace(null, parts=parts)))


def _from_prior(model: Model, log_slope: float, bias: Float[np.ndarray, " k"]) -> Model:
    """With the calibration and the noise held."""
    prior: Any = model[PRIOR]
    mean = np.concatenate([[log_slope], bias])
    held = FullNormal(on_device(mean), on_device(_FIXED_SD**-2.0 * np.eye(len(mean))))
    out = {**model, PRIOR: replace(prior, prior=held)}
    if "labels" in model:
        out["labels"] = fixed_at(noise_at_prior(model["labels"], "map"))
    return out
