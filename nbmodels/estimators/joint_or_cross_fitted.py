"""Whether the data bear out a joint model of a table beside a cross-fitted one.

A joint model uses everything that its assumptions allow, and its intervals hold where they are
right. Where features depend on each other it leaves the labels, and cross-fitting does not. So the
joint model is taken where its features pass their model checks and held-out labels are likelier
under it or, where there are many, not surely less likely. Of many labels that are somewhat less
likely, errors depend on the features: a calibration of scores to labels learns such errors as
overlap of the classes, while features that fit their model still show the classes apart. The fit
then warns that its noise matrix is an average.

Few rows show neither surely: checks of single columns miss much, and labels are likelier by chance.
So two other sources of evidence count: all columns together, by an omnibus test, and classifiers of
another kind, a nonlinear one and the nearest rows, of the labels that the joint model would change.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from inference.arrays import on_device
from nbmodels.core.model import PRIOR, Data
from nbmodels.diagnostics.findings import LABELS_DEPEND
from nbmodels.errors import Caution, VerdictWarning
from nbmodels.estimators.large_tables import FitJoint, with_priors_of
from nbmodels.fitting.builder import ModelBuilder
from nbmodels.fitting.cautions import INTERRUPTED
from nbmodels.fitting.changed_labels import belief_in_joint
from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.em import started
from nbmodels.fitting.errors_by_size import ERRORS
from nbmodels.fitting.fitted_model import FittedModel, given_codes
from nbmodels.fitting.holdout import Comparison, HeldOut, compare_scores, held_out_scores
from nbmodels.fitting.informative import INFORMATIVE
from nbmodels.fitting.label_sources import LABELLED
from nbmodels.fitting.noise_evidence import probability_of_noise_jointly
from nbmodels.fitting.options import FEW_ROWS, MANY_ROWS, FitOptions
from nbmodels.fitting.scores import Candidate, Settings
from nbmodels.fitting.trials import SIGNIFICANT

#: Folds by which the joint model's labels are held out.
_FOLDS = 5

#: Components beside the features under which held-out labels are compared.
_COMPARED = {PRIOR, "labels", "trusted", LABELLED, ERRORS}

#: Standard errors by which labels may be less likely under the joint model: of few rows, of more.
_ERRORS = (0.0, 3.0)

#: Level of the omnibus test of the features of few rows, and least belief in the changes. Of 159
#: joint fits to simulated tables of 100 to 300 rows that made labels likelier, 13 of the 34 that
#: one of the two contradicted lost three points of right labels or more, and 3 of the others.
_REFUTED, _BELIEVED = 0.05, 0.5

#: Standard errors by which labels of one fold of many rows are less likely under the joint model
#: where those of the others, by which it would be further behind, are not held out.
_SETTLED = 3.0

#: Tolerances of a joint fit that is only asked whether it is far behind.
_EARLY = 100.0

#: Share of labels that a cross-fitted model finds wrong beyond the joint one, from which on the
#: joint one must make labels likelier: one that fits badly takes errors for classes that overlap.
_MISSED = 0.1

#: Standard errors from which on the fit warns.
_DOUBTFUL = 2.0

_DEPENDENT = Caution(
    VerdictWarning,
    "held-out labels are surely likelier where they may depend on the features beyond the true "
    "class: errors seem to depend on the features, so that the noise matrix is an average over "
    "items, and its intervals are too narrow",
)
STOPPED = Caution(
    INTERRUPTED.category,
    "interrupted while the joint model was compared; the cross-fitted one is taken",
)


def joint_or(
    cut: FittedModel,
    build: ModelBuilder,
    names: np.ndarray,
    options: FitOptions,
    fit_joint: FitJoint,
) -> FittedModel:
    """The joint model under the settings of a cross-fitted one, where it is borne out."""
    settings = settings_of(cut)
    candidate = build(settings)
    columns = emission_columns(build, settings)
    if not _comparable(build, settings, candidate):
        return cut
    # labels that stay as they are show no classes to check features by: of a rare class most may
    # be wrong
    checked_first = cut.candidate is None and not cut.as_given
    if checked_first and not _features_pass(cut, candidate, columns):
        return cut
    found: _Beside | None = None
    taken, noisy = False, 1.0
    jacobian = build.log_jacobian(settings)
    near = build.n_rows >= MANY_ROWS and cut.informative
    begin, start = _from_cut(cut, candidate) if near else (candidate, None)
    about = (begin, names, build.n_rows, options, start)
    try:
        fitted = fit_joint(*about, log_jacobian=jacobian, settings=settings)
        if not fitted.interrupted:
            found = _compared(cut, fitted, candidate, options, build.copies)
            taken = found.admitted and passes(fitted, columns)
            if taken:
                coded = fitted.fit.log_likelihood - jacobian
                noisy = probability_of_noise_jointly(fitted.fit, coded, candidate.data, options)
                scored = replace(fitted, noisy=noisy, held_out_scores=found.scores)
                taken = _supported(scored, build, columns)
    except KeyboardInterrupt:
        found = None
    if found is None:
        return _stopped(cut)
    choice = _with_training(cut.choice, settings, found.compared, taken)
    if not taken:
        return replace(cut, choice=choice, counterpart=fitted, candidate=None)
    return replace(
        fitted,
        chosen={**settings, "training": "joint"},
        held_out_scores=found.scores,
        plain_scores=cut.plain_scores,
        noisy=noisy,
        choice=choice,
        counterpart=replace(cut, candidate=None),
        cautions=(*fitted.cautions, *((_DEPENDENT,) if found.dependent else ())),
    )


def settled_early(
    cut: FittedModel, build: ModelBuilder, options: FitOptions
) -> tuple[FittedModel, bool]:
    """The cross-fitted model, and whether held-out labels settle it before a joint one is fitted.

    Those of one fold by a joint model with the priors that the cross-fitted one learned, begun at
    its labels. Priors of its own would not make up for being behind by three standard errors.
    """
    settings = settings_of(cut)
    candidate = build(settings)
    if not (cut.informative and _comparable(build, settings, candidate)):
        return cut, False
    begin, start = _from_cut(cut, candidate)
    near = replace(cut.fit, model=begin.model, params=jax.tree.map(np.asarray, start))
    # a fit that ends early makes its labels likelier, and is behind all the more surely
    roughly = replace(options, tol=_EARLY * options.tol)
    about = begin.model, begin.data, roughly, _FOLDS, build.copies, near
    try:
        found = held_out_scores(*about, settled=lambda _: True)
    except KeyboardInterrupt:
        return _stopped(cut), True
    compared = _beside(cut, candidate.data, found.scores, build.copies)
    if _behind(compared) <= _SETTLED:
        return cut, False
    return replace(cut, choice=_with_training(cut.choice, settings, compared, False)), True


def _comparable(build: ModelBuilder, settings: Settings, candidate: Candidate) -> bool:
    """Whether the joint model under the settings of a cross-fitted one compares with it."""
    # an item's size counts less where its features repeat each other: that is no joint model
    known = set(candidate.model) - set(build.features) <= _COMPARED
    proper = all(c.encoder.proper for c in build.columns(settings))
    labelled = "labels" in candidate.model
    return known and proper and labelled and not settings.get("size_power")


def _stopped(cut: FittedModel) -> FittedModel:
    return replace(cut, interrupted=True, cautions=(*cut.cautions, STOPPED))


def _from_cut(cut: FittedModel, candidate: Candidate) -> tuple[Candidate, Any]:
    """A joint model with priors as a cross-fitted one learned them, and where its fit begins.

    Features and class shares are those of the responsibilities found, the noise is as it was found.
    """
    resp = np.zeros((len(candidate.data.weights), len(cut.names)))
    resp[: len(cut.fit.resp)] = cut.fit.resp
    labels = set(candidate.model) & {"labels"}
    others = {name: c for name, c in candidate.model.items() if name not in labels}
    params = started(others, on_device(resp), candidate.data, cut.fit.rule)
    noise = {name: cut.fit.params[name] for name in labels}
    start = {**params, **jax.tree.map(on_device, noise)}
    return with_priors_of(cut, candidate), start


def emission_columns(build: ModelBuilder, settings: Settings) -> dict[str, list[str]]:
    """Names of the columns of each emission."""
    return {c.name: [str(j) for j in c.where] for c in build.columns(settings)}


def settings_of(cut: FittedModel) -> Settings:
    """What was selected of a cross-fitted model's settings, but for the rounds.

    Where its features do not surely predict labels, a size that counts less was selected by chance.
    """
    whole = {"size_power": 0.0} if cut.as_given and "size_power" in cut.chosen else {}
    return {n: v for n, v in cut.chosen.items() if n != "rounds"} | whole


class _Beside(NamedTuple):
    """The joint model beside the cross-fitted one.

    Attributes:
        scores: ``(N,)`` log-probability of each item's label under the joint one, by a fit that did
            not see it.
        compared: the cross-fitted one and the joint one, by the same labels.
        admitted: whether the joint one's classes keep their names, its labels are likelier than
            without features, and not too much less likely than under the other.
        dependent: whether labels are surely likelier under the cross-fitted one.
    """

    scores: Float[np.ndarray, " n"]
    compared: Comparison
    admitted: bool
    dependent: bool


def _compared(
    cut: FittedModel,
    fitted: FittedModel,
    candidate: Candidate,
    options: FitOptions,
    copies: Int[np.ndarray, " n"] | None,
) -> _Beside:
    """The joint model beside the cross-fitted one, by held-out labels."""
    data = candidate.data
    n = len(fitted.fit.resp)
    model = jax.tree.map(on_device, fitted.fit.model)
    codes, weights = _labelled(cut, data)
    k = len(fitted.names)
    beside = partial(_beside, cut, data, copies=copies)

    def settled(found: HeldOut) -> bool:
        return not found.identified or _behind(beside(found.scores)) > _SETTLED

    many_rows = n >= MANY_ROWS
    near, settles = (fitted.fit, settled) if many_rows else (None, None)
    found = held_out_scores(model, data, options, _FOLDS, copies, near, settles)
    scores = found.scores[:n]
    named = found.identified and not fitted.fit.confused
    compared = beside(scores, named=named)
    lead = _behind(compared)
    seen = np.isfinite(scores)
    shares = np.bincount(codes, weights, k + 1)[:k] / weights.sum()
    null = np.log(shares[np.minimum(codes, k - 1)].clip(np.finfo(float).tiny))
    # a checked row's score is of both its labels
    free = weights * seen * ~checked_rows(model, data, n)
    pair = [null, np.where(seen, scores, 0)], [True, True]
    likelier = not free.any() or compare_scores(*pair, free, INFORMATIVE, copies).best == 1
    many = np.count_nonzero(weights) > FEW_ROWS
    allowed = _ERRORS[int(many)]
    missed = _right(fitted) - _right(cut) > _MISSED and cut.drawn is None
    if missed:
        allowed = min(allowed, -SIGNIFICANT)
    return _Beside(
        scores,
        compared,
        named and likelier and lead < allowed,
        lead > _DOUBTFUL,
    )


def _labelled(cut: FittedModel, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """``(N,)`` codes of the given labels, and weights, 0 where there is no label."""
    n = len(cut.fit.resp)
    codes = np.asarray(data.parts["labels"])[:n]
    return codes, np.where(codes < len(cut.names), np.asarray(data.weights)[:n], 0)


def _beside(
    cut: FittedModel,
    data: Data,
    scores: Float[np.ndarray, " n"],
    copies: Int[np.ndarray, " n"] | None,
    named: bool = True,
) -> Comparison:
    """A cross-fitted model and another one by the held-out labels that both have a score of."""
    _, weights = _labelled(cut, data)
    theirs, scores = cut.held_out_scores, scores[: len(weights)]
    assert theirs is not None  # cross-fitted
    seen = np.isfinite(scores) & np.isfinite(theirs)
    pair = [np.where(seen, theirs, 0), np.where(seen, scores, 0)]
    return compare_scores(pair, [True, named], weights * seen, groups=copies)


def _behind(found: Comparison) -> float:
    """Standard errors by which labels are likelier under the first of two models."""
    return float(-found.gain[1] / np.maximum(found.standard_error[1], np.finfo(float).tiny))


def _supported(fitted: FittedModel, build: ModelBuilder, columns: Any) -> bool:
    """Whether a joint fit to few rows is neither refuted by all columns nor by other classifiers.

    True of more rows, whose own checks and labels are evidence enough.
    """
    if np.count_nonzero(given_codes(fitted) >= 0) > FEW_ROWS:
        return True
    if refuted(fitted, columns):
        return False
    return belief_in_joint(fitted, build.points, build.copies) >= _BELIEVED


def refuted(fitted: FittedModel, columns: Any) -> bool:
    """Whether all columns together refute a joint fit."""
    from nbmodels.diagnostics.check import features_p_value

    return features_p_value(fitted.fit, fitted.data, fitted.names, columns) < _REFUTED


def _right(fitted: FittedModel) -> float:
    """Mean of the noise matrix's diagonal."""
    found = fitted.noise_matrix
    assert found is not None  # labels are compared
    return float(np.diag(found).mean())


