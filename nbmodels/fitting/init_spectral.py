"""Third-order moments: where to begin EM for any number of classes, without lucky restarts.

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
from scipy.optimize import linear_sum_assignment

from nbmodels.core import model as models
from nbmodels.core.families import Dirichlet, Rule, static
from nbmodels.core.model import Data, Model
from nbmodels.emissions import Bernoulli, Categorical, Multinomial
from nbmodels.errors import DataError

#: No class has less than this share of a value's pooled probability: estimates may be negative.
_LEAST_SHARE = 0.02

_OVERSAMPLING = 8
_POWER_STEPS = 40


class Mixture(NamedTuple):
    """What the moments say.

    Attributes:
        shares: ``(K,)`` P(class).
        means: ``(d, K)`` E[feature | class].
        third: ``(m, K)`` E[third view | class].
    """

    shares: Array
    means: Array
    third: Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Features:
    """Columns of several emissions side by side, as they are linear in the emissions' parameters.

    Attributes:
        parts: ``(matrix, scale)`` of each emission, its rows to be multiplied by ``scale``.
        widths: number of columns of each.
    """

    parts: tuple[tuple[Any, Array], ...]
    widths: tuple[int, ...] = static()

    def times(self, table: Array) -> Array:
        """``(N, d) x (d, m) -> (N, m)``."""
        tables = jnp.split(table, np.cumsum(self.widths)[:-1])
        products = [
            scale[:, None] * matrix.times(part)
            for (matrix, scale), part in zip(self.parts, tables, strict=True)
        ]
        return sum(products[1:], products[0])

    def transpose_times(self, rows: Array) -> Array:
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


def orthogonal_decomposition(tensor: Array, key: Array) -> tuple[Array, Array]:
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
    x: Features, weights: Array, group: Array, labels: Array | None, key: Array, K: int
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


def _bernoulli(component: Bernoulli, data: Any, n_rows: int) -> tuple[Any, Any, np.ndarray]:
    return data.x, jnp.ones(n_rows), np.arange(data.x.shape[1])


def _categorical(component: Categorical, data: Any, n_rows: int) -> tuple[Any, Any, np.ndarray]:
    return data.onehot, jnp.ones(n_rows), np.repeat(range(len(component.sizes)), component.sizes)


def _multinomial(component: Multinomial, data: Any, n_rows: int) -> tuple[Any, Any, np.ndarray]:
    return data.x, 1 / jnp.maximum(data.length, 1), np.arange(data.x.shape[1])


#: By emission, its matrix, the scale of its rows, and which columns belong together.
_READERS: dict[type, Any] = {
    Bernoulli: _bernoulli,
    Categorical: _categorical,
    Multinomial: _multinomial,
}


def _likelihood_params(component: Any, means: Array, pooled: Array, data: Data, part: Any) -> Array:
    """What the emission's likelihood reads, from means that sampling may have made inadmissible."""
    if isinstance(component, Bernoulli):
        seen = jnp.sum(data.weights)
        if part.missing is not None:
            hidden = part.missing.transpose_times(data.weights[:, None])
            seen = jnp.maximum(seen - hidden, jnp.finfo(hidden.dtype).tiny) / seen
            means, pooled = means / seen, pooled / seen
        one = jnp.clip(means, _LEAST_SHARE * pooled, 1 - _LEAST_SHARE * (1 - pooled))
        one = jnp.clip(one, jnp.finfo(one.dtype).tiny, 1 - jnp.finfo(one.dtype).eps)
        return jnp.stack([jnp.log1p(-one), jnp.log(one)])
    clipped = jnp.maximum(means, _LEAST_SHARE * pooled) + jnp.finfo(means.dtype).tiny
    return jnp.log(Dirichlet(clipped, axis=0, sizes=component.prior.sizes).mean)


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
    starts = np.cumsum(x.widths)[:-1]
    read, names = {}, [name for name in model if type(model[name]) in _READERS]
    pieces = zip(names, jnp.split(found.means, starts), jnp.split(pooled, starts), strict=True)
    for name, means, all_items in pieces:
        read[name] = _likelihood_params(model[name], means, all_items, data, data.parts[name])
    known = Data({name: data.parts[name] for name in names}, data.weights)
    table = models.log_likelihood({n: model[n] for n in names}, read, known).table + jnp.log(
        found.shares
    )
    if labelled:
        assert votes is not None
        # no label is ruled out by an estimate of zero
        told = votes @ found.third
        table = table + jnp.log(jnp.where(told > 0, told, _LEAST_SHARE / len(found.shares)))
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
    names = [name for name in model if type(model[name]) in _READERS]
    read = [_READERS[type(model[n])](model[n], data.parts[n], len(data.weights)) for n in names]
    votes = models.initial_responsibilities(model, data)
    labelled = votes is not None and bool((data.weights @ votes > 0).all())

    units, widths, summing = np.zeros(0, int), np.zeros(0), np.zeros(0, bool)
    for name, (_, _, unit) in zip(names, read, strict=True):
        units = np.concatenate([units, unit + len(widths)])
        # the last of an attribute's probabilities follows from the others
        attribute = isinstance(model[name], Categorical)
        own = np.bincount(unit) - attribute
        widths = np.concatenate([widths, own])
        summing = np.concatenate([summing, np.full(len(own), attribute)])
    first, second = jax.random.split(key)
    group = _split(widths, summing, first, 2 if labelled else 3, n_classes)[units]

    x = Features(tuple((m, s) for m, s, _ in read), tuple(len(unit) for *_, unit in read))
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
