"""Select hyperparameters of a noise model by the likelihood of held-out noisy labels.

Scores state what a model of the features makes of each item without the item's own label. How far
they count and the noise are fitted together. A label is likely under the right scores, the right
form of the noise and the right smoothing: so labels held out of that fit select among settings
without a true label. They also decide for how many self-training rounds the scores are learned anew
(:mod:`nbmodels.fitting.self_training`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from jaxtyping import Float, Int

from inference import Status
from nbmodels.channels.fixed import fixed_at
from nbmodels.core import model as models
from nbmodels.core.families import FullNormal, Rule
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.errors import Caution, IdentifiabilityWarning, NotConvergedWarning
from nbmodels.fitting.em import Fit
from nbmodels.fitting.empirical_bayes import fit_with_learned_priors
from nbmodels.fitting.holdout import Comparison, compare_scores
from nbmodels.fitting.identifiability import vanished
from nbmodels.fitting.options import FitOptions, finished
from nbmodels.fitting.progress import Report
from nbmodels.fitting.scores import Candidate, ScoredLabels, Settings, with_score_prior
from nbmodels.fitting.self_training import NestedRounds

#: Largest number of self-training rounds that are tried where their number is selected.
_MOST_ROUNDS = 10

#: Rounds tried beyond the best so far: the first may gain little and a later one more.
_PATIENCE = 2

#: Standard errors by which held-out labels must be likelier under another candidate.
_SIGNIFICANT = 1.0

#: Standard errors by which labels must be likelier than without the features.
_INFORMATIVE = 2.0

#: Nats by which a fit from the second start must be better.
_CLEAR = 1.0

#: Standard deviation of a log-slope that must not move, and the value at which scores count
#: nothing.
_FIXED_SD, _NO_SLOPE = 1e-3, -30.0

_UNINFORMATIVE = Caution(
    IdentifiabilityWarning,
    "the features do not predict held-out labels better than chance: no label is corrected, and "
    "the noise matrix is that of the prior",
)
#: Ctrl-C before all settings were compared.
INTERRUPTED = Caution(
    NotConvergedWarning,
    "interrupted while settings were compared; the best of those until then is taken",
)
_INTERRUPTED_ROUNDS = Caution(
    NotConvergedWarning,
    "interrupted before the last self-training round; the one before it is taken",
)


class Trial(NamedTuple):
    """A candidate with its held-out score.

    Attributes:
        settings: value by setting.
        rounds: self-training rounds before it.
        scores: ``(N,)`` log-probability of each item's labels, by a fit that did not see them.
        identified: whether every class kept its name and its items.
        fit: of all labels.
        data: what that fit is of.
    """

    settings: Settings
    rounds: int
    scores: np.ndarray
    identified: bool
    fit: Fit
    data: Data


@dataclass(frozen=True)
class Selection:
    """Result of :func:`select`.

    Attributes:
        fit: fit of the selected candidate.
        data: what it is of: labels with the scores as the class prior's data.
        settings: those selected.
        rounds: self-training rounds.
        responsibilities: ``(N, K)`` what the scores were learned from.
        table: data frame of the candidates; None where there was nothing to select.
        scores: ``(N,)`` log-probability of each item's labels by a fit that did not see them; zeros
            where there was nothing to select.
        interrupted: whether Ctrl-C ended the selection.
        cautions: warnings.
    """

    fit: Fit
    data: Data
    settings: Settings
    rounds: int
    responsibilities: Array
    table: pd.DataFrame | None
    scores: Float[np.ndarray, " n"]
    interrupted: bool
    cautions: tuple[Caution, ...]


def select(
    source: ScoredLabels,
    resp: Float[Array, "n k"],
    fold: Int[np.ndarray, " n"],
    *,
    options: FitOptions,
    grid: Mapping[str, Sequence[Any]],
    rounds: int | None = 0,
    second_start: bool = False,
    log_slope_sd: float = 1.0,
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
        second_start: begin also where the scores' likeliest classes are the true ones. Scores that
            were learned from noisy labels contain the noise: begun at the labels, a fit may find
            none besides. It is taken where it is better by a nat or more.
        log_slope_sd: see :func:`nbmodels.fitting.scores.with_score_prior`.
    """
    choosing = rounds is None or any(len(values) > 1 for values in grid.values())
    total = 1 + sum(len(values) - 1 for values in grid.values())
    with (
        options.progress.iterations() as report,
        options.progress.bar("choosing settings", total) as bar,
    ):
        run = _Run(source, resp, fold, options, choosing, second_start, log_slope_sd, report, bar)
        return run.select(grid, rounds)


