"""Gibbs sampling by data augmentation on the fast core."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference import gibbs as sampler
from nbmodels.core import model as models
from nbmodels.core.model import PRIOR, Data, Model, class_prior
from nbmodels.errors import Caution, DataError, PosteriorWarning
from nbmodels.fitting.em import Fit
from nbmodels.posterior.draws import (
    PosteriorDraws,
    Stored,
    base_measure,
    evaluate_draw,
    stored_quantities,
)


def follow(model: Model, likelihood_params: Any, data: Data, resp: Array, key: Array) -> Any:
    """One sweep of data augmentation: classes given parameters, parameters given classes.

    Private latents (the missing cells of a full Gaussian, the scales of a t) are drawn as well.

    Args:
        model: components by name.
        likelihood_params: what the likelihoods read, the state of the chain.
        data: encoded data.
        resp: ``(N, K)`` class probabilities under ``likelihood_params``.
        key: JAX random key.
    """
    first, second, third, fourth = jax.random.split(key, 4)
    y = _pick(first, resp)
    drawn = jax.nn.one_hot(y, resp.shape[1], dtype=resp.dtype)
    stats = models.stats(model, likelihood_params, drawn, data, second)
    new = models.likelihood_params(model, models.update(model, stats, "draw"), "draw", third)
    counted = drawn * data.weights[:, None]
    here = jax.random.fold_in(fourth, list(model).index(PRIOR))
    old, about = likelihood_params[PRIOR], data.parts[PRIOR]
    return {**new, PRIOR: class_prior(model).accept(old, new[PRIOR], counted, about, here)}


def _pick(key: Array, probs: Array) -> Array:
    """``(N,)`` classes: the first whose cumulative probability exceeds one uniform number a row."""
    upto = jnp.cumsum(probs, 1)
    # times the last sum, which rounding keeps from being one
    u = jax.random.uniform(key, (len(probs), 1), probs.dtype) * upto[:, -1:]
    return jnp.sum(upto[:, :-1] <= u, 1)


@cache
def sweep(stored: Stored) -> sampler.Sweep:
    """The sweep that stores quantities of the state it begins at, and sums class probabilities."""

    def of(
        likelihood_params: Any, context: tuple[Model, Data], key: Array
    ) -> tuple[Any, Any, Array]:
        model, data = context
        values, resp = evaluate_draw(model, likelihood_params, data, stored)
        return follow(model, likelihood_params, data, resp, key), values, resp

    return of


@jax.jit
def _begin(model: Model, params: Any, key: Array) -> Any:
    return models.likelihood_params(model, params, "draw", key)


def gibbs_draws(
    fit: Fit,
    data: Data,
    key: Array,
    *,
    draws: int,
    warmup: int,
    chains: int,
    thin: int,
    keep_all: bool,
    report: Any,
) -> PosteriorDraws:
    """Draws by Gibbs sampling, each chain started at a draw of its own around the fit.

    Args:
        fit: a fit by any rule.
        data: what it was fitted to.
        key: JAX random key.
        draws: of each chain.
        warmup: sweeps of each chain that are discarded.
        chains: number of chains.
        thin: sweeps to each draw.
        keep_all: store all parameters and the log-likelihoods of all items.
        report: called with numbers of sweeps.

    Raises:
        DataError: row weights other than 0 and 1, which draws of single labels cannot honour.
    """
    weights = np.asarray(data.weights)
    if not np.isin(weights, (0, 1)).all():
        row = int(np.flatnonzero(~np.isin(weights, (0, 1)))[0])
        raise DataError(
            f"sample_weight: row {row} weighs {weights[row]}; Gibbs sampling draws one class a row "
            "and needs weights of 0 or 1; repeat rows instead, or use method='nuts'"
        )
    model = jax.tree.map(jnp.asarray, fit.model)
    params = jax.tree.map(jnp.asarray, fit.params)
    first, second = jax.random.split(key)
    states = [_begin(model, params, k) for k in jax.random.split(first, chains)]
    stored = stored_quantities(model, data, chains * draws, keep_all)
    out = sampler.sample(
        sweep(stored),
        states,
        (model, data),
        second,
        draws=draws,
        warmup=warmup,
        thin=thin,
        report=report,
    )
    return collected(out, model, data)


def collected(out: sampler.Draws, model: Model, data: Data, **attrs: Any) -> PosteriorDraws:
    """Draws of :func:`nbmodels.posterior.draws.evaluate_draw` with the base measure put back."""
    stored, base = out.stored, np.asarray(base_measure(model, data))
    items = stored.get("log_likelihood")
    interrupted = Caution(
        PosteriorWarning, "sampling was interrupted: there are fewer draws than requested"
    )
    return PosteriorDraws(
        stored["values"],
        stored["transitions"],
        None if items is None else items + base,
        out.mean,
        {"lp": stored["lp"] + float(np.sum(np.asarray(data.weights) * base))},
        (interrupted,) if out.interrupted else (),
        attrs,
    )
