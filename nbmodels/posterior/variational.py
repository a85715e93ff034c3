"""Variational Bayes: draws of the CAVI posterior, widened by linear response, with Pareto k.

A factorised posterior ignores the dependence between factors: means are good as a rule, variances
too small. The mean under a posterior tilted by ``exp(t' s)`` moves by ``Cov(s) t`` for
small ``t``. Under the tilt, CAVI stops at ``q = F(q) + t``, which differs from the old point by
``(I - F')^-1 t``: so the covariance of the sufficient statistics ``s`` is that times how their
expectation depends on ``q`` (Giordano, Broderick and Jordan 2018, "Covariances, robustness, and
variational Bayes", theorem 1). Here ``s`` are the logarithms of the class shares and of the
channels' probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from inference import gibbs as sampler
from inference.arrays import strongly_typed
from nbmodels.core import model as models
from nbmodels.core.families import Family
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.core.numpyro_program import prior_log_density
from nbmodels.errors import DataError
from nbmodels.fitting.em import Fit
from nbmodels.fitting.em import fit as fit_model
from nbmodels.posterior.draws import (
    Keep,
    PosteriorDraws,
    Stored,
    evaluate_draw,
    shares_of_items,
    stored_quantities,
)
from nbmodels.posterior.gibbs import collected
from nbmodels.posterior.pareto import pareto_cautions, pareto_k
from nbmodels.posterior.sandwich import stretch

#: Largest number of class shares and channel probabilities whose covariance is worked out.
_MOST = 500

#: Largest number of parameters of the posterior, each of them a coordinate of the linear system.
_LARGEST = 5_000


def log_ratio(
    model: Model, q: Any, likelihood_params: Any, log_likelihood: Float[Array, ""]
) -> Float[Array, ""]:
    """Log importance ratio of a draw of ``q``: log prior plus log-likelihood less log ``q``."""
    values = models.values(model, likelihood_params)
    gaps = [
        prior_log_density(c, values[name])
        - prior_log_density(replace(c, prior=q[name]), values[name])
        for name, c in model.items()
        if values[name]
    ]
    return log_likelihood + sum(gaps)


@cache
def _sweep(quantities: Stored, names: tuple[str, ...]) -> sampler.Sweep:
    """Independent draws of the state, a conjugate posterior, some of them stretched."""

    def of(q: Any, context: Any, key: Array) -> tuple[Any, Any, Array]:
        model, data, matrix = context
        likelihood_params = models.likelihood_params(model, q, "draw", key)
        stored, resp = evaluate_draw(model, likelihood_params, data, quantities)
        ratio = log_ratio(model, q, likelihood_params, stored["lp"])
        if names:
            moved = _stretched(q, likelihood_params, names, matrix)
            stored, resp = evaluate_draw(model, moved, data, quantities)
        shares = shares_of_items(stored["values"][PRIOR], resp, data.weights, key)
        return q, {**stored, **shares, "log_ratio": ratio}, resp

    return of


def _stretched(q: Any, likelihood_params: Any, names: tuple[str, ...], matrix: Array) -> Any:
    """Log-probabilities of some components moved linearly about their mean, then normalised."""
    gaps = jnp.concatenate(
        [(likelihood_params[n] - q[n].likelihood_params("vb")).ravel() for n in names]
    )
    moved, out = matrix @ gaps, dict(likelihood_params)
    for name in names:
        here, moved = moved[: likelihood_params[name].size], moved[likelihood_params[name].size :]
        logs = q[name].likelihood_params("vb") + here.reshape(likelihood_params[name].shape)
        out[name] = jax.nn.log_softmax(logs, q[name].axis)
    return out


def check_variational(fit: Fit, *, alone: bool) -> None:
    """Refuse a component whose family has no variational posterior, before anything is drawn.

    Args:
        fit: a fit by any rule.
        alone: whether it is the only form of the model.

    Raises:
        DataError: such as a noise matrix that draws its prior, too.
    """
    for name, q in fit.params.items():
        if isinstance(q, Family) and type(q).divergence is Family.divergence:
            # of several forms, one draws its prior by any solver
            other = ", or fit with solver='vb', whose draws take the learned prior as known"
            raise DataError(
                f"method: 'vb' cannot draw {name!r} together with its prior; take method='gibbs', "
                "or 'nuts' where rows weigh other than 0 and 1"
                f"{other if alone and fit.rule != 'vb' else ''}"
            )


def vb_draws(
    fit: Fit,
    data: Data,
    key: Array,
    *,
    draws: int,
    chains: int,
    keep: Keep,
    correct: bool | None = None,
    report: Any,
) -> PosteriorDraws:
    """Independent draws of the CAVI posterior, fitted from where the fit stands.

    Args:
        fit: a fit by any rule.
        data: what it was fitted to.
        key: JAX random key.
        draws: of each chain; chains differ in nothing.
        chains: number of chains.
        keep: what is stored, see :data:`nbmodels.posterior.draws.Keep`.
        correct: widen class shares and noise matrices by linear response; None where it is
            feasible (at most 500 such numbers, 5,000 parameters).
        report: called with numbers of draws.

    """
    first, second = jax.random.split(key)
    if fit.rule != "vb":
        fit = fit_model(fit.model, data, rule="vb", key=first, start=fit.params, tol=1e-8)
    model, q = strongly_typed((fit.model, fit.params))
    stored = stored_quantities(model, data, chains * draws, keep)
    names = _responding(model, q)
    if correct is None:
        size = sum(np.size(q[name].concentration) for name in names)
        correct = 0 < size <= _MOST and _size(q) <= _LARGEST
    names = names if correct else ()
    matrix = stretch(*covariance(model, q, data, names)) if names else None
    out = sampler.sample(
        _sweep(stored, names),
        [q] * chains,
        (model, data, matrix),
        second,
        draws=draws,
        warmup=0,
        report=report,
    )
    k = pareto_k(out.stored["log_ratio"])
    how = f"linear response ({', '.join(names)})" if names else "none"
    drawn = collected(out, model, data, pareto_k=k, correction=how)
    cautions = pareto_cautions(k, "the factorised posterior, before any correction,")
    return replace(drawn, cautions=(*drawn.cautions, *cautions))


def _size(q: Any) -> int:
    return sum(np.size(leaf) for leaf in jax.tree.leaves(q))


def _responding(model: Model, q: Any) -> tuple[str, ...]:
    """Components whose draws are corrected: learned class shares, and channels of labels."""
    params = jax.eval_shape(lambda x: models.likelihood_params(model, x, "vb"), q)
    values = jax.tree.map(
        lambda s: jnp.zeros(s.shape, s.dtype),
        jax.eval_shape(partial(models.values, model), params),
    )
    named = {PRIOR, *models.transitions(model, values)}
    # the likelihood does not use one error rate as log-probabilities of that shape
    return tuple(
        name
        for name in model
        if name in named
        and hasattr(q[name], "concentration")
        and q[name].concentration.shape == params[name].shape
    )


@partial(jax.jit, static_argnames="names")
def covariance(
    model: Model, q: Any, data: Data, names: tuple[str, ...]
) -> tuple[Float[Array, "s s"], Float[Array, "s s"]]:
    """Joint covariance of the log-probabilities of some components, by linear response.

    Args:
        model: components by name.
        q: a fixed point of CAVI.
        data: encoded data.
        names: components whose family is the Dirichlet.

    Returns:
        ``(S, S)`` covariances of centred log-probabilities: by linear response, and under ``q``.
    """
    flat, unravel = jax.flatten_util.ravel_pytree(q)

    def following(x: Array) -> Array:
        after = models.step("vb")(unravel(x), (model, data))[0]
        return jax.flatten_util.ravel_pytree(after)[0]

    def expected(x: Array) -> Array:
        logs = [unravel(x)[name].likelihood_params("vb") for name in names]
        centred = [y - y.mean(q[n].axis, keepdims=True) for n, y in zip(names, logs, strict=True)]
        return jnp.concatenate([y.ravel() for y in centred])

    ids = unravel(jnp.arange(len(flat), dtype=flat.dtype))
    where = jnp.concatenate([ids[name].concentration.ravel() for name in names]).astype(int)
    jacobian = jax.jacfwd(following)(flat)
    response = jnp.linalg.solve(
        jnp.eye(len(flat)) - jacobian, jax.nn.one_hot(where, len(flat), dtype=flat.dtype).T
    )
    depends = jax.jacrev(expected)(flat)
    # a tilt by centred log-probabilities: what a tilt by plain ones does, centred again
    centre = _centring([(q[name].concentration.shape, q[name].axis) for name in names])
    return depends @ response @ centre, depends[:, where] @ centre


def _centring(blocks: Sequence[tuple[tuple[int, ...], int]]) -> Array:
    """Symmetric matrix that takes the mean of each simplex off flattened arrays side by side."""

    def one(shape: tuple[int, ...], axis: int) -> Array:
        size = int(np.prod(shape))
        columns = jnp.eye(size).reshape(size, *shape)
        at = axis + 1 if axis >= 0 else axis
        return (columns - columns.mean(at, keepdims=True)).reshape(size, size)

    return jax.scipy.linalg.block_diag(*(one(*block) for block in blocks))
