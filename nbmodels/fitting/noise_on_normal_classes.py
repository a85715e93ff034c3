"""Labels, noise and predictions by clear clusters of the features, of few rows.

Where many of few labels are wrong, a classifier that learns from them is poor, and held-out labels
hardly tell noise from none: labels stay as they are, or are corrected by poor scores. Clear normal
classes (:mod:`nbmodels.fitting.normal_classes`) are better scores there. What they say of an item
without its own label takes the place of the classifier's scores, as a nonlinear classifier's does
(:mod:`nbmodels.fitting.reference_scores`), so that noise matrix, intervals and corrected labels are
of one model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.special import expit

from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR
from nbmodels.errors import Caution, VerdictWarning
from nbmodels.fitting.fitted_model import FittedModel, Predictor, given_codes
from nbmodels.fitting.found_classes import FoundClasses
from nbmodels.fitting.normal_classes import NormalClassifier, normal_classes
from nbmodels.fitting.options import FEW_ROWS, FitOptions
from nbmodels.fitting.points import Coding
from nbmodels.fitting.propagation import calibrated, calibration
from nbmodels.fitting.reference import nonlinear_predictions
from nbmodels.fitting.reference_scores import (
    TAKEN,
    lead_of,
    noise_on,
    replaceable,
    with_noise_of,
)
from nbmodels.fitting.sides import sides_of

#: What ``chosen`` has where their scores and predictions are in the place of a model's.
DISCRIMINANT = "linear discriminant"

#: Prior standard deviation of the logarithm of their slope. They are probabilities of the true
#: classes: a small slope would explain errors as overlap, which the items do not have.
_LOG_SLOPE_SD = 0.3

#: The same, and that of the biases, where they are these probabilities as they are: a smaller slope
#: takes errors near the borders for overlap, which is in them already.
_KNOWN_SD = 0.03

#: Standard errors by which held-out labels may be likelier without them.
_SURELY = 1.0

#: Share of the labels that are another class by the fit, up to which it stays.
_ALIKE = 0.05

#: Belief in the changes by a nonlinear classifier of the labels
#: (:class:`nbmodels.fitting.sides.Sides`) from which on they are made. Clusters that are no classes
#: contradict it: rings, codes of places, clusters across which the classes go.
_BELIEVED = 0.5

STATED = Caution(
    VerdictWarning,
    "the rows form one clear cluster for each class: labels are corrected, and the noise matrix "
    "is estimated, by these clusters. If classes are mixed within clusters, so that labels differ "
    "there without any error, fewer labels are wrong: checked rows (audit_plan) tell",
    "clusters of the features",
)


def with_normal_classes(
    fitted: FittedModel,
    held: FittedModel,
    points: Any,
    options: Callable[[], FitOptions],
    coding: Coding | None = None,
) -> FittedModel:
    """A cut fit to few labels, by clear normal classes where these are surely there.

    Args:
        fitted: a model of given labels. A joint one, one beside votes or checks, of rows in groups,
            or with known noise, class shares or rounds stays as ``held`` is.
        held: the same, held to a nonlinear classifier. It stays where it has nearly these labels
            already, its held-out labels are likelier, or that classifier sides with the given
            labels.
        points: ``(N, d)`` items in the space of their features; sparse ones and None are not
            looked at.
        options: makes those of fits, where the fit's precision holds.
        coding: by which rows became points; None where the model is to predict new items itself.
    """
    if points is None or sparse.issparse(points) or held.interrupted or not _few(fitted):
        return held
    codes = given_codes(fitted)
    weights = np.asarray(fitted.data.weights, float)[: len(codes)]
    predicted = _predicted(held, points, codes, weights)
    if predicted is None:
        return held
    found = normal_classes(points, codes, len(fitted.names), weights, [predicted])
    if found is None or _agree(found.classes, held):
        return held
    components, classes, log_factor = found
    logs = classes.found.parts.log_probabilities(components(points))
    logs, fold = classes.out_of_fold(logs)
    taken = noise_on_classes(classes, logs, fold, fitted, held, options)
    if taken is held or taken.interrupted:
        return taken
    about = predicted, codes, taken.fit.resp.argmax(1)
    if sides_of(*(one[classes.rows] for one in about)).belief < _BELIEVED:
        return held
    stated = tuple(STATED if one == TAKEN else one for one in taken.cautions)
    taken = replace(
        taken,
        noisy=float(expit(log_factor)),
        chosen={**taken.chosen, "scores": DISCRIMINANT},
        cautions=stated,
    )
    if coding is None:
        return taken
    classifier = NormalClassifier(coding, components, classes.found.parts)
    at = calibration(taken.fit)
    return replace(
        taken,
        predictor=Predictor(classifier, calibrated(logs, at), at),
        chosen={**taken.chosen, "predictions": DISCRIMINANT},
    )


def comparable(fitted: FittedModel) -> bool:
    """Whether it is a cut fit to labels, with nothing given but these."""
    cut = fitted.data.parts.get(PRIOR) is not None
    about = {PRIOR, "labels", *fitted.scored}
    alone = set(fitted.fit.model) <= about and "labels" in fitted.data.parts
    single = fitted.copies is None and len(fitted.names) > 1
    return cut and alone and single and replaceable(fitted)


def _few(fitted: FittedModel) -> bool:
    return len(fitted.fit.resp) <= FEW_ROWS and comparable(fitted)


def _agree(classes: FoundClasses, fitted: FittedModel) -> bool:
    """Whether labels are about as the fit has them already, which then stays what was asked for."""
    suggested, rows = classes.found.resp.argmax(1), classes.rows
    return bool(np.mean(suggested != fitted.label_posterior[rows].argmax(1)) <= _ALIKE)


def _predicted(
    fitted: FittedModel,
    points: Float[np.ndarray, "n d"],
    codes: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
) -> Int[np.ndarray, " n"] | None:
    """``(N,)`` classes by a nonlinear classifier of other items' labels; None where there is none.

    A fit whose features are not informative has none of its own.
    """
    if fitted.reference is not None:
        return fitted.reference
    known = np.where(weights > 0, codes, -1)
    found = nonlinear_predictions(points, known, len(fitted.names), weights=weights)
    return None if found is None else found.classes


def noise_on_classes(
    classes: FoundClasses,
    logs: Float[np.ndarray, "n k"],
    fold: Int[np.ndarray, " n"],
    fitted: FittedModel,
    held: FittedModel,
    options: Callable[[], FitOptions],
    sure: bool = False,
) -> FittedModel:
    """A fit with labels and noise by classes that were found.

    Args:
        classes: that were found.
        logs, fold: their scores, see
            :meth:`nbmodels.fitting.found_classes.FoundClasses.out_of_fold`.
        fitted: a model of given labels.
        held: the same, held to a nonlinear classifier.
        options: makes those of fits, where the fit's precision holds.
        sure: whether their scores are the classes' probabilities as they are. Else these are
            calibrated, and the fit stays where held-out labels are likelier under it.
    """
    slope_sd, bias_sd = (_KNOWN_SD, _KNOWN_SD) if sure else (_LOG_SLOPE_SD, None)
    with computing(fitted.double):
        found = noise_on(logs, fold, fitted, options(), log_slope_sd=slope_sd, bias_sd=bias_sd)
    if found is None:
        return replace(held, interrupted=True)
    weights = np.asarray(fitted.data.weights, float)[: len(logs)]
    for other in (held.held_out_scores, held.reference_held_out):
        about = found.held_out, classes.rows, weights
        if not sure and other is not None and _likelier(other, *about):
            return held
    return replace(
        with_noise_of(found, fitted),
        averaged=None,
        reference=held.reference,
        reference_held_out=held.reference_held_out,
        reference_corrected=held.reference_corrected,
    )


def _likelier(
    own: Float[np.ndarray, " n"],
    instead: Float[np.ndarray, " n"],
    rows: Int[np.ndarray, " m"],
    weights: Float[np.ndarray, " n"],
) -> bool:
    """Whether held-out labels are likelier under a fit than under the noise on these classes."""
    known = rows[np.isfinite(own[rows]) & np.isfinite(instead[rows])]
    return lead_of(instead[known], own[known], weights[known], None) > _SURELY
