"""Labels and noise by normal classes along linear scores, where these show errors that a fit lacks.

Held-out labels of few rows, and of errors that follow the features, hardly show noise: a classifier
that is less sure predicts them nearly as well. The shape of the classes may show it surely
(:mod:`nbmodels.fitting.noise_by_shape`). Its classes are then the better scores, and take the place
of the classifier's as clear clusters do (:mod:`nbmodels.fitting.noise_on_normal_classes`), if the
nearest rows support the labels (:mod:`nbmodels.fitting.relabelling`). So are new texts classified;
new rows of a table are predicted as before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Int
from scipy import sparse
from scipy.special import expit

from nbmodels.errors import Caution, VerdictWarning
from nbmodels.fitting.fitted_model import FittedModel, Predictor, given_codes
from nbmodels.fitting.nearest import nearest_labels, shares_nearby
from nbmodels.fitting.noise_by_shape import NoiseByShape, noise_by_shape
from nbmodels.fitting.noise_on_normal_classes import comparable, noise_on_classes
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.propagation import calibrated, calibration
from nbmodels.fitting.reference import linear_scores
from nbmodels.fitting.reference_scores import TAKEN
from nbmodels.fitting.relabelling import (
    ERRORS_ANYWHERE,
    SEEM_ANYWHERE,
    SEEM_NEAR_BORDERS,
    supports,
)
from nbmodels.fitting.word_evidence import WordClassifier

#: What ``chosen`` has where their scores are in the place of a model's.
LINEAR = "discriminant along linear scores"

_BY_SHAPE = (
    "labels are corrected, and the noise matrix is estimated, by the shape of the classes along "
    "linear scores. If classes are mixed where they seem clear, fewer labels are wrong: check some "
    "rows by hand (audit_plan)"
)
ANYWHERE = Caution(
    VerdictWarning,
    f"{SEEM_ANYWHERE}: {_BY_SHAPE}",
    ERRORS_ANYWHERE,
)
NEAR_BORDERS = Caution(
    VerdictWarning,
    f"{SEEM_NEAR_BORDERS}, which held-out labels do not show: {_BY_SHAPE}. Where classes overlap, "
    "some of these errors are taken for overlap: the noise matrix is then too clean, and its "
    "intervals are too narrow",
)


def with_linear_classes(
    fitted: FittedModel,
    held: FittedModel,
    points: Any,
    words: Any,
    options: Callable[[], FitOptions],
    predictions: bool,
) -> FittedModel:
    """A cut fit, by normal classes along linear scores where these surely show more errors.

    Args:
        fitted: a model of given labels, as for
            :func:`nbmodels.fitting.noise_on_normal_classes.with_normal_classes`.
        held: the same, held to a nonlinear classifier. It stays where the shape does not surely
            find errors, or the nearest rows do not support the corrected labels.
        points: ``(N, d)`` items in the space of their features, dense or sparse; None to do
            nothing.
        words: the same, as counts of words where there are some.
        options: makes those of fits, where the fit's precision holds.
        predictions: whether new texts are predicted by these classes, too, where words are counts.
    """
    if points is None or held.interrupted or not comparable(fitted):
        return held
    shape = _shape(fitted, words)
    errors, k = shape.likeliest, len(fitted.names)
    codes = given_codes(fitted)
    if errors.classes is None or not errors.found or len(errors.rows) != len(codes):
        return held
    near = _near(fitted, points)
    if near is None or not supports(errors, *near, points, held):
        return held
    scores = errors.classes.out_of_fold(np.zeros((len(codes), k)))
    taken = noise_on_classes(errors.classes, *scores, fitted, held, options, sure=True)
    if taken.interrupted:
        return taken
    probs = np.zeros((len(codes), k))
    probs[errors.rows] = errors.probs
    predicted = {name: one for name, one in held.chosen.items() if name == "predictions"}
    stated = NEAR_BORDERS if errors is shape.near_borders else ANYWHERE
    taken = replace(
        taken,
        averaged=probs,
        noisy=float(expit(errors.log_factor)),
        predictor=held.predictor,
        chosen={**taken.chosen, **predicted, "scores": LINEAR},
        cautions=tuple(stated if one == TAKEN else one for one in taken.cautions),
    )
    if not predictions or not sparse.issparse(words) or words is points:
        return taken
    # of folds, as the scores by which the classes were found
    means = linear_scores(words, codes, k).words
    assert means is not None
    classifier = WordClassifier(means, errors.classes.found.parts)
    at = calibration(taken.fit)
    return replace(
        taken,
        predictor=Predictor(classifier, calibrated(scores[0], at), at),
        chosen={**taken.chosen, "predictions": LINEAR},
    )


def _near(
    fitted: FittedModel, points: Any
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"]] | None:
    """Items and the most frequent label of the nearest rows of each; None where there are few."""
    if fitted.separable is not None:
        return fitted.separable.rows, fitted.separable.votes
    found = nearest_labels(points, given_codes(fitted), len(fitted.names), copies=fitted.copies)
    return None if found is None else (found.rows, shares_nearby(found).argmax(1))


def _shape(fitted: FittedModel, words: Any) -> NoiseByShape:
    """That of a fit, or looked at now where features are not informative."""
    if fitted.separable is not None:
        return fitted.separable.by_shape
    codes = given_codes(fitted)
    weights = np.asarray(fitted.data.weights, float)[: len(codes)]
    known = np.where(weights > 0, codes, -1)
    return noise_by_shape(words, known, len(fitted.names), weights, fitted.copies)
