"""Draws from the second description, the NumPyro program: by NUTS, or by a fitted guide (SVI)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp

from inference.nuts import nuts
from inference.svi import svi
from nbmodels.core import model as models
from nbmodels.core.model import Data, Model
from nbmodels.core.program import dense, item_table, marginal
from nbmodels.errors import DataError
from nbmodels.fitting.em import Fit
from nbmodels.posterior.draws import Drawn
from nbmodels.posterior.pareto import pareto_k, sentence


def nuts_draws(fit: Fit, data: Data, key: Array, **options: Any) -> Drawn:
    """NUTS on the model's NumPyro program, from the fit.

    The sum over the classes is written out: gradients take a seventh of the enumerated program's
    time with 13 classes and 1,400 items.
    """
    model = jax.tree.map(jnp.asarray, fit.model)
    samples, statistics = nuts(marginal(model, data), key, start=beginning(fit), **options)
    return _drawn(model, data, samples, statistics)


def svi_draws(
    fit: Fit,
    data: Data,
    key: Array,
    *,
    draws: int,
    chains: int,
    batch: int | None = None,
    **options: Any,
) -> Drawn:
    """Draws of a guide fitted to the model's NumPyro program, with the measured Pareto k.

    Args:
        fit: where the guide begins.
        data: encoded data; densified.
        key: JAX random key.
        draws: of each chain; chains of independent draws differ in nothing.
        chains: number of chains.
        batch: items to each gradient; None for all of them.
        options: for :func:`inference.svi.svi`.

    Raises:
        DataError: minibatches of rows with missing cells whose covariance is full.
    """
    model = jax.tree.map(jnp.asarray, fit.model)
    if batch is not None and any(
        len(leaf) != len(data.weights) for leaf in jax.tree.leaves(dense(data))
    ):
        raise DataError(
            "batch: data of jointly normal features with missing cells cannot be cut into "
            "minibatches; use all items (None)"
        )
    found = svi(
        marginal(model, data),
        key,
        start=beginning(fit),
        draws=chains * draws,
        batched=None if batch is None else marginal(model, data, batch),
        **options,
    )
    split = {site: np.reshape(x, (chains, draws, *x.shape[1:])) for site, x in found.draws.items()}
    k = pareto_k(found.log_ratio)
    out = _drawn(model, data, split, {})
    attrs = {"pareto_k": k, "guide": found.guide, "loss": float(found.losses[-1])}
    doubts = sentence(k, "the guide")
    return Drawn(**{**vars(out), "doubts": doubts, "attrs": attrs})


def beginning(fit: Fit) -> dict[str, Array]:
    """Sites of the program at the fit, moved off the boundary."""
    model = jax.tree.map(jnp.asarray, fit.model)
    return _inside(
        {
            f"{name}_{part}": jnp.asarray(value)
            for name, values in models.values(model, fit.point).items()
            for part, value in values.items()
        }
    )


def _drawn(
    model: Model,
    data: Data,
    samples: Mapping[str, np.ndarray],
    statistics: dict[str, np.ndarray],
) -> Drawn:
    """By component what came by site, with what follows for the items."""
    values: dict[str, dict[str, np.ndarray]] = {
        name: {
            site.removeprefix(f"{name}_"): np.asarray(draws)
            for site, draws in samples.items()
            if site.startswith(f"{name}_")
        }
        for name in model
    }
    each = jax.jit(jax.vmap(jax.vmap(partial(models.transitions, model))))
    chains, draws = next(iter(samples.values())).shape[:2]
    transitions = {
        name: np.broadcast_to(t, (chains, draws, *t.shape[-2:]))
        for name, t in jax.tree.map(np.asarray, each(values)).items()
    }
    likelihood, resp = _items(model, data, values)
    return Drawn(values, transitions, np.asarray(likelihood), np.asarray(resp), statistics)


@jax.jit
def _items(model: Model, data: Data, values: Any) -> tuple[Array, Array]:
    """Log-likelihood of items ``(chains, draws, N)``, mean class probabilities of each chain."""

    def one(total: Array, here: Any) -> tuple[Array, Array]:
        table = item_table(model, data, here)
        return total + jax.nn.softmax(table), logsumexp(table, 1)

    def chain(here: Any) -> tuple[Array, Array]:
        first = jax.tree.map(lambda x: x[0], here)
        shape = jax.eval_shape(lambda: item_table(model, data, first))
        total, likelihood = jax.lax.scan(one, jnp.zeros(shape.shape, shape.dtype), here)
        return likelihood, total / len(likelihood)

    return jax.lax.map(chain, values)


def _inside(values: Mapping[str, Array]) -> dict[str, Array]:
    """Starting values off the boundary, where a mode may lie but a sampler may not begin."""
    out = {}
    for name, value in values.items():
        if name.endswith(("probs", "transition", "transitions", "_u")) or "_probs_" in name:
            lifted = jnp.clip(value, 1e-4, 1 - 1e-4)
            simplex = jnp.allclose(value.sum(-1), 1, atol=1e-3)
            out[name] = lifted / lifted.sum(-1, keepdims=True) if simplex else lifted
        elif name.endswith("epsilon"):
            out[name] = jnp.clip(value, 1e-4, 1 - 1e-4)
        else:
            out[name] = value
    return out
