"""Fits in which what the labels' channel believes does not flow back to the features.

A full fit refits the features' parameters with its own responsibilities, and where features depend
on each other it soon believes them more than the labels. Here their parameters come from the given
labels of other items (:mod:`nbmodels.fitting.cross_fitting`); how far their evidence is to be believed, and the
noise, are fitted together (:mod:`nbmodels.fitting.selection`). This is modular inference, a cut (Plummer
2015, Statistics and Computing 25; Jacob et al. 2017). Belief flows back for as many rounds as
held-out labels reward, none included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nbmodels.class_priors import Calibration
from nbmodels.core import model as models
from nbmodels.core.families import Rule
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.fitting import cross_fitting as cross_fit
from nbmodels.fitting.em import Fit
from nbmodels.fitting.selection import Chosen, Settings, choose, draw_folds, labels_guess, told


class Candidate(NamedTuple):
    """A model of the features and the labels, with the data coded for it.

    Attributes:
        model: components by name. Candidates that hold the very same emissions share their scores.
        data: encoded data with labels.
    """

    model: Model
    data: Data


def fit_cut(
    make: Callable[[Settings], Candidate],
    features: Sequence[str],
    *,
    begin: Settings,
    key: Array,
    n_folds: int = 5,
    rule: Rule = "map",
    **options: Any,
) -> Chosen:
    """Fit with the feedback to the features cut, and what is open chosen by held-out labels.

    Args:
        make: the candidate of given settings.
        features: names of the emissions.
        begin: any settings that ``make`` takes.
        key: JAX random key, of the folds and of the fit.
        n_folds: number of folds.
        rule: see :func:`nbmodels.fitting.em.fit`.
        options: of :func:`nbmodels.fitting.selection.choose`.

    Returns:
        what was chosen. The fit's prior is a :class:`nbmodels.class_priors.Calibration` and its ``data``
        have scores in the place of the features; its objective is the log-likelihood of the labels
        given the features. The features' components are in it with parameters for new items,
        learned from all; without data, they have no say.

    Raises:
        DataError: there are no labels to learn the features from.

    Warns:
        as :func:`nbmodels.fitting.em.fit`.
    """
    model, data = make(begin)
    guess = labels_guess({n: c for n, c in model.items() if n not in features}, data)
    fold = draw_folds(guess, n_folds, key)
    tell = _Teller(make, features, jnp.asarray(fold), rule)
    found = choose(tell, guess, fold, key=key, rule=rule, **options)
    model, data = make(found.settings)
    emissions = {name: model[name] for name in features}
    to_host = partial(jax.tree.map, np.asarray)
    params = _learned(emissions, found.guess, data, rule)
    whole = replace(
        found.fit,
        model={**found.fit.model, **to_host(emissions)},
        params={**found.fit.params, **to_host(params)},
    )
    return found._replace(fit=whole)


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
            self.known[same] = cross_fit.out_of_fold_log_likelihood(
                emissions, data, guess, self.fold, n_folds=n_folds, rule=self.rule
            )
        labels = {n: c for n, c in model.items() if n not in self.features}
        parts = {n: data.parts[n] for n in labels if n != PRIOR}
        return told(labels, Data(parts, data.weights), self.known[same], guess.shape[1])


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
    read = models.likelihood_params(model, params, rule)
    scores = models.log_likelihood({name: model[name] for name in features}, read, data).table
    others = {name: part for name, part in data.parts.items() if name not in features}
    own = Data({**others, PRIOR: Calibration.pack(scores)}, data.weights)
    return models.posterior(model, read, own).resp
