"""Mixture model of components: log-likelihoods are summed, softmax gives responsibilities.

Everything here is a pure function of ``(model, q, data)``, so it may be put under ``jit``, ``vmap``
and ``grad``. ``model`` maps names to components and ``q`` the same names to conjugate posteriors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, Key

from inference import Coordinates, Total, add, negate, total
from inference.blocks import rows_of_block
from inference.driver import Step
from inference.products import Coordinate, Sparse
from inference.pytree import register_dataclass
from nbmodels.core.component import Component, LogLikelihood
from nbmodels.core.families import DrawKey, Rule, constrain, free
from nbmodels.core.roles import ClassPrior, LabelChannel

Model = Mapping[str, Component]

#: Name of the class prior in every model; the programs sample the true classes from it.
PRIOR = "class_prior"

Role = TypeVar("Role", bound=Component)


def with_role(model: Mapping[str, Component], role: type[Role]) -> dict[str, Role]:
    """The components of one role, by name, in the model's order.

    Args:
        model: components by name.
        role: :class:`~nbmodels.core.roles.Emission`, ``LabelChannel`` or ``ClassPrior``.
    """
    return {name: c for name, c in model.items() if isinstance(c, role)}


def class_prior(model: Mapping[str, Component]) -> ClassPrior:
    """The model's class prior.

    Raises:
        KeyError: the model has no class prior of the name ``"class_prior"``.
    """
    return with_role(model, ClassPrior)[PRIOR]


@register_dataclass
@dataclass(frozen=True)
class Data:
    """Everything known about ``N`` items.

    Attributes:
        parts: packed data of each component, by its name.
        weights: ``(N,)`` row weights; an item of weight 0 does not exist.
        powers: ``(N,)`` by component, power of its likelihood of each item, on top of the
            component's own ``weight``, such as below 1 for long documents; 1 where absent. Those of
            label channels temper the responsibilities that a fit returns and not its parameters;
            see :func:`untempered`.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import Transition
        >>> from nbmodels.emissions import Bernoulli
        >>> from nbmodels.papers import zeng2022
        >>> model = zeng2022.to_model(K=2, d=3)  # components "class_prior", "labels" and "x"
        >>> truth = np.repeat([0, 1], 20)
        >>> given = np.where(np.arange(40) < 3, 1, truth)  # three labels are wrong
        >>> x = np.stack([truth, truth, truth], 1)
        >>> parts = {"labels": Transition.pack(given, 2), "x": Bernoulli.pack(x)}
        >>> data = Data({"class_prior": None, **parts}, weights=jnp.ones(40))
        >>> np.flatnonzero(fit(model, data, key=jax.random.key(0)).resp.argmax(1) != given)
        array([0, 1, 2])
    """

    parts: dict[str, Any]
    weights: Float[Array, " n"]
    powers: dict[str, Array] = field(default_factory=dict)


def with_parts(data: Data, parts: Mapping[str, Any]) -> Data:
    """The same items with other parts, and the powers of those that there are.

    Args:
        data: encoded data.
        parts: packed data by component.
    """
    powers = {name: power for name, power in data.powers.items() if name in parts}
    return replace(data, parts=dict(parts), powers=powers)


def untempered(model: Model, data: Data) -> Data:
    """The data that parameters are learned from: without the powers of label channels.

    Labels to a power below 1 say less than the shares of the classes. Fitted to them, one class
    takes the items of the others, and annotators' matrices grow alike.

    Args:
        model: components by name.
        data: encoded data.
    """
    channels = with_role(model, LabelChannel)
    powers = {name: power for name, power in data.powers.items() if name not in channels}
    return data if len(powers) == len(data.powers) else replace(data, powers=powers)


def first_rows(data: Data, n_rows: int) -> Data:
    """The first rows, where none that follows counts; layouts of sparse matrices stay whole.

    Args:
        data: encoded data, padded by rows of weight 0.
        n_rows: number of rows to keep.
    """
    whole = len(data.weights)

    def cut(x: Any) -> Any:
        if _is_matrix(x):
            return x.first_rows(n_rows)
        return x[:n_rows] if np.shape(x)[:1] == (whole,) else x

    matrices = jax.tree.leaves(data.parts, is_leaf=_is_matrix)
    if n_rows >= whole or any(isinstance(part, Sparse) for part in matrices):
        return data
    return jax.tree.map(cut, data, is_leaf=_is_matrix)


def _is_matrix(part: Any) -> bool:
    return isinstance(part, Sparse | Coordinate)


class Posterior(NamedTuple):
    """What one pass over the items yields.

    Attributes:
        resp: ``(N, K)`` responsibilities P(true class | everything known about the item).
        log_likelihood: ``(N,)`` log-density of each item, less its base measure.
    """

    resp: Float[Array, "n k"]
    log_likelihood: Float[Array, " n"]


def likelihood_params(model: Model, q: Any, rule: Rule, key: DrawKey = None) -> dict[str, Any]:
    """What each likelihood reads of ``q``; under ``"draw"`` each component gets its own key."""
    if key is None:
        return {n: c.likelihood_params(q[n], c.read_by(rule)) for n, c in model.items()}
    keys = jax.random.split(key, len(model))
    return {
        name: c.likelihood_params(q[name], c.read_by(rule), k)
        for (name, c), k in zip(model.items(), keys, strict=True)
    }


def reported(rule: Rule) -> Rule:
    """The rule by which point estimates are read: posterior means in the place of expectations."""
    return "mean" if rule == "vb" else rule


def point(model: Model, q: Any, rule: Rule) -> dict[str, Any]:
    """Point estimates of ``q`` in the form that each likelihood reads."""
    return {n: c.likelihood_params(q[n], reported(c.read_by(rule))) for n, c in model.items()}


def power(model: Model, name: str, data: Data) -> Any:
    """Power of a component's likelihood: a number, or ``(N,)`` where it differs between items."""
    own = model[name].weight
    return own * data.powers[name] if name in data.powers else own


