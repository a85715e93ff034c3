"""Truth and Gibbs draws of many simulated data sets, for simulation-based calibration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nbmodels.core import model as models
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.core.numpyro_program import dense, item_table, marginal
from nbmodels.posterior.draws import Stored, evaluate_draw
from nbmodels.posterior.gibbs import follow
from nbmodels.posterior.sites import by_component, parameter_sites

Simulate = Callable[[Model, Array, int], tuple[dict[str, Any], Array, dict[str, Any]]]
Pack = Callable[[Any, Any], Any]


def data_sets(
    model: Model,
    key: Array,
    n_sets: int,
    n_items: int,
    pack: Pack,
    simulate: Simulate = models.simulate,
) -> tuple[Data, dict[str, Any]]:
    """Data sets from the prior of a model, stacked, and the parameters behind them.

    Args:
        model: components by name.
        key: JAX random key.
        n_sets: number of data sets.
        n_items: items of each.
        pack: from a component and its raw data to packed data without holes.
        simulate: of one set; :func:`nbmodels.core.model.simulate` by default. A component whose
            likelihood is one of factors (a graph) needs a way of its own.

    Returns:
        data with leaves ``(sets, N, ...)``; parameters ``(sets, ...)`` by component and name.
    """
    one = jax.jit(lambda k: simulate(model, k, n_items))
    raw, _, values = lax.map(one, jax.random.split(key, n_sets))
    # rows of all sets are packed as those of one
    together = {n: np.reshape(x, (-1, *x.shape[2:])) for n, x in raw.items()}
    packed = {n: dense(pack(model[n], x)) for n, x in together.items()}
    parts = jax.tree.map(lambda leaf: leaf.reshape(n_sets, n_items, *leaf.shape[1:]), packed)
    return Data({PRIOR: None, **parts}, jnp.ones((n_sets, n_items))), values


def quantities(model: Model, values: Any) -> dict[str, Array]:
    """Numbers whose ranks are looked at: noise matrices, class shares, two of each feature's."""
    out: dict[str, Array] = {}
    for name, here in models.transitions(model, values).items():
        if model[name].dims():
            k = np.arange(here.shape[-1])
            for i, j in zip(k, np.roll(k, 1), strict=True):
                out[f"{name}[{i},{j}]"] = here[i, j]
    for name, parts in values.items():
        for part, x in parts.items():
            flat = jnp.ravel(x)
            if name == PRIOR or name not in models.transitions(model, values):
                out[f"{name}.{part}[0]"] = flat[0]
                if flat.size > 2:
                    out[f"{name}.{part}[-2]"] = flat[-2]
    return out


@partial(jax.jit, static_argnames=("draws", "warmup", "thin"))
def _chains(
    model: Model, data: Data, keys: Array, draws: int, warmup: int, thin: int
) -> dict[str, Array]:
    def chain(one: Data, key: Array) -> dict[str, Array]:
        first, *others = jax.random.split(key, 3)
        priors = {name: c.prior for name, c in model.items()}
        state = models.likelihood_params(model, priors, "draw", first)

        def sweep(state: Any, key: Array) -> tuple[Any, None]:
            resp = models.posterior(model, state, one).resp
            return follow(model, state, one, resp, key), None

        def kept(state: Any, key: Array) -> tuple[Any, dict[str, Array]]:
            state, _ = lax.scan(sweep, state, jax.random.split(key, thin))
            stored, _ = evaluate_draw(model, state, one, Stored((), False))
            return state, {**quantities(model, models.values(model, state)), "lp": stored["lp"]}

        state, _ = lax.scan(sweep, state, jax.random.split(others[0], warmup))
        return lax.scan(kept, state, jax.random.split(others[1], draws))[1]

    return jax.vmap(chain)(data, keys)


@jax.jit
def _truth(model: Model, data: Data, values: Any) -> dict[str, Array]:
    def one(data: Data, values: Any) -> dict[str, Array]:
        inside = jax.scipy.special.logsumexp(item_table(model, data, values), 1)
        lp = jnp.sum(inside - models.base_measure(model, data))
        return {**quantities(model, values), "lp": lp}

    return jax.vmap(one)(data, values)


def gibbs_of_all(
    model: Model,
    data: Data,
    values: Any,
    key: Array,
    *,
    draws: int = 99,
    warmup: int = 300,
    thin: int = 10,
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Truth and draws of each data set, every chain begun at a draw of the prior, in one program.

    Beside the parameters there is ``lp``, the log-likelihood of the data: a quantity of data and
    parameters, that sees what each parameter alone does not (Modrak et al. 2023).

    Args:
        model: components by name.
        data: from :func:`data_sets`.
        values: from there, too.
        key: JAX random key.
        draws: kept draws of each chain.
        warmup: sweeps thrown away.
        thin: sweeps to each kept draw, so many that draws are nearly independent.

    Returns:
        names of the quantities; truth ``(sets, quantities)``; draws ``(sets, draws, quantities)``.
    """
    keys = jax.random.split(key, len(data.weights))
    truth = _truth(model, data, values)
    found = _chains(model, data, keys, draws, warmup, thin)
    names = sorted(truth)
    stack = [np.stack([np.asarray(x[n]) for n in names], -1) for x in (truth, found)]
    return names, stack[0], stack[1]


def nuts_of_all(
    model: Model,
    data: Data,
    values: Any,
    key: Array,
    *,
    draws: int = 99,
    warmup: int = 300,
    thin: int = 5,
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """:func:`gibbs_of_all` with NUTS on the NumPyro program, one data set after the other."""
    from numpyro.infer.hmc import hmc
    from numpyro.infer.util import initialize_model

    first = jax.tree.map(lambda leaf: leaf[0], data)
    begin, second = jax.random.split(key)
    owners = parameter_sites(model)

    def statement(parts: Any) -> None:
        marginal(model, Data(parts, first.weights))()

    info = initialize_model(begin, statement, dynamic_args=True, model_args=(first.parts,))
    start, kernel = hmc(potential_fn_gen=info.potential_fn, algo="NUTS")

    def chain(job: tuple[Data, Array]) -> dict[str, Array]:
        one, own = job
        given = (one.parts,)
        # the point alone: the density there is that of the first data set
        state = start(
            info.param_info.z,
            num_warmup=warmup,
            target_accept_prob=0.9,
            model_args=given,
            rng_key=own,
        )

        def step(state: Any, _: None) -> tuple[Any, None]:
            return kernel(state, given), None

        def kept(state: Any, _: None) -> tuple[Any, dict[str, Array]]:
            state, _ = lax.scan(step, state, None, thin)
            sites = info.postprocess_fn(*given)(state.z)
            here = by_component(model, owners, sites)
            inside = jax.scipy.special.logsumexp(item_table(model, one, here), 1)
            lp = jnp.sum(inside - models.base_measure(model, one))
            return state, {**quantities(model, here), "lp": lp}

        state, _ = lax.scan(step, state, None, warmup)
        return lax.scan(kept, state, None, draws)[1]

    found = jax.jit(partial(lax.map, chain))((data, jax.random.split(second, len(data.weights))))
    truth = _truth(model, data, values)
    names = sorted(truth)
    stack = [np.stack([np.asarray(x[n]) for n in names], -1) for x in (truth, found)]
    return names, stack[0], stack[1]
