"""Fits in which what the labels' channel believes does not flow back to the features.

A full fit refits the features' parameters with its own responsibilities, and where features depend
on each other it soon believes them more than the labels. Here their parameters come from the given
labels of other items (:mod:`nbmodels.cross_fit`); how far their evidence is to be believed, and the
noise, are fitted together (:class:`nbmodels.priors.Calibration`). This is modular inference, a cut
(Plummer 2015, Statistics and Computing 25; Jacob et al. 2017). Belief flows back for as many rounds
as held-out labels reward, none included; the same labels choose among candidates.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference import Status
from nbmodels import cross_fit
from nbmodels import model as models
from nbmodels.errors import DataError, NotConvergedWarning
from nbmodels.families import Rule
from nbmodels.fit import Fit, complain, fit_many
from nbmodels.held_out import Comparison, judge
from nbmodels.identify import vanished
from nbmodels.model import PRIOR, Data, Model
from nbmodels.priors import Calibration, FixedProportions

#: Standard deviation of a bias that may not move: the class shares are known.
_HELD = 1e-3

#: Largest number of rounds that are tried where their number is chosen.
_MOST_ROUNDS = 10

#: Standard errors by which held-out labels must be likelier under another candidate.
_SURE = 1.0


Settings = Mapping[str, Any]


class Candidate(NamedTuple):
    """A model of the features and the labels, with the data coded for it.

    Attributes:
        model: components by name. Candidates that hold the very same emissions share their scores.
        data: encoded data with labels.
    """

    model: Model
    data: Data


class Trial(NamedTuple):
    """A candidate's word on held-out labels.

    Attributes:
        settings: value by setting.
        rounds: how often the features had been refitted.
        scores: ``(N,)`` log-probability of each item's labels, by a fit that did not see them.
        identified: whether every class kept its name and its items.
        fit: of all labels.
    """

    settings: Settings
    rounds: int
    scores: np.ndarray
    identified: bool
    fit: Fit


class Cut(NamedTuple):
    """Result of :func:`fit_cut`.

    Attributes:
        fit: fit of the chosen candidate. Its prior is a :class:`nbmodels.priors.Calibration` and
            its ``data`` have scores in the place of the features; its objective is the
            log-likelihood of the labels given the features. The features' components are in it with
            parameters for new items, learned from all; without data, they have no say.
        settings: those chosen.
        rounds: how often the features were refitted.
        trials: all that was compared; empty where there was nothing to choose.
        compared: the trials with the first one; None where there was nothing to choose.
    """

    fit: Fit
    settings: Settings
    rounds: int
    trials: tuple[Trial, ...]
    compared: Comparison | None


def fit_cut(
    make: Callable[[Settings], Candidate],
    features: Sequence[str],
    *,
    grid: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    rounds: int | None = 0,
    key: Array,
    n_folds: int = 5,
    rule: Rule = "map",
    names: Any = None,
    tried: Callable[[], Any] = lambda: None,
    **options: Any,
) -> Cut:
    """Fit with the feedback to the features cut, and what is open chosen by held-out labels.

    Settings are chosen one after the other, in the grid's order, the others as they are then; the
    rounds come last. After Ctrl-C, the best of what was tried until then is taken.

    Args:
        make: the candidate of given settings.
        features: names of the emissions.
        grid: values of each setting that is to be chosen, the cautious one first.
        rounds: how often the features are refitted with the responsibilities found; each round lets
            more of the channel's belief flow back. None: as long as held-out labels reward it.
        key: JAX random key, of the folds and of the fit.
        n_folds: number of folds.
        rule: see :func:`nbmodels.fit.fit`.
        names: ``(K,)`` names of the classes, for warnings.
        tried: called after each trial.
        options: of :func:`nbmodels.fit.fit_many`.

    Raises:
        DataError: there are no labels to learn the features from.

    Warns:
        as :func:`nbmodels.fit.fit`.
    """
    begin = {name: values[0] for name, values in grid.items()}
    model, data = make(begin)
    labels = {name: c for name, c in model.items() if name not in features}
    guess = models.anchor(labels, data)
    if guess is None or not np.asarray(guess).any():
        raise DataError("feedback: there are no labels to learn the features from; take 'full'")
    given = np.asarray(guess)
    fold = _folds(given, n_folds, key)
    solve: Callable[..., list[Fit]] = partial(fit_many, rule=rule, key=key, **options)
    tell = _Teller(make, features, jnp.asarray(fold), rule)
    weights = np.asarray(data.weights) * given.any(1)
    choosing = rounds is None or any(len(values) > 1 for values in grid.values())
    trials: list[Trial] = []

    def tries(settings: Settings, done: int, guess: Array) -> Trial:
        told = tell(settings, guess)
        if not choosing:
            (whole,) = solve([told[0]], [told[1]])
            return Trial(settings, done, np.zeros(len(fold)), True, whole)
        one = _trial(settings, done, told, fold, given, solve)
        if trials and one.fit.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        trials.append(one)
        tried()
        return one

    best = tries(begin, 0, guess)
    most = _MOST_ROUNDS if rounds is None else rounds
    try:
        for name, values in grid.items():
            found = [tries({**best.settings, name: value}, 0, guess) for value in values[1:]]
            best = _preferred([best, *found], weights)
        while best.rounds < most and best.fit.status != Status.INTERRUPTED:
            resp = jnp.asarray(best.fit.resp)
            after = tries(best.settings, best.rounds + 1, resp)
            if rounds is None and _preferred([best, after], weights) is best:
                break
            best, guess = after, resp
    except KeyboardInterrupt:
        warnings.warn(
            "interrupted while settings were compared; the best of those until then is taken",
            NotConvergedWarning,
            stacklevel=2,
        )
    fitted = best.fit
    complain(fitted.confused, names, fitted.status)
    chosen = make(best.settings)
    emissions = {name: chosen.model[name] for name in features}
    to_host = partial(jax.tree.map, np.asarray)
    params = _learned(emissions, guess, chosen.data, rule)
    whole = replace(
        fitted,
        model={**fitted.model, **to_host(emissions)},
        params={**fitted.params, **to_host(params)},
        data=tell(best.settings, guess)[1],
    )
    compared = _judged(trials, weights) if trials else None
    return Cut(whole, best.settings, best.rounds, tuple(trials), compared)


def _folds(given: np.ndarray, n_folds: int, key: Array) -> np.ndarray:
    codes = np.where(given.any(1), given.argmax(1), -1)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    return cross_fit.folds_of(codes, n_folds, rng)


def _judged(trials: Sequence[Trial], weights: np.ndarray) -> Comparison:
    return judge([t.scores for t in trials], [t.identified for t in trials], weights, _SURE)


def _preferred(trials: Sequence[Trial], weights: np.ndarray) -> Trial:
    """The first trial, unless its classes are not identified or another is surely better."""
    named = [t for t in trials if t.identified]
    if named and not trials[0].identified:
        return max(named, key=lambda t: t.scores @ weights)
    return trials[_judged(trials, weights).best]


@dataclass
class _Teller:
    """Labels with the features' scores in the place of the class prior's data.

    Scores are remembered as long as the guess is the same: the noise's form does not touch them.
    """

    make: Callable[[Settings], Candidate]
    features: Sequence[str]
    fold: Array
    rule: Rule
    known: dict[Any, Array] = field(default_factory=dict)
    guess: Array | None = None

    def __call__(self, settings: Settings, guess: Array) -> tuple[Model, Data]:
        model, data = self.make(settings)
        emissions = {name: model[name] for name in self.features}
        if guess is not self.guess:
            self.known, self.guess = {}, guess
        same = (id(data), *map(id, emissions.values()))
        if same not in self.known:
            n_folds = int(self.fold.max()) + 1
            found = cross_fit.evidence_unseen(
                emissions, data, guess, self.fold, n_folds=n_folds, rule=self.rule
            )
            self.known[same] = Calibration.pack(found)
        labels = {n: c for n, c in model.items() if n not in {*self.features, PRIOR}}
        prior = _calibration(model[PRIOR], guess.shape[1])
        parts = {name: data.parts[name] for name in labels}
        return {PRIOR: prior, **labels}, Data({PRIOR: self.known[same], **parts}, data.weights)


def _trial(
    settings: Settings,
    rounds: int,
    told: tuple[Model, Data],
    fold: np.ndarray,
    given: np.ndarray,
    solve: Callable[..., list[Fit]],
) -> Trial:
    """Fits of all labels, and of those of all folds but one, in one program."""
    model, data = told
    n_folds = int(fold.max()) + 1
    rest = [replace(data, weights=data.weights * (fold != k)) for k in range(n_folds)]
    whole, *parts = solve([model] * (1 + n_folds), [data, *rest])
    scores, kept = np.zeros(len(fold)), np.zeros_like(given)
    for k, fitted in enumerate(parts):
        held = fold == k
        scores[held], kept[held] = fitted.log_likelihood[held], fitted.resp[held]
    weights = np.asarray(data.weights) * given.any(1)
    named = not any(fitted.confused for fitted in (whole, *parts))
    named = named and not len(vanished(weights @ given, weights @ kept))
    return Trial(settings, rounds, scores, named, whole)


def _calibration(prior: Any, n_classes: int) -> Calibration:
    if isinstance(prior, FixedProportions):
        return Calibration.of(n_classes, bias=jnp.log(prior.prior), bias_sd=_HELD)
    return Calibration.of(n_classes)


_learned = jax.jit(models.start, static_argnames="rule")


def without(fitted: Fit, features: Sequence[str]) -> Fit:
    """The fit with what had a part in it only, such as draws are of."""
    return replace(
        fitted,
        model={name: c for name, c in fitted.model.items() if name not in features},
        params={name: q for name, q in fitted.params.items() if name not in features},
    )


@partial(jax.jit, static_argnames=("features", "rule"))
def posterior_of_new(
    model: Model, params: Any, data: Data, features: tuple[str, ...], rule: Rule
) -> Array:
    """``(N, K)`` P(true class | features, and whatever else is known) of new items.

    Args:
        model: components of a fit by :func:`fit_cut`.
        params: its parameters.
        data: encoded data of the new items.
        features: names of the emissions.
        rule: of the fit.
    """
    read = models.natural(model, params, rule)
    scores = models.evidence({name: model[name] for name in features}, read, data).table
    others = {name: part for name, part in data.parts.items() if name not in features}
    own = Data({**others, PRIOR: Calibration.pack(scores)}, data.weights)
    return models.posterior(model, read, own).resp
