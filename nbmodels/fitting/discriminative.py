"""Training of discriminative classifiers with noisy labels: cross-fitted scores, calibrated.

A classifier with enough features overfits to wrong labels, and then predicts each of them. So its
scores of an item come from a fit to the other folds' items; how far they count
(:class:`nbmodels.class_priors.Calibration`) and the noise are fitted together; and for some
self-training rounds the classifier learns anew, from the probabilities of the classes found.

Whether a round pays is tested on two fifths of the items: the other folds correct their labels
among themselves, a classifier learns from those, and both classifiers score items whose labels
neither has seen. That costs as many trainings as there are folds; rounds nested by fold cost about
half their square, and are run only where the test is passed. A round that is not nested is no test:
labels reach the scores of their own items by way of other items, and it always seems to pay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol

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
from nbmodels.fitting.cross_fitted import selected
from nbmodels.fitting.design_effect import padded_groups
from nbmodels.fitting.empirical_bayes import fit_with_learned_priors
from nbmodels.fitting.fitted_model import Drawn, FittedModel
from nbmodels.fitting.holdout import Comparison, compare_scores, held_out_by_fold
from nbmodels.fitting.label_sources import LabelSource, class_prior, learned_priors, padded_powers
from nbmodels.fitting.matrix_scaling import (
    MATRIX,
    MatrixScaling,
    matrix_scaling,
    scaled_out_of_fold,
)
from nbmodels.fitting.options import FitOptions, finished
from nbmodels.fitting.scores import (
    Candidate,
    Settings,
    cautious,
    draw_folds,
    label_responsibilities,
    with_score_prior,
)
from nbmodels.fitting.selection import select
from nbmodels.fitting.trials import Selection, anything_open
from nbmodels.fitting.two_starts import fit_from_two_starts

#: Prior standard deviation of the logarithm of the slope. A classifier's probabilities are those of
#: the noisy labels: where 70 % are right, they become certainties at slopes of 6 to 18.
LOG_SLOPE_SD = 2.0

#: Forms of the noise matrix that are compared, the cautious one first, and the probability that
#: draws are of the other one: held-out labels can hardly tell a matrix whose rows are drawn to each
#: other from one whose rows are not.
NOISE_FORMS, _OTHER_FORM = ("full", "pooled"), 0.5

_ONE_FORM = Caution(
    INTERRUPTED.category,
    "interrupted before the other form of the noise matrix was fitted; draws are of one form",
)

#: Standard errors by which a self-training round has to pay.
_SIGNIFICANT = 0.5

#: Share of the folds whose labels test whether a round pays, and the fewest folds for the test.
_TESTED, _FEWEST_FOLDS = 0.4, 4


class Learner(Protocol):
    """A classifier of the features."""

    @property
    def rounds(self) -> int:
        """Self-training rounds that are taken where a round pays.

        One takes back a part of the noise that the classifier's probabilities hold, several nearly
        all of it, as EM does; each but the last costs trainings by the square of the number of
        folds.
        """

    def out_of_fold(
        self,
        resp: Float[np.ndarray, "n k"],
        weights: Float[np.ndarray, " n"],
        fold: Int[np.ndarray, " n"],
        settings: Settings,
        folds: Sequence[int] | None = None,
    ) -> Float[np.ndarray, "n k"]:
        """Scores of each item by a classifier of the other folds' items.

        Args:
            resp: responsibilities to learn from, rows of zeros where nothing is known.
            weights: row weights.
            fold: fold of each item.
            settings: those of the classifier among them.
            folds: those whose items' scores are needed, where others can be saved; None for all.
        """


@dataclass
class _ClassifierScores:
    """Labels with the scores of a classifier, kept while the responsibilities are the same.

    Attributes:
        learner: the classifier.
        settings: value of every setting that is not open.
        own: names of the classifier's settings, without which its scores are the same.
        copies: group of each row, or None.
    """

    learner: Learner
    settings: Settings
    sources: Mapping[str, LabelSource]
    data: Data
    n_classes: int
    weights: np.ndarray
    fold: np.ndarray
    own: tuple[str, ...] = ()
    copies: np.ndarray | None = None
    _of: Array | None = None
    _kept: dict[Any, Any] = field(default_factory=dict)
    without_shares: ClassVar[bool] = False

    def labels(self, settings: Settings) -> Candidate:
        own = {**self.settings, **settings}
        k = self.n_classes
        channels = {name: source.channel(k, own) for name, source in self.sources.items()}
        model = {PRIOR: class_prior(k, own), **channels}
        return Candidate(model, self.data, learned_priors(channels))

    def scores(self, settings: Settings, resp: Array, folds: Sequence[int] | None = None) -> Array:
        if resp is not self._of:
            self._of, self._kept = resp, {}
        about = (settings.get(name) for name in (*self.own, "scaling"))
        key = (*about, None if folds is None else (*folds,))
        if key not in self._kept:
            known = np.asarray(resp)[: len(self.weights)]
            self._kept[key] = self.scored(settings, known, self.fold, folds)
        return self._kept[key]

    def scored(
        self,
        settings: Settings,
        resp: np.ndarray,
        fold: np.ndarray,
        folds: Sequence[int] | None = None,
    ) -> Any:
        """Padded scores of a classifier of the other folds' items, folds as given."""
        own = {**self.settings, **settings}
        by_matrix = own.get("scaling") == MATRIX
        # a matrix is learned from scores of all other folds
        needed = None if by_matrix else folds
        found = self.learner.out_of_fold(resp, self.weights, fold, own, needed)
        if by_matrix:
            found = scaled_out_of_fold(found, self.weights[:, None] * resp, fold)
        return pad_rows(found, len(self.data.weights))

    def scaling(self, settings: Settings, resp: np.ndarray) -> MatrixScaling | None:
        """What scores of new items are scaled by; None where a temperature is all."""
        own = {**self.settings, **settings}
        if own.get("scaling") != MATRIX:
            return None
        found = self.learner.out_of_fold(resp, self.weights, self.fold, own)
        return matrix_scaling(found, self.weights[:, None] * resp)


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
    source = _ClassifierScores(learner, first, sources, data, k, weights, fold, own, copies)
    if rounds is None:
        found = _tested(source, resp, options, grid)
    else:
        # held-out labels cost no training, and are what the floor goes by
        found = _selected(source, resp, options, grid, rounds, hold_out=True)
        if not anything_open(grid, rounds):
            found = replace(found, table=None)
    fitted = selected(found, names, n_rows)
    assert fitted.learned_from is not None  # cross-fitted
    scaling = source.scaling(found.settings, fitted.learned_from)
    own_settings = {**first, **found.settings}
    fitted = replace(fitted, settings=own_settings, copies=copies, scaling=scaling)
    try:
        return replace(fitted, alternatives=_other_forms(source, found, grid, options))
    except KeyboardInterrupt:
        return replace(fitted, interrupted=True, cautions=(*fitted.cautions, _ONE_FORM))


