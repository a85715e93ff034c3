"""Fits in which what the labels' channel believes does not flow back to the features.

A full fit refits the features' parameters with its own responsibilities, and where features depend
on each other it soon believes them more than the labels. Here their parameters come from the given
labels of other items (:mod:`nbmodels.cross_fit`); how far their evidence is to be believed, and the
noise, are fitted together (:class:`nbmodels.priors.Calibration`). This is modular inference, a cut
(Plummer 2015, Statistics and Computing 25; Jacob et al. 2017).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nbmodels import cross_fit
from nbmodels import model as models
from nbmodels.empirical import fit_pooled
from nbmodels.families import Rule
from nbmodels.fit import Fit
from nbmodels.model import PRIOR, Data, Model
from nbmodels.priors import Calibration, FixedProportions

#: Standard deviation of a bias that may not move: the class shares are known.
_HELD = 1e-3


def labels_guess(model: Model, data: Data) -> Array:
    """``(N, K)`` what the labels say of the classes, rows of zeros where there is none.

    Raises:
        ValueError: no component of the model speaks of labels.
    """
    guess = models.anchor(model, data)
    if guess is None:
        raise ValueError("data: no labels to learn the features from")
    return guess


def draw_folds(guess: Array, n_folds: int, key: Array) -> np.ndarray:
    """``(N,)`` fold of each item, labels spread evenly; ``guess`` as from :func:`labels_guess`."""
    table = np.asarray(guess)
    codes = np.where(table.any(1), table.argmax(1), -1)
    return cross_fit.folds_of(
        codes, n_folds, np.random.default_rng(np.asarray(jax.random.key_data(key)))
    )


def fit_scored(
    model: Model,
    data: Data,
    guess: Array,
    unseen: Callable[[Array], Any],
    *,
    rounds: int = 0,
    pooled: Sequence[str] = (),
    choose: bool = False,
    **options: Any,
) -> tuple[Fit, Array]:
    """Fit the labels' channels, with how far the scores of another model are to be believed.

    Args:
        model: the class prior, and components of labels.
        data: encoded data of them.
        guess: ``(N, K)`` responsibilities that the scores are learned from first.
        unseen: from such responsibilities to ``(N, K)`` scores, each item's from a model that has
            not seen the item.
        rounds: how often scores are learned anew, from the responsibilities found.
        pooled: names of the components whose prior is learned.
        choose: begin each round also where the scores' likeliest classes are the true ones, and
            keep what makes the labels likeliest. Scores that were learned from noisy labels hold
            the noise, too: begun at the labels, a fit may find none besides; and scores learned
            from a wrong belief tell less of labels that they have not seen. Another start is taken
            where it is better by a nat or more, another round where it is better at all.
        options: of :func:`nbmodels.fit.fit`.

    Returns:
        the fit, whose prior is a :class:`nbmodels.priors.Calibration` of the scores in its
        ``data``; and the responsibilities that the scores were learned from.
    """
    told = {**model, PRIOR: _calibration(model[PRIOR], guess.shape[1])}
    kept: tuple[Fit, Array] | None = None
    for left in range(rounds, -1, -1):
        parts = {**data.parts, PRIOR: Calibration.pack(unseen(guess))}
        own = Data(parts, data.weights)
        starts = [None, _predicted(told, own, options["rule"])] if choose else [None]
        fitted = _best([partial(fit_pooled, told, own, pooled, start=s, **options) for s in starts])
        if kept is not None and choose and not fitted.objective > kept[0].objective:
            break
        kept = replace(fitted, data=own), guess
        if left:
            guess = jnp.asarray(fitted.resp)
    assert kept is not None  # the first round always is
    return kept


@partial(jax.jit, static_argnames="rule")
def _predicted(model: Model, data: Data, rule: Rule) -> Any:
    """Parameters by the scores' likeliest classes."""
    scores = data.parts[PRIOR]
    hard = jax.nn.one_hot(jnp.argmax(scores, 1), scores.shape[1], dtype=scores.dtype)
    return models.start(model, hard, data, rule)


def _best(fits: Sequence[Callable[[], Fit]]) -> Fit:
    """The first of several fits, or one that is better than those before it by a nat or more."""
    best: Fit | None = None
    for run in fits:
        with warnings.catch_warnings(record=True, action="always") as caught:
            fitted = run()
        if best is None or fitted.objective > best.objective + 1:
            best, said = fitted, caught
    assert best is not None
    for one in said:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return best


def fit_cut(
    model: Model,
    data: Data,
    features: Sequence[str],
    *,
    key: Array,
    n_folds: int = 5,
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
        rule: see :func:`nbmodels.fit.fit`.
        options: of :func:`fit_scored`; each of its ``rounds`` lets more of the channel's belief
            flow back to the features.

    Returns:
        the fit, whose prior is a :class:`nbmodels.priors.Calibration` and whose ``data`` have
        scores in the place of the features. Its objective is the log-likelihood of the labels given
        the features. The features' components are in it with parameters for new items, learned from
        all; without data, they have no say.
    """
    if start is not None:
        raise ValueError("start: a cut begins at the labels")
    emissions = {name: model[name] for name in features}
    labels = {name: c for name, c in model.items() if name not in features}
    told = Data({name: data.parts[name] for name in labels if name != PRIOR}, data.weights)
    guess = labels_guess(labels, told)
    fold = jnp.asarray(draw_folds(guess, n_folds, key))

    def unseen(resp: Array) -> Array:
        return cross_fit.evidence_unseen(emissions, data, resp, fold, n_folds=n_folds, rule=rule)

    fitted, guess = fit_scored(labels, told, guess, unseen, key=key, rule=rule, **options)
    params = _learned(emissions, guess, data, rule)
    to_host = partial(jax.tree.map, np.asarray)
    return replace(
        fitted,
        model={**fitted.model, **to_host(emissions)},
        params={**fitted.params, **to_host(params)},
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