class _Run:
    """The trials of one selection."""

    def __init__(
        self,
        source: ScoredLabels,
        resp: Array,
        fold: np.ndarray,
        options: FitOptions,
        choosing: bool,
        second_start: bool,
        log_slope_sd: float,
        report: Report | None,
        bar: Any,
    ) -> None:
        self.source, self.resp, self.fold, self.options = source, resp, fold, options
        self.choosing, self.second_start = choosing, second_start
        self.log_slope_sd, self.report, self.bar = log_slope_sd, report, bar
        self.given = np.asarray(resp)
        self.masks = [fold != k for k in range(int(fold.max()) + 1)]
        self.trials: list[Trial] = []
        self.stopped = False  # whether the first trial was interrupted

    def select(self, grid: Mapping[str, Sequence[Any]], rounds: int | None) -> Selection:
        resp, interrupted = self.resp, False
        cautions: tuple[Caution, ...] = ()
        begin = {name: values[0] for name, values in grid.items()}
        first = self.candidate(begin)
        self.weights = np.asarray(first.data.weights) * self.given.any(1)
        best = self.tried(begin, 0, first)
        most = _MOST_ROUNDS if rounds is None else rounds
        try:
            if self.stopped:
                raise KeyboardInterrupt
            for name, values in grid.items():
                others = [{**best.settings, name: value} for value in values[1:]]
                found = [self.tried(one, 0, self.candidate(one)) for one in others]
                best = preferred([best, *found], self.weights)
            if self.choosing:
                model, null = self.without_scores(best.settings)
                scores = [null.scores, best.scores]
                if not compare_scores(scores, [True, True], self.weights, _INFORMATIVE).best:
                    most, best, cautions = 0, self.as_given(model, null), (_UNINFORMATIVE,)
            if best.rounds < most:
                settings, last = best.settings, best
                model, _, learned = self.candidate(settings)
                nested = NestedRounds(self.source, settings, resp, self.fold, self.log_slope_sd)
                while last.rounds < most and last.rounds - best.rounds < _PATIENCE:
                    before = jnp.asarray(last.fit.resp)
                    data = nested.next(self.fit_each, best.fit.model)
                    last = self.tried(settings, last.rounds + 1, Candidate(model, data, learned))
                    if rounds is not None or preferred([best, last], self.weights) is last:
                        best, resp = last, before
        except KeyboardInterrupt:
            interrupted = True
            if self.choosing:
                cautions = (*cautions, INTERRUPTED)
            elif best.fit.status != Status.INTERRUPTED:  # the fit has no warning of its own
                cautions = (*cautions, _INTERRUPTED_ROUNDS)
        return Selection(
            best.fit,
            best.data,
            best.settings,
            best.rounds,
            resp,
            self.table(best),
            best.scores,
            interrupted,
            cautions,
        )

    # Candidates ---------------------------------------------------------------------------------

    def candidate(self, settings: Settings) -> Candidate:
        labels = self.source.labels(settings)
        scores = self.source.scores(settings, self.resp)
        return with_score_prior(labels, scores, log_slope_sd=self.log_slope_sd)

    def tried(self, settings: Settings, rounds: int, candidate: Candidate) -> Trial:
        fits = self.fits(candidate, self.masks if self.choosing else [])
        self.stopped = any(f.status == Status.INTERRUPTED for f in fits)
        if self.trials and self.stopped:
            raise KeyboardInterrupt
        one = self.trial(settings, rounds, candidate.data, fits)
        self.trials.append(one)
        self.bar.update()
        return one

    def without_scores(self, settings: Settings) -> tuple[Model, Trial]:
        """Labels without the features, as a trial, and its model."""
        model, data, _ = self.candidate(settings)
        data = replace(data, parts={**data.parts, PRIOR: jnp.zeros_like(data.parts[PRIOR])})
        fits = [finished(f) for f in self.fits(Candidate(model, data), self.masks)]
        return model, self.trial(settings, 0, data, fits)

    def as_given(self, model: Model, null: Trial) -> Trial:
        """Labels as given and the noise of the prior, which nothing identifies without features."""
        fit = self.options.fit(_noise_from_prior(model), null.data, report=self.report)
        return null._replace(fit=finished(fit))

    # Fits ---------------------------------------------------------------------------------------

    def fits(self, candidate: Candidate, masks: Sequence[np.ndarray]) -> list[Fit]:
        """A fit of all labels, and one of those in each mask, by one program where possible."""
        model, data, learned = candidate
        first: list[Fit] = []
        if learned:
            first = [
                fit_with_learned_priors(model, data, learned, self.options, report=self.report)
            ]
            if first[0].status == Status.INTERRUPTED:
                return first
            model = first[0].model
        parts = [replace(data, weights=data.weights * mask) for mask in masks]
        return [*first, *self.fit_each(model, parts if learned else [data, *parts])]

    def fit_each(self, model: Model, data: Sequence[Data]) -> list[Fit]:
        """Fits begun at the labels, and perhaps also where the scores' likeliest classes are."""
        if not data:
            return []
        same = [model] * len(data)
        fits = self.options.fit_all(same, data, report=self.report)
        if not self.second_start or any(f.status == Status.INTERRUPTED for f in fits):
            return fits
        starts = [_likeliest(model, one, self.options.rule) for one in data]
        again = self.options.fit_all(same, data, starts=starts, report=self.report)
        better = [
            b if b.objective > a.objective + _CLEAR else a for a, b in zip(fits, again, strict=True)
        ]
        stopped = [b.status == Status.INTERRUPTED for b in again]
        return [
            replace(one, status=Status.INTERRUPTED) if ended else one
            for one, ended in zip(better, stopped, strict=True)
        ]

    # Scores -------------------------------------------------------------------------------------

    def trial(self, settings: Settings, rounds: int, data: Data, fits: Sequence[Fit]) -> Trial:
        whole, *parts = fits
        scores, kept = np.zeros(len(self.fold)), np.array(self.given, float)
        for k, fitted in enumerate(parts):
            held = self.fold == k
            scores[held], kept[held] = fitted.log_likelihood[held], fitted.resp[held]
        identified = not any(fitted.confused for fitted in fits)
        given, left = self.weights @ self.given, self.weights @ kept
        identified = identified and not len(vanished(given, left))
        return Trial(settings, rounds, scores, identified, whole, data)

    def table(self, best: Trial) -> pd.DataFrame | None:
        if not self.choosing:
            return None
        tried = [{**t.settings, "rounds": t.rounds} for t in self.trials]
        chosen = {**best.settings, "rounds": best.rounds}
        return choice_table(tried, compared(self.trials, self.weights), chosen)


