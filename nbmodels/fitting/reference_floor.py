"""Cut fits are held to a plain classifier that knows neither their features' model nor noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.special import expit

from nbmodels.core.component import Given
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR, with_role
from nbmodels.core.roles import Emission
from nbmodels.errors import Caution, VerdictWarning, counted
from nbmodels.fitting.changed_labels import (
    least_favourable,
    nearby_of,
    true_classes,
)
from nbmodels.fitting.checked_rows import checked_rows, contradicted, with_checked
from nbmodels.fitting.fitted_model import FittedModel, given_codes
from nbmodels.fitting.noise_by_shape import NOT_IDENTIFIED, NoiseByShape
from nbmodels.fitting.noise_levels import averaged_over_levels
from nbmodels.fitting.options import FEW_ROWS, MANY_ROWS, FitOptions
from nbmodels.fitting.plain import at_odds, pseudo_bma
from nbmodels.fitting.points import Coding
from nbmodels.fitting.reference import (
    Reference,
    completed,
    learned_from_all,
    nonlinear_predictions,
)
from nbmodels.fitting.reference_scores import (
    COMPARE,
    lead_of,
    noise_on,
    replaceable,
    with_draws_of,
    with_noise_of,
    with_predictions_of,
)
from nbmodels.fitting.sides import Sides
from nbmodels.fitting.trials import SIGNIFICANT

#: Standard errors from which on one is better than the other, and share of the labels
#: that would have been changed.
_SURELY, _CHANGED = 2.0, 0.01

#: Belief in the changes below which a warning says so: of a cut fit, whose labels stay then, and of
#: a joint one, whose changes may be right where errors follow the features, unless it has so few
#: rows that checks of its features miss much and most of the changes are contradicted.
_DOUBTED, _HARDLY, _FEW = 0.5, 0.1, 200

#: Odds of noise beforehand, of few rows. Even ones are hard on it: it is compared with the best of
#: several plain classifiers, one of which few labels favour by chance. In simulated tables of 60 to
#: 300 rows even odds lose one to three points of right labels where 30 % are wrong.
_ODDS = 3.0

#: Share of wrong labels, times the root of the number of rows, up to which the odds rise: smaller
#: ones are found where no label is wrong, too, 0.03 to 0.15 in 100 to 200 right labels of simulated
#: tables.
_CHANCE = 1.75

#: Share of wrong labels beyond which the shape of clear classes does not tell it either: of 150
#: clear items of three classes half of whose labels are wrong, even odds left a tenth uncorrected.
_HIGH = 0.4

#: Bound of the logarithm of what the shape of the classes adds to the odds.
_BOUND = 3.0

#: Probability of noise up to which little beside the odds beforehand supports changes, and share
#: of labels from which on a warning says so.
_LITTLE, _MANY = 0.7, 0.03

#: Share of the labels that changes would make wrong, by the odds of the shape of the classes alone,
#: from which on they are stated whatever held-out labels have it.
_AT_STAKE = 0.1

#: What follows for the labels.
_CUT = "labels are changed where that is likely to help only"
_JOINT = "more right labels than wrong ones may be changed"

_LIKELIER = Caution(
    VerdictWarning,
    "held-out labels are surely likelier under a nonlinear classifier of the features that knows "
    "no noise: this model of the features is poor, labels are changed where that is likely to "
    f"help only, and the noise matrix holds the model's errors{COMPARE}",
)


def with_reference(
    fitted: FittedModel,
    points: Any,
    options: Callable[[], FitOptions],
    coding: Coding | None = None,
) -> FittedModel:
    """A fitted model with reference predictions of its labels, and held to them where it is cut.

    A cross-fitted model that takes labels for wrong because its features' model is bad (outliers,
    say) contradicts labels that a better classifier predicts. So among the labels that would be
    changed, those are counted that the reference predicts as given, and as suggested. How far that
    supports the changes (:attr:`nbmodels.fitting.sides.Sides.belief`) is one more factor of
    the probability that labels are noisy. Nor is that probability larger than by a comparison with
    the reference, of few rows always, of more where all labels are likelier under it by more than a
    standard error: a noise model explains what a bad model of the features gets wrong as well as it
    does wrong labels, which a plain classifier with the same scores cannot show, and few labels do
    not show how bad the model is. Where noise on the reference's scores is surely likelier than the
    fit, noise and labels are those on them (:mod:`nbmodels.fitting.reference_scores`); where it may
    be, a share of the draws is. A joint model is not held to any of it: its features pass their own
    checks, and may show the classes apart where errors follow the features and any classifier of
    the given labels learns them. Of few rows it was selected with the reference's predictions
    (:func:`nbmodels.fitting.changed_labels.belief_in_joint`). Where few changes of one that was
    asked for can be right, a warning says so.

    Args:
        fitted: a model of given labels; where their noise is known, or there is none, or the fit
            was interrupted, nothing is added.
        points: ``(N, d)`` items in the space of their features; nothing is added where they are
            sparse or None.
        options: makes those of fits, where the fit's precision holds.
        coding: by which rows became points; None where the model is to predict new items itself.
    """
    k = len(fitted.names)
    as_given = fitted.drawn is not None  # the noise is then open in what draws are of
    channel = (fitted.drawn[0] if fitted.drawn else fitted.fit).model.get("labels")
    if fitted.interrupted or channel is None or isinstance(channel, Given) or k < 2:
        return fitted
    if points is None or sparse.issparse(points):
        return fitted
    codes = given_codes(fitted)
    weights = np.asarray(fitted.data.weights, float)[: len(codes)]
    known = np.where(weights > 0, with_checked(codes, fitted.fit.model, fitted.data), -1)
    reference = nonlinear_predictions(points, known, k, fitted.copies, weights)
    if reference is None:
        return fitted
    seen = replace(fitted, reference=reference.classes, reference_held_out=reference.held_out)
    found = _held_to(reference, seen, points, codes, known, options)
    if found.interrupted:
        return found
    learn = None
    if coding is not None:
        about = points, known, fitted.copies, weights
        learn = partial(learned_from_all, reference, coding, *about)
    if as_given and found.drawn is not None:
        # uninformative features have no reference: their labels are left as they are
        return with_predictions_of(reference, fitted, codes, learn)
    found = with_predictions_of(reference, found, codes, learn)
    free = ~checked_rows(found.fit.model, found.data, len(codes))
    corrected = true_classes(reference, found, np.where(free, codes, -1))
    return _with_little_evidence(replace(found, reference_corrected=corrected), codes)


def _held_to(
    reference: Reference,
    fitted: FittedModel,
    points: Float[np.ndarray, "n d"],
    codes: Int[np.ndarray, " n"],
    known: Int[np.ndarray, " n"],
    options: Callable[[], FitOptions],
) -> FittedModel:
    n = len(codes)
    joint = fitted.data.parts.get(PRIOR) is None
    features = with_role(fitted.fit.model, Emission) if joint else fitted.scored
    if set(fitted.fit.model) - {PRIOR, "labels", "trusted", *features}:
        return fitted
    # the class of the others is no inference
    free = ~checked_rows(fitted.fit.model, fitted.data, n)
    sides, judge = _opinion(reference, fitted, codes, free)
    checked = "trusted" in fitted.data.parts  # what they show is in the fit already
    if joint:
        # where predictions as given are in the majority, the verdict says so
        unstated = not checked and sides.z <= _SURELY and sides.changed > _CHANGED * n
        contradicted_by_most = n <= _FEW and sides.given >= sides.suggested
        if not unstated or sides.belief >= (_DOUBTED if contradicted_by_most else _HARDLY):
            return fitted
        return replace(fitted, cautions=(*fitted.cautions, _doubted(sides, judge, _JOINT)))
    trust, odds = 1.0 if checked else sides.belief, _odds_of_noise(fitted, codes)
    noisy, before = at_odds(fitted.noisy, odds) * trust, fitted
    own = fitted.held_out_scores
    fitted = fitted if checked else _where_doubted(fitted, sides, judge)
    if own is None:
        return replace(fitted, noisy=noisy)
    weights = np.asarray(fitted.data.weights, float)[:n]
    rows = np.isfinite(reference.held_out) & np.isfinite(own)
    rows &= free & (weights > 0)
    if not rows.any():
        return replace(fitted, noisy=noisy)
    about = weights[rows], None if fitted.copies is None else fitted.copies[rows]
    mine, plain = own[rows], reference.held_out[rows]
    lead = lead_of(mine, plain, *about)
    poor, few = lead > SIGNIFICANT, n <= FEW_ROWS
    alone = fitted.plain_scores
    # without noise it may be the better classifier, and with noise likelier than the fit; where the
    # own scores are surely better without noise, its scores are no candidate
    ahead = lead if alone is None else lead_of(alone[rows], plain, *about)
    # many labels tell which scores are better, and each fit to them takes long
    open_from = SIGNIFICANT if n >= MANY_ROWS else -_SURELY
    # it has learned from checks what contradicts given labels: without noise it gives these less
    proven = contradicted(fitted.fit.model, fitted.data, len(fitted.names))
    if not proven and not poor and (alone is None or ahead <= open_from):
        return replace(fitted, noisy=noisy)
    reference = completed(reference, points, known, fitted.copies, weights)
    with computing(fitted.double):
        beside = noise_on(reference.logs, reference.fold, fitted, options())
    if beside is None:
        return replace(fitted, interrupted=True)
    theirs = beside.held_out[rows]
    if replaceable(fitted):
        better = proven or poor or ahead > SIGNIFICANT
        if better and lead_of(mine, theirs, *about) > _SURELY:
            found = 1.0 if proven else beside.probability(reference, known, rows, *about)
            taken = replace(with_noise_of(beside, before), averaged=None)
            taken = averaged_over_levels(taken)
            taken = replace(taken, noisy=at_odds(found, _odds_of_noise(taken, codes)))
            return _held_to_neighbours(reference, taken, codes, free)
        with computing(fitted.double):
            fitted = with_draws_of(beside, fitted, pseudo_bma(theirs, mine, *about))
    if checked or not (poor or few):
        return replace(fitted, noisy=noisy)
    scores = max((mine, theirs), key=lambda one: float(about[0] @ one))
    ways = [plain, *([reference.recalibrated(known)[rows]] if few else [])]
    allowed = min(pseudo_bma(scores, one, *about) for one in ways)
    noisy = min(noisy, at_odds(allowed, odds))
    matters = noisy < 0.5 and sides.changed > _CHANGED * np.count_nonzero(rows)
    sure = matters and lead > _SURELY
    cautions = (*fitted.cautions, *((_LIKELIER,) if sure else ()))
    return replace(fitted, noisy=noisy, cautions=cautions)


def _odds_of_noise(fitted: FittedModel, codes: Int[np.ndarray, " n"]) -> float:
    """Odds of noise beside those by held-out labels; even ones of many rows.

    Of few rows held-out labels hardly tell a small share of wrong labels from none. Where noise may
    be of any level, it is then the less likely the lower its level (the Occam factor that a
    comparison of fitted levels lacks): the odds rise with the square of the share that would be
    wrong, by the mean of the fit, whose share holds overlap, and of the shape of the classes. That
    shape says more (:mod:`nbmodels.fitting.noise_by_shape`), though it is neither independent of
    held-out labels nor right where classes are not normal: of its Bayes factor the root counts,
    within bounds. Where classes overlap so much that their shape cannot tell overlap from errors,
    the odds are even. Correcting few wrong labels also gains little, and loses as much where none
    is wrong.

    Args:
        fitted: a cut fit.
        codes: given labels, -1 where there is none.
    """
    rows = np.flatnonzero(codes >= 0)
    if len(codes) > FEW_ROWS or not len(rows):
        return 1.0
    probs = np.asarray(fitted.fit.resp if fitted.averaged is None else fitted.averaged, float)
    weights = np.asarray(fitted.data.weights, float)[rows]
    right = probs[rows, codes[rows]] / probs[rows].sum(1)
    wrong = 1 - float(weights @ right) / max(float(weights.sum()), np.finfo(float).tiny)
    shape = _shape_of(fitted)
    share = max(float(np.nanmean([wrong, shape.share_wrong])), np.finfo(float).eps)  # proved stays
    level = min(1.0, share * float(np.sqrt(weights.sum())) / _CHANCE) ** 2
    identified = np.isfinite(shape.share_wrong) or wrong > _HIGH
    most = _ODDS if identified else 1.0
    return most * level * float(np.exp(_log_odds_by_shape(fitted)))


def _shape_of(fitted: FittedModel) -> NoiseByShape:
    return NOT_IDENTIFIED if fitted.separable is None else fitted.separable.by_shape


def _log_odds_by_shape(fitted: FittedModel) -> float:
    """Log-odds of noise by the shape of the classes, even beforehand."""
    return float(np.clip(_shape_of(fitted).log_factor / 2, -_BOUND, _BOUND))


def _opinion(
    reference: Reference,
    fitted: FittedModel,
    codes: Int[np.ndarray, " n"],
    free: Bool[np.ndarray, " n"],
) -> tuple[Sides, str]:
    """What is predicted of labels that would be changed.

    Neighbours are asked of few rows: of joint fits, and where labels are averaged over the level. A
    fit whose own scores are the better classifier knows better.
    """
    scores = fitted.data.parts.get(PRIOR)
    asked = scores is None or fitted.averaged is not None
    nearby = nearby_of(fitted.separable, len(codes)) if asked else None
    peers = [] if scores is None else [np.asarray(scores)[: len(codes)].argmax(1)]
    return least_favourable(fitted, codes, free, reference, nearby, peers)


def _held_to_neighbours(
    reference: Reference,
    fitted: FittedModel,
    codes: Int[np.ndarray, " n"],
    free: Bool[np.ndarray, " n"],
) -> FittedModel:
    """A fit on the reference's own scores, of whose changes neighbours alone say anything else."""
    if not free.all():  # what checks show is in the fit already
        return fitted
    sides, judge = _opinion(reference, fitted, codes, free)
    fitted = _where_doubted(fitted, sides, judge)
    return replace(fitted, noisy=fitted.noisy * sides.belief)


