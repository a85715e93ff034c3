"""Training of a table's model: jointly, cross-fitted, or whichever the data bear out.

Large tables select their settings on a sample of the rows
(:mod:`nbmodels.estimators.large_tables`); which training the data bear out is decided in
:mod:`nbmodels.estimators.joint_or_cross_fitted`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from inference.arrays import random_key
from inference.blocks import MANY_CLASSES
from nbmodels.estimators.joint_or_cross_fitted import (
    emission_columns,
    joint_or,
    passes,
    settings_of,
    settled_early,
)
from nbmodels.estimators.large_tables import SAMPLE, FitJoint, train_by_sample
from nbmodels.estimators.options import CrossFit, Joint
from nbmodels.fitting import init_spectral
from nbmodels.fitting.builder import ModelBuilder
from nbmodels.fitting.cautions import INTERRUPTED
from nbmodels.fitting.cross_fitted import cross_fitted
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.joint import select_joint
from nbmodels.fitting.options import MANY_ROWS, FitOptions
from nbmodels.fitting.scores import Candidate, given_responsibilities

#: Up to so many cells (rows x columns x classes) a joint fit is tried whatever the features are;
#: beyond, only where they pass their checks beforehand.
_SMALL = 20_000_000


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
    open_ = training is None or any(len(values) > 1 for values in build.grid.values())
    if open_ and build.n_rows > 2 * SAMPLE:
        return train_by_sample(
            build,
            names,
            options,
            fit_joint,
            train=lambda sample: _trained(sample, training, names, options, fit_joint, warm=True),
            passes=lambda fitted: passes(fitted, emission_columns(build, fitted.settings)),
        )
    return _trained(build, training, names, options, fit_joint)


def _trained(
    build: ModelBuilder,
    training: CrossFit | None,
    names: np.ndarray,
    options: FitOptions,
    fit_joint: FitJoint,
    *,
    warm: bool = False,
) -> FittedModel:
    rounds = CrossFit().n_rounds if training is None else training.n_rounds
    fitted = cross_fitted(
        build,
        build.features,
        names,
        build.n_rows,
        options,
        grid=build.grid,
        rounds=rounds,
        copies=build.copies,
        hold_out=True,
        warm=warm or build.n_rows >= MANY_ROWS,
    )
    fitted = replace(fitted, candidate=_kept(fitted, build))
    if training is not None or fitted.interrupted:
        return fitted
    if warm and len(names) >= MANY_CLASSES:  # of the sample's joint fit nothing else is read
        fitted, settled = settled_early(fitted, build, options)
        if settled:
            return fitted
    return joint_or(fitted, build, names, options, fit_joint)


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
        key = random_key(options.seed)
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


def _kept(cut: FittedModel, build: ModelBuilder) -> Candidate | None:
    """Features and labels of a small table, for a joint fit if one is asked for."""
    settings = settings_of(cut)
    columns = sum(len(c.where) for c in build.columns(settings))
    if build.n_rows * columns * build.n_classes > _SMALL:
        return None
    candidate = build(settings)
    kept: Any = jax.tree.map(np.asarray, (dict(candidate.model), candidate.data))
    return Candidate(kept[0], kept[1], candidate.learned)


def _has_labels(candidate: Candidate) -> bool:
    return given_responsibilities(candidate.model, candidate.data) is not None
