"""What is open about a fit to another model's scores, chosen by labels that were held out.

Scores say what a model of the features makes of each item, without the item's own label. How far
they are to be believed (:class:`nbmodels.class_priors.Calibration`) and the noise are fitted together.
The label of an item is likely under the right scores, the right form of the noise, the right
smoothing: so labels held out of that fit choose among settings, without a true label. They also say
for how many rounds the scores should be learned anew, from the responsibilities found.

Responsibilities hold the labels that they were found with, and scores of other items, so learned,
hold them too. So in later rounds the scores of a fold come from fits that never saw a label of it,
in no round (nested cross-fitting): nothing echoes, and the labels of the fold remain held out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference import Status
from nbmodels.channels.fixed import held
from nbmodels.class_priors import Calibration, FixedProportions
from nbmodels.core import model as models
from nbmodels.core.families import FullNormal, Rule
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.errors import (
    DataError,
    IdentifiabilityWarning,
    NbmodelsWarning,
    NotConvergedWarning,
)
from nbmodels.fitting import cross_fitting as cross_fit
from nbmodels.fitting.em import Fit, complain, fit_many
from nbmodels.fitting.empirical_bayes import fit_pooled
from nbmodels.fitting.holdout import Comparison, judge
from nbmodels.fitting.identifiability import vanished

Settings = Mapping[str, Any]

#: Model and data of given settings, and of responsibilities that scores are learned from.
Tell = Callable[[Settings, Array], tuple[Model, Data]]

#: Largest number of rounds that are tried where their number is chosen.
_MOST_ROUNDS = 10

#: Rounds that are tried beyond the best so far: the first may gain little and open the way.
_PATIENCE = 2

#: Standard errors by which held-out labels must be likelier under another candidate.
_SURE = 1.0

#: Standard errors by which labels must be likelier than without the features.
_HEARD = 2.0

#: Nats by which a fit from the second start must be better.
_CLEAR = 1.0

#: Standard deviation of what may not move: a bias where the class shares are known.
_HELD = 1e-3

#: Logarithm of the slope at which scores have no say.
_MUTE = -30.0


class Trial(NamedTuple):
    """A candidate's word on held-out labels.

    Attributes:
        settings: value by setting.
        rounds: how often the scores had been learned anew.
        scores: ``(N,)`` log-probability of each item's labels, by a fit that did not see them.
        identified: whether every class kept its name and its items.
        fit: of all labels.
    """

    settings: Settings
    rounds: int
    scores: np.ndarray
    identified: bool
    fit: Fit


class Chosen(NamedTuple):
    """Result of :func:`choose`.

    Attributes:
        fit: fit of the chosen candidate, with the data that it is of.
        settings: those chosen.
        rounds: how often the scores were learned anew.
        guess: ``(N, K)`` responsibilities that the scores were learned from.
        tried: settings of the candidates, with their rounds.
        compared: the candidates with the first one; None where there was nothing to choose.
        scores: ``(N,)`` log-probability of each item's labels by a fit that did not see them; zeros
            where there was nothing to choose.
    """

    fit: Fit
    settings: Settings
    rounds: int
    guess: Array
    tried: tuple[Settings, ...]
    compared: Comparison | None
    scores: np.ndarray


def labels_guess(model: Model, data: Data) -> Array:
    """``(N, K)`` what the labels say of the classes, rows of zeros where there is none.

    Raises:
        DataError: there is no label.
    """
    guess = models.initial_responsibilities(model, data)
    if guess is None or not np.asarray(guess).any():
        raise DataError("y: there is no label to learn the features from")
    return guess


def draw_folds(guess: Array, n_folds: int, key: Array) -> np.ndarray:
    """``(N,)`` fold of each item, labels spread evenly; ``guess`` as from :func:`labels_guess`."""
    table = np.asarray(guess)
    codes = np.where(table.any(1), table.argmax(1), -1)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    return cross_fit.folds_of(codes, n_folds, rng)


def told(
    model: Model, data: Data, scores: Any, n_classes: int, log_slope_sd: float = 1.0
) -> tuple[Model, Data]:
    """The labels' components, with calibrated scores in the place of the class prior.

    Args:
        model: the class prior and components of labels.
        data: encoded data of them.
        scores: ``(N, K)``.
        n_classes: K.
        log_slope_sd: spread of the logarithm of the slope, a priori.
    """
    prior: Any = model[PRIOR]
    of = partial(Calibration.of, n_classes, log_slope_sd=log_slope_sd)
    if isinstance(prior, FixedProportions):
        calibration = of(bias=jnp.log(prior.prior), bias_sd=_HELD)
    else:
        calibration = of()
    parts = {**data.parts, PRIOR: Calibration.pack(scores)}
    return {**model, PRIOR: calibration}, Data(parts, data.weights)


def choose(
    tell: Tell,
    guess: Array,
    fold: np.ndarray,
    *,
    grid: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    rounds: int | None = 0,
    pooled: Callable[[Settings], Sequence[str]] = lambda settings: (),
    second_start: bool = False,
    key: Array,
    rule: Rule = "map",
    names: Any = None,
    tried: Callable[[], Any] = lambda: None,
    **options: Any,
) -> Chosen:
    """Fit the labels' channels and the calibration, with whatever is open chosen.

    Settings are chosen one after the other, in the grid's order, the others as they are then; the
    rounds come last. After Ctrl-C, the best of what was tried until then is taken.

    Args:
        tell: labels with calibrated scores, from :func:`told`.
        guess: ``(N, K)`` responsibilities that the scores are learned from first.
        fold: ``(N,)`` fold of each item, the same that kept an item's label from its scores.
        grid: values of each setting that is to be chosen, the cautious one first.
        rounds: how often scores are learned anew, from the responsibilities found. None: as long as
            held-out labels reward it, now or two rounds later.
        pooled: names of the components whose prior is learned, under given settings.
        second_start: begin also where the scores' likeliest classes are the true ones. Scores that
            were learned from noisy labels hold the noise, too: begun at the labels, a fit may find
            none besides. It is taken where it is better by a nat or more.
        key: JAX random key.
        rule: see :func:`nbmodels.fitting.em.fit`.
        names: ``(K,)`` names of the classes, for warnings.
        tried: called after each candidate.
        options: of :func:`nbmodels.fitting.em.fit_many`.

    Warns:
        as :func:`nbmodels.fitting.em.fit`.
        IdentifiabilityWarning: the scores predict held-out labels no better than the shares of the
            classes do; then labels are left as they are.
    """
    given = np.asarray(guess)
    choosing = rounds is None or any(len(values) > 1 for values in grid.values())
    options = {**options, "key": key, "rule": rule}
    several = partial(_fits, second_start=second_start, options=options)
    solve = partial(_solved, several=several, options=options)
    masks = [fold != k for k in range(int(fold.max()) + 1)]
    trials: list[Trial] = []

    def tries(settings: Settings, done: int, model: Model, data: Data) -> Trial:
        fits = solve(model, data, masks if choosing else [], pooled(settings))
        one = _trial(settings, done, data, fold, given, fits)
        if trials and one.fit.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        trials.append(one)
        tried()
        return one

    begin = {name: values[0] for name, values in grid.items()}
    model, data = tell(begin, guess)
    weights = np.asarray(data.weights) * given.any(1)
    best = tries(begin, 0, model, data)
    most = _MOST_ROUNDS if rounds is None else rounds
    try:
        for name, values in grid.items():
            others = [{**best.settings, name: value} for value in values[1:]]
            found = [tries(one, 0, *tell(one, guess)) for one in others]
            best = _preferred([best, *found], weights)
        if choosing and best.fit.status != Status.INTERRUPTED:
            model, data = tell(best.settings, guess)
            silence = replace(data, parts={**data.parts, PRIOR: jnp.zeros_like(data.parts[PRIOR])})
            silent = _trial(
                best.settings, 0, silence, fold, given, solve(model, silence, masks, ())
            )
            if not judge([silent.scores, best.scores], [True, True], weights, _HEARD).best:
                most = 0
                muted = _muted(model, silence, options)
                best = silent._replace(fit=muted)
                warnings.warn(
                    "the features do not predict held-out labels better than chance: no label is "
                    "corrected, and the noise matrix is that of the prior",
                    IdentifiabilityWarning,
                    stacklevel=2,
                )
        if best.rounds < most and best.fit.status != Status.INTERRUPTED:
            settings, last = best.settings, best
            model, _ = tell(settings, guess)
            runs = _Runs(lambda resp: tell(settings, resp)[1], fold, guess)
            while last.rounds < most and last.rounds - best.rounds < _PATIENCE:
                before = jnp.asarray(last.fit.resp)
                data = runs.once_more(partial(several, best.fit.model))
                last = tries(settings, last.rounds + 1, model, data)
                if rounds is not None or _preferred([best, last], weights) is last:
                    best, guess = last, before
    except KeyboardInterrupt:
        warnings.warn(
            "interrupted while settings were compared; the best of those until then is taken",
            NotConvergedWarning,
            stacklevel=2,
        )
    complain(best.fit.confused, names, best.fit.status)
    return Chosen(
        best.fit,
        best.settings,
        best.rounds,
        guess,
        tuple({**t.settings, "rounds": t.rounds} for t in trials),
        _judged(trials, weights) if choosing else None,
        best.scores,
    )


def _muted(model: Model, data: Data, options: Mapping[str, Any]) -> Fit:
    """Labels as they are: features without a say, and the noise of the prior, as nothing tells it.

    Where features are mute, so is the likelihood about the noise: a fit ends anywhere.
    """
    prior: Any = model[PRIOR]
    none = FullNormal(
        prior.prior.mean.at[0].set(_MUTE), prior.prior.precision.at[0, 0].set(_HELD**-2.0)
    )
    muted = {**model, PRIOR: replace(prior, prior=none)}
    if "labels" in model:
        channel = model["labels"]
        muted["labels"] = held(channel, channel.likelihood_params(channel.prior, "map"))
    (fitted,) = fit_many([muted], [data], **options)
    return replace(fitted, data=data)


class _Runs:
    """The rounds without the labels of a fold, once for each fold.

    Attributes:
        masks: of each run, where the labels are that it sees.
        data: of each run, scores learned from its responsibilities.
    """

    def __init__(self, tell: Callable[[Array], Data], fold: np.ndarray, guess: Array) -> None:
        self._tell, self._fold = tell, jnp.asarray(fold)
        self.masks = [fold != k for k in range(int(fold.max()) + 1)]
        self._learn([guess] * len(self.masks))

    def _learn(self, guesses: Sequence[Any]) -> None:
        self.data = [
            self._tell(jnp.asarray(guess) * mask[:, None])
            for guess, mask in zip(guesses, self.masks, strict=True)
        ]

    def once_more(self, several: Callable[[Sequence[Data]], list[Fit]]) -> Data:
        """Data in which each item has the scores of the run that did not see its fold."""
        pairs = zip(self.data, self.masks, strict=True)
        fits = several([replace(data, weights=data.weights * mask) for data, mask in pairs])
        if any(fitted.status == Status.INTERRUPTED for fitted in fits):
            raise KeyboardInterrupt
        self._learn([fitted.resp for fitted in fits])
        scores = jnp.stack([data.parts[PRIOR] for data in self.data])
        own = scores[self._fold, jnp.arange(len(self._fold))]
        first = self.data[0]
        return replace(first, parts={**first.parts, PRIOR: own})


def _solved(
    model: Model,
    data: Data,
    masks: Sequence[np.ndarray],
    pooled: Sequence[str],
    *,
    several: Callable[[Model, Sequence[Data]], list[Fit]],
    options: Mapping[str, Any],
) -> list[Fit]:
    """A fit of all labels, and one of those in each mask, where possible in one program."""
    first: list[Fit] = []
    if pooled:
        # names of classes are warned of once, at the end
        with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
            first = [fit_pooled(model, data, pooled, **options)]
        model = first[0].model
    parts = [replace(data, weights=data.weights * mask) for mask in masks]
    whole, *others = [*first, *several(model, parts if pooled else [data, *parts])]
    return [replace(whole, data=data), *others]


def _fits(
    model: Model,
    data: Sequence[Data],
    *,
    second_start: bool,
    options: Mapping[str, Any],
) -> list[Fit]:
    """Fits in one program, begun at the labels, and where the scores' likeliest classes are."""
    if not data:
        return []
    fits = fit_many([model] * len(data), data, **options)
    if second_start:
        starts = [_predicted(model, one, options["rule"]) for one in data]
        again = fit_many([model] * len(data), data, starts=starts, **options)
        fits = [
            b if b.objective > a.objective + _CLEAR else a for a, b in zip(fits, again, strict=True)
        ]
    return fits