def compared(trials: Sequence[Trial], weights: Float[np.ndarray, " n"]) -> Comparison:
    """Trials beside the first one."""
    scores, identified = [t.scores for t in trials], [t.identified for t in trials]
    return compare_scores(scores, identified, weights, _SIGNIFICANT)


def preferred(trials: Sequence[Trial], weights: Float[np.ndarray, " n"]) -> Trial:
    """The first trial, unless its classes are not identified or another is clearly better."""
    named = [t for t in trials if t.identified]
    if named and not trials[0].identified:
        return max(named, key=lambda t: t.scores @ weights)
    return trials[compared(trials, weights).best]


def _noise_from_prior(model: Model) -> Model:
    prior: Any = model[PRIOR]
    none = FullNormal(
        prior.prior.mean.at[0].set(_NO_SLOPE), prior.prior.precision.at[0, 0].set(_FIXED_SD**-2.0)
    )
    out = {**model, PRIOR: replace(prior, prior=none)}
    if "labels" in model:
        channel = model["labels"]
        out["labels"] = fixed_at(channel, channel.likelihood_params(channel.prior, "map"))
    return out


@partial(jax.jit, static_argnames="rule")
def _likeliest(model: Model, data: Data, rule: Rule) -> Any:
    """Parameters from the scores' likeliest classes."""
    scores = data.parts[PRIOR]
    hard = jax.nn.one_hot(jnp.argmax(scores, 1), scores.shape[1], dtype=scores.dtype)
    return models.start(model, hard, data, rule)


def choice_table(settings: Sequence[Settings], found: Comparison, chosen: Settings) -> pd.DataFrame:
    """What was compared as a data frame, a row a candidate.

    Args:
        settings: of the candidates.
        found: the comparison.
        chosen: settings that were selected.

    Returns:
        Frame with a column for each setting, ``log_likelihood`` (mean log-probability of a held-out
        label), ``gain`` over the first candidate with its ``standard_error``, ``identified``
        (whether all classes kept their names and items), and ``chosen``.
    """
    return pd.DataFrame([dict(one) for one in settings]).assign(
        log_likelihood=found.log_likelihood,
        gain=found.gain,
        standard_error=found.standard_error,
        identified=found.identified,
        chosen=[one == chosen for one in settings],
    )
