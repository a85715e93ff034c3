"""Gibbs sampling by data augmentation on the fast core."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import jax
import numpy as np
from jax import Array

from inference import gibbs as sampler
from inference.arrays import on_device, strongly_typed
from inference.categorical import categorical
from nbmodels.core import model as models
from nbmodels.core.model import PRIOR, Data, Model, class_prior
from nbmodels.errors import Caution, DataError, PosteriorWarning
from nbmodels.fitting.em import Fit
from nbmodels.posterior.draws import (
    Keep,
    PosteriorDraws,
    Stored,
    base_measure,
    evaluate_draw,
    parameter_draws,
    parameter_shapes,
    shares_of_items,
    stored_quantities,
)

#: Sweeps that are discarded where the number of draws is given.
WARMUP = 200


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
    y = categorical(first, resp)
    drawn = jax.nn.one_hot(y, resp.shape[1], dtype=resp.dtype)
    q = models.update(model, models.stats(model, likelihood_params, drawn, data, second), "draw")
    new = models.likelihood_params(model, q, "draw", third)
    counted = drawn * data.weights[:, None]
    here = jax.random.fold_in(fourth, list(model).index(PRIOR))
    old, about = likelihood_params[PRIOR], data.parts[PRIOR]
    return {
        **new,
        PRIOR: class_prior(model).accept(old, new[PRIOR], q[PRIOR], counted, about, here),
    }


@cache
def sweep(stored: Stored) -> sampler.Sweep:
    """The sweep that stores quantities of the state it begins at, and sums class probabilities."""
    return partial(_sweep, stored=stored)


def _sweep(
    likelihood_params: Any, context: tuple[Model, Data], key: Array, stored: Stored
) -> tuple[Any, Any, Array]:
    model, data = context
    values, resp = evaluate_draw(model, likelihood_params, data, stored)
    shares = shares_of_items(values["values"][PRIOR], resp, data.weights, key)
    return follow(model, likelihood_params, data, resp, key), {**values, **shares}, resp


#: Cells of a noise matrix up to which all are watched; of more, the right labels' alone.
_WATCHED = 1_000

#: Effective draws of the worst cell beside those of the rates of right labels and class shares. Of
#: more than a hundred cells one may take ten times as many sweeps as all others.
CELL_SHARE = 0.25


#: Draws of a chain of a large model at the most, and of a small one.
_MOST_LARGE, _MOST_SMALL = 2_000, 8_000

#: Numbers that a sweep reads, times classes, up to which a model is small: on two busy cores 8,000
#: draws of each of four chains took 3 to 5 seconds with 400 items, and 27 with 2,000 scored ones.
_SMALL = 40_000

#: Numbers read for each cell that is watched, whose draws are all held and compared.
_CELL = 100


def watched(stored: Any) -> list[sampler.Watch]:
    """Draws by which chains stop: class shares and noise matrices.

    Without any of them, the log-likelihood.

    Args:
        stored: of :func:`sweep`, leaves ``(chains, draws, ...)``.
    """
    shares = stored["values"][PRIOR].get("probs")
    found = watches(shares, list(stored["transitions"].values()))
    return found or [sampler.Watch(stored["lp"][..., None])]


def watches(shares: np.ndarray | None, matrices: Sequence[np.ndarray]) -> list[sampler.Watch]:
    """Quantities that have to mix, rates of right labels first.

    Args:
        shares: ``(chains, draws, K)`` of the classes, or None.
        matrices: ``(chains, draws, K, observed)`` of each channel, on either side.
    """
    rates = [np.diagonal(t, axis1=-2, axis2=-1) for t in matrices]
    found = [sampler.Watch(x) for x in [*rates, *([] if shares is None else [shares])]]
    return found + [sampler.Watch(t, CELL_SHARE) for t in matrices if t[0, 0].size <= _WATCHED]


def stopping(model: Model, data: Data) -> sampler.Stopping:
    """When chains stop: after more draws where a sweep is cheap.

    By sizes alone, so that the same key gives as many draws on every machine.

    Args:
        model: components by name.
        data: their data.
    """
    k = parameter_shapes(model)[PRIOR].get("probs", data.weights[:1]).shape[-1]
    read = sum(np.size(leaf) for leaf in jax.tree.leaves(data)) * k
    most = _MOST_SMALL * _SMALL / max(read, _CELL * k * k, 1)
    return sampler.Stopping(most=int(np.clip(most, _MOST_LARGE, _MOST_SMALL)))


def gibbs_draws(
    fit: Fit,
    data: Data,
    key: Array,
    *,
    draws: int | None,
    warmup: int | None,
    chains: int,
    thin: int,
    keep: Keep,
    report: Any,
    share: float = 1.0,
) -> PosteriorDraws:
    """Draws by Gibbs sampling, each chain started at a draw of its own around the fit.

    Args:
        fit: a fit by any rule.
        data: what it was fitted to.
        key: JAX random key.
        draws: of each chain; None for chains that stop by themselves
            (:class:`inference.gibbs.Stopping`).
        warmup: sweeps of each chain that are discarded; None for 200, or for as many as it takes
            where chains stop by themselves.
        chains: number of chains.
        thin: sweeps to each draw.
        keep: what is stored, see :data:`nbmodels.posterior.draws.Keep`.
        report: called with numbers of sweeps.
        share: of a form in draws that are averaged over several, by which fewer effective ones are
            needed.

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
    model, params = strongly_typed((fit.model, fit.params))
    first, second = jax.random.split(key)
    begun = parameter_draws(model, params, jax.random.split(first, chains))
    states = [
        jax.tree.map(lambda x, c=c: on_device(np.asarray(x)[c]), begun) for c in range(chains)
    ]
    most = sampler.Stopping().stored if draws is None else draws
    step = sweep(stored_quantities(model, data, chains * most, keep))
    shared: dict[str, Any] = {"thin": thin, "report": report}
    if draws is None:
        out = sampler.sample_until(
            step,
            states,
            (model, data),
            second,
            watched=watched,
            warmup=warmup,
            stopping=stopping(model, data).of_part(share),
            **shared,
        )
    else:
        discarded = WARMUP if warmup is None else warmup
        out = sampler.sample(
            step, states, (model, data), second, draws=draws, warmup=discarded, **shared
        )
    return collected(out, model, data, warmup=out.warmup, sweeps_per_draw=out.stride)


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
        stored.get("class_shares"),
        out.mixed,
    )
