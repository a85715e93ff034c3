"""Spectral initialisation of EM: third-order moments, for any number of classes.

Three views of an item that are independent given its class have the cross moments ``sum_k pi_k a_k
b_k^T`` and ``sum_k pi_k a_k o b_k o c_k``, and those determine ``pi`` and every ``c_k`` up to the
classes' names (Anandkumar et al. 2014, "Tensor decompositions for learning latent variable models",
theorem 3.6 and algorithm 1; as a start for EM, Zhang et al. 2014, "Spectral methods meet EM"). Two
views are groups of features. The third is the labels, where every class has some, which makes this
the closed form of Denis 2006 for more than two classes; else it is a third group of features.

Exact for the moments of the model, whatever the attributes' sizes. Words of one document repel each
other a little, so with documents of different lengths, or words beside other features in one
group, it is exact only as far as lengths are large.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key
from scipy.optimize import linear_sum_assignment

from inference.pytree import register_dataclass
from nbmodels.core import model as models
from nbmodels.core.families import Rule, static
from nbmodels.core.model import Data, Model, with_role
from nbmodels.core.roles import LEAST_SHARE, Emission, MomentView
from nbmodels.errors import DataError

_OVERSAMPLING = 8
_POWER_STEPS = 40


class Mixture(NamedTuple):
    """Estimates from the moments.

    Attributes:
        shares: ``(K,)`` P(class).
        means: ``(d, K)`` E[feature | class].
        third: ``(m, K)`` E[third view | class].
    """

    shares: Float[Array, " k"]
    means: Float[Array, "d k"]
    third: Float[Array, "m k"]


@register_dataclass
@dataclass(frozen=True)
class Features:
    """Columns of several emissions side by side, as they are linear in the emissions' parameters.

    Attributes:
        parts: ``(matrix, scale)`` of each emission, its rows to be multiplied by ``scale``.
        widths: number of columns of each.
    """

    parts: tuple[tuple[Any, Array], ...]
    widths: tuple[int, ...] = static()

    def times(self, table: Float[Array, "d m"]) -> Float[Array, "n m"]:
        """``(N, d) x (d, m) -> (N, m)``."""
        tables = jnp.split(table, np.cumsum(self.widths)[:-1])
        products = [
            scale[:, None] * matrix.times(part)
            for (matrix, scale), part in zip(self.parts, tables, strict=True)
        ]
        return sum(products[1:], products[0])

    def transpose_times(self, rows: Float[Array, "n m"]) -> Float[Array, "d m"]:
        """``(N, d).T x (N, m) -> (d, m)``."""
        return jnp.concatenate(
            [matrix.transpose_times(scale[:, None] * rows) for matrix, scale in self.parts]
        )


def _symmetric(tensor: Array) -> Array:
    """The mean over all orders of the axes."""
    orders = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    return sum((jnp.transpose(tensor, order) for order in orders), jnp.zeros_like(tensor)) / 6


def _along(tensor: Array, v: Array) -> Array:
    """``T(I, v, v)``."""
    return tensor @ v @ v


def orthogonal_decomposition(
    tensor: Float[Array, "k k k"], key: Key[Array, ""]
) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
    """Tensor power method with deflation: ``T = sum_k w_k v_k o v_k o v_k``, ``v`` orthonormal.

    Args:
        tensor: ``(K, K, K)``, symmetric.
        key: of the random starts, ten a component.

    Returns:
        ``(K,)`` weights and ``(K, K)`` vectors, one a row.
    """
    K = tensor.shape[0]

    def polish(left: Array, v: Array) -> Array:
        def once(_: int, v: Array) -> Array:
            moved = _along(left, v)
            size = jnp.linalg.norm(moved)
            return jnp.where(size > 0, moved / jnp.where(size > 0, size, 1), v)

        return jax.lax.fori_loop(0, _POWER_STEPS, once, v)

    def one(left: Array, key: Array) -> tuple[Array, tuple[Array, Array]]:
        begin = jax.random.normal(key, (10 * K, K), left.dtype)
        begin = begin / jnp.linalg.norm(begin, axis=1, keepdims=True)
        found = jax.vmap(polish, (None, 0))(left, begin)
        weights = jax.vmap(lambda v: v @ _along(left, v))(found)
        v = polish(left, found[jnp.argmax(weights)])
        weight = v @ _along(left, v)
        return left - weight * jnp.einsum("i,j,k->ijk", v, v, v), (weight, v)

    return jax.lax.scan(one, tensor, jax.random.split(key, K))[1]


def _basis(x: Features, weights: Array, inside: Array, key: Array, K: int) -> Array:
    """``(d, K)`` directions of a group's features that covary most with the other groups."""
    outside = 1 - inside
    width = min(K + _OVERSAMPLING, len(inside))
    begin = jax.random.normal(key, (len(inside), width), weights.dtype)

    def across(table: Array, to: Array) -> Array:
        other = (1 - to)[:, None] * table
        return to[:, None] * x.transpose_times(weights[:, None] * x.times(other))

    def once(_: int, table: Array) -> Array:
        other = jnp.linalg.qr(across(table, outside))[0]
        return jnp.linalg.qr(across(other, inside))[0]

    table = jax.lax.fori_loop(0, 5, once, jnp.linalg.qr(begin)[0])
    # columns beyond the group's own are arbitrary, and no part of it
    table = inside[:, None] * table
    turn = jnp.linalg.svd(across(table, outside), full_matrices=False)[2]
    return table @ turn[:K].T


