"""Out-of-fold log-likelihoods of large tables, in one pass over the rows of all folds.

Statistics are additive over items: those of the other folds are sums of statistics by fold, each of
which passes over its own rows alone, and so does the log-likelihood under what they lead to.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from inference.arrays import floating, on_device
from inference.compilation import host_jit, loop_jit
from inference.products import ByFold, Sparse, padded_size
from nbmodels.core import model as models
from nbmodels.core.component import Component
from nbmodels.core.families import Rule
from nbmodels.core.model import Data


class FoldedFeatures(NamedTuple):
    """Packed features by fold, for computations that are mapped over the folds.

    Attributes:
        parts: packed data of each emission, ``(F, M, ...)``.
        rows: ``(F, M)`` which row of the items each is.
        own: ``(F, M)`` 1 where the row is of the fold, 0 where it is padding.
        place: ``(N,)`` where each item stands among the rows of all folds.
    """

    parts: dict[str, Any]
    rows: Int[Array, "f m"]
    own: Float[Array, "f m"]
    place: Int[Array, " n"]

    @property
    def at_once(self) -> bool:
        """Whether all folds share a product, so that those of one take about as long."""
        return any(map(_is_by_fold, jax.tree.leaves(self.parts, is_leaf=_is_by_fold)))


def folded_features(
    parts: Mapping[str, Any], weights: Float[np.ndarray, " n"], fold: Int[np.ndarray, " n"]
) -> FoldedFeatures | None:
    """Features by fold; None where an array may hold something else than rows.

    Args:
        parts: packed data of each emission.
        weights: ``(N,)`` row weights; rows of none at the end are padding.
        fold: ``(N,)`` fold of each item.
    """
    n, n_folds = len(fold), int(fold.max()) + 1
    leaves, structure = jax.tree.flatten(dict(parts), is_leaf=_is_sparse)
    if not all(_is_sparse(leaf) or _is_of_rows(leaf, n) for leaf in leaves):
        return None
    # padding is spread over the folds, whose sizes are then alike
    used = int(np.max(np.flatnonzero(weights), initial=0)) + 1
    spread = np.concatenate([fold[:used], np.arange(n - used) % n_folds])
    rows, own, place = _places(spread, n_folds)
    where = on_device(rows)
    dense = iter(_gathered([leaf for leaf in leaves if not _is_sparse(leaf)], where))
    moved = [ByFold.of(leaf, rows, own) if _is_sparse(leaf) else next(dense) for leaf in leaves]
    counted = on_device(own.astype(floating()))
    return FoldedFeatures(jax.tree.unflatten(structure, moved), where, counted, on_device(place))


def _is_sparse(leaf: Any) -> bool:
    return isinstance(leaf, Sparse)


def _is_of_rows(leaf: Any, n_rows: int) -> bool:
    """Whether an array has a row an item; a list of whole numbers may be one of row numbers."""
    listed = np.ndim(leaf) == 1 and np.issubdtype(leaf.dtype, np.integer)
    return np.shape(leaf)[:1] == (n_rows,) and not listed


def _places(
    fold: Int[np.ndarray, " n"], n_folds: int
) -> tuple[Int[np.ndarray, "f m"], Bool[np.ndarray, "f m"], Int[np.ndarray, " n"]]:
    sizes = np.bincount(fold, minlength=n_folds)
    length = padded_size(int(sizes.max()))  # few shapes are compiled for
    order = np.argsort(fold, kind="stable")
    inner = np.arange(len(fold)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.empty(len(fold), np.int32)
    place[order] = length * fold[order] + inner
    rows, own = np.zeros(n_folds * length, np.int32), np.zeros(n_folds * length, bool)
    rows[place], own[place] = np.arange(len(fold)), True
    return rows.reshape(n_folds, length), own.reshape(n_folds, length), place


@host_jit
def _gathered(parts: Any, rows: Int[Array, "f m"]) -> Any:
    return jax.tree.map(lambda x: x[rows], parts)


@host_jit
def summed_by_fold(
    emissions: Mapping[str, Component],
    features: FoldedFeatures,
    weights: Float[Array, " n"],
    powers: Mapping[str, Float[Array, " n"]],
    resp: Float[Array, "n k"],
    latent: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Statistics of each fold's items, by emission; the first axis is that of the folds.

    Args:
        emissions: components of the features, by name.
        features: from :func:`folded_features`.
        weights: row weights.
        powers: of each item's likelihood, by emission; see :class:`nbmodels.core.model.Data`.
        resp: responsibilities, such as the given labels; rows of zeros where unknown.
        latent: parameters under which components with a latent variable of each item take it.
    """
    data, by_fold = _by_fold(features, weights, powers)
    prior = {name: c.likelihood_params(c.prior, "vb") for name, c in emissions.items()}
    prior = {**prior, **(latent or {})}

    def sums(rows: Array, own: Array, data: Data) -> dict[str, Any]:
        return models.stats(emissions, prior, resp[rows] * own[:, None], data)

    about = features.rows, features.own, data
    if features.at_once:
        return jax.vmap(sums, (0, 0, by_fold))(*about)
    # one after the other: their responsibilities are copied, and new pages take long
    found: dict[str, Any] = lax.map(lambda fold: sums(*fold), about)
    return found


