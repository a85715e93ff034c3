"""Fits of labels with scores from two starts: the labels, and the scores' likeliest classes.

Scores that were learned from noisy labels contain the noise: begun at the labels, a fit may find
none besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from inference import Status
from inference.arrays import floating, on_device
from nbmodels.core import model as models
from nbmodels.core.families import Rule
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.fitting.em import Fit, started
from nbmodels.fitting.fit import with_arrays
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.progress import Report

#: Nats by which a fit from the second start must be better.
_CLEAR = 1.0


def fit_from_two_starts(
    models_: Sequence[Model],
    data: Sequence[Data],
    options: FitOptions,
    *,
    log_shares: Any = 0.0,
    report: Report | None = None,
    starts: Sequence[Any] | None = None,
) -> list[Fit]:
    """Fit each model begun at the labels and at the likeliest classes; the better of the two.

    Args:
        models_: labels' models with a score prior.
        data: of each.
        options: of the fits.
        log_shares: ``(K,)`` what the second start adds to the scores.
        report: called now and then with the iterations and the value they improve.
        starts: parameters of each that take the place of the labels as the first start.

    Returns:
        the fits; the second start is taken where it is better by a nat or more. A fit that was
        interrupted in either start has the status ``INTERRUPTED``.
    """
    fits = options.fit_all(models_, data, starts=starts, report=report)
    if any(f.status == Status.INTERRUPTED for f in fits):
        return fits
    shares = np.asarray(log_shares, floating())
    pairs = zip(map(models.at_fixed_priors, models_), data, strict=True)
    others = [_likeliest(model, one, shares, options.rule) for model, one in pairs]
    again = options.fit_all(models_, data, starts=others, report=report)
    return [_better(a, b) for a, b in zip(fits, again, strict=True)]


def _better(first: Fit, second: Fit) -> Fit:
    found = second if second.objective > first.objective + _CLEAR else first
    stopped = second.status == Status.INTERRUPTED
    return replace(found, status=Status.INTERRUPTED) if stopped else found


def _likeliest(
    model: Model, data: Data, log_shares: Float[np.ndarray, "*k"], rule: Rule
) -> dict[str, Any]:
    """Parameters from the likeliest classes."""
    scores = np.asarray(data.parts[PRIOR])
    hard = np.eye(scores.shape[1], dtype=scores.dtype)[np.argmax(scores + log_shares, 1)]
    found: dict[str, Any] = started(with_arrays(model), on_device(hard), data, rule)
    return found
