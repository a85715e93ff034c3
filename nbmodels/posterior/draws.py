"""Posterior draws in host memory, and the quantities that are stored of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from inference.categorical import categorical
from inference.compilation import host_jit
from nbmodels.core import model as models
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.errors import Caution

#: What is stored of draws: parameters and the items' log-likelihoods where they are small, all of
#: them, or small parameters only.
Keep = Literal["small", "all", "parameters"]

#: Parameters with more numbers than this in one draw are left out unless ``keep="all"``.
SMALL = 5_000

#: Log-likelihoods of items, and replicated items, take this many numbers at most by default.
MODERATE = 20_000_000

#: Number of the key for the items' classes, beyond those of the keys that a draw is split into.
_CLASSES_KEY = 1_000_000


class Stored(NamedTuple):
    """Which quantities are stored of each draw; hashable, so that a sweep is compiled once for it.

    Attributes:
        parameters: pairs of component and parameter.
        items: whether to store the log-likelihood of every item.
    """

    parameters: tuple[tuple[str, str], ...]
    items: bool


@dataclass(frozen=True)
class PosteriorDraws:
    """Posterior draws by any method, in host memory.

    Attributes:
        values: parameters by component and name, ``(chains, draws, ...)``.
        transitions: ``(chains, draws, K, observed)`` P(observed | true) of each channel.
        log_likelihood: ``(chains, draws, N)`` of each item, its class summed out, or None.
        label_posterior: ``(chains, N, K)`` mean over the draws of each chain.
        statistics: of the sampler, by ArviZ's names, ``(chains, draws)``.
        cautions: warnings about how the draws were taken.
        attrs: attributes of the resulting tree.
        class_shares: ``(chains, draws, K)`` shares of the true classes among the items; None where
            class shares are parameters.
        mixed: whether chains that stop by themselves had mixed; None of others.
    """

    values: dict[str, dict[str, np.ndarray]]
    transitions: dict[str, np.ndarray]
    log_likelihood: Float[np.ndarray, "chains draws n"] | None
    label_posterior: Float[np.ndarray, "chains n k"]
    statistics: dict[str, np.ndarray] = field(default_factory=dict)
    cautions: tuple[Caution, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    class_shares: Float[np.ndarray, "chains draws k"] | None = None
    mixed: bool | None = None


def parameter_shapes(model: Model) -> dict[str, dict[str, Any]]:
    """Shapes of one draw's parameters, by component and name; nothing is computed."""
    priors = {name: c.prior for name, c in model.items()}
    return jax.eval_shape(
        lambda q: models.values(model, models.likelihood_params(model, q, "vb")), priors
    )


def stored_quantities(model: Model, data: Data, n_draws: int, keep: Keep) -> Stored:
    """Class shares and small parameters, or all; log-likelihoods of items where few enough.

    Args:
        model: components by name.
        data: their data.
        n_draws: number of draws of all chains.
        keep: see :data:`Keep`.
    """
    parameters = tuple(
        (name, part)
        for name, here in parameter_shapes(model).items()
        for part, shape in here.items()
        if keep == "all" or shape.size <= SMALL or name == PRIOR
    )
    few = keep == "small" and len(data.weights) * n_draws <= MODERATE
    return Stored(parameters, few or keep == "all")


def evaluate_draw(
    model: Model, likelihood_params: Any, data: Data, stored: Stored
) -> tuple[dict[str, Any], Float[Array, "n k"]]:
    """Stored quantities of one draw, and class probabilities of the items under it.

    Args:
        model: components by name.
        likelihood_params: the draw, as the likelihoods read it.
        data: encoded data.
        stored: which quantities to return.

    Returns:
        a mapping with ``values``, ``transitions``, ``lp`` (log-likelihood of the data, less the
        base measure) and, if stored, ``log_likelihood`` of every item, less it as well; and
        ``(N, K)`` class probabilities.
    """
    table, offset = models.log_likelihood(model, likelihood_params, data)
    resp, inside = models.normalised(table)
    values = models.values(model, likelihood_params)
    out = {
        "values": {
            name: {p: values[name][p] for n, p in stored.parameters if n == name} for name in model
        },
        "transitions": models.transitions(model, values),
        "lp": jnp.sum(data.weights * (inside + offset)),
    }
    if stored.items:
        out["log_likelihood"] = inside + offset
    return out, resp


def shares_of_items(
    prior_values: Mapping[str, Any],
    resp: Float[Array, "n k"],
    weights: Float[Array, " n"],
    key: Array,
) -> dict[str, Float[Array, " k"]]:
    """Shares of the true classes among the items, where the class prior has no shares of its own.

    The items' classes are drawn, so that the shares vary with what is unknown of them, too.

    Args:
        prior_values: one draw of the parameters of the class prior, by name.
        resp: ``(N, K)`` class probabilities of the items under the draw.
        weights: row weights.
        key: JAX random key of the draw.

    Returns:
        a mapping with ``class_shares``, or an empty one.
    """
    if "probs" in prior_values:
        return {}
    classes = categorical(jax.random.fold_in(key, _CLASSES_KEY), resp)
    counts = weights @ jax.nn.one_hot(classes, resp.shape[1], dtype=weights.dtype)
    return {"class_shares": counts / jnp.sum(weights)}


@host_jit
def parameter_draws(model: Model, q: Any, keys: Array) -> Any:
    """Independent draws of all parameters from ``q``, as the likelihoods read them.

    Args:
        model: components by name.
        q: distributions of the parameters; the priors, or those of a fit.
        keys: JAX random keys, one a draw. Few at a time, so that chains begin by the same program
            as prior draws are taken.

    Returns:
        leaves with the draws along the first axis.
    """
    return jax.lax.map(lambda key: models.likelihood_params(model, q, "draw", key), keys)


@jax.jit
def base_measure(model: Model, data: Data) -> Float[Array, " n"]:
    """Part of the items' log-likelihoods that :func:`evaluate_draw` leaves out."""
    return models.base_measure(model, data)
