"""The trials of one selection: candidates, their fits, and labels that are held out of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pandas as pd
from jax import Array
from jaxtyping import Float

from inference import Status
from inference.arrays import on_device
from nbmodels.core.model import Data, Model
from nbmodels.fitting.agreement import Agreement, beyond_chance
from nbmodels.fitting.candidate_fits import CandidateFits, masked
from nbmodels.fitting.design_effect import padded_groups
from nbmodels.fitting.em import evaluate, responsibilities
from nbmodels.fitting.empirical_bayes import fit_with_learned_priors
from nbmodels.fitting.fit import Fit
from nbmodels.fitting.holdout import compare_scores
from nbmodels.fitting.identifiability import vanished
from nbmodels.fitting.judged_rows import of_rows, to_all
from nbmodels.fitting.options import FitOptions, finished
from nbmodels.fitting.plain import PlainClassifier, plain_classifier
from nbmodels.fitting.progress import Task
from nbmodels.fitting.scores import Candidate, ScoredLabels, Settings, with_score_prior
from nbmodels.fitting.trials import Trial, choice_table, compared, preferred


class CandidateTrials:
    """The trials of one selection.

    Args:
        source: labels and scores under given settings.
        resp: responsibilities that the scores are learned from first.
        fold: fold of each item.
        fits: how candidates are fitted.
        choosing: whether labels are held out.
        log_slope_sd: see :func:`nbmodels.fitting.scores.with_score_prior`.
        bar: moves with every trial.
        copies: group of each row, or None.
    """

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
        self.groups = padded_groups(copies, len(fold))
        self.masks = [fold != k for k in range(int(fold.max()) + 1)]
        self.made: list[Trial] = []
        self.stopped = False  # whether the first trial was interrupted
        self.learner: Trial | None = None  # the first whose prior was learned
        self.null: tuple[Model, Trial] | None = None  # labels without the features
        self.plain: dict[str, PlainClassifier] = {}  # by settings
        self.weights = np.zeros(0)  # of the judged rows, 0 without a label; from the first trial

    def judge(self, rows: np.ndarray | None) -> None:
        """Compare candidates by some rows; None for all."""
        if rows is None:
            return
        self.rows, self.given, self.fold = rows, self.given[rows], self.fold[rows]
        self.masks = [mask[rows] for mask in self.masks]
        self.groups = None if self.groups is None else self.groups[rows]

    # Fits -------------------------------------------------------------------------------------

    def begin(self, settings: Settings, options: FitOptions | None = None) -> Trial:
        """The first trial, by whose row weights all are compared."""
        first = self.candidate(settings)
        self.weights = self.judged(np.asarray(first.data.weights)) * self.given.any(1)
        return self.tried(settings, 0, first, options)

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
        return class_shares(np.asarray(data.weights) @ np.asarray(self.resp))

    def tried(
        self,
        settings: Settings,
        rounds: int,
        candidate: Candidate,
        options: FitOptions | None = None,
    ) -> Trial:
        """Fit a candidate to all labels, and where labels are held out without each fold's.

        Raises:
            KeyboardInterrupt: it was interrupted, and is not the first.
        """
        seen = candidate._replace(data=of_rows(candidate.data, self.rows))
        fits = self.fits.of(seen, self.masks if self.choosing else [], options)
        self.stopped = any(f.status == Status.INTERRUPTED for f in fits)
        if self.made and self.stopped:
            raise KeyboardInterrupt
        one = self.trial(settings, rounds, candidate.data, fits)
        if candidate.learned and self.learner is None:
            self.learner = one
        self.made.append(one)
        self.bar.update()
        return one

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

    @property
    def tentative(self) -> FitOptions:
        """Options of fits that others go on from."""
        return self.fits.tentative(near=self.warm and not self.choosing)

    # Rows -------------------------------------------------------------------------------------

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

    # Comparisons ------------------------------------------------------------------------------

    def plain_of(self, settings: Settings) -> PlainClassifier:
        """The plain classifier of the same features."""
        if (key := repr(settings)) not in self.plain:
            scores = self.judged(np.asarray(self.source.scores(settings, self.resp), float))
            about = self.given, self.weights, self.fold, self.source.without_shares
            self.plain[key] = plain_classifier(scores, *about)
        return self.plain[key]

    def agreement(self, settings: Settings) -> Agreement:
        """Agreement of out-of-fold predictions with given labels beyond chance."""
        scores = self.judged(np.asarray(self.source.scores(settings, self.resp), float))
        if self.source.without_shares:
            scores = scores + np.log(class_shares(self.weights @ self.given))
        predicted, given = scores.argmax(1), self.given.argmax(1)
        return beyond_chance(predicted, given, self.weights, self.groups)

    def preferred(self, trials: Sequence[Trial]) -> Trial:
        return preferred(trials, self.weights, self.groups)

    def better(self, first: np.ndarray, second: np.ndarray, errors: float) -> bool:
        """Whether labels are likelier under the second, by so many standard errors."""
        about = self.weights, errors, self.groups
        return bool(compare_scores([first, second], [True, True], *about).best)

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
        for one in self.made:
            alike = {**one.settings, "noise": form} == best.settings and one.rounds == best.rounds
            if alike and one.settings["noise"] != form:
                found[one.settings["noise"]] = one.fit
        return found

    def table(self, best: Trial) -> pd.DataFrame | None:
        if not self.choosing:
            return None
        tried = [{**t.settings, "rounds": t.rounds} for t in self.made]
        chosen = {**best.settings, "rounds": best.rounds}
        return choice_table(tried, compared(self.made, self.weights, self.groups), chosen)


def class_shares(count: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """``(K,)`` shares of the classes, of which each has a pseudo-item more."""
    return (count + 1) / (count + 1).sum()
