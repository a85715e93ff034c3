"""Draws of the joint model of labels and a regression beside those given cross-fitted scores.

Scores that were learned from noisy labels hold a part of their noise, and their own errors are
taken for noise as well: draws given such scores miss both. Where the boundary is linear and columns
are few, the joint posterior of the regression and the noise (Bootkrajang and Kaban 2012,
*Label-noise robust logistic regression*) has neither fault. It trusts the boundary, though: so
draws are averaged over both by labels that each fit did not see (:func:`.plain.pseudo_bma`).
Labels, predictions and the noise matrix stay those of the cross-fitted model.

Of a classifier that is not linear, the columns are its scores: a matrix that calibrates them is
learned together with the noise (:func:`score_columns`). Probabilities that hold errors with a
direction fit the labels at a slope of one without any noise; one temperature hardly tells the two
apart, a matrix does. What the scores themselves get wrong stays out of these draws.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from inference import Status
from inference.arrays import on_device
from nbmodels.channels import Transition
from nbmodels.class_priors import ScaledLogistic
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.validation import pad_rows, posterior_length
from nbmodels.fitting.fitted_model import Drawn, FittedModel
from nbmodels.fitting.holdout import held_out_by_fold
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.plain import pseudo_bma
from nbmodels.fitting.scores import draw_folds

#: Rows times squared coefficients up to which draws are affordable: a sweep of a chain takes a few
#: milliseconds.
_SMALL = 5_000_000

#: Probability below which a model is left out: it would move no end of a 90 % interval.
_LEAST = 0.05

_FOLDS, _TINY = 5, 1e-9


def affordable(n_rows: int, n_columns: int, n_classes: int) -> bool:
    """Whether draws of the joint model are affordable."""
    coefficients = (1 + n_columns) * n_classes
    return posterior_length(n_rows) * coefficients**2 <= _SMALL


def _comparable(fitted: FittedModel) -> bool:
    """Whether the joint model answers the same question, with nothing given but the labels."""
    settings = fitted.settings
    return (
        fitted.informative
        and fitted.fit.rule == "map"
        and not fitted.interrupted
        and fitted.held_out_scores is not None
        and set(fitted.data.parts) == {PRIOR, "labels"}
        and settings.get("rounds") == "auto"
        and settings.get("class_prior") is None
        and bool(np.isin(fitted.data.weights, (0, 1)).all())
    )


def score_columns(fitted: FittedModel) -> Float[np.ndarray, "n k"]:
    """``(N, K)`` out-of-fold scores of a cross-fitted model, standardised by columns."""
    scores = np.asarray(fitted.data.parts[PRIOR], float)[: len(fitted.fit.resp)]
    spread = scores.std(0)
    return (scores - scores.mean(0)) / np.where(spread > 0, spread, 1)


def with_joint_draws(
    fitted: FittedModel, x: Float[np.ndarray, "n d"], options: FitOptions
) -> FittedModel:
    """The fit, a share of whose draws is of the joint model; the fit itself where that is not one.

    Called where the fit's precision holds.

    Args:
        fitted: a cross-fitted model of given labels.
        x: standardised columns, few (:func:`affordable`).
        options: of the fits.
    """
    forms = (fitted.fit, *(one.fit for one in fitted.alternatives))
    channels = (one.model.get("labels") for one in forms)
    full = next((one for one in channels if type(one) is Transition), None)
    if full is None or not _comparable(fitted):
        return fitted
    n, length = len(x), len(fitted.data.weights)
    k = len(fitted.names)
    parts = {
        PRIOR: ScaledLogistic.pack(pad_rows(x, length)),
        "labels": on_device(fitted.data.parts["labels"]),
    }
    data = Data(parts, on_device(fitted.data.weights))
    prior = ScaledLogistic.of(x.shape[1], k)
    model = {PRIOR: prior, "labels": jax.tree.map(on_device, full)}
    whole = options.fit_all([model], [data])[0]
    if whole.status == Status.INTERRUPTED or whole.confused:
        return fitted
    codes = np.asarray(fitted.data.parts["labels"])[:n]
    given = np.eye(k + 1)[np.minimum(codes, k)][:, :k]
    fold = pad_rows(draw_folds(given, _FOLDS, fitted.copies), length)
    fold[n:] = -1
    held_out = held_out_by_fold(model, data, fold, options, whole.params)
    beside: Any = fitted.held_out_scores
    if "scores" in fitted.chosen:  # those of another classifier
        own, scored, start = jax.tree.map(
            on_device, (fitted.fit.model, fitted.data, fitted.fit.params)
        )
        beside = held_out_by_fold(own, scored, fold, options, start)
    if held_out is None or beside is None:
        return fitted
    counted = np.asarray(fitted.data.weights)[:n] * (codes < k)
    probability = pseudo_bma(held_out[:n], beside[:n], counted, fitted.copies)
    return _averaged(fitted, Drawn(whole, jax.tree.map(np.asarray, data)), probability)


def _averaged(fitted: FittedModel, joint: Drawn, probability: float) -> FittedModel:
    """The fit with the joint model among what draws are averaged over.

    Args:
        fitted: the cross-fitted model.
        joint: what draws of the joint model are of.
        probability: of the joint model beside the scores of the fit.
    """
    scores = fitted.data.parts[PRIOR]
    # a nonlinear classifier's scores were compared with those of the fit, too
    elsewhere = sum(
        one.probability
        for one in fitted.alternatives
        if not np.array_equal(one.data.parts[PRIOR], scores)
    )
    odds = (1 - elsewhere) * probability / max(1 - probability, _TINY)
    share = odds / (1 + odds)
    if share < _LEAST:
        return fitted
    share = 1.0 if share > 1 - _LEAST else share
    others = (
        one._replace(probability=(1 - share) * one.probability) for one in fitted.alternatives
    )
    return replace(fitted, alternatives=(*others, joint._replace(probability=share)))