def _other_forms(
    source: _ClassifierScores, found: Selection, grid: Mapping[str, Any], options: FitOptions
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
    source: _ClassifierScores,
    resp: Array,
    options: FitOptions,
    grid: Mapping[str, Any],
    rounds: int,
    *,
    hold_out: bool = False,
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
    source: _ClassifierScores, resp: Array, options: FitOptions, grid: Mapping[str, Any]
) -> Selection:
    """Open settings selected, and self-training rounds where held-out labels reward one."""
    first = _selected(source, resp, options, grid, 0, hold_out=True)
    settings, table = first.settings, first.table
    # a caution says that the features are not heard: there is nothing to correct labels by
    if first.interrupted or first.cautions or int(source.fold.max()) + 1 < _FEWEST_FOLDS:
        return first
    try:
        test = _round_pays(source, settings, resp, options)
        table = _with_test(table, test, source.learner.rounds)
        if not test.pays:
            return replace(first, table=table)
        taken = {name: (value,) for name, value in settings.items()}
        found = _selected(source, resp, options, taken, source.learner.rounds)
        scores = first.scores if found.interrupted else _held_out(source, found, options)
    except KeyboardInterrupt:
        return replace(first, interrupted=True, cautions=(INTERRUPTED,))
    kept = {n: getattr(first, n) for n in ("plain", "plain_scores", "noisy")}
    return replace(found, table=table, scores=scores, **kept)


def _held_out(
    source: _ClassifierScores, found: Selection, options: FitOptions
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
    source: _ClassifierScores, settings: Settings, resp: Array, options: FitOptions
) -> _Test:
    """Compare a classifier of given labels with one of corrected labels on labels of neither.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    n_rows, length = len(source.weights), len(resp)
    n_held = max(1, round(_TESTED * (int(source.fold.max()) + 1)))
    held = source.fold < n_held
    given = np.asarray(resp)[:n_rows] * ~held[:, None]
    # the folds tested are one fold: one classifier of all others scores it
    plain = source.scored(settings, given, np.where(held, 0, source.fold - n_held + 1))
    labels = source.labels(settings)
    rest, tested = (pad_rows(rows.astype(float), length) for rows in (~held, held))
    model, data, _ = with_score_prior(labels, plain, log_slope_sd=LOG_SLOPE_SD)
    own = np.asarray(data.weights)
    others = replace(data, weights=on_device(own * rest))
    fitted = finished(fit_from_two_starts([model], [others], options)[0])
    corrected = np.asarray(fitted.resp)[:n_rows] * given.any(1, keepdims=True)
    again = source.scored(settings, corrected, held.astype(int), folds=[1])
    if "labels" in model:
        model = {**model, "labels": fixed_at(fitted.transitions["labels"])}
    weights = on_device(own * tested)
    pair = [data, with_score_prior(labels, again, log_slope_sd=LOG_SLOPE_SD).data]
    fits = options.fit_all([model] * 2, [replace(one, weights=weights) for one in pair])
    scores = [np.asarray(finished(one).log_likelihood) for one in fits]
    counted = np.asarray(weights) * np.asarray(resp).any(1)
    groups = None if source.copies is None else padded_groups(source.copies, length)
    compared = compare_scores(scores, [True, True], counted, _SIGNIFICANT, groups)
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
