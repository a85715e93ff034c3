"""Cut fits are held to a plain classifier that knows neither their features' model nor noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from scipy import sparse

from inference import Status
from inference.arrays import on_device
from nbmodels.class_priors import Calibration
from nbmodels.core.component import Given
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.validation import pad_rows
from nbmodels.errors import Caution, VerdictWarning
from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.discriminative import LOG_SLOPE_SD
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.holdout import compare_scores
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.plain import pseudo_bma
from nbmodels.fitting.reference import Reference, nonlinear_predictions, sides_of
from nbmodels.fitting.scores import stratified_folds
from nbmodels.fitting.trials import SIGNIFICANT

#: Folds of the labels by which noise on a reference's scores is judged.
_FOLDS = 5

#: Standard errors from which on it is said that the reference is better, and share of the labels
#: that would have been changed.
_SURELY, _CHANGED = 2.0, 0.01

_LIKELIER = Caution(
    VerdictWarning,
    "held-out labels are surely likelier under a nonlinear classifier of the features that knows "
    "no noise: this model of the features is poor, labels are changed where that is likely to "
    "help only, and the noise matrix holds the model's errors; AutoNoisyClassifier may do better",
)


def with_reference(
    fitted: FittedModel, points: Any, options: Callable[[], FitOptions]
) -> FittedModel:
    """A fitted model with reference predictions of its labels, and held to them where it is cut.

    A cross-fitted model that takes labels for wrong because its features' model is bad (outliers,
    say) contradicts labels that a better classifier predicts. So among the labels that would be
    changed, those are counted that the reference predicts as given, and as suggested. The posterior
    probability that the latter are more frequent (Jeffreys' prior) is one more factor of the
    probability that labels are noisy. And where all labels are likelier under the reference by more
    than a standard error, that probability is no larger than by this comparison: a noise model
    explains what a bad model of the features gets wrong as well as it does wrong labels, which a
    plain classifier with the same scores cannot show. Where noise on the reference's own scores is
    likelier than the fit, it takes the fit's place in that comparison: what a poor model takes for
    wrong is then no mistake of its own. A joint model is not held to either: its features pass
    their own checks, and may show the classes apart where errors follow the features and any
    classifier of the given labels learns them.

    Args:
        fitted: a model of given labels; where their noise is known, or there is none, or the fit
            was interrupted, nothing is added.
        points: ``(N, d)`` items in the space of their features; nothing is added where they are
            sparse or None.
        options: makes those of fits, where the fit's precision holds.
    """
    k = len(fitted.names)
    channel = fitted.fit.model.get("labels")
    if fitted.interrupted or channel is None or isinstance(channel, Given) or k < 2:
        return fitted
    if points is None or sparse.issparse(points):
        return fitted
    n = len(fitted.fit.resp)
    codes = np.asarray(fitted.data.parts["labels"])[:n]
    codes = np.where((codes < k) & (np.asarray(fitted.data.weights)[:n] > 0), codes, -1)
    reference = nonlinear_predictions(points, codes, k, fitted.copies)
    if reference is None:
        return fitted
    margin = reference.margin(codes)
    fitted = replace(fitted, reference=reference.classes, reference_margin=margin)
    others = set(fitted.fit.model) - {PRIOR, "labels", *fitted.scored}
    if fitted.data.parts.get(PRIOR) is None or others:
        return fitted
    free = ~checked_rows(fitted.data, n, k)  # the class of the others is no inference
    sides = sides_of(reference.classes[free], codes[free], fitted.label_posterior[free].argmax(1))
    noisy = fitted.noisy * sides.probability
    if fitted.held_out_scores is None or fitted.drawn is not None:
        return replace(fitted, noisy=noisy)
    weights = np.asarray(fitted.data.weights, float)[:n]
    rows = np.isfinite(reference.held_out) & np.isfinite(fitted.held_out_scores)
    rows &= free & (weights > 0)
    if not rows.any():
        return replace(fitted, noisy=noisy)
    groups = None if fitted.copies is None else fitted.copies[rows]
    compared = fitted.held_out_scores[rows], reference.held_out[rows]
    found = compare_scores(compared, [True, True], weights[rows], SIGNIFICANT, groups)
    if found.best == 0:
        return replace(fitted, noisy=noisy)
    with computing(fitted.double):
        beside = _noise_on(reference, fitted, options())[rows]
    scores = max(compared[0], beside, key=lambda one: float(weights[rows] @ one))
    noisy = min(noisy, pseudo_bma(scores, compared[1], weights[rows], groups))
    matters = noisy < 0.5 and sides.changed > _CHANGED * np.count_nonzero(rows)
    sure = matters and found.gain[1] > _SURELY * found.standard_error[1]
    cautions = (*fitted.cautions, *((_LIKELIER,) if sure else ()))
    return replace(fitted, noisy=noisy, cautions=cautions)


def _noise_on(
    reference: Reference, fitted: FittedModel, options: FitOptions
) -> Float[np.ndarray, " n"]:
    """Log-probability of each label under noise on a reference's scores, fitted without it."""
    n, length = len(reference.classes), len(fitted.data.weights)
    k = reference.logs.shape[1]
    scores = Calibration.pack(on_device(pad_rows(reference.logs, length)))
    prior = Calibration.of(k, log_slope_sd=LOG_SLOPE_SD)
    model = jax.tree.map(on_device, {PRIOR: prior, "labels": fitted.fit.model["labels"]})
    # begun at the noise that was found: the scores hold it, too, and the labels show none besides
    start = jax.tree.map(on_device, {name: fitted.fit.params[name] for name in model})
    known = pad_rows(reference.classes >= 0, length)
    weights = np.asarray(fitted.data.weights, float) * known
    codes = np.asarray(fitted.data.parts["labels"])[:n]
    rng = np.random.default_rng(n)
    fold = pad_rows(stratified_folds(codes, _FOLDS, rng, fitted.copies), length)
    parts = {PRIOR: scores, "labels": on_device(fitted.data.parts["labels"])}
    data = [Data(parts, on_device(weights * (fold != f))) for f in range(_FOLDS)]
    out = np.full(n, -np.inf)
    found = options.fit_all([model] * _FOLDS, data, starts=[start] * _FOLDS)
    for f, one in enumerate(found):
        if one.status != Status.INTERRUPTED:
            here = fold[:n] == f
            out[here] = np.asarray(one.log_likelihood)[:n][here]
    return out
