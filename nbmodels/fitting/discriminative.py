"""Training of discriminative classifiers with noisy labels: cross-fitted scores, calibrated.

A classifier with enough features overfits to wrong labels, and then predicts each of them. So its
scores of an item come from a fit to the other folds' items; how far they count
(:class:`nbmodels.class_priors.Calibration`) and the noise are fitted together; and for some
self-training rounds the classifier learns anew, from the probabilities of the classes found.

Scores of a fold come from a sequence of rounds that saw none of its labels
(:class:`nbmodels.fitting.self_training.NestedRounds`): a round that is not nested is no test, since
labels reach the scores of their own items by way of other items, and it always seems to pay. Where
trainings are dear, a sequence corrects the labels of either half of its folds by a classifier of
the other half, which sequences share: three trainings a fold in all, and one more.

Whether a round pays is tested on two fifths of the items: their folds' sequences go ahead of the
others, which are run only where the test is passed, and are not repeated then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from jax import Array
from jaxtyping import Float, Int

from inference.arrays import on_device
from nbmodels.channels.fixed import fixed_at
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.validation import pad_rows, padded_length
from nbmodels.errors import Caution, DataError
from nbmodels.fitting.cautions import INTERRUPTED
from nbmodels.fitting.classifier_scores import ClassifierScores, Learner
from nbmodels.fitting.cross_fitted import selected
from nbmodels.fitting.design_effect import padded_groups
from nbmodels.fitting.empirical_bayes import fit_with_learned_priors
from nbmodels.fitting.fitted_model import Drawn, FittedModel
from nbmodels.fitting.holdout import Comparison, compare_scores, held_out_by_fold
from nbmodels.fitting.informative import votes_agree
from nbmodels.fitting.label_sources import VOTES, LabelSource, padded_powers
from nbmodels.fitting.matrix_scaling import learnable, matrix_scaling
from nbmodels.fitting.one_thread import one_thread_if_small
from nbmodels.fitting.options import FitOptions, finished
from nbmodels.fitting.scores import (
    Settings,
    cautious,
    draw_folds,
    label_responsibilities,
    with_score_prior,
)
from nbmodels.fitting.selection import select
from nbmodels.fitting.self_training import NestedRounds
from nbmodels.fitting.trials import Selection, anything_open
from nbmodels.fitting.two_starts import fit_from_two_starts

#: Prior standard deviation of the logarithm of the slope. A classifier's probabilities are those of
#: the noisy labels: where 70 % are right, they become certainties at slopes of 6 to 18.
LOG_SLOPE_SD = 2.0

#: Forms of the noise matrix that are compared, and the probability that draws are of the other one:
#: held-out labels can hardly tell a matrix whose rows are drawn to each other from one whose rows
#: are not.
NOISE_FORMS, _OTHER_FORM = ("full", "pooled"), 0.5

#: Classes from which on, and labels a cell of the matrix up to which, a full one is the less
#: cautious: it takes overlap of some classes for errors.
_MANY_CLASSES, _OF_A_CELL = 5, 30

_ONE_FORM = Caution(
    INTERRUPTED.category,
    "interrupted before the other form of the noise matrix was fitted; draws are of one form",
)

#: Standard errors by which a self-training round has to pay, and by which labels of one fold are
#: less likely where those of another are not looked at, and those of all after all rounds where
#: these are not taken. A round that pays by chance rarely does harm
#: (``benchmarks/records/trainings.md``).
_SIGNIFICANT, _HARM = 0.0, 1.0

#: Fewest folds for the test whether a round pays.
_FEWEST_FOLDS = 4

#: Self-training rounds of a linear classifier where one pays, each of which takes back a part of
#: the noise that its probabilities hold, as EM does; and the rows up to which there is one, since
#: errors of few rows would be learned again and again.
LINEAR_ROUNDS, FEW_FOR_ROUNDS = 4, 200


def noise_forms(n_classes: int, n_labels: int) -> tuple[str, ...]:
    """Forms of the noise matrix that are compared, the cautious one first.

    Args:
        n_classes: K.
        n_labels: number of labels.
    """
    few = n_labels < _OF_A_CELL * n_classes**2
    return NOISE_FORMS[::-1] if few and n_classes >= _MANY_CLASSES else NOISE_FORMS


def train_scored(
    learner: Learner,
    settings: Settings,
    grid: Mapping[str, Any],
    sources: Mapping[str, LabelSource],
    names: np.ndarray,
    weights: np.ndarray,
    options: FitOptions,
    *,
    rounds: int | None,
    cv: Any,
    own: tuple[str, ...] = (),
    copies: Int[np.ndarray, " n"] | None = None,
) -> FittedModel:
    """Fit the noise given a classifier's out-of-fold scores, with open settings selected.

    Args:
        learner: the classifier of the features.
        settings: value of every setting that is not open.
        grid: values of each open setting, the cautious one first.
        sources: label sources, by channel.
        names: ``(K,)`` names of the classes.
        weights: ``(N,)`` row weights.
        options: of the fits.
        rounds: self-training rounds; None for the learner's where held-out labels reward one.
        cv: number of folds, splitter, or list of (train, test) rows.
        own: names of the settings that the classifier's scores depend on.
        copies: rows that stay in one fold where ``cv`` is a number, see
            :func:`nbmodels.fitting.scores.stratified_folds`.

    Raises:
        DataError: no labels, or folds that do not hold each row once.
    """
    n_rows, k = len(weights), len(names)
    length = padded_length(n_rows)
    parts = {name: source.padded(length) for name, source in sources.items()}
    data = Data(parts, on_device(pad_rows(weights, length)), padded_powers(sources, length))
    first = {**settings, **cautious(grid)}
    channels = {name: source.channel(k, first) for name, source in sources.items()}
    resp = label_responsibilities(channels, data)
    fold = _folds(cv, np.asarray(resp)[:n_rows] * (weights[:, None] > 0), copies)
    about = (learner, first, sources, data, k, weights, fold, own, copies, rounds is None)
    source = ClassifierScores(*about)
    nested = None
    if rounds is None:
        found, nested = _tested(source, resp, options, grid)
    else:
        # held-out labels cost no training, and are what the floor goes by
        found = _selected(source, resp, options, grid, rounds, hold_out=True)
        if not anything_open(grid, rounds):
            found = replace(found, table=None)
    fitted = selected(found, names, n_rows)
    assert fitted.learned_from is not None  # cross-fitted
    scaling = source.scaling(found.settings, fitted.learned_from, nested)
    own_settings = {**first, **found.settings}
    fitted = replace(fitted, settings=own_settings, copies=copies, scaling=scaling)
    try:
        return replace(fitted, alternatives=_other_forms(source, found, grid, options))
    except KeyboardInterrupt:
        return replace(fitted, interrupted=True, cautions=(*fitted.cautions, _ONE_FORM))


def _other_forms(
    source: ClassifierScores, found: Selection, grid: Mapping[str, Any], options: FitOptions
) -> tuple[Drawn, ...]:
    """The form of the noise that was not preferred, on the same scores.

    Raises:
        KeyboardInterrupt: its fit was interrupted.
    """
    if found.drawn is not None or found.interrupted:
        return ()
    own = found.settings.get("noise")
    others = [form for form in grid.get("noise", ()) if form != own]
    start = jax.tree.map(on_device, found.fit.params)
    data = jax.tree.map(on_device, found.data)
    drawn = []
    for form in others:
        fit = found.other_forms.get(form)
        if fit is None:
            labels = source.labels({**found.settings, "noise": form})
            model = {**jax.tree.map(on_device, found.fit.model), "labels": labels.model["labels"]}
            about = model, data, labels.learned, options.without_restarts()
            fit = finished(fit_with_learned_priors(*about, start=start))
        drawn.append(Drawn(fit, found.data, _OTHER_FORM / len(others)))
    return tuple(drawn)


def _selected(
    source: ClassifierScores,
    resp: Array,
    options: FitOptions,
    grid: Mapping[str, Any],
    rounds: int,
    *,
    hold_out: bool = False,
    nested: NestedRounds | None = None,
) -> Selection:
    return select(
        source,
        resp,
        pad_rows(source.fold, len(resp)),
        options=options,
        grid=grid,
        rounds=rounds,
        hold_out=hold_out,
        second_start=True,
        log_slope_sd=LOG_SLOPE_SD,
        copies=source.copies,
        nested=nested,
    )


# Self-training where it pays ----------------------------------------------------------------------


class _Test(NamedTuple):
    """Held-out labels under a classifier of given labels and one of corrected labels.

    Attributes:
        compared: the two, in this order.
        pays: whether the second is better by more than chance often gives.
    """

    compared: Comparison
    pays: bool


def _tested(
    source: ClassifierScores, resp: Array, options: FitOptions, grid: Mapping[str, Any]
) -> tuple[Selection, NestedRounds | None]:
    """Open settings selected, and self-training rounds where held-out labels reward one.

    Returns:
        what was selected, and the rounds that were taken.
    """
    first = _selected(source, resp, options, grid, 0, hold_out=True)
    settings, table = first.settings, first.table
    # a caution says that the features are not informative: there is nothing to correct labels by
    if first.interrupted or first.cautions or source.n_folds < _FEWEST_FOLDS:
        return first, None
    padded = pad_rows(source.fold, len(resp))
    nested = NestedRounds(source, settings, resp, padded, LOG_SLOPE_SD)
    try:
        test = _round_pays(source, first, nested, resp, options)
        table = _with_test(table, test, source.learner.rounds)
        if not test.pays:
            return replace(first, table=table), None
        taken = {name: (value,) for name, value in settings.items()}
        found = _selected(source, resp, options, taken, source.learner.rounds, nested=nested)
        scores, given = first.scores, np.asarray(resp)
        if not found.interrupted:
            harm = not _as_agreed(found, first, given)
            if not harm:
                scores = _held_out(source, found, options)
                groups = padded_groups(source.copies, len(resp))
                harm = _less_likely(scores, first, given, groups)
            if harm:
                fails = test._replace(pays=False)
                table = _with_test(first.table, fails, source.learner.rounds)
                return replace(first, table=table), None
    except KeyboardInterrupt:
        return replace(first, interrupted=True, cautions=(INTERRUPTED,)), None
    kept = {n: getattr(first, n) for n in ("plain", "plain_scores", "noisy")}
    return replace(found, table=table, scores=scores, **kept), nested


def _less_likely(
    scores: Float[np.ndarray, " n"],
    first: Selection,
    given: Float[np.ndarray, "n k"],
    groups: Int[np.ndarray, " n"] | None,
) -> bool:
    """Whether labels are less likely after all rounds: the test was of one round and some folds."""
    weights = np.asarray(first.data.weights) * given.any(1)
    pair = np.nan_to_num(scores), np.nan_to_num(first.scores)
    return compare_scores(pair, [True, True], weights, _HARM, groups).best == 1


def _as_agreed(found: Selection, first: Selection, given: Float[np.ndarray, "n k"]) -> bool:
    """Whether votes agree with the classes after self-training rounds about as before."""
    if VOTES not in found.fit.model:
        return True
    weights = np.asarray(first.data.weights) * given.any(1)
    return votes_agree(found.fit.resp, first.fit.resp, given, weights)


def _held_out(
    source: ClassifierScores, found: Selection, options: FitOptions
) -> Float[np.ndarray, " n"]:
    """Log-probability of each label after the last round, by a fit that did not see it.

    It is compared with that of other classifiers. Scores of a fold are of rounds that saw none of
    its labels (:class:`nbmodels.fitting.self_training.NestedRounds`).

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    model, data, start = jax.tree.map(on_device, (found.fit.model, found.data, found.fit.params))
    fold = pad_rows(source.fold, len(data.weights))
    scores = held_out_by_fold(model, data, fold, options, start)
    if scores is None:
        raise KeyboardInterrupt
    return scores