def log_likelihood(model: Model, likelihood_params: Mapping[str, Any], data: Data) -> LogLikelihood:
    """Weighted sum of the components' log-likelihoods, those without data left out; ``(N, K)``."""
    table, offset = jnp.zeros(()), jnp.zeros(data.weights.shape)
    for name, component in model.items():
        if name in data.parts:
            part = component.log_likelihood(likelihood_params[name], data.parts[name])
            own = power(model, name, data)
            table = table + jnp.reshape(own, (-1, 1)) * part.table
            offset = offset + own * part.offset
    return LogLikelihood(jnp.broadcast_to(table, (len(data.weights), table.shape[-1])), offset)


def posterior(model: Model, likelihood_params: Mapping[str, Any], data: Data) -> Posterior:
    """Responsibilities and log-likelihood of each item."""
    return _in_blocks(partial(_posterior, model, likelihood_params), data)


def _in_blocks(of: Callable[[Data], Posterior], data: Data) -> Posterior:
    """Of all items; tables of many classes stay in a core's cache."""
    n = len(data.weights)
    rows = n
    if _is_of_rows(data):
        rows = rows_of_block(n, jax.eval_shape(of, data).resp.shape[1])
    if rows == n:
        return of(data)
    blocks = jax.tree.map(lambda x: x.reshape(-1, rows, *x.shape[1:]), data)
    resp, inside = lax.map(of, blocks)
    return Posterior(resp.reshape(n, -1), inside.reshape(n))


def _posterior(model: Model, likelihood_params: Mapping[str, Any], data: Data) -> Posterior:
    table, offset = log_likelihood(model, likelihood_params, data)
    resp, inside = normalised(table)
    return Posterior(resp, inside + offset)


def _weighted(model: Model, likelihood_params: Mapping[str, Any], data: Data) -> Posterior:
    """As :func:`posterior`, responsibilities times row weights."""
    resp, inside = _posterior(model, likelihood_params, data)
    return Posterior(resp * data.weights[:, None], inside)


