"""Fits in which what the labels' channel believes does not flow back to the features.

A full fit refits the features' parameters with its own responsibilities, and where features depend
on each other it soon believes them more than the labels. Here their parameters come from the given
labels of other items (:mod:`nbmodels.cross_fit`); how far their evidence is to be believed, and the
noise, are fitted together (:class:`nbmodels.priors.Calibration`). This is modular inference, a cut
(Plummer 2015, Statistics and Computing 25; Jacob et al. 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nbmodels import cross_fit
from nbmodels import model as models
from nbmodels.families import Rule
from nbmodels.fit import Fit, fit
from nbmodels.model import PRIOR, Data, Model
from nbmodels.priors import Calibration, FixedProportions

#: Standard deviation of a bias that may not move: the class shares are known.
_HELD = 1e-3


def fit_cut(
    model: Model,
    data: Data,
    features: Sequence[str],
    *,
    key: Array,
    n_folds: int = 5,
    rounds: int = 0,
    rule: Rule = "map",
    start: None = None,
    **options: Any,
) -> Fit:
    """Fit with the feedback to the features cut.

    Args:
        model: components by name.
        data: encoded data with labels.
        features: names of the emissions.
        key: JAX random key, of the folds and of the fit.
        n_folds: number of folds.
        rounds: how often the features are refitted with the responsibilities found; each round lets
            more of the channel's belief flow back.
        rule: see :func:`nbmodels.fit.fit`.
        options: of :func:`nbmodels.fit.fit`.

    Returns:
        the fit, whose prior is a :class:`nbmodels.priors.Calibration` and whose ``data`` have
        scores in the place of the features. Its objective is the log-likelihood of the labels given
        the features. The features' components are in it with parameters for new items, learned from
        all; without data, they have no say.
    """
    if start is not None:
        raise ValueError("start: a cut begins at the labels")
    emissions = {name: model[name] for name in features}
    labels = {name: c for name, c in model.items() if name not in {*features, PRIOR}}
    guess = models.anchor(labels, data)
    if guess is None:
        raise ValueError("data: no labels to learn the features from")
    told = {PRIOR: _calibration(model[PRIOR], guess.shape[1]), **labels}
    codes = np.where(np.asarray(guess).any(1), np.asarray(guess).argmax(1), -1)
    fold = jnp.asarray(
        cross_fit.folds_of(
            codes, n_folds, np.random.default_rng(np.asarray(jax.random.key_data(key)))
        )
    )
    parts = {name: data.parts[name] for name in labels}
    for left in range(rounds, -1, -1):
        scores = cross_fit.evidence_unseen(emissions, data, guess, fold, n_folds=n_folds, rule=rule)
        own = Data({PRIOR: Calibration.pack(scores), **parts}, data.weights)
        fitted = fit(told, own, rule=rule, key=key, **options)
        if left:
            guess = jnp.asarray(fitted.resp)
    params = _learned(emissions, guess, data, rule)
    to_host = partial(jax.tree.map, np.asarray)
    return replace(
        fitted,
        model={**fitted.model, **to_host(emissions)},
        params={**fitted.params, **to_host(params)},
        data=own,
    )


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
