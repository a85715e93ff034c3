"""What is kept of a draw, whoever took it: parameters, noise matrices, items' log-densities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nbmodels.core import model as models
from nbmodels.core.model import PRIOR, Data, Model

#: Parameters with more numbers than this in one draw are left out unless asked for.
SMALL = 5_000

#: Log-densities of items, and replicated items, take this many numbers at most unless asked for.
MODERATE = 20_000_000


class Kept(NamedTuple):
    """What to keep of each draw; hashable, so that a sweep is compiled once for it.

    Attributes:
        parts: pairs of component and parameter.
        items: whether to keep the log-density of every item.
    """

    parts: tuple[tuple[str, str], ...]
    items: bool


@dataclass(frozen=True)
class Drawn:
    """Draws as a method took them, in host memory.

    Attributes:
        values: parameters by component and name, ``(chains, draws, ...)``.
        transitions: ``(chains, draws, K, observed)`` P(observed | true) of each channel.
        log_likelihood: ``(chains, draws, N)`` of each item, its class summed out, or None.
        label_posterior: ``(chains, N, K)`` mean over the draws of each chain.
        statistics: of the sampler, by ArviZ's names, ``(chains, draws)``.
        doubts: sentences on how the draws were taken.
        attrs: what the result says of itself.
    """

    values: dict[str, dict[str, np.ndarray]]
    transitions: dict[str, np.ndarray]
    log_likelihood: np.ndarray | None
    label_posterior: np.ndarray
    statistics: dict[str, np.ndarray] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)


def kept(model: Model, data: Data, n_draws: int, everything: bool) -> Kept:
    """Class shares, channels and small parameters, or all; items' log-densities where few enough.

    Args:
        model: components by name.
        data: their data.
        n_draws: number of draws of all chains.
        everything: leave nothing out.
    """
    priors = {name: c.prior for name, c in model.items()}
    shapes = jax.eval_shape(
        lambda q: models.values(model, models.likelihood_params(model, q, "vb")), priors
    )
    parts = tuple(
        (name, part)
        for name, here in shapes.items()
        for part, shape in here.items()
        if everything or shape.size <= SMALL or name == PRIOR
    )
    return Kept(parts, everything or len(data.weights) * n_draws <= MODERATE)


def read(
    model: Model, likelihood_params: Any, data: Data, what: Kept
) -> tuple[dict[str, Any], Array]:
    """What is stored of one draw, and ``(N, K)`` class probabilities under it.

    Stored are ``values``, ``transitions``, ``lp`` (log-likelihood of the data, less the base
    measure) and, where asked for, ``log_likelihood`` of every item, less it as well.
    """
    table, offset = models.log_likelihood(model, likelihood_params, data)
    resp, inside = models.normalised(table)
    values = models.values(model, likelihood_params)
    out = {
        "values": {
            name: {p: values[name][p] for n, p in what.parts if n == name} for name in model
        },
        "transitions": models.transitions(model, values),
        "lp": jnp.sum(data.weights * (inside + offset)),
    }
    if what.items:
        out["log_likelihood"] = inside + offset
    return out, resp


@jax.jit
def base_measure(model: Model, data: Data) -> Array:
    """``(N,)`` what :func:`read` leaves out of log-likelihoods."""
    return models.base_measure(model, data)