def _is_of_rows(data: Data) -> bool:
    """Whether every array has a row an item, and no part a layout of its own."""
    if any(_is_matrix(part) for part in jax.tree.leaves(data.parts, is_leaf=_is_matrix)):
        return False
    return all(np.shape(leaf)[:1] == data.weights.shape for leaf in jax.tree.leaves(data))


def normalised(table: Float[Array, "n k"]) -> tuple[Float[Array, "n k"], Float[Array, " n"]]:
    """Softmax of each row and the logarithm of its normaliser, by one exponential of each entry."""
    largest = jax.lax.stop_gradient(jnp.max(table, 1))
    parts = jnp.exp(table - largest[:, None])
    whole = jnp.sum(parts, 1)
    return parts / whole[:, None], largest + jnp.log(whole)


def base_measure(model: Model, data: Data) -> Float[Array, " n"]:
    """``(N,)`` terms of the log-likelihood without parameters."""
    out = jnp.zeros(data.weights.shape)
    for name, component in model.items():
        if name in data.parts:
            out = out + power(model, name, data) * component.base_measure(data.parts[name])
    return out


def stats(
    model: Model,
    likelihood_params: Mapping[str, Any],
    resp: Float[Array, "n k"],
    data: Data,
    key: DrawKey = None,
) -> dict[str, Any]:
    """Weighted statistics of each component, additive over items."""
    return _stats(model, likelihood_params, resp * data.weights[:, None], data, key)


def _stats(
    model: Model,
    likelihood_params: Mapping[str, Any],
    weighted: Float[Array, "n k"],
    data: Data,
    key: DrawKey = None,
) -> dict[str, Any]:
    """Of responsibilities times row weights."""
    keys = [None] * len(model) if key is None else list(jax.random.split(key, len(model)))
    out = {}
    for (name, component), k in zip(model.items(), keys, strict=True):
        raw = component.stats(
            likelihood_params[name], _powered(weighted, name, data), data.parts[name], k
        )
        out[name] = jax.tree.map(lambda s, w=component.weight: w * s, raw)
    return out


def update(model: Model, stats: Mapping[str, Any], rule: Rule) -> dict[str, Any]:
    """Conjugate posteriors of all components."""
    return {name: c.update(stats[name], c.read_by(rule)) for name, c in model.items()}


def penalty(model: Model, q: Any, rule: Rule) -> Total:
    """What the objective subtracts (KL, -log prior or nothing), less :func:`constant`."""
    return add(*(total(c.penalty(q[name], c.read_by(rule))) for name, c in model.items()))


def constant(model: Model, data: Data, rule: Rule) -> Total:
    """Part of the objective that no iteration changes: base measures and the priors' constants.

    It can be larger than everything else together, and would only cost digits inside the loop.
    """
    priors = add(*(total(c.constant(c.read_by(rule))) for c in model.values()))
    return add(total(data.weights * base_measure(model, data)), negate(priors))


def objective(model: Model, q: Any, data: Data, rule: Rule) -> Float[Array, ""]:
    """Log-likelihood (ML), log-posterior density (MAP) or bound (VB), all constants kept."""
    lik = posterior(model, likelihood_params(model, q, rule), data).log_likelihood
    varying = add(total(data.weights * lik), negate(penalty(model, q, rule)))
    return add(varying, constant(model, data, rule)).value


def _step(q: Any, context: tuple[Model, Data], rule: Rule) -> tuple[Any, Total]:
    model, data = context
    read = likelihood_params(model, q, rule)
    weighted, lik = _in_blocks(partial(_weighted, model, read), data)
    value = add(total(data.weights * lik), negate(penalty(model, q, rule)))
    return update(model, _stats(model, read, weighted, data), rule), value


@cache
def step(rule: Rule) -> Step:
    """The fixed-point map ``(q, (model, data)) -> (next q, objective at q)`` of EM or CAVI.

    The objective lacks :func:`constant`. The same function is returned for the same rule, so that
    it is compiled once, and has a name in other processes.
    """
    return partial(_step, rule=rule)


