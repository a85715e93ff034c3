"""NB, NB-CCCN and NB-CCCN-EM on a categorical set, all folds of a cross-validation compiled."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.special import logsumexp

from benchmarks.reproduce.denis_sets import Prepared
from inference import solve
from nbmodels.core import model as models
from nbmodels.fitting import init_pairwise as pairwise
from nbmodels.papers import denis2006

#: Probabilities of zero in a closed form.
LEAST = 1e-3
CLOSED = {
    "NB-CCCN": pairwise.class_conditional_by_roots,
    "NB-CCCN'": pairwise.class_conditional,
}


def indicators(codes: Array, sizes: tuple[int, ...]) -> Array:
    """``(N, S)`` indicators of the attributes' values, zeros where missing."""
    columns = [jax.nn.one_hot(codes[:, j], size) for j, size in enumerate(sizes)]
    return jnp.concatenate(columns, 1)


def one_fold(
    weights: Array, y: Array, model: Any, data: Any, sizes: tuple[int, ...], alpha: Array
) -> dict[str, Any]:
    """``(log P(x, class), noise [true, given], log-likelihood)`` of each method.

    Args:
        weights: ``(N,)`` ones for training rows, zeros for test rows.
        y: ``(N,)`` given labels.
        model, data: of :func:`nbmodels.papers.denis2006.to_model`, labels not looked at.
        sizes: number of values of each attribute.
        alpha: pseudo-items a value and class.
    """
    onehot = indicators(data.parts["x"].codes, sizes)
    groups = jax.nn.one_hot(y, 2) * weights[:, None]
    member = np.repeat(np.eye(len(sizes)), sizes, axis=1)

    def smooth(probs: Array, share: Array) -> Array:
        counts = jnp.clip(probs, 0, 1) * share * jnp.sum(weights) + alpha
        return counts / (member.T @ (member @ counts))

    def scored(p: Array, probs: Array, noise: Array) -> tuple[Array, Array, Array]:
        prior = jnp.log(jnp.stack([1 - p, p]))
        joint = prior + onehot @ jnp.log(jnp.maximum(probs, 1e-12))
        seen = logsumexp(joint + jnp.log(jnp.maximum(noise.T[y], 1e-12)), 1)
        return joint, noise, jnp.sum(weights * seen)

    tables = pairwise.tables(onehot, groups, sizes)
    share = tables.share[1]
    out = {
        "MajCl": (jnp.stack([groups.sum(0)] * len(y)), jnp.eye(2), jnp.nan),
        "NB": scored(share, smooth(tables.single, tables.share), jnp.eye(2)),
    }
    for name, closed in CLOSED.items():
        found = closed(tables)
        p = jnp.clip(found.share, LEAST, 1 - LEAST)
        eta0, eta1 = jnp.clip(found.flip_rates(tables.share), 0, 1)
        noise = jnp.stack([jnp.stack([1 - eta0, eta0]), jnp.stack([eta1, 1 - eta1])])
        probs = smooth(found.probs, jnp.stack([1 - p, p]))
        out[name] = scored(p, jnp.maximum(probs, LEAST), noise)
    out["NB-CCCN-EM"] = scored(*em(weights, y, model, data, out["NB-CCCN"], sizes))
    return out


def em(
    weights: Array, y: Array, model: Any, data: Any, begin: Any, sizes: tuple[int, ...]
) -> tuple[Array, Array, Array]:
    """``(p, probs, noise)`` by EM from a closed form, eqs. (20)-(23)."""
    joint, noise, _ = begin
    resp = jax.nn.softmax(joint + jnp.log(jnp.clip(noise.T[y], LEAST, 1)), 1)
    data = models.Data({**data.parts, "labels": y}, weights)
    fit = solve(
        models.step("map"),
        models.start(model, resp, data, "map"),
        (model, data),
        tol=1e-6 * len(y),
        coordinates=models.coordinates("map"),
    )
    values = denis2006.parameters(model, fit.params)
    probs = jnp.concatenate(
        [jnp.stack([values[f"P_minus_{i}"], values[f"P_plus_{i}"]], 1) for i in range(len(sizes))]
    )
    noise = jnp.stack(
        [
            jnp.stack([1 - values["eta0"], values["eta0"]]),
            jnp.stack([values["eta1"], 1 - values["eta1"]]),
        ]
    )
    return values["p"], probs, noise


@partial(jax.jit, static_argnames="sizes")
def compiled(
    weights: Array, labels: Array, true: Array, model: Any, data: Any, sizes: Any, alpha: Any
) -> Any:
    def one(args: tuple[Array, Array]) -> Any:
        fits = one_fold(*args, model, data, sizes, alpha)
        test = 1 - args[0]
        return {
            name: {
                "acc": jnp.sum(test * (jnp.argmax(joint, 1) == true)) / jnp.sum(test),
                "lk": lk,
                "eta0": noise[0, 1],
                "eta1": noise[1, 0],
            }
            for name, (joint, noise, lk) in fits.items()
        }

    return lax.map(one, (weights, labels))


def cross_validated(
    found: Prepared, weights: np.ndarray, labels: np.ndarray, alpha: float
) -> dict[str, dict[str, np.ndarray]]:
    """``(folds,)`` figures of each method.

    Args:
        found: the set.
        weights: ``(folds, N)`` ones for training rows.
        labels: ``(folds, N)`` given labels.
        alpha: pseudo-items a value and class.
    """
    model = denis2006.to_model(found.sizes, alpha_p=0.0, alpha_P=alpha, wrong=0.0, right=0.0)
    data = denis2006.to_data(model, found.codes, found.y)
    args = (jnp.asarray(weights, float), jnp.asarray(labels), jnp.asarray(found.y))
    result = compiled(*args, model, data, found.sizes, alpha)
    return jax.tree.map(np.asarray, jax.device_get(result))
