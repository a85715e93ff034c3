"""Draws of the CAVI posterior, its intervals widened by linear response, its distance measured.

A factorised posterior holds each factor as if all others were known: means are good as a rule,
variances too small. The mean under a posterior tilted by ``exp(t' s)`` moves by ``Cov(s) t`` for
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

from inference import gibbs as sampler
from nbmodels.core import model as models
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.core.program import prior_log_density
from nbmodels.fitting.em import Fit
from nbmodels.fitting.em import fit as fit_model
from nbmodels.posterior.draws import Drawn, Kept, kept, read
from nbmodels.posterior.gibbs import collected
from nbmodels.posterior.pareto import pareto_k, sentence
from nbmodels.posterior.sandwich import stretch

#: Largest number of class shares and channel probabilities whose covariance is worked out.
_MOST = 500

#: Largest number of parameters of the posterior, each of them a coordinate of the linear system.
_LARGEST = 5_000


def log_ratio(model: Model, q: Any, likelihood_params: Any, log_likelihood: Array) -> Array:
    """Log of prior density times likelihood less log-density of ``q``, at a draw of ``q``."""
    values = models.values(model, likelihood_params)
    gaps = [
        prior_log_density(c, values[name])
        - prior_log_density(replace(c, prior=q[name]), values[name])
        for name, c in model.items()
        if values[name]
    ]
    return log_likelihood + sum(gaps)


@cache
def _sweep(what: Kept, names: tuple[str, ...]) -> sampler.Sweep:
    """Independent draws of the state, a conjugate posterior, some of them stretched."""

    def of(q: Any, context: Any, key: Array) -> tuple[Any, Any, Array]:
        model, data, matrix = context
        likelihood_params = models.likelihood_params(model, q, "draw", key)
        stored, resp = read(model, likelihood_params, data, what)
        ratio = log_ratio(model, q, likelihood_params, stored["lp"])
        if names:
            stored, resp = read(model, _stretched(q, likelihood_params, names, matrix), data, what)
        return q, {**stored, "log_ratio": ratio}, resp

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


def vb_draws(
    fit: Fit,
    data: Data,
    key: Array,
    *,
    draws: int,
    chains: int,
    everything: bool,
    correct: bool | None = None,
    report: Any,
) -> Drawn:
    """Independent draws of the CAVI posterior, fitted from where the fit stands.

    Args:
        fit: a fit by any rule.
        data: what it was fitted to.
        key: JAX random key.
        draws: of each chain; chains differ in nothing.
        chains: number of chains.
        everything: keep all parameters.
        correct: widen class shares and noise matrices by linear response; None where it is
            feasible (at most 500 such numbers, 5,000 parameters).
        report: called with numbers of draws.
    """
    first, second = jax.random.split(key)
    if fit.rule != "vb":
        fit = fit_model(fit.model, data, rule="vb", key=first, start=fit.params, tol=1e-8)
    model, q = (jax.tree.map(jnp.asarray, x) for x in (fit.model, fit.params))
    what = kept(model, data, chains * draws, everything)
    names = _responding(model, q)
    if correct is None:
        size = sum(np.size(q[name].concentration) for name in names)
        correct = 0 < size <= _MOST and _size(q) <= _LARGEST
    names = names if correct else ()
    matrix = stretch(*covariance(model, q, data, names)) if names else None
    out = sampler.sample(
        _sweep(what, names),
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
    doubts = sentence(k, "the factorised posterior, before any correction,")
    return replace(drawn, doubts=(*drawn.doubts, *doubts))


def _size(q: Any) -> int:
    return sum(np.size(leaf) for leaf in jax.tree.leaves(q))


def _responding(model: Model, q: Any) -> tuple[str, ...]:
    """Components whose draws are corrected: learned class shares, and channels of labels."""
    reading = jax.eval_shape(lambda x: models.likelihood_params(model, x, "vb"), q)
    values = jax.tree.map(
        lambda s: jnp.zeros(s.shape, s.dtype),
        jax.eval_shape(partial(models.values, model), reading),
    )
    named = {PRIOR, *models.transitions(model, values)}
    # one error rate is not read as its log-probabilities
    return tuple(
        name
        for name in model
        if name in named
        and hasattr(q[name], "concentration")
        and q[name].concentration.shape == reading[name].shape
    )


@partial(jax.jit, static_argnames="names")
def covariance(model: Model, q: Any, data: Data, names: tuple[str, ...]) -> tuple[Array, Array]:
    """Covariance of the log-probabilities of some components, all of them together.

    Args:
        model: components by name.
        q: a fixed point of CAVI.
        data: encoded data.
        names: components whose family is the Dirichlet.

    Returns:
        ``(S, S)`` by linear response, and as ``q`` has it; of centred log-probabilities.
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
