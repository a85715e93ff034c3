"""Collapsed updates for a user-item graph: an item's own vote is left out of its users' counts.

The published updates (Maystre 2021, Algorithm 1) let an item vote for itself: it is counted among
its users' interactions, and what they are then taken to like confirms the item. A user of a single
item echoes that item's label and nothing else, though such a user says nothing: with the
proportions integrated out, a lone interaction is as likely under every class. Here the proportions
are integrated out, and each item sees its users' counts without itself, to zeroth order (CVB0;
Teh, Newman and Welling 2007; Asuncion et al. 2009)::

    log-evidence of item j for class k  =  sum over users i of j:  log(alpha_ik + n_ik - r_jk)

There is no bound that these updates climb; they are run until the responsibilities settle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from scipy import sparse

from inference import Status
from nbmodels import model as models
from nbmodels.families import Rule
from nbmodels.fit import Fit, complain, evaluate
from nbmodels.identify import confused_classes
from nbmodels.model import Data, Model

#: Updates before each is averaged with the last.
_UNDAMPED = 20

_start = jax.jit(models.start, static_argnames="rule")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Edges:
    """A graph as a list of its edges.

    Attributes:
        item: ``(E,)`` item of each pair with an edge, rising.
        user: ``(E,)`` its user.
        count: ``(E,)`` its number of edges.
    """

    item: Array
    user: Array
    count: Array

    @classmethod
    def of(cls, edges: Any) -> Edges:
        """Args: edges: ``(N, users)`` numbers of edges, sparse."""
        rows = sparse.csr_array(edges)
        item = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        floating = jnp.zeros(()).dtype
        return cls(
            jnp.asarray(item, jnp.int32),
            jnp.asarray(rows.indices, jnp.int32),
            jnp.asarray(rows.data, floating),
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


def without_self(
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
    votes = edges.count[:, None] * jnp.log(rest)
    return jax.ops.segment_sum(votes, edges.item, n_items, indices_are_sorted=True)


@partial(jax.jit, static_argnames=("name", "rule", "max_iter"))
def settle(
    model: Model,
    data: Data,
    params: Any,
    resp: Array,
    edges: Edges,
    *,
    name: str,
    rule: Rule,
    max_iter: int = 200,
    tol: float = 1e-4,
) -> Settled:
    """Alternate collapsed updates of the responsibilities and plain ones of all other components.

    Args:
        model: components by name.
        data: encoded data.
        params: conjugate posterior of each component to begin from.
        resp: ``(N, K)`` responsibilities to begin from.
        edges: the graph that ``data.parts[name]`` holds.
        name: of the :class:`nbmodels.emissions.Users` component.
        rule: how the other components are read.
        max_iter: largest number of updates.
        tol: largest change of a responsibility at which they have settled.
    """
    users = model[name]
    others: Mapping[str, Any] = {n: c for n, c in model.items() if n != name}
    rest = Data({n: part for n, part in data.parts.items() if n != name}, data.weights)

    def count(params: Any, resp: Array) -> Any:
        read = models.natural(model, params, rule)
        return models.update(model, models.stats(model, read, resp, data), rule)

    def body(state: tuple[Any, Array, Array, Array]) -> tuple[Any, Array, Array, Array]:
        q, before, n_iter, _ = state
        table = models.evidence(others, models.natural(others, q, rule), rest).table
        cast = before * data.weights[:, None]
        votes = without_self(q[name].concentration, cast, edges, users.weight, len(cast))
        after = jax.nn.softmax(table + users.weight * votes)
        # two items that hang on each other may swap for ever: meet halfway, later on
        after = jnp.where(n_iter < _UNDAMPED, after, (after + before) / 2)
        return count(q, after), after, n_iter + 1, jnp.max(jnp.abs(after - before))

    def moving(state: tuple[Any, Array, Array, Array]) -> Array:
        _, _, n_iter, change = state
        return (n_iter < max_iter) & (change > tol)

    zero, far = jnp.zeros((), jnp.int32), jnp.asarray(jnp.inf, resp.dtype)
    q, resp, n_iter, change = lax.while_loop(moving, body, (count(params, resp), resp, zero, far))
    return Settled(resp, q, n_iter, change)


def fit_collapsed(
    model: Model,
    data: Data,
    *,
    edges: Edges,
    name: str,
    rule: Rule = "vb",
    max_iter: int = 200,
    tol: float = 1e-4,
    names: Any = None,
    start: Any = None,
) -> Fit:
    """Fit from the host, from the label-anchored start.

    Args:
        model: components by name.
        data: encoded data with labels.
        edges: the graph that ``data.parts[name]`` holds.
        name: of the users' component.
        rule: how the other components are read.
        max_iter: largest number of updates.
        tol: largest change of a responsibility at which they have settled.
        names: ``(K,)`` names of the classes, for warnings.
        start: parameters of components with a private latent to begin from.

    Returns:
        A fit whose objective is the evidence bound at the collapsed responsibilities' parameters,
        lower than what plain updates reach, and whose trace holds nothing else.

    Warns:
        IdentifiabilityWarning: the noise matrix is not diagonally dominant.
        NotConvergedWarning: the updates did not settle.
    """
    resp = anchored_guess(model, data)
    params = _start(model, resp, data, rule) if start is None else start
    found = settle(
        model, data, params, resp, edges, name=name, rule=rule, max_iter=max_iter, tol=tol
    )
    params = dict(found.params)
    fitted = evaluate(model, params, data, rule=rule)
    read = models.natural(model, params, rule)
    transitions = models.transitions(model, models.values(model, read)).values()
    pairs = [p for t in transitions for p in confused_classes(np.asarray(t))]
    status = Status.CONVERGED if float(found.change) <= tol else Status.LIMIT_REACHED
    complain(tuple(pairs), names, status)
    return replace(
        fitted,
        resp=np.asarray(found.resp),
        n_iter=int(found.n_iter),
        n_evaluations=int(found.n_iter),
        status=status,
        confused=tuple(pairs),
    )


def anchored_guess(model: Model, data: Data) -> Array:
    """``(N, K)`` first guess: the given labels, even where there is none."""
    guess = models.anchor(model, data)
    if guess is None:
        raise ValueError("data: no labels to start from")
    return jnp.where(jnp.sum(guess, 1, keepdims=True) > 0, guess, 1 / guess.shape[1])
