"""The methods of Denis et al. 2006 on the artificial data of its section 5.1, compiled."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from inference import solve
from nbmodels.channels import Transition
from nbmodels.class_priors import Proportions
from nbmodels.core import model as models
from nbmodels.emissions import Bernoulli
from nbmodels.fitting import init_pairwise as pairwise
from nbmodels.papers import denis2006

#: Probabilities of zero in a closed form.
LEAST = 1e-3


def log_joint(p: Array, ones: Array, x: Array) -> Array:
    """``(N, 2)`` log P(x, y)."""
    ones = jnp.clip(ones, LEAST, 1 - LEAST)
    return jnp.log(jnp.stack([1 - p, p])) + x @ jnp.log(ones) + (1 - x) @ jnp.log1p(-ones)


def scores(p: Array, ones: Array, sim: Any) -> dict[str, Array]:
    """Figures of one model, given as P(y = 1) and ``(10, 2)`` P(x^i = 1 | y)."""
    ones = jnp.clip(ones, LEAST, 1 - LEAST)
    p = jnp.clip(p, LEAST, 1 - LEAST)
    x, y = sim.x[sim.n :], sim.y_true[sim.n :]
    found = jnp.argmax(log_joint(p, ones, x), 1)
    hits = jnp.sum((found == 1) & (y == 1))
    wrong = jnp.sum(found != y)
    # KL(target || model) of (x, y), exact: product distributions, class by class
    truth = jnp.clip(sim.ones, 1e-12, 1 - 1e-12)
    kl = truth * jnp.log(truth / ones) + (1 - truth) * jnp.log((1 - truth) / (1 - ones))
    share = jnp.stack([1 - sim.p, sim.p])
    return {
        "acc": jnp.mean(found == y),
        "F": 2 * hits / jnp.maximum(2 * hits + wrong, 1),
        "kl": jnp.sum(share * (jnp.log(share / jnp.stack([1 - p, p])) + jnp.sum(kl, 0))),
        "delta_p": jnp.abs(p - sim.p),
    }


def em(sim: Any, begin: Any) -> tuple[Array, Array]:
    """Maximum likelihood from a closed form, as ``(p, ones)``."""
    x, y = sim.x[: sim.n], sim.y[: sim.n]
    positive = jnp.clip(begin.mix[y], LEAST, 1 - LEAST)
    resp = jnp.stack([1 - positive, positive], 1)
    model = {
        "class_prior": Proportions.of(2),
        "labels": Transition.of(2),
        "x": Bernoulli.of(10, 2),  # two values an attribute; packs under jit
    }
    data = models.Data({"class_prior": None, "labels": y, "x": Bernoulli.pack(x)}, jnp.ones(sim.n))
    ones = jnp.clip(begin.probs[1::2], LEAST, 1 - LEAST)
    stats = {
        "class_prior": model["class_prior"].stats(None, resp, None),
        "labels": model["labels"].stats(None, resp, y),
        "x": jnp.stack([1 - ones, ones]) * jnp.sum(resp, 0),
    }
    fit = solve(
        models.step("ml"),
        models.update(model, stats, "ml"),
        (model, data),
        tol=1e-6 * sim.n,
        coordinates=models.coordinates("ml"),
    )
    found = models.likelihood_params(model, fit.params, "ml")
    return jnp.exp(found["class_prior"][1]), jnp.exp(found["x"][1])


def unlabelled_as_printed(x: Array) -> tuple[Array, Array]:
    """Algorithm 3 with its sums as they stand, as ``(p, ones)``; attributes are not recoded.

    Terms of the sums cancel where attributes differ in sign, which
    :func:`nbmodels.fitting.init_pairwise.unlabelled` avoids.
    """
    n, m = x.shape
    single = jnp.mean(x, 0)
    centred = x - single
    pair = centred.T @ centred / n
    triple = jnp.einsum("ni,nj,nk->ijk", centred, centred, centred) / n
    other = 1 - jnp.eye(m)
    apart = other[:, :, None] * other[:, None, :] * other[None]  # i, j, k all different
    root = pair[:, None, :] * pair[None, :, :] * pair[:, :, None] + jnp.square(triple) / 4
    root = jnp.sqrt(jnp.maximum(root, 0))
    below = jnp.sum(apart * pair[:, :, None], (0, 1))
    u = jnp.sum(apart * root, (0, 1)) / jnp.where(below == 0, 1, below)
    below = 2 * jnp.sum(apart * u[:, None, None] * pair[None])
    s = jnp.clip(-jnp.sum(apart * triple) / jnp.where(below == 0, 1, below), -1 + LEAST, 1 - LEAST)
    sign = jnp.sign(pair[0] * u[0]).at[0].set(jnp.sign(u[0]))
    u = jnp.abs(u) * sign
    return (1 + s) / 2, jnp.stack([single - (1 + s) * u, single + (1 - s) * u], 1)


def named(model: tuple[Array, Array], x: Array, y: Array) -> tuple[Array, Array]:
    """The model, its classes exchanged where the given labels agree better with that."""
    p, ones = jnp.clip(model[0], LEAST, 1 - LEAST), model[1]
    swap = jnp.mean(jnp.argmax(log_joint(p, ones, x), 1) == y) < 0.5
    return jnp.where(swap, 1 - p, p), jnp.where(swap, ones[:, ::-1], ones)


def one_data_set(key: Array, target: tuple[Array, Array], n: int) -> Any:
    sim = denis2006.simulate(key, target, n)
    x, y = sim.x[:n], sim.y[:n]
    onehot = jax.nn.one_hot(x, 2).reshape(n, 20)
    tables = pairwise.tables(onehot, jax.nn.one_hot(y, 2), (2,) * 10)
    noisy = pairwise.class_conditional_by_roots(tables)
    summed = pairwise.class_conditional(tables)
    blind = pairwise.unlabelled(onehot, jnp.ones(n), (2,) * 10)
    fits = {
        "target": (sim.p, sim.ones),
        "NB": (jnp.mean(y), tables.single[1::2]),
        "NB-CCCN": (noisy.share, noisy.probs[1::2]),
        "NB-CCCN'": (summed.share, summed.probs[1::2]),
        "NB-CCCN-EM": em(sim, noisy),
        "NB-UNL": named(unlabelled_as_printed(x.astype(onehot.dtype)), x, y),
        "NB-UNL'": named((blind.share, blind.probs[1::2]), x, y),
    }
    return {name: scores(*fit, sim) for name, fit in fits.items()}


@partial(jax.jit, static_argnames="n")
def replicate(keys: Array, target: tuple[Array, Array], n: int) -> Any:
    """Means and variances of the figures of one target over the data sets of ``keys``."""
    found = lax.map(partial(one_data_set, target=target, n=n), keys)
    ddof = min(1, len(keys) - 1)
    return {
        "mean": jax.tree.map(lambda v: jnp.mean(v, 0), found),
        "variance": jax.tree.map(lambda v: jnp.var(v, 0, ddof=ddof), found),
    }