def _round_pays(
    source: ClassifierScores,
    first: Selection,
    nested: NestedRounds,
    resp: Array,
    options: FitOptions,
) -> _Test:
    """Compare a classifier of given labels with one of corrected labels on labels of neither.

    A fold's labels after the other, until it is sure that a round does harm.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    n_rows, length = len(source.weights), len(resp)
    settings = first.settings
    labels = source.labels(settings)
    model, data = jax.tree.map(on_device, (dict(first.fit.model), first.data))
    known = np.asarray(resp)
    plain = source.padded(source.unscaled(settings, known[:n_rows], source.fold))
    again, here = np.zeros_like(plain), np.zeros(length, bool)
    groups = padded_groups(source.copies, length)
    noise: list[np.ndarray] = []
    fixed = model

    fit_all = partial(fit_from_two_starts, options=options)

    for k in source.tested:
        (fitted,) = nested.advance([k], fit_all, model, last=source.learner.rounds == 1)
        own = pad_rows(source.fold == k, length)
        here |= own
        again[own] = nested.fold_scores(k)[: np.count_nonzero(own)]  # padding comes last
        if "labels" in model:  # the noise as those found it who did not see these labels
            noise.append(finished(fitted).transitions["labels"])
            fixed = {**model, "labels": fixed_at(np.mean(noise, 0))}
        weights = on_device(np.asarray(data.weights) * here)
        # scores of other folds are not known yet
        some = labels._replace(data=replace(labels.data, weights=weights))
        pair = [with_score_prior(some, one, log_slope_sd=LOG_SLOPE_SD) for one in (plain, again)]
        fits = options.fit_all(
            [{**fixed, PRIOR: one.model[PRIOR]} for one in pair], [one.data for one in pair]
        )
        scores = [np.asarray(finished(one).log_likelihood) for one in fits]
        counted = np.asarray(weights) * known.any(1)
        compared = compare_scores(scores, [True, True], counted, _SIGNIFICANT, groups)
        if compared.gain[1] < -_HARM * compared.standard_error[1]:
            break
    return _Test(compared, compared.best == 1)


def _with_test(table: pd.DataFrame | None, test: _Test, rounds: int) -> pd.DataFrame | None:
    """The table of a selection with a row for self-training rounds, the gain of one as tested."""
    if table is None:
        return None
    chosen = table[table["chosen"]].assign(
        rounds=rounds,
        log_likelihood=lambda t: t["log_likelihood"] + test.compared.gain[1],
        gain=lambda t: t["gain"] + test.compared.gain[1],
        standard_error=test.compared.standard_error[1],
        chosen=test.pays,
    )
    others = table.assign(chosen=table["chosen"] & (not test.pays))
    return pd.concat([others, chosen], ignore_index=True)


def predict_scored(
    fitted: FittedModel,
    scores: Float[np.ndarray, "n k"],
    known: Mapping[str, LabelSource] | None = None,
) -> Float[np.ndarray, "n k"]:
    """P(true class | features) of new items, from a classifier's scores.

    Args:
        fitted: the fit.
        scores: of the new items.
        known: label sources of the new items, by channel; None without any.
    """
    if fitted.scaling is not None:
        scores = fitted.scaling.scaled(scores)
    length = padded_length(len(scores))
    padded = on_device(pad_rows(np.asarray(scores), length))
    parts = {name: source.padded(length) for name, source in (known or {}).items()}
    data = Data({PRIOR: padded, **parts}, on_device(np.ones(length)))
    return fitted.predict(data)[: len(scores)]


def corrected_classes(fitted: FittedModel) -> Float[np.ndarray, "n k"] | None:
    """``(N, K)`` P(true class | everything known) that a final classifier is to learn from.

    New items are predicted better by it than by a classifier of given labels, however calibrated,
    or of a single round (``benchmarks/records/trainings.md``).

    Returns:
        zeros for rows that were not learned from before. None where the classifier is to stay as it
        was trained and calibrated: labels are likelier right than noisy, the features do not
        predict them, the fit was interrupted, or several rounds have corrected the labels already.
    """
    before, several = fitted.learned_from, fitted.chosen.get("rounds", 0) > 1
    stays = several or fitted.as_given or fitted.interrupted or fitted.noisy < 0.5
    if before is None or stays:
        return None
    return np.where(before.any(1, keepdims=True), fitted.label_posterior, 0)


def calibrated_to(
    fitted: FittedModel, scores: Float[np.ndarray, "n k"], resp: Float[np.ndarray, "n k"]
) -> FittedModel:
    """The fit as new items meet it, whose scores are those of a classifier of corrected labels.

    Of the rows that it learned from such a classifier is too sure rather than not sure enough: a
    matrix that makes it surer there mends a strong penalty, and changes little of any other.

    Args:
        fitted: the fit.
        scores: of the training items by that classifier.
        resp: what it learned from.
    """
    k = len(fitted.names)
    weights = np.asarray(fitted.data.weights, float)[: len(resp), None]
    scaling = matrix_scaling(scores, weights * resp) if learnable(k) else None
    return replace(fitted, plain=np.zeros(1 + k), scaling=scaling)


def predicted_instead(
    fitted: FittedModel, x: Any, missing: Any = None, known: Mapping[str, LabelSource] | None = None
) -> Float[np.ndarray, "n k"]:
    """P(true class | features) of new items by the classifier in the place of the model's own.

    Args:
        fitted: a fit that has such a classifier.
        x: features of the new items, read as those of the fit were.
        missing: booleans of cells that are missing, or None.
        known: label sources of the new items, by channel; None without any.
    """
    assert fitted.predictor is not None
    found = fitted.predictor
    with one_thread_if_small(x):
        scores = found.classifier.log_probabilities(x, missing)
    return predict_scored(replace(fitted, plain=found.calibration, scaling=None), scores, known)


def _folds(
    cv: Any, resp: Float[np.ndarray, "n k"], copies: Int[np.ndarray, " n"] | None
) -> Int[np.ndarray, " n"]:
    """Fold of each row; of a number of folds the same in every fit, as scikit-learn's are."""
    if isinstance(cv, int | np.integer):
        return draw_folds(resp, int(cv), copies)
    from sklearn.model_selection import check_cv  # a tenth of the library's start

    n_rows = len(resp)
    fold, times = np.full(n_rows, -1), np.zeros(n_rows, int)
    try:
        splitter = check_cv(cv)
    except ValueError as error:
        raise DataError(f"cv: expected a number of folds or a splitter, got {cv!r}") from error
    for k, (_, test) in enumerate(splitter.split(np.zeros(n_rows), np.asarray(resp).argmax(1))):
        fold[test] = k
        times[test] += 1
    bad = np.flatnonzero(times != 1)
    if len(bad):
        raise DataError(
            f"cv: row {bad[0]} is in {times[bad[0]]} test folds; every row must be in one"
        )
    return fold
