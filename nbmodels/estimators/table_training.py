"""Training of a table's model: jointly, cross-fitted, or whichever the data bear out.

A joint model uses everything that its assumptions allow, and its intervals hold where they are
right. Where features depend on each other it leaves the labels, and cross-fitting does not. So the
joint model is taken where its own model checks pass and held-out labels are no less likely under
it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from nbmodels.core import model as models
from nbmodels.core.model import PRIOR
from nbmodels.errors import Caution
from nbmodels.estimators.options import CrossFit, Joint
from nbmodels.fitting import init_spectral
from nbmodels.fitting.builder import ModelBuilder
from nbmodels.fitting.cross_fitted import cross_fitted
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.holdout import Comparison, compare_scores, held_out_scores
from nbmodels.fitting.joint import select_joint
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.scores import Candidate, Settings
from nbmodels.fitting.selection import INFORMATIVE, INTERRUPTED
from nbmodels.fitting.trials import SIGNIFICANT

#: Fits a candidate jointly, from a start, with attributes of the result.
FitJoint = Callable[..., FittedModel]

#: Up to so many cells (rows x columns x classes) a joint fit is tried whatever the features are;
#: beyond, only where they pass their checks beforehand.
_SMALL = 20_000_000

#: Folds by which the joint model's labels are held out.
_FOLDS = 5

#: Components beside the features under which held-out labels are compared.
_COMPARED = {PRIOR, "labels", "trusted"}

_STOPPED = Caution(
    INTERRUPTED.category,
    "interrupted while the joint model was compared; the cross-fitted one is taken",
)


def train(
    build: ModelBuilder,
    training: Joint | CrossFit | None,
    names: np.ndarray,
    options: FitOptions,
    fit_joint: FitJoint,
) -> FittedModel:
    """Train a table's model.

    Args:
        build: builder of its models.
        training: how; None for whichever the data bear out, or jointly where there is no label.
        names: ``(K,)`` names of the classes.
        options: of the fits.
        fit_joint: the estimator's way to fit a candidate jointly.
    """
    if training is None and not _has_labels(build({})):
        training = Joint()
    if isinstance(training, Joint):
        return _joint(build, training, names, options, fit_joint)
    build.grid.pop("weight", None)
    rounds = CrossFit().n_rounds if training is None else training.n_rounds
    fitted = cross_fitted(
        build, build.features, names, build.n_rows, options, grid=build.grid, rounds=rounds
    )
    if training is not None or fitted.interrupted:
        return fitted
    return _joint_or(fitted, build, names, options, fit_joint)


def _joint(
    build: ModelBuilder,
    training: Joint,
    names: np.ndarray,
    options: FitOptions,
    fit_joint: FitJoint,
) -> FittedModel:
    settings, choice, interrupted = select_joint(build, build.grid, options)
    candidate = build(settings)
    start = None
    if training.init == "moments":
        key = jax.random.key(options.seed)
        start = init_spectral.start(
            candidate.model, candidate.data, key, options.rule, build.n_classes
        )
    return fit_joint(
        candidate,
        names,
        build.n_rows,
        options,
        start,
        chosen=settings,
        choice=choice,
        log_jacobian=build.log_jacobian(settings),
        settings=settings,
        interrupted=interrupted,
        cautions=(INTERRUPTED,) if interrupted else (),
    )


def _joint_or(
    cut: FittedModel,
    build: ModelBuilder,
    names: np.ndarray,
    options: FitOptions,
    fit_joint: FitJoint,
) -> FittedModel:
    """The joint model under the settings of a cross-fitted one, where it is borne out."""
    settings = {n: v for n, v in cut.chosen.items() if n != "rounds"}
    candidate = build(settings)
    columns = {c.name: [str(j) for j in c.where] for c in build.columns(settings)}
    # an item's size counts less where its features repeat each other: that is no joint model
    comparable = set(candidate.model) - set(build.features) <= _COMPARED
    if not comparable or "labels" not in candidate.model or settings.get("size_power"):
        return cut
    cells = build.n_rows * sum(map(len, columns.values())) * build.n_classes
    if cells > _SMALL and not _features_pass(cut, candidate, columns):
        return cut
    try:
        fitted = fit_joint(
            candidate,
            names,
            build.n_rows,
            options,
            None,
            log_jacobian=build.log_jacobian(settings),
            settings=settings,
        )
        found = None if fitted.interrupted else _compared(cut, fitted, candidate, options)
    except KeyboardInterrupt:
        return replace(cut, interrupted=True, cautions=(*cut.cautions, _STOPPED))
    if found is None:
        return replace(cut, interrupted=True, cautions=(*cut.cautions, _STOPPED))
    taken = bool(found.identified[1]) and _passes(fitted, columns)
    choice = _with_training(cut.choice, settings, found, taken)
    if not taken:
        return replace(cut, choice=choice)
    return replace(fitted, chosen={**settings, "training": "joint"}, choice=choice)


def _compared(
    cut: FittedModel, fitted: FittedModel, candidate: Candidate, options: FitOptions
) -> Comparison:
    """The joint model beside the cross-fitted one, by the same labels.

    It counts as identified where its classes keep their names, its labels are likelier than without
    features, and not surely less likely than under the other.
    """
    data = candidate.data
    n = len(fitted.fit.resp)
    model = jax.tree.map(jnp.asarray, fitted.fit.model)
    codes = np.asarray(data.parts["labels"])[:n]
    k = len(fitted.names)
    weights = np.where(codes < k, np.asarray(data.weights)[:n], 0)
    found = held_out_scores(model, data, options, _FOLDS)
    scores = found.scores[:n]
    shares = np.bincount(codes, weights, k + 1)[:k] / weights.sum()
    null = np.log(shares[np.minimum(codes, k - 1)].clip(np.finfo(float).tiny))
    assert cut.held_out_scores is not None  # cross-fitted
    better = compare_scores([null, scores], [True, True], weights, INFORMATIVE).best
    worse = compare_scores([scores, cut.held_out_scores], [True, True], weights, SIGNIFICANT).best
    named = found.identified and not fitted.fit.confused and better == 1 and worse == 0
    return compare_scores([cut.held_out_scores, scores], [True, named], weights, SIGNIFICANT)


def _passes(fitted: FittedModel, columns: Any) -> bool:
    from nbmodels.diagnostics.check import check_model

    return check_model(fitted.fit, fitted.data, fitted.names, columns).ok


def _features_pass(cut: FittedModel, candidate: Candidate, columns: Any) -> bool:
    """Whether features pass their checks under the cross-fitted labels."""
    from nbmodels.diagnostics.check import check_features

    emissions = {name: candidate.model[name] for name in columns}
    resp = np.zeros((len(candidate.data.weights), len(cut.names)))
    resp[: len(cut.label_posterior)] = cut.label_posterior
    params = models.start(emissions, jnp.asarray(resp), candidate.data, cut.fit.rule)
    to_host = jax.tree.map(np.asarray, {"model": emissions, "params": params})
    fit = replace(
        cut.fit,
        model={**cut.fit.model, **to_host["model"]},
        params={**cut.fit.params, **to_host["params"]},
    )
    data = jax.tree.map(np.asarray, candidate.data)
    return check_features(fit, data, cut.names, columns).ok


def _with_training(
    choice: pd.DataFrame | None, settings: Settings, found: Comparison, taken: bool
) -> pd.DataFrame | None:
    """What was compared, with the joint model as a last row."""
    if choice is None:
        return None
    first = choice["log_likelihood"].iloc[0]
    row = {
        **settings,
        "log_likelihood": found.log_likelihood[1],
        "gain": found.log_likelihood[1] - first,
        "standard_error": found.standard_error[1],
        "identified": bool(found.identified[1]),
        "training": "joint",
        "chosen": taken,
    }
    kept = choice["chosen"] & (not taken)
    table = choice.assign(chosen=kept, training="cross_fit")
    return pd.concat([table, pd.DataFrame([row])], ignore_index=True)


def _has_labels(candidate: Candidate) -> bool:
    guess = models.initial_responsibilities(candidate.model, candidate.data)
    return guess is not None and bool(np.asarray(guess).any())