@partial(jax.jit, static_argnames="K")
def decompose(
    x: Features,
    weights: Float[Array, " n"],
    group: Int[Array, " d"],
    labels: Float[Array, "n k"] | None,
    key: Key[Array, ""],
    K: int,
) -> Mixture:
    """Shares and means of ``K`` classes from third-order moments; names are arbitrary.

    Args:
        x: ``(N, d)`` features, linear in the parameters.
        weights: ``(N,)`` row weights.
        group: ``(d,)`` the group of each feature, 0 and 1, and 2 where there are no labels.
        labels: ``(N, K)`` shares of each label given to an item, rows of zeros without one; None
            to use the third group of features instead.
        key: of the power method's starts.
        K: number of classes.
    """
    if labels is not None:
        weights = weights * (jnp.sum(labels, 1) > 0)
    weights = weights / jnp.sum(weights)
    w = weights[:, None]
    inside = [(group == g).astype(weights.dtype) for g in range(3)]
    *keys, last = jax.random.split(key, 4)
    if labels is not None:
        # the labels' means span what the classes' means span
        spanned = x.transpose_times(w * labels)
        bases = [jnp.linalg.qr(inside[g][:, None] * spanned)[0] for g in (0, 1)]
        c = labels
    else:
        bases = [_basis(x, weights, inside[g], keys[g], K) for g in range(3)]
        c = x.times(bases[2])
    a, b = x.times(bases[0]), x.times(bases[1])

    # both turned into views whose mean given the class is that of c
    between = jnp.linalg.pinv(a.T @ (w * b))
    a_as_c = a @ ((c.T @ (w * b)) @ between).T
    b_as_c = b @ ((c.T @ (w * a)) @ between.T).T
    second = a_as_c.T @ (w * b_as_c)
    third = _symmetric(jnp.einsum("n,ni,nj,nk->ijk", weights, a_as_c, b_as_c, c))
    values, vectors = jnp.linalg.eigh((second + second.T) / 2)
    root = jnp.sqrt(jnp.maximum(values, 1e-6 * values[-1]))
    whiten = vectors / root
    tensor = jnp.einsum("abc,ai,bj,ck->ijk", third, whiten, whiten, whiten)
    found, directions = orthogonal_decomposition(tensor, last)
    found = jnp.maximum(found, 1e-3 * jnp.max(found))
    shares = 1 / jnp.square(found)
    shares = shares / jnp.sum(shares)
    of_c = (vectors * root) @ (directions * found[:, None]).T
    # with words, moments of different orders have scales of their own; first moments set that right
    mean = c.T @ weights
    fitted = of_c @ shares
    of_c = of_c * (mean @ fitted) / (fitted @ fitted)

    # items' signed memberships, right on average given the class, unmix all features outside c
    def unmixed(view: Array, of_view: Array) -> Array:
        signed = view @ jnp.linalg.pinv(of_view).T
        return x.transpose_times(w * signed) / shares

    means = unmixed(c, of_c)
    if labels is None:
        of_a = (a.T @ (w * c)) @ jnp.linalg.pinv(of_c).T / shares
        means = jnp.where((group == 2)[:, None], unmixed(a, of_a), means)
    return Mixture(shares, means, of_c)


# As a start of EM ---------------------------------------------------------------------------------


def _views(model: Model, data: Data) -> dict[str, MomentView]:
    """Views of the discrete emissions; sorted by name, the order that ``jit`` gives a model."""
    views = {
        name: emission.moment_view(data.parts[name])
        for name, emission in sorted(with_role(model, Emission).items())
        if name in data.parts
    }
    return {name: view for name, view in views.items() if view is not None}


