"""Training with label sets: jointly, cross-fitted, by a classifier, or as held-out sets bear out.

A joint fit decides inside a set by the features' model, and where features depend on each other it
decides surely and wrongly. A cross-fitted one learns the features from the sets alone, and how far
their scores count by the sets of held-out items. Where columns are correlated its scores rank
badly, and those of a logistic regression of the sets do not; where classes are rings or of several
clusters, those of a nonlinear classifier do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from jaxtyping import Float, Int

from inference.arrays import on_device
from nbmodels.core.model import Data
from nbmodels.errors import Caution, DataError, VerdictWarning
from nbmodels.estimators.joint_or_cross_fitted import STOPPED, emission_columns, passes
from nbmodels.fitting.builder import ModelBuilder
from nbmodels.fitting.cross_fitted import cross_fitted
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.holdout import compare_scores
from nbmodels.fitting.joint import joint
from nbmodels.fitting.label_regression import (
    CLASSIFIERS,
    NONLINEAR,
    NOT_NONLINEAR,
    REGRESSION,
    Coded,
    train_on_scores,
)
from nbmodels.fitting.label_sources import CANDIDATES
from nbmodels.fitting.options import FitOptions, finished
from nbmodels.fitting.scores import Candidate, draw_folds

#: Estimators that are trained here.
TRAINED = ("auto", "em", "cross_fit", REGRESSION, NONLINEAR)

#: Standard errors by which held-out sets must be likelier under a classifier.
_ERRORS = 0.0

#: Least probability of a set in comparisons: with a few sets that a joint model surely excludes no
#: difference would be sure.
_LEAST = 0.05

#: Folds by which the joint model's sets are held out.
_FOLDS = 5


def train_with_sets(
    build: ModelBuilder,
    estimator: str,
    names: np.ndarray,
    options: FitOptions,
    *,
    symbols: bool,
) -> FittedModel:
    """Train a table's model with sets of candidate classes.

    Args:
        build: builder of its models, whose settings are all given.
        estimator: ``"em"`` (joint), ``"cross_fit"``, ``"regression"``, ``"nonlinear"``, or
            ``"auto"`` for the joint model where its features pass their checks and held-out sets
            are not surely less likely under it, else for that of the others under which they are
            likelier.
        names: ``(K,)`` names of the classes.
        options: of the fits.
        symbols: whether columns are symbols, numbers too.
    """
    candidate, jacobian = build({}), build.log_jacobian({})

    def together() -> FittedModel:
        return joint(candidate, names, build.n_rows, options, log_jacobian=jacobian)

    if estimator == "em":
        return together()
    coded = _classifiers(estimator, build, options, symbols=symbols)

    def kept(fitted: FittedModel) -> FittedModel:
        own = coded.get(fitted.chosen["estimator"])
        return fitted if own is None else own.held_by(fitted, build, options.rule)

    if estimator in CLASSIFIERS:
        if estimator not in coded:
            raise DataError(NOT_NONLINEAR)
        return kept(train_on_scores(build, names, options, coded[estimator]))
    cut = cross_fitted(
        build,
        build.features,
        names,
        build.n_rows,
        options,
        grid={},
        rounds=None,
        copies=build.copies,
        hold_out=True,
    )
    cut = replace(cut, chosen={"estimator": "cross_fit", **cut.chosen})
    if estimator == "cross_fit" or cut.interrupted:
        return cut
    try:
        others = [train_on_scores(build, names, options, one) for one in coded.values()]
        if any(one.interrupted for one in others):
            raise KeyboardInterrupt
        cut = _likelier([cut, *others], build)
        fitted = together()
        if fitted.interrupted:
            raise KeyboardInterrupt
        taken = _borne_out(fitted, cut, candidate, options, build)
    except KeyboardInterrupt:
        return replace(kept(cut), interrupted=True, cautions=(*cut.cautions, STOPPED))
    if not taken:
        return replace(kept(cut), counterpart=fitted)
    return replace(fitted, chosen={"estimator": "em"}, counterpart=cut)


def _classifiers(
    estimator: str, build: ModelBuilder, options: FitOptions, *, symbols: bool
) -> dict[str, Coded]:
    """Those that are asked for, or candidates; a nonlinear one where there may be one."""
    linear, bent = (estimator in ("auto", name) for name in (REGRESSION, NONLINEAR))
    found = (
        Coded.of_sets(build, options, symbols=symbols) if linear else None,
        Coded.nonlinear_of_sets(build, symbols=symbols) if bent else None,
    )
    return {one.name: one for one in found if one is not None}


def _likelier(fits: Sequence[FittedModel], build: ModelBuilder) -> FittedModel:
    """A cross-fitted naive Bayes, or the classifier under which held-out sets are likeliest."""
    scores = [cast(np.ndarray, one.held_out_scores) for one in fits]  # cross-fitted
    possible = build.labels[CANDIDATES].values
    counted = build.weights * ~possible.all(1)
    best = compare_scores(scores, [True] * len(fits), counted, _ERRORS, build.copies).best
    if not best:
        return fits[0]
    name = str(fits[best].chosen["estimator"])
    sentence = (
        f"held-out label sets are likelier under {CLASSIFIERS[name]} than under naive Bayes of "
        f"the same features: classes and new items are those of {CLASSIFIERS[name]} of the sets"
    )
    caution = Caution(VerdictWarning, sentence, name)
    return replace(fits[best], cautions=(*fits[best].cautions, caution))


def _borne_out(
    fitted: FittedModel,
    cut: FittedModel,
    candidate: Candidate,
    options: FitOptions,
    build: ModelBuilder,
) -> bool:
    """Whether features pass their checks, and held-out sets are not surely less likely jointly."""
    if not passes(fitted, emission_columns(build, {})):
        return False
    held = _held_out(fitted, candidate, options, build.copies)
    assert cut.held_out_scores is not None  # cross-fitted
    pair = held.scores, np.maximum(cut.held_out_scores, np.log(_LEAST))
    counted = np.asarray(candidate.data.weights)[: build.n_rows] * held.informative
    return compare_scores(pair, [True, True], counted, groups=build.copies).best == 0


class _HeldOut(NamedTuple):
    """Held-out sets under the joint model.

    Attributes:
        scores: ``(N,)`` log-probability that an item's class is in its set, by a fit that did not
            see the set, bounded below.
        informative: ``(N,)`` whether the set excludes a class.
    """

    scores: Float[np.ndarray, " n"]
    informative: Int[np.ndarray, " n"]


def _held_out(
    fitted: FittedModel,
    candidate: Candidate,
    options: FitOptions,
    copies: Int[np.ndarray, " n"] | None,
) -> _HeldOut:
    """Features of held-out items are part of the fits; their sets are not.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    model, data, _ = candidate
    n = len(fitted.fit.resp)
    possible = np.asarray(data.parts[CANDIDATES])
    own = possible[:n]
    informative = (own.sum(1) < own.shape[1]) & (np.asarray(data.weights)[:n] > 0)
    fold = draw_folds(own * informative[:, None] / own.sum(1, keepdims=True), _FOLDS, copies)
    held = [np.flatnonzero(fold == f) for f in range(int(fold.max()) + 1)]
    parts = [_without_sets(data, possible, rows) for rows in held]
    scores = np.zeros(n)
    for rows, one in zip(held, options.fit_all([model] * len(parts), parts), strict=True):
        resp = np.asarray(finished(one).resp)[rows]
        inside = (resp * own[rows]).sum(1)
        scores[rows] = np.log(np.maximum(inside, _LEAST))
    return _HeldOut(scores, informative.astype(int))


def _without_sets(data: Data, possible: np.ndarray, rows: Int[np.ndarray, " m"]) -> Data:
    """Data in which some items may be of any class."""
    whole: Any = possible.copy()
    whole[rows] = True
    return replace(data, parts={**data.parts, CANDIDATES: on_device(whole)})
