"""MF+LR: items' features from who touched them, then a classifier that judges their labels.

The baseline of Maystre et al. 2021, section 5.2: item vectors by Bayesian personalised ranking
(Rendle et al. 2009), logistic regression on them, each fold judged by the others, and a label
changed where a confident prediction differs from it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from scipy import sparse

#: Triples of a step, and the strength of the pull towards zero.
_BATCH, _PULL = 4096, 1e-4


@partial(jax.jit, static_argnames=("shape", "dim", "steps", "rate"))
def _rank(
    item: Array, user: Array, key: Array, shape: tuple[int, int], dim: int, steps: int, rate: float
) -> Array:
    n_items, n_users = shape
    first, second, third = jax.random.split(key, 3)
    params = {
        "item": 0.1 * jax.random.normal(first, (n_items, dim)),
        "user": 0.1 * jax.random.normal(second, (n_users, dim)),
        "bias": jnp.zeros(n_items),
    }
    optimiser = optax.adam(rate)

    def loss(params: Any, i: Array, u: Array, j: Array) -> Array:
        liked, other, of_user = params["item"][i], params["item"][j], params["user"][u]
        gap = jnp.sum(of_user * (liked - other), 1) + params["bias"][i] - params["bias"][j]
        size = jnp.sum(liked**2) + jnp.sum(other**2) + jnp.sum(of_user**2)
        return -jnp.mean(jax.nn.log_sigmoid(gap)) + _PULL * size / len(i)

    def one(state: Any, key: Array) -> Any:
        params, moments = state
        a, b = jax.random.split(key)
        edge = jax.random.randint(a, (_BATCH,), 0, len(item))
        # an item drawn at random is hardly ever one that the user touched
        other = jax.random.randint(b, (_BATCH,), 0, n_items)
        gradient = jax.grad(loss)(params, item[edge], user[edge], other)
        change, moments = optimiser.update(gradient, moments, params)
        return (optax.apply_updates(params, change), moments), None

    (params, _), _ = lax.scan(one, (params, optimiser.init(params)), jax.random.split(third, steps))
    return params["item"]


def ranked_features(
    edges: Any, key: Array, *, dim: int = 32, steps: int = 2000, rate: float = 0.02
) -> np.ndarray:
    """``(N, dim)`` item vectors by Bayesian personalised ranking.

    Args:
        edges: ``(N, users)``, dense or sparse; an entry above 0 is an interaction.
        key: JAX random key.
        dim: length of the vectors.
        steps: of Adam, on 4,096 triples each.
        rate: of Adam.
    """
    graph = sparse.csr_array(edges)
    item, user = graph.nonzero()
    shape = (int(graph.shape[0]), int(graph.shape[1]))
    found = _rank(jnp.asarray(item), jnp.asarray(user), key, shape, dim, steps, rate)
    return np.asarray(found)


def ranked_labels(
    edges: Any,
    labels: np.ndarray,
    key: Array,
    *,
    threshold: float = 0.8,
    folds: int = 10,
    **features: Any,
) -> np.ndarray:
    """``(N,)`` labels, those changed that the other folds' classifier contradicts with confidence.

    Args:
        edges: ``(N, users)``, dense or sparse.
        labels: ``(N,)`` noisy labels.
        key: JAX random key.
        threshold: probability above which a prediction is believed.
        folds: number of folds.
        features: options of :func:`ranked_features`.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    x = ranked_features(edges, key, **features)
    names = np.unique(labels)
    seed = int(jax.random.randint(key, (), 0, np.iinfo(np.int32).max))
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    judge = LogisticRegression(max_iter=500)
    p = cross_val_predict(judge, x, labels, cv=split, method="predict_proba")
    return np.where(p.max(1) > threshold, names[p.argmax(1)], labels)