def _split(
    widths: np.ndarray, summing: np.ndarray, key: Array, n_groups: int, K: int
) -> np.ndarray:
    """Group of each unit of columns, drawn so that the groups are about equally wide.

    Args:
        widths: free probabilities of each unit.
        summing: whether a unit's columns sum to one, a direction more for its group.
        key: of the draw.
        n_groups: 2 or 3.
        K: number of classes, which no group may be narrower than.
    """
    order = np.asarray(jax.random.permutation(key, len(widths)))
    room, group = np.zeros(n_groups), np.zeros(len(widths), int)
    for unit in order[np.argsort(-widths[order], kind="stable")]:
        group[unit] = np.argmin(room)
        room[group[unit]] += widths[unit]
    room += [np.any(summing[group == g]) for g in range(n_groups)]
    if room.min() < K:
        raise DataError(
            f"init: 'moments' needs {n_groups} groups of discrete features for {K} classes, each "
            f"with {K - 1} or more free probabilities ({K} without symbolic ones); X has "
            f"{len(widths)} discrete feature(s) with {widths.sum():.0f} in all"
        )
    return group


@partial(jax.jit, static_argnames="labelled")
def _posterior(
    model: Model, data: Data, x: Features, found: Mixture, votes: Array | None, labelled: bool
) -> Array:
    """``(N, K)`` P(class | discrete features, labels) under the mixture."""
    pooled = x.transpose_times(data.weights[:, None]) / jnp.sum(data.weights)
    starts, views = np.cumsum(x.widths)[:-1], _views(model, data)
    pieces = zip(views, jnp.split(found.means, starts), jnp.split(pooled, starts), strict=True)
    read = {n: views[n].likelihood_params(means, every, data.weights) for n, means, every in pieces}
    known = Data({name: data.parts[name] for name in views}, data.weights)
    seen = models.log_likelihood({name: model[name] for name in views}, read, known)
    table = seen.table + jnp.log(found.shares)
    if labelled:
        assert votes is not None
        # no label is ruled out by an estimate of zero
        of_votes = votes @ found.third
        table = table + jnp.log(jnp.where(of_votes > 0, of_votes, LEAST_SHARE / len(found.shares)))
    return jax.nn.softmax(table, 1)


@partial(jax.jit, static_argnames="rule")
def _update(model: Model, resp: Array, data: Data, rule: Rule) -> Any:
    read = models.likelihood_params(model, {name: c.prior for name, c in model.items()}, "vb")
    return models.update(model, models.stats(model, read, resp, data), rule)


def start(model: Model, data: Data, key: Array, rule: Rule, n_classes: int) -> Any:
    """Parameters of all components to begin a fit from: third-order moments, then one EM step.

    Only discrete features enter the moments; the step gives all other components theirs. Classes
    that have labels get their names from them.

    Args:
        model: components by name.
        data: encoded data.
        key: of the groups of features and of the power method.
        rule: of the fit to come.
        n_classes: K.

    Raises:
        DataError: too few discrete features for so many classes.
    """
    views = _views(model, data).values()
    votes = models.initial_responsibilities(model, data)
    labelled = votes is not None and bool((data.weights @ votes > 0).all())

    units, widths, summing = np.zeros(0, int), np.zeros(0), np.zeros(0, bool)
    for view in views:
        units = np.concatenate([units, view.unit + len(widths)])
        # the last of an attribute's probabilities follows from the others
        own = np.bincount(view.unit) - view.sums_to_one
        widths = np.concatenate([widths, own])
        summing = np.concatenate([summing, np.full(len(own), view.sums_to_one)])
    first, second = jax.random.split(key)
    group = _split(widths, summing, first, 2 if labelled else 3, n_classes)[units]

    x = Features(tuple((v.matrix, v.scale) for v in views), tuple(len(v.unit) for v in views))
    third = votes if labelled else None
    found = decompose(x, data.weights, jnp.asarray(group), third, second, n_classes)
    if votes is not None:
        if labelled:
            together = found.third * found.shares
        else:
            resp = _posterior(model, data, x, found, votes, labelled)
            together = (data.weights[:, None] * votes).T @ resp
        # names under which most labels are right
        order = linear_sum_assignment(-np.asarray(together))[1]
        found = Mixture(found.shares[order], found.means[:, order], found.third[:, order])
    return _update(model, _posterior(model, data, x, found, votes, labelled), data, rule)