def passes(fitted: FittedModel, columns: Any) -> bool:
    """Whether a joint fit passes the checks of its features, its outcome and its labels."""
    from nbmodels.diagnostics.check import check_features, check_labels, check_outcome

    about = fitted.fit, fitted.data, fitted.names
    failed = {f.name for f in check_features(*about, columns).bad}
    if failed - {LABELS_DEPEND} or not check_outcome(*about).ok:
        return False
    return check_labels(*about, columns).ok


def _features_pass(cut: FittedModel, candidate: Candidate, columns: Any) -> bool:
    """Whether features pass their checks under the cross-fitted labels."""
    from nbmodels.diagnostics.check import check_features

    emissions = {name: candidate.model[name] for name in columns}
    resp = np.zeros((len(candidate.data.weights), len(cut.names)))
    resp[: len(cut.label_posterior)] = cut.label_posterior
    params = started(emissions, on_device(resp), candidate.data, cut.fit.rule)
    to_host = jax.tree.map(np.asarray, {"model": emissions, "params": params})
    fit = replace(
        cut.fit,
        model={**cut.fit.model, **to_host["model"]},
        params={**cut.fit.params, **to_host["params"]},
    )
    data = jax.tree.map(np.asarray, candidate.data)
    failed = {f.name for f in check_features(fit, data, cut.names, columns).bad}
    return not failed - {LABELS_DEPEND}


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