@cache
def coordinates(rule: Rule) -> Coordinates:
    """Where the driver extrapolates: coordinates of each family in which all points are valid."""
    return Coordinates(partial(_to_free, rule=rule), partial(_from_free, rule=rule))


def _to_free(q: Any, context: tuple[Model, Data], rule: Rule) -> Any:
    return {name: free(q[name], c.read_by(rule)) for name, c in context[0].items()}


def _from_free(moved: Any, q: Any, context: tuple[Model, Data], rule: Rule) -> Any:
    return {
        name: constrain(moved[name], q[name], c.read_by(rule)) for name, c in context[0].items()
    }


def initial_responsibilities(model: Model, data: Data) -> Float[Array, "n k"] | None:
    """``(N, K)`` responsibilities from the labels alone; None without a channel of labels.

    Of parts on the host they are NumPy's.
    """
    guesses = [
        guess
        for name, component in with_role(model, LabelChannel).items()
        if name in data.parts
        and (guess := component.initial_responsibilities(data.parts[name])) is not None
    ]
    if not guesses:
        return None
    summed: Any = sum(guesses[1:], guesses[0])
    size = summed.sum(1, keepdims=True)
    shares: Array = summed / summed.__array_namespace__().where(size > 0, size, 1)
    return shares


def start(model: Model, resp: Float[Array, "n k"], data: Data, rule: Rule) -> dict[str, Any]:
    """``q`` of all components from initial responsibilities."""
    weighted = resp * data.weights[:, None]
    return {
        name: c.start(_powered(weighted, name, data), data.parts[name], c.read_by(rule))
        for name, c in model.items()
    }


def _powered(resp: Float[Array, "n k"], name: str, data: Data) -> Array:
    return resp * data.powers[name][:, None] if name in data.powers else resp


def values(model: Model, likelihood_params: Mapping[str, Any]) -> dict[str, dict[str, Array]]:
    """Parameters by component and name, as the NumPyro program samples them."""
    return {name: c.values(likelihood_params[name]) for name, c in model.items()}


def transitions(
    model: Model, values: Mapping[str, dict[str, Any]]
) -> dict[str, Float[Array, "k observed"]]:
    """``(K, observed)`` P(observed | true) of each channel of noisy labels, by its name."""
    channels = with_role(model, LabelChannel)
    out = {name: c.transition(values[name]) for name, c in channels.items()}
    return {name: t for name, t in out.items() if t is not None}


def at_fixed_priors(model: Model) -> dict[str, Component]:
    """The model of a fit while learned priors are held: see ``Component.at_fixed_prior``."""
    return {name: c.at_fixed_prior() for name, c in model.items()}


def relabel(model: Model, q: Any, order: Int[Array, " k"]) -> dict[str, Any]:
    """``q`` with true class ``order[k]`` renamed ``k``."""
    return {name: c.relabel(q[name], order) for name, c in model.items()}


def simulate(
    model: Model, key: Key[Array, ""], n_items: int
) -> tuple[dict[str, Any], Int[Array, " n"], dict]:
    """Draw parameters from the prior, classes and data.

    Returns:
        data by component name as its ``pack`` takes it, the ``(N,)`` true classes, the parameters.
    """
    first, second, third = jax.random.split(key, 3)
    read = likelihood_params(model, {name: c.prior for name, c in model.items()}, "draw", first)
    prior: Any = class_prior(model)
    about = prior.covariates(jax.random.fold_in(second, 1), n_items)
    known = None if about is None else prior.pack(about)
    shares = prior.log_likelihood(read[PRIOR], known).table
    y = jax.random.categorical(second, shares, shape=(n_items,))
    drawn = values(model, read)
    others = [name for name in model if name != PRIOR]
    keys = jax.random.split(third, max(len(others), 1))
    parts = {
        name: model[name].simulate(k, drawn[name], y) for name, k in zip(others, keys, strict=False)
    }
    return parts if about is None else {PRIOR: about, **parts}, y, drawn