@partial(jax.jit, static_argnames="rule")
def _predicted(model: Model, data: Data, rule: Rule) -> Any:
    """Parameters by the scores' likeliest classes."""
    scores = data.parts[PRIOR]
    hard = jax.nn.one_hot(jnp.argmax(scores, 1), scores.shape[1], dtype=scores.dtype)
    return models.start(model, hard, data, rule)


def _trial(
    settings: Settings,
    rounds: int,
    data: Data,
    fold: np.ndarray,
    given: np.ndarray,
    fits: Sequence[Fit],
) -> Trial:
    whole, *parts = fits
    scores, kept = np.zeros(len(fold)), np.array(given, float)
    for k, fitted in enumerate(parts):
        held = fold == k
        scores[held], kept[held] = fitted.log_likelihood[held], fitted.resp[held]
    weights = np.asarray(data.weights) * given.any(1)
    named = not any(fitted.confused for fitted in fits)
    named = named and not len(vanished(weights @ given, weights @ kept))
    return Trial(settings, rounds, scores, named, whole)


def _judged(trials: Sequence[Trial], weights: np.ndarray) -> Comparison:
    return judge([t.scores for t in trials], [t.identified for t in trials], weights, _SURE)


def _preferred(trials: Sequence[Trial], weights: np.ndarray) -> Trial:
    """The first trial, unless its classes are not identified or another is surely better."""
    named = [t for t in trials if t.identified]
    if named and not trials[0].identified:
        return max(named, key=lambda t: t.scores @ weights)
    return trials[_judged(trials, weights).best]
