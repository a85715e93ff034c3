"""Select hyperparameters of a noise model by the likelihood of held-out noisy labels.

Scores state what a model of the features makes of each item without the item's own label. How far
they count and the noise are fitted together. A label is likely under the right scores, the right
form of the noise and the right smoothing: so labels held out of that fit select among settings
without a true label. They also decide for how many self-training rounds the scores are learned anew
(:mod:`nbmodels.fitting.self_training`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
import pandas as pd
from jax import Array
from jaxtyping import Float, Int

from inference import Status
from inference.arrays import on_device
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.errors import Caution
from nbmodels.fitting.agreement import Agreement, beyond_chance
from nbmodels.fitting.candidate_fits import CandidateFits, masked
from nbmodels.fitting.cautions import (
    DISAGREEING_WITH_VOTES,
    INTERRUPTED,
    INTERRUPTED_ROUNDS,
    PLAIN,
    UNINFORMATIVE_BESIDE_VOTES,
    UNINFORMATIVE_OF_SETS,
)
from nbmodels.fitting.checked_rows import contradicted
from nbmodels.fitting.design_effect import padded_groups
from nbmodels.fitting.em import evaluate, responsibilities
from nbmodels.fitting.empirical_bayes import fit_with_learned_priors
from nbmodels.fitting.fit import Fit
from nbmodels.fitting.holdout import compare_scores
from nbmodels.fitting.identifiability import vanished
from nbmodels.fitting.informative import (
    AGREEMENT,
    INFORMATIVE,
    credible,
    unheard,
    votes_agree,
)
from nbmodels.fitting.judged_rows import JUDGED, LEARNED, judged_rows, of_rows, to_all
from nbmodels.fitting.label_sources import VOTES
from nbmodels.fitting.options import FitOptions, finished
from nbmodels.fitting.plain import PlainClassifier, plain_classifier, pseudo_bma
from nbmodels.fitting.progress import Task
from nbmodels.fitting.scores import (
    Candidate,
    ScoredLabels,
    Settings,
    cautious,
    with_score_prior,
)
from nbmodels.fitting.self_training import NestedRounds
from nbmodels.fitting.trials import (
    SIGNIFICANT,
    Selection,
    Trial,
    anything_open,
    choice_table,
    compared,
    preferred,
)
from nbmodels.fitting.unheard import EVEN, as_given, of_votes

#: Largest number of self-training rounds that are tried where their number is selected.
_MOST_ROUNDS = 10

#: Rounds tried beyond the best so far: the first may gain little and a later one more.
_PATIENCE = 2

#: Standard errors of labels less likely than under the best, from which on no later round makes up
#: for it; and nats a label that a round beyond the first must change for another to be tried, and
#: the first of many rows.
_HOPELESS, _WORTH, _STILL = 4.0, 1e-3, 1e-4


def select(
    source: ScoredLabels,
    resp: Float[Array, "n k"],
    fold: Int[np.ndarray, " n"],
    *,
    options: FitOptions,
    grid: Mapping[str, Sequence[Any]],
    rounds: int | None = 0,
    hold_out: bool = False,
    second_start: bool = False,
    log_slope_sd: float = 1.0,
    start: Any = None,
    priors: Model | None = None,
    warm: bool = False,
    copies: Int[np.ndarray, " m"] | None = None,
    nested: NestedRounds | None = None,
) -> Selection:
    """Fit label channels and the calibration of the scores, with open settings selected.

    Settings are selected one after the other, in the grid's order, the others as they are then; the
    self-training rounds come last. After Ctrl-C the best of what was tried until then is taken.

    Args:
        source: labels and scores under given settings.
        resp: responsibilities that the scores are learned from first.
        fold: fold of each item, the same that kept an item's label from its scores.
        options: of the fits.
        grid: values of each setting that is to be selected, the cautious one first.
        rounds: how often scores are learned anew from the responsibilities found. None: as long as
            held-out labels become likelier, now or two rounds later.
        hold_out: score held-out labels also where nothing is open, so that the fit is compared
            with the plain classifier and with none.
        second_start: begin also where the scores' likeliest classes are the true ones. Scores that
            were learned from noisy labels contain the noise: begun at the labels, a fit may find
            none besides. It is taken where it is better by a nat or more.
        log_slope_sd: see :func:`nbmodels.fitting.scores.with_score_prior`.
        start: parameters from which each fit begins, such as those of a part of the items; the
            labels by default.
        priors: components that are learned from, such as those of a part of the items, in the place
            of the labels' own where a prior is learned.
        warm: begin each fit at the last one of all labels, as its neighbour.
        copies: group of each row before padding, or of more of them, for standard errors; None
            where rows are independent.
        nested: self-training rounds of these scores, some of whose first round may have been taken;
            new ones by default.
    """
    choosing = hold_out or anything_open(grid, rounds)
    total = 1 + sum(len(values) - 1 for values in grid.values())
    with (
        options.progress.iterations() as report,
        options.progress.bar("choosing settings", total) as bar,
    ):

        def new() -> _Run:
            fits = CandidateFits(
                options,
                report,
                second_start,
                warm,
                resp.shape[1],
                jax.tree.map(on_device, dict(priors or {})),
                None if start is None else jax.tree.map(on_device, start),
            )
            return _Run(source, resp, fold, fits, choosing, log_slope_sd, bar, copies)

        run = new()
        if not (warm and (choosing or rounds)):
            return run.select(grid, rounds, nested)
        labels = source.labels(cautious(grid))
        size = JUDGED if choosing else LEARNED
        run.judge(judged_rows(labels.model, labels.data, np.asarray(resp), size))
        try:
            return run.select(grid, rounds, nested)
        except _Unheard:  # labels stay as they are given, all of them
            return new().select(grid, rounds, nested)


class _Unheard(Exception):
    """The features are not heard, by the rows that are judged."""


class _Run:
    """The trials of one selection."""

    def __init__(
        self,
        source: ScoredLabels,
        resp: Array,
        fold: np.ndarray,
        fits: CandidateFits,
        choosing: bool,
        log_slope_sd: float,
        bar: Task,
        copies: np.ndarray | None,
    ) -> None:
        self.source, self.resp, self.fits = source, resp, fits
        self.options, self.report, self.warm = fits.options, fits.report, fits.warm
        self.fold = self.all_folds = fold
        self.choosing, self.log_slope_sd, self.bar = choosing, log_slope_sd, bar
        self.given = np.asarray(resp)
        self.rows: np.ndarray | None = None  # those that are judged, where not all are
        self.groups = None if copies is None else padded_groups(copies, len(fold))
        self.masks = [fold != k for k in range(int(fold.max()) + 1)]
        self.trials: list[Trial] = []
        self.stopped = False  # whether the first trial was interrupted
        self.learner: Trial | None = None  # the first whose prior was learned
        self.null: tuple[Model, Trial] | None = None  # labels without the features
        self.floors: dict[str, PlainClassifier] = {}  # plain classifiers by settings

    def judge(self, rows: np.ndarray | None) -> None:
        """Compare candidates by some rows; None for all."""
        if rows is None:
            return
        self.rows, self.given, self.fold = rows, self.given[rows], self.fold[rows]
        self.masks = [mask[rows] for mask in self.masks]
        self.groups = None if self.groups is None else self.groups[rows]

    def select(
        self,
        grid: Mapping[str, Sequence[Any]],
        rounds: int | None,
        nested: NestedRounds | None,
    ) -> Selection:
        """See :func:`select`.

        Raises:
            _Unheard: some rows are judged, and the features are not heard.
        """
        resp, interrupted = self.resp, False
        plain: np.ndarray | None = None
        drawn: tuple[Fit, Data] | None = None
        ranked: np.ndarray | None = None
        plain_scores: np.ndarray | None = None
        noisy = 1.0
        cautions: tuple[Caution, ...] = ()
        begin, begun = cautious(grid), self.fits.start
        first = self.candidate(begin)
        self.weights = self.judged(np.asarray(first.data.weights)) * self.given.any(1)
        most = _MOST_ROUNDS if rounds is None else rounds
        best = self.tried(begin, 0, first, self.tentative if most else None)
        try:
            if self.stopped:
                raise KeyboardInterrupt
            for name, values in grid.items():
                others = [{**best.settings, name: value} for value in values[1:]]
                if name == "noise" and others:  # the same scores: a neighbour's solution
                    self.fits.go_on_from(best.fit)
                found = [self.tried(one, 0, self.candidate(one)) for one in others]
                if not self.warm:
                    self.fits.start = begun
                best = self.preferred([best, *found])
            if self.choosing and not ((heard := self.heard(best)) and self.credible(best)):
                if self.rows is not None:
                    raise _Unheard
                if {"labels", VOTES}.isdisjoint(best.fit.model):
                    # of sets: no label could stay as it is, and calibrated scores do no harm
                    cautions = (UNINFORMATIVE_OF_SETS,)
                else:
                    model, null = self.without_scores(best.settings)
                    null = null._replace(settings=_before_scaling(grid, best.settings))
                    best = best._replace(settings=null.settings)
                    floor = self.plain(best.settings)
                    plain, most = floor.calibration, 0
                    if VOTES in null.fit.model:  # which show the noise without any features
                        labels = self.source.labels(null.settings)
                        best = null._replace(
                            fit=of_votes(null.fit, *labels, self.options, self.report)
                        )
                        cautions = (
                            DISAGREEING_WITH_VOTES if heard else UNINFORMATIVE_BESIDE_VOTES,
                        )
                    else:
                        plain_scores = floor.held_out
                        best, ranked, drawn = self.as_given(model, null, best.settings, plain)
                        noisy, cautions = EVEN, (unheard(self.agreement(best.settings)),)
            if best.rounds < most:
                settings, last = best.settings, best
                model, data, learned = self.candidate(settings)
                about = self.source, settings, resp, self.all_folds, self.log_slope_sd
                # rounds that are compared are those of the result
                rows = None if self.choosing else self.rows
                nested = nested or NestedRounds(*about, rows, self.shares(data))
                while last.rounds < most and last.rounds - best.rounds < _PATIENCE:
                    before = self.responsibilities(last)
                    how = self.fits.of_parts(self.tentative)
                    here, data = nested.next(
                        partial(self.fits.each, start=self.fits.start, options=how),
                        best.fit.model,
                        last=rounds is None or last.rounds + 1 == most,
                    )
                    model = {**model, PRIOR: here[PRIOR]}
                    one = Candidate(model, data, learned)
                    # where rows are judged, one of all rows follows
                    then = None if self.rows is None else self.tentative
                    last = self.tried(settings, last.rounds + 1, one, then)
                    if rounds is not None or (
                        self.preferred([best, last]) is last and self.votes_agree(last)
                    ):
                        best, resp = last, before
                    if rounds is None and self.enough(best, last):
                        break
            channels = set(best.fit.model) - {PRIOR, "trusted"}
            if self.choosing and drawn is None and channels == {"labels"}:
                floor = self.plain(best.settings)
                plain_scores = floor.held_out
                # a checked label that differs from the given one leaves nothing to compare
                if not contradicted(best.fit.model, best.data, self.given.shape[1]):
                    noisy = self.noisy(best, grid.get("scaling", ()))
                    if self.better(best.scores, floor.held_out, SIGNIFICANT):
                        plain, cautions = floor.calibration, (PLAIN,)
                best = self.relearned(best)
            best = self.of_all(best)
        except KeyboardInterrupt:
            interrupted = True
            best = self.of_all(best, fit=False)
            if self.choosing:
                cautions = (*cautions, INTERRUPTED)
            elif best.fit.status != Status.INTERRUPTED:  # the fit has no warning of its own
                cautions = (*cautions, INTERRUPTED_ROUNDS)
        return Selection(
            best.fit,
            best.data,
            best.settings,
            best.rounds,
            resp,
            self.table(best),
            self.of_all_rows(best.scores),
            plain,
            None if plain_scores is None else self.of_all_rows(plain_scores),
            noisy,
            drawn,
            ranked,
            interrupted,
            cautions,
            self.other_forms(best),
        )

    # Candidates ---------------------------------------------------------------------------------

    def candidate(self, settings: Settings, *, scored: bool = True) -> Candidate:
        """A candidate whose learned priors are those of the first trial; by scores of 0 or not."""
        labels = self.source.labels(settings)
        if self.fits.learned and labels.learned:
            labels = Candidate({**labels.model, **self.fits.learned}, labels.data)
        scores: Any = self.source.scores(settings, self.resp)
        scores = scores if scored else np.zeros_like(scores)
        shares = self.shares(labels.data)
        return with_score_prior(labels, scores, log_slope_sd=self.log_slope_sd, shares=shares)

    def shares(self, data: Data) -> Float[np.ndarray, " k"] | None:
        """``(K,)`` of the given labels, where scores are without them."""
        if not self.source.without_shares:
            return None
        return _shares(np.asarray(data.weights) @ np.asarray(self.resp))

    def tried(
        self,
        settings: Settings,
        rounds: int,
        candidate: Candidate,
        options: FitOptions | None = None,
    ) -> Trial:
        seen = candidate._replace(data=of_rows(candidate.data, self.rows))
        fits = self.fits.of(seen, self.masks if self.choosing else [], options)
        self.stopped = any(f.status == Status.INTERRUPTED for f in fits)
        if self.trials and self.stopped:
            raise KeyboardInterrupt
        one = self.trial(settings, rounds, candidate.data, fits)
        if candidate.learned and self.learner is None:
            self.learner = one
        self.trials.append(one)
        self.bar.update()
        return one

    def heard(self, best: Trial) -> bool:
        """Whether labels are likelier with the features, or these predict them beyond chance.

        Where they are far likelier than by their shares, no fit without the features is needed.
        """
        if not set(best.fit.model) - {PRIOR, "labels"}:
            shares = np.log(_shares(self.weights @ self.given))[self.given.argmax(1)]
            if self.better(shares, best.scores, _HOPELESS):
                return True
        _, null = self.without_scores(best.settings)
        heard = self.better(null.scores, best.scores, INFORMATIVE)
        return heard or self.agreement(best.settings).z > AGREEMENT

    def without_scores(self, settings: Settings) -> tuple[Model, Trial]:
        """Labels without the features, as a trial, and its model; fitted once."""
        if self.null is not None:
            return self.null
        model, data, _ = self.candidate(settings, scored=False)
        data = of_rows(data, self.rows)
        parts = [data, *masked(data, self.masks)]
        # scores of zero have no likeliest classes to begin at
        fits = self.options.fit_all([model] * len(parts), parts, report=self.report)
        self.null = model, self.trial(settings, 0, data, [finished(f) for f in fits])
        return self.null

    def relearned(self, trial: Trial) -> Trial:
        """A trial with priors learned from itself, where they are those of another trial."""
        channels, _, learned = self.source.labels(trial.settings)
        if not learned or trial is self.learner or self.rows is not None:
            return trial
        model = dict(trial.fit.model)
        if not self.warm:
            model |= {name: channels[name] for name in learned}
        start = jax.tree.map(on_device, trial.fit.params)
        fit = fit_with_learned_priors(
            model, trial.data, learned, self.options, start=start, report=self.report
        )
        return trial._replace(fit=finished(fit))

    def of_all(self, trial: Trial, fit: bool = True) -> Trial:
        """A trial of judged rows as one of all.

        Args:
            trial: the one selected.
            fit: whether its parameters are fitted to all rows, or read as they are.
        """
        if self.rows is None:
            return trial
        start = jax.tree.map(on_device, trial.fit.params)
        if not fit:
            read = evaluate(trial.fit.model, start, trial.data, rule=self.options.rule)
            return trial._replace(fit=replace(read, status=trial.fit.status))
        _, _, learned = self.source.labels(trial.settings)
        about = trial.fit.model, trial.data, learned, self.options
        more: dict[str, Any] = {"start": start, "report": self.report, "roughly": self.fits.many}
        found = fit_with_learned_priors(*about, **more)
        return trial._replace(fit=finished(found))

    def responsibilities(self, trial: Trial) -> Array:
        """``(N, K)`` of all rows."""
        if self.rows is None:
            return on_device(trial.fit.resp)
        return responsibilities(trial.fit, trial.data)

    @property
    def share(self) -> float:
        """Number of labels to each that is judged."""
        return 1.0 if self.rows is None else np.asarray(self.resp).any(1).sum() / len(self.rows)

    def of_all_rows(self, values: np.ndarray) -> np.ndarray:
        """One of each row, NaN of those that are not judged."""
        return to_all(values, self.rows, len(self.all_folds))

    def judged(self, values: np.ndarray) -> np.ndarray:
        """Values of the rows that are judged."""
        return values if self.rows is None else values[self.rows]

    def as_given(
        self, model: Model, null: Trial, settings: Settings, plain: np.ndarray
    ) -> tuple[Trial, np.ndarray, tuple[Fit, Data]]:
        """Labels as given, how doubtful they are, and what draws of the noise's prior are of."""
        model = {**model, **self.source.labels(settings).model, PRIOR: model[PRIOR]}
        data = self.candidate(settings).data
        shares = None if self.source.without_shares else _shares(self.weights @ self.given)
        about = model, data, null.data, plain, shares
        fit, ranked, drawn = as_given(*about, self.options, report=self.report)
        return null._replace(fit=fit), ranked, drawn

    def plain(self, settings: Settings) -> PlainClassifier:
        """The plain classifier of the same features."""
        if (key := repr(settings)) not in self.floors:
            scores = self.judged(np.asarray(self.source.scores(settings, self.resp), float))
            about = self.given, self.weights, self.fold, self.source.without_shares
            self.floors[key] = plain_classifier(scores, *about)
        return self.floors[key]

    def noisy(self, trial: Trial, scalings: Sequence[Any]) -> float:
        """Probability that labels are noisy, against the plain classifier.

        Args:
            trial: the fit.
            scalings: ways to calibrate scores, where they were compared. Where one temperature fits
                badly, a noise matrix would fit better though no label is wrong: so the probability
                is against the likeliest of them.
        """
        ways: list[Settings] = [{**trial.settings, "scaling": one} for one in scalings]
        ways = ways or [trial.settings]
        plain = max((self.plain(one).held_out for one in ways), key=lambda p: self.weights @ p)
        return pseudo_bma(trial.scores, plain, self.share * self.weights, self.groups)

    def credible(self, trial: Trial) -> bool:
        """Whether labels, or votes, agree enough with the classes found."""
        fit = trial.fit
        enough = credible(fit.model, np.asarray(fit.resp), self.given, self.weights)
        return enough and self.votes_agree(trial)

    def votes_agree(self, trial: Trial) -> bool:
        """Whether votes, if there are any, agree with the classes about as without the features."""
        if VOTES not in trial.fit.model:
            return True
        _, null = self.without_scores(trial.settings)
        return votes_agree(trial.fit.resp, null.fit.resp, self.given, self.weights)

    @property
    def tentative(self) -> FitOptions:
        """Options of fits that others go on from."""
        return self.fits.tentative(near=self.warm and not self.choosing)

    def agreement(self, settings: Settings) -> Agreement:
        """Agreement of out-of-fold predictions with given labels beyond chance."""
        scores = self.judged(np.asarray(self.source.scores(settings, self.resp), float))
        if self.source.without_shares:
            scores = scores + np.log(_shares(self.weights @ self.given))
        predicted, given = scores.argmax(1), self.given.argmax(1)
        return beyond_chance(predicted, given, self.weights, self.groups)

    def enough(self, best: Trial, last: Trial) -> bool:
        """Whether no self-training round beyond the last is worth its fits."""
        # of all labels, standard errors are smaller
        errors = _HOPELESS / self.share**0.5
        if self.better(last.scores, best.scores, errors):
            return True
        before = self.trials[-2]
        change = float(self.weights @ (last.scores - before.scores) / self.weights.sum())
        least = _WORTH if last.rounds > 1 else _STILL * self.warm
        return abs(change) < least

    def preferred(self, trials: Sequence[Trial]) -> Trial:
        return preferred(trials, self.weights, self.groups)

    def better(self, first: np.ndarray, second: np.ndarray, errors: float) -> bool:
        """Whether labels are likelier under the second, by so many standard errors."""
        about = self.weights, errors, self.groups
        return bool(compare_scores([first, second], [True, True], *about).best)

    # Scores -------------------------------------------------------------------------------------

    def trial(self, settings: Settings, rounds: int, data: Data, fits: Sequence[Fit]) -> Trial:
        whole, *parts = fits
        scores, kept = np.full(len(self.fold), np.nan), np.array(self.given, float)
        for k, fitted in enumerate(parts):
            held = self.fold == k
            scores[held], kept[held] = fitted.log_likelihood[held], fitted.resp[held]
        identified = not any(fitted.confused for fitted in fits)
        identified = identified and not len(vanished(self.given, kept, self.weights))
        return Trial(settings, rounds, scores, identified, whole, data)

    def other_forms(self, best: Trial) -> dict[str, Fit]:
        """Fits of trials that differ from the best in nothing but the form of the noise."""
        form = best.settings.get("noise")
        found: dict[str, Fit] = {}
        if self.rows is not None:  # fits to other data
            return found
        for one in self.trials:
            alike = {**one.settings, "noise": form} == best.settings and one.rounds == best.rounds
            if alike and one.settings["noise"] != form:
                found[one.settings["noise"]] = one.fit
        return found

    def table(self, best: Trial) -> pd.DataFrame | None:
        if not self.choosing:
            return None
        tried = [{**t.settings, "rounds": t.rounds} for t in self.trials]
        chosen = {**best.settings, "rounds": best.rounds}
        return choice_table(tried, compared(self.trials, self.weights, self.groups), chosen)


def _before_scaling(grid: Mapping[str, Sequence[Any]], settings: Settings) -> Settings:
    """Settings as they were before scores were scaled, of scores that say nothing of the labels.

    The plain classifier predicts by its scores as they are: whatever a matrix makes of them is
    chance, and often one class for all.

    Args:
        grid: values of each setting that was selected, in the order of the selection.
        settings: those selected.
    """
    names = list(grid)
    if "scaling" not in names or settings["scaling"] == grid["scaling"][0]:
        return settings
    later = names[names.index("scaling") :]
    return {**settings, **{name: grid[name][0] for name in later}}


def _shares(count: np.ndarray) -> np.ndarray:
    """``(K,)`` shares of the classes, of which each has a pseudo-item more."""
    return (count + 1) / (count + 1).sum()
