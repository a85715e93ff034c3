"""NumPyro program of any model, with the discrete true classes summed out.

The second description of a model, beside the conjugate one; NUTS and SVI sample it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from inference.products import matrix
from nbmodels.core.component import Component
from nbmodels.core.consistency import check_components
from nbmodels.core.lazy import dist, funsor, handlers, numpyro
from nbmodels.core.model import PRIOR, Data, Model, class_prior, power


def program(model: Model, data: Data) -> Callable[[], None]:
    """A NumPyro model of ``data``, assembled from the components' own statements.

    It never calls ``log_likelihood``, ``stats`` or ``update``: parameters are sampled from their
    priors, each item's class ``y`` is a discrete site that NumPyro sums over, and every component
    observes its data given ``y``. A component's weight is ``handlers.scale``. An item of weight 0
    has its data masked. Other row weights are a power of the item's marginal density, which
    enumeration cannot express, nor does it scale items apart: there the sum over classes is
    written out, the same statements at each class.

    Args:
        model: components by name; the class prior is called ``"class_prior"``.
        data: encoded data; densified here, so keep it small.

    Raises:
        DataError: no class prior, or components of several numbers of classes; parts that are
            missing, unknown to the model, not of their component, or of another number of rows than
            the weights.

    Examples:
        >>> import jax
        >>> import numpy as np
        >>> from numpyro.handlers import seed, trace
        >>> import nbmodels
        >>> from nbmodels.papers import zeng2022
        >>> model = zeng2022.to_model(K=2, d=3)
        >>> data = zeng2022.to_data(model, np.array([0, 0, 1, 1]), np.eye(4, 3))
        >>> program = nbmodels.program(model, data)
        >>> sites = trace(seed(program, jax.random.key(0))).get_trace().values()
        >>> for site in sites:
        ...     if site["type"] == "sample":
        ...         print(site["name"], site["value"].shape, site["is_observed"])
        class_prior_probs (2,) False
        labels_transition (2, 2) False
        x_probs (2, 3) False
        y (4,) False
        labels (4,) True
        x (4, 3) True
    """
    check_components(model, data)
    weights = np.asarray(data.weights)
    whole = np.isin(weights, (0, 1)).all() and np.all(np.asarray(model[PRIOR].weight) == 1)
    if not data.powers and (whole or np.all(weights == 1)):
        return lambda: _enumerated(model, data)
    return marginal(model, data)


def sample_parameters(model: Model) -> dict[str, dict[str, Any]]:
    """Sites of all parameters, ``{component}_{parameter}``, sampled from their priors."""
    return {name: component.sites(name) for name, component in model.items()}


def prior_log_density(component: Component, values: dict[str, Array]) -> Float[Array, ""]:
    """Log-density of a component's prior at parameters, as its ``sites`` write it.

    With ``q`` in the place of the prior (``replace(component, prior=q)``) it is that of ``q``.

    Args:
        component: any component.
        values: parameters by name, from ``component.values``.
    """
    held = {f"_{part}": value for part, value in values.items()}
    with handlers.block(), handlers.substitute(data=held), handlers.trace() as trace:
        component.sites("")
    sampled = [site for site in trace.values() if site["type"] == "sample"]
    return sum((jnp.sum(s["fn"].log_prob(s["value"])) for s in sampled), jnp.zeros(()))


def _observe(model: Model, data: Data, values: dict[str, dict[str, Any]], y: Any) -> None:
    for name, component in model.items():
        if name == PRIOR or name not in data.parts:
            continue
        with handlers.scale(scale=power(model, name, data)):
            component.likelihood(name, values[name], y, data.parts[name])


def _enumerated(model: Model, data: Data) -> None:
    values = sample_parameters(model)
    with numpyro.plate("item", len(data.weights)):
        with handlers.scale(scale=model[PRIOR].weight):
            probs = class_prior(model).probs(values[PRIOR], data.parts[PRIOR])
            y = numpyro.sample("y", dist.Categorical(probs=probs), infer={"enumerate": "parallel"})
        # the class of an item of weight 0 sums to one by itself
        with handlers.mask(mask=data.weights > 0):
            _observe(model, data, values, y)


def item_table(model: Model, data: Data, values: dict[str, dict[str, Any]]) -> Float[Array, "n k"]:
    """``(N, K)`` log-density of each item with each class, from the components' own statements.

    The sum over classes is left to the caller: ``logsumexp`` over them is an item's marginal
    log-density, base measure included, ``softmax`` its class probabilities.

    Args:
        model: components by name.
        data: encoded data; densified here.
        values: parameters by component and name.
    """
    prior = class_prior(model).log_class_probs(values[PRIOR], data.parts[PRIOR])
    n_items = len(data.weights)

    def given(k: Array) -> Array:
        # one class for all items: a parameter is looked up once, and not by every item
        y = jnp.full((1,), k)
        with handlers.block(), handlers.trace() as trace, numpyro.plate("item", n_items):
            _observe(model, data, values, y)
        parts = [
            (1 if site["scale"] is None else site["scale"]) * site["fn"].log_prob(site["value"])
            for site in trace.values()
            if site["type"] == "sample"
        ]
        return power(model, PRIOR, data) * jnp.take(prior, k, -1) + sum(parts)

    return jax.vmap(given, out_axes=1)(jnp.arange(prior.shape[-1]))


def marginal(model: Model, data: Data, batch: int | None = None) -> Callable[[], None]:
    """:func:`program` with each item's sum over classes written out, for weights and minibatches.

    Args:
        model: components by name.
        data: encoded data; densified here.
        batch: number of items, drawn without replacement, that stand for all of them each time the
            program is run; their log-densities are scaled up by ``N / batch``.
    """
    whole = dense(data)
    return lambda: _weighted(model, whole, batch)


def dense(data: Any) -> Any:
    """Packed data with their sparse matrices written out, so that every leaf has a row an item."""

    def is_matrix(part: Any) -> bool:
        return hasattr(part, "to_dense")

    def written(part: Any) -> Any:
        return matrix(part.to_dense()) if is_matrix(part) else part

    return jax.tree.map(written, data, is_leaf=is_matrix)


def _weighted(model: Model, data: Data, batch: int | None = None) -> None:
    values = sample_parameters(model)
    if batch is None:
        numpyro.factor("marginal", _inside(model, data, values))
        return
    with numpyro.plate("items", len(data.weights), subsample_size=batch) as rows:
        part = jax.tree.map(lambda leaf: leaf[rows], data)
    with handlers.scale(scale=len(data.weights) / batch):
        numpyro.factor("marginal", _inside(model, part, values))


@jax.jit  # NumPyro begins outside of a compiled program: one kernel there, and not a hundred
def _inside(model: Model, data: Data, values: dict[str, dict[str, Any]]) -> Array:
    inside = jax.scipy.special.logsumexp(item_table(model, data, values), 1)
    return jnp.sum(data.weights * inside)


def log_density(model: Model, data: Data, values: dict[str, dict[str, Array]]) -> Float[Array, ""]:
    """NumPyro's log-density of parameters and data, the classes summed out.

    Args:
        model: components by name.
        data: encoded data; densified.
        values: parameters by component and name, as :func:`nbmodels.core.model.values` gives them.
    """
    flat = {f"{name}_{site}": v for name, part in values.items() for site, v in part.items()}
    # dimension -1 is the items' plate, so that enumeration starts to its left
    enumerated = funsor.enum(funsor.config_enumerate(program(model, data)), first_available_dim=-2)
    return funsor.log_density(enumerated, (), {}, flat)[0]
