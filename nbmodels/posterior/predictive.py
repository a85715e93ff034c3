"""Prior and posterior predictive draws: parameters of the prior, and replicated data."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference.arrays import strongly_typed
from inference.categorical import categorical
from inference.compilation import host_jit, loop_jit
from nbmodels.core import model as models
from nbmodels.core.model import PRIOR, Data, Model, class_prior
from nbmodels.posterior.draws import MODERATE, SMALL, PosteriorDraws, parameter_draws


def prior_draws(
    model: Model, key: Array, n: int, at_once: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """``n`` draws of parameters from the priors of small components, and of their noise matrices.

    Leaves are ``(1, n, ...)``: one chain.

    Args:
        model: components by name.
        key: JAX random key.
        n: number of draws.
        at_once: as many as chains, so that their beginnings are drawn by the same program.
    """
    # drawing the probabilities of thousands of words takes long, and they are not stored
    small = {
        name: component
        for name, component in model.items()
        if sum(np.size(leaf) for leaf in jax.tree.leaves(component.prior)) <= 2 * SMALL
    }
    model = strongly_typed(small)
    priors = {name: component.prior for name, component in model.items()}
    calls = -(-n // at_once)
    keys = jax.random.split(key, (calls, at_once))
    drawn = [parameter_draws(model, priors, keys[i]) for i in range(calls)]
    read = jax.tree.map(lambda *x: np.concatenate(x)[:n], *drawn)
    values, transitions = _values(model, read)
    lead = partial(jax.tree.map, lambda x: np.asarray(x)[None])
    return lead(values), lead(transitions)


@host_jit
def _values(model: Model, read: Any) -> tuple[Any, Any]:
    def one(here: Any) -> tuple[Any, Any]:
        values = models.values(model, here)
        return values, models.transitions(model, values)

    return jax.lax.map(one, read)


def comparable(model: Model, data: Data, drawn: PosteriorDraws) -> list[str]:
    """Components whose data can be compared with replicated ones, and are small.

    Those whose parameters were too large to be stored have nothing to be replicated from.

    Args:
        model: components by name.
        data: encoded data.
        drawn: the draws.
    """
    return [
        name
        for name, component in model.items()
        if name != PRIOR
        and name in data.parts
        and (name in drawn.transitions or component.dims())
        and len(drawn.values.get(name, {})) == len(component.dims())
        and _observed_size(model, data, name) is not None
    ]


def _observed_size(model: Model, data: Data, name: str) -> int | None:
    """Size of a component's observed data, if they are comparable and small; not computed."""
    shape = jax.eval_shape(model[name].observed, data.parts[name])
    return shape.size if shape is not None and shape.size <= MODERATE // 100 else None


def replicated(
    model: Model, data: Data, drawn: PosteriorDraws, key: Array
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Posterior predictive data of as many items at every draw, and the observed data.

    The class of a replicated item is drawn from the class prior at the draw, then its labels and
    features given the class. Features are in the coding that the model was fitted in; a missing
    label or symbol is -1.

    Returns:
        replicated data by component ``(chains, draws, N, ...)``; observed data ``(N, ...)``.
    """
    values = drawn.values
    names = comparable(model, data, drawn)
    rows = np.asarray(data.weights) > 0
    seen = {name: np.asarray(model[name].observed(data.parts[name]))[rows] for name in names}
    chains, draws = (
        next(iter(drawn.statistics.values())).shape if drawn.statistics else _shape(drawn)
    )
    names = [n for n in names if seen[n].size * chains * draws <= MODERATE]
    if not names or not (values[PRIOR] or not model[PRIOR].dims()):
        return {}, seen
    model = strongly_typed(model)
    at = {name: values[name] for name in {PRIOR, *names}}
    flat = jax.tree.map(lambda x: jnp.reshape(x, (chains * draws, *x.shape[2:])), at)
    covariates = data.parts[PRIOR]
    sizes = {"n_items": len(rows), "n_draws": chains * draws}
    out = _replicate(model, covariates, flat, key, names=tuple(names), **sizes)
    out = jax.tree.map(np.asarray, out)
    again = {
        name: x[:, rows].reshape(chains, draws, -1, *x.shape[2:])
        for name, x in out.items()
        if x.shape[2:] == seen[name].shape[1:]
    }
    labels = {n for n in seen if seen[n].ndim == 1}
    for name in labels & set(drawn.transitions):
        observed = drawn.transitions[name].shape[-1]
        seen[name] = np.where(seen[name] >= observed, -1, seen[name])
    return again, {name: seen[name] for name in again}


@partial(loop_jit, static_argnames=("names", "n_items", "n_draws"))
def _replicate(
    model: Model,
    covariates: Any,
    at: Any,
    key: Array,
    *,
    names: tuple[str, ...],
    n_items: int,
    n_draws: int,
) -> dict[str, Array]:
    """Replicated data of some components at each draw."""

    def one(pair: tuple[Any, Array]) -> dict[str, Array]:
        here, k = pair
        first, *others = jax.random.split(k, 1 + len(names))
        shares = class_prior(model).log_class_probs(here[PRIOR], covariates)
        probs = jnp.broadcast_to(jax.nn.softmax(shares), (n_items, shares.shape[-1]))
        y = categorical(first, probs)
        return {
            name: model[name].simulate(other, here[name], y)
            for name, other in zip(names, others, strict=True)
        }

    return jax.lax.map(one, (at, jax.random.split(key, n_draws)))


def _shape(drawn: PosteriorDraws) -> tuple[int, int]:
    leaf = next(iter(drawn.transitions.values()), None)
    leaf = jax.tree.leaves(drawn.values)[0] if leaf is None else leaf
    return leaf.shape[0], leaf.shape[1]
