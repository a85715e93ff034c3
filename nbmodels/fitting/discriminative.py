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
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.data.validation import pad_rows, padded_length
from nbmodels.errors import Caution, DataError
from nbmodels.fitting.cautions import INTERRUPTED
from nbmodels.fitting.cross_fitted import selected
from nbmodels.fitting.design_effect import padded_groups
from nbmodels.fitting.em import Fit
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
from nbmodels.fitting.self_training import NestedRounds
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

#: Standard errors by which a self-training round has to pay, and by which labels of one fold are
#: less likely where those of another are not looked at. A round that pays by chance rarely does
#: harm (``benchmarks/README.md``).
_SIGNIFICANT, _HARM = 0.0, 1.0

#: Share of the folds whose labels test whether a round pays, and the fewest folds for the test.
_TESTED, _FEWEST_FOLDS = 0.4, 4

#: Self-training rounds of a linear classifier where one pays, each of which takes back a part of
#: the noise that its probabilities hold, as EM does; and the rows up to which there is one, since
#: errors of few rows would be learned again and again.
LINEAR_ROUNDS, FEW_FOR_ROUNDS = 4, 200

#: Fewest folds of which half of those that a sequence sees are enough to learn from.
_HALVED = 5


class Learner(Protocol):
    """A classifier of the features."""

    @property
    def rounds(self) -> int:
        """Self-training rounds that are taken where a round pays.

        One takes back a part of the noise that the classifier's probabilities hold, several nearly
        all of it, as EM does; each but the last costs trainings by the square of the number of
        folds.
        """

    @property
    def halves(self) -> bool:
        """Whether trainings are dear: labels of nested rounds are corrected by classifiers of half
        of the other folds rather than of all but one of them.
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
        open_rounds: whether held-out labels decide on rounds. A number of rounds is of rounds that
            learn from as much as they can.
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
    open_rounds: bool = False
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
        by_matrix = self.by_matrix(settings)
        # a matrix is learned from scores of all other folds
        found = self.unscaled(settings, resp, fold, None if by_matrix else folds)
        if by_matrix:
            found = scaled_out_of_fold(found, self.weights[:, None] * resp, fold)
        return self.padded(found)

    def unscaled(
        self,
        settings: Settings,
        resp: np.ndarray,
        fold: np.ndarray,
        folds: Sequence[int] | None = None,
    ) -> np.ndarray:
        """Scores of a classifier of the other folds' items as they are, folds as given."""
        own = {**self.settings, **settings}
        return self.learner.out_of_fold(resp, self.weights, fold, own, folds)

    def by_matrix(self, settings: Settings) -> bool:
        """Whether scores are calibrated by a matrix."""
        return {**self.settings, **settings}.get("scaling") == MATRIX

    def padded(self, rows: np.ndarray) -> np.ndarray:
        """A table of the items with rows of zeros below."""
        return pad_rows(rows, len(self.data.weights))

    # Self-training rounds

    @property
    def n_folds(self) -> int:
        return int(self.fold.max()) + 1

    @property
    def economical(self) -> bool:
        """Whether dear trainings are saved, see :attr:`Learner.halves`; known once it learned."""
        return self.open_rounds and self.learner.halves

    @property
    def halved(self) -> bool:
        """Whether nested rounds learn from halves."""
        return self.economical and self.n_folds >= _HALVED

    @property
    def tested(self) -> list[int]:
        """Folds whose labels test whether a round pays; halves are shared by those of one test."""
        n_tested = max(1, round(_TESTED * self.n_folds))
        if not self.halved:  # the trainings of one sequence are as many as there are folds
            return [*range(1 if self.economical else n_tested)]
        return [k * self.half % self.n_folds for k in range(min(n_tested, self.half))]

    @property
    def half(self) -> int:
        """Number of folds in half of those that a sequence sees, one of which may be in neither."""
        return (self.n_folds - 1) // 2

    def nested_scores(
        self, settings: Settings, resp: Array, without: int, *, own: bool, others: bool
    ) -> Any:
        """See :class:`nbmodels.fitting.scores.ScoredLabels`.

        Where halves are learned from, those of the fold's own items are not scaled.
        """
        every = range(self.n_folds)
        if not self.halved:
            folds = [k for k in every if k != without] if not own else None if others else [without]
            return self.scores(settings, resp, folds)
        known = np.asarray(resp)[: len(self.weights)]
        out = np.zeros_like(known, float)
        if others:
            place = (self.fold - without - 1) % self.n_folds  # of the fold itself the last
            part = np.minimum(place // self.half, 1)
            halves = known * (place < 2 * self.half)[:, None]
            found = self.unscaled(settings, halves, part, [0, 1])
            if self.by_matrix(settings):
                found = scaled_out_of_fold(found, self.weights[:, None] * known, self.fold)
            out += found * (self.fold != without)[:, None]
        if own:
            found = self.unscaled(settings, known, self.fold, [without])
            out += found * (self.fold == without)[:, None]
        return self.padded(out)

    def scaled(self, settings: Settings, scores: Any, resps: Sequence[Any]) -> Any:
        """See :class:`nbmodels.fitting.scores.ScoredLabels`."""
        if not (self.halved and self.by_matrix(settings)):
            return scores
        n_rows = len(self.weights)
        rows, out = np.asarray(scores)[:n_rows], np.zeros((n_rows, self.n_classes))
        for k, resp in enumerate(resps):
            here = self.fold == k
            given = self.weights[:, None] * np.asarray(resp)[:n_rows]
            out[here] = matrix_scaling(rows[~here], given[~here]).scaled(rows[here])
        return self.padded(out)

    def scaling(
        self, settings: Settings, resp: np.ndarray, nested: NestedRounds | None
    ) -> MatrixScaling | None:
        """What scores of new items are scaled by; None where a temperature is all.

        Args:
            settings: those selected.
            resp: what the classifier learns from last.
            nested: the rounds that were taken, whose scores are not scaled yet; None without.
        """
        if not self.by_matrix(settings):
            return None
        if nested is None or not self.halved:
            found = self.unscaled(settings, resp, self.fold)
        else:
            found = nested.held_out_scores()[: len(resp)]
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
    about = (learner, first, sources, data, k, weights, fold, own, copies, rounds is None)
    source = _ClassifierScores(*about)
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
    source: _ClassifierScores, resp: Array, options: FitOptions, grid: Mapping[str, Any]
) -> tuple[Selection, NestedRounds | None]:
    """Open settings selected, and self-training rounds where held-out labels reward one.

    Returns:
        what was selected, and the rounds that were taken.
    """
    first = _selected(source, resp, options, grid, 0, hold_out=True)
    settings, table = first.settings, first.table
    # a caution says that the features are not heard: there is nothing to correct labels by
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
        scores = first.scores if found.interrupted else _held_out(source, found, options)
    except KeyboardInterrupt:
        return replace(first, interrupted=True, cautions=(INTERRUPTED,)), None
    kept = {n: getattr(first, n) for n in ("plain", "plain_scores", "noisy")}
    return replace(found, table=table, scores=scores, **kept), nested


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
    source: _ClassifierScores,
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
    groups = None if source.copies is None else padded_groups(source.copies, length)
    noise: list[np.ndarray] = []
    fixed = model

    def fit_all(model: Model, seen: Sequence[Data]) -> list[Fit]:
        return fit_from_two_starts([model] * len(seen), seen, options)

    for k in source.tested:
        (fitted,) = nested.advance([k], fit_all, model, last=source.learner.rounds == 1)
        own = pad_rows(source.fold == k, length)
        here |= own
        again[own] = nested.scores(k)[own]
        if "labels" in model:  # the noise as those found it who did not see these labels
            noise.append(finished(fitted).transitions["labels"])
            fixed = {**model, "labels": fixed_at(np.mean(noise, 0))}
        weights = on_device(np.asarray(data.weights) * here)
        pair = [
            replace(with_score_prior(labels, one, log_slope_sd=LOG_SLOPE_SD).data, weights=weights)
            for one in (plain, again)
        ]
        fits = options.fit_all([fixed] * 2, pair)
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