def _where_doubted(fitted: FittedModel, sides: Sides, judge: str) -> FittedModel:
    """A cut fit, with a caution where its changes are likelier to harm than not."""
    if sides.belief >= _DOUBTED or sides.changed <= _CHANGED * len(fitted.fit.resp):
        return fitted
    caution = replace(_doubted(sides, judge, _CUT), finding="changes in doubt")
    return replace(fitted, cautions=(*fitted.cautions, caution))


def _with_little_evidence(fitted: FittedModel, codes: Int[np.ndarray, " n"]) -> FittedModel:
    """A cut fit to few rows, with a caution where labels are changed on little evidence.

    Most such changes help, so that the verdict states them and nothing is warned of: also where by
    the odds of noise that the shape of the classes gives a large part of the labels is expected to
    be changed though right (``benchmarks/records/few_rows.md``).
    """
    joint = fitted.data.parts.get(PRIOR) is None
    # checked rows and votes are evidence of their own
    others = set(fitted.data.parts) - {PRIOR, "labels", *fitted.scored}
    if joint or others or len(codes) > FEW_ROWS:
        return fitted
    changed = int(np.count_nonzero((codes >= 0) & (fitted.label_posterior.argmax(1) != codes)))
    at_stake = changed * float(expit(-_log_odds_by_shape(fitted)))
    by_shape = at_stake >= _AT_STAKE * len(codes)
    if not by_shape and (fitted.noisy > _LITTLE or changed <= _MANY * len(codes)):
        return fitted
    evidence = (
        "the shape of the classes does not surely tell whether any label is wrong"
        if by_shape
        else "labels and features hardly tell whether any label is wrong (probability "
        f"{fitted.noisy:.2f})"
    )
    caution = Caution(
        VerdictWarning,
        f"{evidence}: if none is, {counted(changed, 'right label')} would be changed; checked rows "
        "(trusted=) tell more",
        "little evidence of noise",
    )
    return replace(fitted, cautions=(*fitted.cautions, caution))


def _doubted(sides: Sides, judge: str, so: str) -> Caution:
    return Caution(
        VerdictWarning,
        f"of {counted(sides.changed, 'label')} that this model would change, {judge} support "
        f"{sides.given} as given and {sides.suggested} as suggested. Where changes are right, "
        f"fewer are supported as given: {so}, and the noise matrix holds what this model gets "
        "wrong",
    )
