"""Collapsed updates for a user-item graph: an item's own vote is left out of its users' counts.

The published updates (Maystre 2021, Algorithm 1) let an item vote for itself: it is counted among
its users' interactions, and their estimated proportions then confirm the item. A user of a single
item repeats that item's label and nothing else, though such a user is no evidence: with the
proportions integrated out, a lone interaction is as likely under every class. Here the proportions
are integrated out, and each item sees its users' counts without itself, to zeroth order (CVB0;
Teh, Newman and Welling 2007; Asuncion et al. 2009)::

    log-evidence of item j for class k  =  sum over users i of j:  log(alpha_ik + n_ik - r_jk)

There is no bound that these updates climb; they are run until the responsibilities settle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from scipy import sparse

from inference import Status
from inference.arrays import floating, on_device
from inference.compilation import host_jit
from inference.pytree import register_dataclass
from nbmodels.class_priors import FixedProportions
from nbmodels.core import model as models
from nbmodels.core.families import Rule
from nbmodels.core.model import Data, Model
from nbmodels.fitting.em import Fit, evaluate
from nbmodels.fitting.identifiability import confused_classes
from nbmodels.fitting.scores import first_responsibilities

#: Updates before each is averaged with the last.
_UNDAMPED = 20

#: Updates between two looks from the host.
_CHUNK = 10

#: Pseudo-items of a class that no label names, at least.
_LEAST = 1e-3


@register_dataclass
@dataclass(frozen=True)
class Edges:
    """A graph as a list of its edges.

    Attributes:
        item: ``(E,)`` item of each pair with an edge, rising.
        user: ``(E,)`` its user.
        count: ``(E,)`` its number of edges.
        users: ``(E,)`` number of exchangeable users that it stands for.
    """

    item: Array
    user: Array
    count: Array
    users: Array

    @classmethod
    def of(cls, edges: Any, multiplicity: Any = 1.0) -> Edges:
        """A graph from its matrix.

        Args:
            edges: ``(N, users)`` numbers of edges, sparse.
            multiplicity: ``(users,)`` as in :class:`nbmodels.emissions.Users`.
        """
        rows = sparse.csr_array(edges)
        item = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        return cls(
            on_device(item, jnp.int32),
            on_device(rows.indices, jnp.int32),
            on_device(rows.data, float),
            on_device(np.broadcast_to(multiplicity, rows.shape[1])[rows.indices], float),
        )


class Settled(NamedTuple):
    """Where the updates came to rest.

    Attributes:
        resp: ``(N, K)`` responsibilities.
        params: conjugate posterior of each component at them.
        n_iter: number of updates.
        change: largest change of a responsibility in the last of them.
    """

    resp: Array
    params: Any
    n_iter: Array
    change: Array


def log_likelihood_without_self(
    concentration: Array, resp: Array, edges: Edges, weight: Any, n_items: int
) -> Array:
    """``(N, K)`` evidence of the users, each item's own vote left out of their counts.

    Args:
        concentration: ``(users, K)`` prior plus weighted counts.
        resp: ``(N, K)`` responsibilities times row weights, as they stand in the counts.
        edges: the graph.
        weight: power of the edges.
        n_items: N.
    """
    own = weight * edges.count[:, None] * resp[edges.item]
    # what is left of a sum after one of its terms is taken away may round below zero
    rest = jnp.maximum(concentration[edges.user] - own, jnp.finfo(resp.dtype).tiny)
    votes = (edges.count * edges.users)[:, None] * jnp.log(rest)
    return jax.ops.segment_sum(votes, edges.item, n_items, indices_are_sorted=True)


@partial(host_jit, static_argnames="rule")
def settle(
    model: Model,
    data: Data,
    state: Settled,
    edges: Mapping[str, Edges],
    *,
    rule: Rule,
    until: Any,
    tol: Any,
) -> Settled:
    """Alternate collapsed updates of the responsibilities and plain ones of all other components.

    Args:
        model: components by name.
        data: encoded data.
        state: to go on from; its parameters are those that its responsibilities lead to.
        edges: by name of a :class:`nbmodels.emissions.Users` component, the graph that its part of
            the data holds.
        rule: how the other components are read.
        until: largest number of updates in all.
        tol: largest change of a responsibility at which they have settled.
    """
    others = {n: c for n, c in model.items() if n not in edges}
    rest = models.with_parts(data, {n: p for n, p in data.parts.items() if n not in edges})

    def body(s: Settled) -> Settled:
        table = models.log_likelihood(
            others, models.likelihood_params(others, s.params, rule), rest
        ).table
        cast = s.resp * data.weights[:, None]
        for name, graph in edges.items():
            power, counts = model[name].weight, s.params[name].concentration
            table = table + power * log_likelihood_without_self(
                counts, cast, graph, power, len(cast)
            )
        after = jax.nn.softmax(table)
        # two items that hang on each other may swap for ever: meet halfway, later on
        after = jnp.where(s.n_iter < _UNDAMPED, after, (after + s.resp) / 2)
        change = jnp.max(jnp.abs(after - s.resp))
        return Settled(after, _counted(model, data, s.params, after, rule), s.n_iter + 1, change)

    def moving(s: Settled) -> Array:
        return (s.n_iter < until) & (s.change > tol)

    return lax.while_loop(moving, body, state)


def _counted(model: Model, data: Data, params: Any, resp: Array, rule: Rule) -> Any:
    read = models.likelihood_params(model, params, rule)
    return models.update(model, models.stats(model, read, resp, data), rule)


@partial(host_jit, static_argnames="rule")
def _begin(model: Model, data: Data, params: Any, rule: Rule) -> Settled:
    resp = initial_guess(model, data)
    if params is None:
        params = models.start(model, resp, data, rule)
    zero, far = jnp.zeros((), jnp.int32), jnp.asarray(jnp.inf, resp.dtype)
    return Settled(resp, _counted(model, data, params, resp, rule), zero, far)


def fit_collapsed(
    model: Model,
    data: Data,
    *,
    edges: Mapping[str, Edges],
    rule: Rule = "vb",
    max_iter: int = 200,
    tol: float = 1e-4,
    report: Callable[[int, float], None] | None = None,
    start: Any = None,
) -> Fit:
    """Fit by collapsed updates from the host, begun at the labels.

    After Ctrl-C the result is what was reached, with the status ``INTERRUPTED``.

    Args:
        model: components by name.
        data: encoded data with labels.
        edges: as for :func:`settle`.
        rule: how the other components are read.
        max_iter: largest number of updates.
        tol: largest change of a responsibility at which they have settled.
        report: called with (updates, largest change of a responsibility) now and then.
        start: parameters of components with a private latent to begin from.

    Returns:
        A fit whose objective is the evidence bound at the collapsed responsibilities' parameters,
        lower than what plain updates reach, and whose trace holds nothing else.
    """
    found = _begin(model, data, start, rule)
    status = Status.RUNNING
    try:
        while status == Status.RUNNING:
            until = min(int(found.n_iter) + _CHUNK, max_iter)
            found = settle(model, data, found, edges, rule=rule, until=until, tol=tol)
            if report is not None:
                report(int(found.n_iter), float(found.change))
            if float(found.change) <= tol:
                status = Status.CONVERGED
            elif int(found.n_iter) >= max_iter:
                status = Status.LIMIT_REACHED
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    fitted = evaluate(model, dict(found.params), data, rule=rule)
    values = models.values(model, models.likelihood_params(model, dict(found.params), rule))
    transitions = models.transitions(model, values).values()
    pairs = tuple(p for t in transitions for p in confused_classes(np.asarray(t)))
    return replace(
        fitted,
        resp=np.asarray(found.resp),
        n_iter=int(found.n_iter),
        n_evaluations=int(found.n_iter),
        status=status,
        confused=pairs,
    )


def initial_guess(model: Model, data: Data) -> Array:
    """``(N, K)`` first guess: the given labels, even where there is none."""
    guess = models.initial_responsibilities(model, data)
    if guess is None:
        raise ValueError("data: no labels to start from")
    return jnp.where(jnp.sum(guess, 1, keepdims=True) > 0, guess, 1 / guess.shape[1])


def given_shares(model: Model, data: Data, alpha: float) -> FixedProportions:
    """The class shares of the given labels, held fixed where a graph has a weight.

    A graph's factors are no distribution of its edges: they are largest where all items are of one
    class. Shares learned beside them run off there, and take the noise matrix with them.

    Args:
        model: components by name.
        data: encoded data with labels.
        alpha: pseudo-items of each class.
    """
    guess = first_responsibilities(model, data)
    if guess is None:
        raise ValueError("data: no labels to count")
    # a class may be missing among the labels, but it is possible
    counts = np.maximum(np.asarray(data.weights) @ np.asarray(guess) + alpha, _LEAST)
    return FixedProportions(prior=on_device(counts / counts.sum(), floating()))
