"""Naive Bayes of two classes, or a classifier of the labels where it is refuted.

A closed form, and EM begun from it, follow the columns alone as soon as these depend on each other
beyond the class, and may end at chance where a plain classifier of the given labels is not. So
naive Bayes is taken where its columns pass their model checks and held-out labels are not surely
less likely under it (of few rows, whose checks miss much, not less likely at all, unless it finds a
class labelled as the other more often than not, which a regression cannot), or where they are
likelier under it by a standard error. Where labels depend on the columns beyond the class, and
nothing else is wrong, a classifier of the labels would learn that, too: naive Bayes stays, and the
verdict warns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float

from inference.arrays import on_device
from nbmodels.diagnostics.findings import LABELS_DEPEND
from nbmodels.errors import Caution, DataError, VerdictWarning
from nbmodels.estimators.joint_or_cross_fitted import emission_columns, passes
from nbmodels.fitting.builder import ModelBuilder
from nbmodels.fitting.cautions import INTERRUPTED
from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.holdout import compare_scores, held_out_scores
from nbmodels.fitting.label_regression import (
    CLASSIFIERS,
    NONLINEAR,
    NOT_NONLINEAR,
    REGRESSION,
    Coded,
    likelier,
)
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.trials import SIGNIFICANT

#: Fits naive Bayes under the models of a table, with names of the classes and options of the fits.
Train = Callable[[ModelBuilder, np.ndarray, FitOptions], FittedModel]

#: Folds by which labels are held out of naive Bayes.
_FOLDS = 5

#: Standard errors by which labels may be less likely under naive Bayes that passes its checks, up
#: to so many rows and of more. In simulated worlds with a common factor half of the fits to 60 and
#: 150 rows passed, of which EM ranked items by up to 0.25 of the AUC worse than a regression;
#: labels were less likely in all of these. None of 600 rows passed.
_FEW, _ERRORS = 300, (0.0, 2.0)

#: Share of right labels below which a class is labelled as the other more often than not.
_CROSSED = 0.5

#: Standard errors from which on one is surely better.
_SURELY = 2.0

_STOPPED = Caution(
    INTERRUPTED.category,
    "interrupted before naive Bayes was compared with other classifiers; naive Bayes is taken",
)

#: What a verdict states of a fit by a classifier of the labels, after why it was taken.
_BY_CLASSIFIER = (
    "so classes and new items are those of {} of the given labels, which assumes nothing of the "
    "columns and is calibrated together with the labels' channel"
)


def train_two_classes(
    estimator: str,
    closed_form: Train,
    on_scores: Callable[[ModelBuilder, np.ndarray, FitOptions, Coded], FittedModel],
    build: ModelBuilder,
    names: np.ndarray,
    options: FitOptions,
    *,
    one_sided: bool = False,
) -> FittedModel:
    """The estimator that was asked for; of ``"auto"`` naive Bayes, or a classifier of the labels
    where it is refuted, a regression or one that is nonlinear.

    Args:
        estimator: ``"moments"``, ``"em"``, ``"regression"``, ``"nonlinear"`` or ``"auto"``.
        closed_form: fits naive Bayes by moments or EM.
        on_scores: fits the labels' channel given a classifier's scores.
        build: of the models of the table.
        names: ``(2,)`` names of the classes.
        options: of the fits.
        one_sided: whether labels are of one class, which they then prove.
    """
    if estimator in ("em", "moments"):
        return closed_form(build, names, options)
    coded = _classifiers(estimator, build)
    if estimator in CLASSIFIERS:
        if estimator not in coded:
            raise DataError(NOT_NONLINEAR)
        beside = on_scores(build, names, options, coded[estimator])
        return coded[estimator].held_by(beside, build, options.rule)
    naive_bayes = closed_form(build, names, options)
    if naive_bayes.interrupted:
        return naive_bayes
    try:
        fits = [on_scores(build, names, options, one) for one in coded.values()]
        beside = _likeliest(fits, build)
        own = _held_out(naive_bayes, build, options, one_sided)
    except KeyboardInterrupt:
        return replace(naive_bayes, interrupted=True, cautions=(*naive_bayes.cautions, _STOPPED))
    weights = _compared(naive_bayes, build.n_rows, one_sided)
    pair = [own, likelier(beside)]
    found = compare_scores(pair, [True, True], weights, groups=build.copies)
    lead = float(found.gain[1] / max(found.standard_error[1], np.finfo(float).tiny))
    checks = _checks(naive_bayes, build, one_sided)
    many = build.n_rows > _FEW
    # a classifier of the labels names classes as most of their labels do, which this denies
    crossed = not one_sided and bool((np.diag(_matrix(naive_bayes)) < _CROSSED).any())
    allowed = _ERRORS[int(many or crossed)] if checks.passed else -SIGNIFICANT
    taken = lead < allowed or (many and checks.passed and checks.labels_depend)
    choice = pd.DataFrame(
        {
            "estimator": ["em", beside.chosen["estimator"]],
            "log_likelihood": found.log_likelihood,
            "gain": found.gain,
            "standard_error": found.standard_error,
            "checks_passed": [checks.passed, True],
            "chosen": [taken, not taken],
        }
    )
    if taken:
        return replace(
            naive_bayes,
            chosen={"estimator": "em"},
            choice=choice,
            held_out_scores=own,
            counterpart=beside,
        )
    name = str(beside.chosen["estimator"])
    kept = coded[name].held_by(beside, build, options.rule)
    return replace(
        kept,
        choice=choice,
        counterpart=naive_bayes,
        cautions=(*kept.cautions, _refuted(lead, checks.passed, name)),
    )


def _classifiers(estimator: str, build: ModelBuilder) -> dict[str, Coded]:
    """Those that are asked for, or candidates; a nonlinear one where there may be one."""
    linear, bent = (estimator in ("auto", name) for name in (REGRESSION, NONLINEAR))
    found = (
        Coded.of(build, symbols=True) if linear else None,
        Coded.nonlinear(build, symbols=True) if bent else None,
    )
    return {one.name: one for one in found if one is not None}


def _likeliest(fits: Sequence[FittedModel], build: ModelBuilder) -> FittedModel:
    """That under which held-out labels are likelier, the first unless surely.

    Raises:
        KeyboardInterrupt: one of them was interrupted.
    """
    if any(one.interrupted for one in fits):
        raise KeyboardInterrupt
    scores = [likelier(one) for one in fits]
    counted = np.where(np.isfinite(scores).all(0), build.weights, 0)
    about = [True] * len(fits), counted, _SURELY, build.copies
    return fits[compare_scores(np.nan_to_num(scores), *about).best]


def _matrix(fitted: FittedModel) -> Float[np.ndarray, "observed k"]:
    found = fitted.noise_matrix
    assert found is not None  # labels are compared
    return found


class _Checks(NamedTuple):
    """Checks of naive Bayes.

    Attributes:
        passed: whether all passed, but for the next.
        labels_depend: whether labels depend on the columns beyond the class.
    """

    passed: bool
    labels_depend: bool


def _checks(fitted: FittedModel, build: ModelBuilder, one_sided: bool) -> _Checks:
    from nbmodels.diagnostics.check import check_features

    columns = emission_columns(build, {})
    failed = {f.name for f in check_features(fitted.fit, fitted.data, fitted.names, columns).bad}
    # labels of one class are none that could be wrong
    passed = not failed - {LABELS_DEPEND} if one_sided else passes(fitted, columns)
    return _Checks(passed, LABELS_DEPEND in failed)


def _refuted(lead: float, passed: bool, name: str) -> Caution:
    """What a verdict states of a fit by a classifier of the labels."""
    surely = "surely " if lead > _SURELY else ""
    why = (
        f"held-out labels are {surely}likelier under a plain classifier than under naive Bayes"
        if passed or lead > SIGNIFICANT
        else "naive Bayes fails the checks of its columns"
    )
    how = _BY_CLASSIFIER.format(CLASSIFIERS[name])
    return Caution(VerdictWarning, f"{why}: {how}", "naive Bayes refuted")


def _held_out(
    fitted: FittedModel, build: ModelBuilder, options: FitOptions, one_sided: bool
) -> Float[np.ndarray, " n"]:
    """Log-probability of each label under naive Bayes, by a fit that did not see it.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    # the proof that a positive label is of a positive item would give the label away
    kept = {n: c for n, c in fitted.fit.model.items() if not (one_sided and n == "trusted")}
    params = {name: fitted.fit.params[name] for name in kept}
    near = replace(fitted.fit, model=kept, params=params)
    parts = {name: part for name, part in fitted.data.parts.items() if name in kept}
    model, data = jax.tree.map(on_device, (kept, replace(fitted.data, parts=parts)))
    about = model, data, options.without_restarts(), _FOLDS, build.copies, near
    return held_out_scores(*about).scores[: build.n_rows]


def _compared(fitted: FittedModel, n_rows: int, one_sided: bool) -> Float[np.ndarray, " n"]:
    """Weights of the rows whose held-out labels are compared; a checked row's are two labels."""
    weights = np.asarray(fitted.data.weights, float)[:n_rows]
    weights = weights * (np.asarray(fitted.data.parts["labels"])[:n_rows] < len(fitted.names))
    free = weights * ~checked_rows(fitted.fit.model, fitted.data, n_rows)
    return weights if one_sided or not free.any() else free