# of large tables only, and of every round: optimised though its arguments may be few
@partial(loop_jit, static_argnames="rule")
def scored_by_fold(
    emissions: Mapping[str, Component],
    features: FoldedFeatures,
    weights: Float[Array, " n"],
    powers: Mapping[str, Float[Array, " n"]],
    sums: dict[str, Any],
    counted: Float[Array, "f f"],
    *,
    rule: Rule = "map",
) -> Float[Array, "n k"]:
    """As :func:`nbmodels.fitting.scores.out_of_fold_log_likelihood`, of features by fold.

    Args:
        emissions, features, weights, powers: as in :func:`summed_by_fold`.
        sums: its result.
        counted: 1 where a fold's scores (row) are learned from a fold (column), 0 elsewhere.
        rule: how parameters are read.
    """
    data, by_fold = _by_fold(features, weights, powers)
    stats = _learned(sums, counted)
    table = partial(_table, emissions, rule=rule)
    if features.at_once:
        found = jax.vmap(table, (0, by_fold))(stats, data)
    else:
        found = lax.map(lambda one: table(*one), (stats, data))
    return found.reshape(-1, found.shape[-1])[features.place]


@partial(loop_jit, static_argnames="rule")
def scored_fold(
    emissions: Mapping[str, Component],
    features: FoldedFeatures,
    weights: Float[Array, " n"],
    powers: Mapping[str, Float[Array, " n"]],
    sums: dict[str, Any],
    counted: Float[Array, " f"],
    fold: Any,
    *,
    rule: Rule = "map",
) -> Float[Array, "m k"]:
    """As :func:`scored_by_fold`, of the rows of one fold in the order of ``features.rows``.

    Args:
        emissions, features, weights, powers, sums, rule: as there; features in rows that are dense.
        counted: 1 where scores are learned from a fold, 0 elsewhere.
        fold: whose rows are scored.
    """
    data, _ = _by_fold(features, weights, powers)
    mine = jax.tree.map(lambda x: x[fold], data)
    return _table(emissions, _learned(sums, counted), mine, rule=rule)


def _learned(sums: dict[str, Any], counted: Float[Array, "*f f"]) -> dict[str, Any]:
    """Sums over the folds that are learned from; none is a difference, counts stay above zero."""

    def learned(stats: Array) -> Array:
        return jnp.tensordot(counted, stats, 1, precision=lax.Precision.HIGHEST)

    return jax.tree.map(learned, sums)


def _table(
    emissions: Mapping[str, Component], stats: dict[str, Any], data: Data, *, rule: Rule
) -> Float[Array, "m k"]:
    q = models.update(emissions, stats, rule)
    read = models.likelihood_params(emissions, q, rule)
    return models.log_likelihood(emissions, read, data).table


def other_folds(n_folds: int, without: int | None = None) -> Float[np.ndarray, "f f"]:
    """Which folds' items the scores of a fold (row) are learned from: all others but one."""
    counted = 1 - np.eye(n_folds, dtype=floating())
    if without is not None:
        counted[:, without] = 0
    return counted


def _by_fold(
    features: FoldedFeatures, weights: Float[Array, " n"], powers: Mapping[str, Float[Array, " n"]]
) -> tuple[Data, Any]:
    """Rows by fold, and the axes that ``jax.vmap`` maps."""
    rows = features.rows
    data = Data(features.parts, weights[rows], {name: p[rows] for name, p in powers.items()})
    return data, jax.tree.map(_axes, data, is_leaf=_is_by_fold)


def _is_by_fold(leaf: Any) -> bool:
    return isinstance(leaf, ByFold)


def _axes(leaf: Any) -> Any:
    return leaf.axes if _is_by_fold(leaf) else 0
