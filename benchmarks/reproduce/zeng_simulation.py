"""NB, INB and NB-T on the simulated data of section 4.1 of Zeng et al. 2022, compiled."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.special import logsumexp
from jax.scipy.stats import rankdata

from inference import Status, solve
from nbmodels.core import model as models
from nbmodels.papers import zeng2022


#: How near the accuracy of the true parameters has to be to the paper's, in points.
NEAR = 0.3


def sequential(key: Array, diagonal: Array) -> Array:
    """``(K, K)`` rho with this diagonal, the rest of each column drawn one entry after the other.

    Every entry is uniform between 0 and what the earlier ones leave; the last takes what is left.
    """
    K = len(diagonal)
    draws = jax.random.uniform(key, (K - 1, K)).at[-1].set(1)
    left = jnp.concatenate([jnp.ones((1, K)), jnp.cumprod(1 - draws, 0)[:-1]])
    parts = (1 - diagonal) * draws * left
    rows = jnp.array([[r for r in range(K) if r != k] for k in range(K)])
    return jnp.diag(diagonal).at[rows.T, jnp.arange(K)].set(parts)


def simulate(
    key: Array, n: int, diagonal: Any, proportions: Any, truth_key: Array, off: str = "sequential"
) -> zeng2022.Simulation:
    """Section 4.1 with off-diagonal entries of rho ``"sequential"`` or ``"scaled"``.

    The paper samples them "from [0, 1) such that" a column sums to one. Scaled uniform numbers are
    what :func:`zeng2022.simulate` has; ``why_zeng2022_noise`` compares the two readings.
    """
    sim = zeng2022.simulate(
        key, n, diagonal=diagonal, proportions=proportions, truth_key=truth_key
    )
    if off == "scaled":
        return sim
    # a number beyond those that splitting a key uses, whose streams would be the same
    apart = 1000
    rho = sequential(jax.random.fold_in(truth_key, apart), jnp.diag(sim.rho))
    given = jax.random.categorical(jax.random.fold_in(key, apart), jnp.log(rho).T[sim.y_true])
    return replace(sim, rho=rho, y_observed=given)


def log_joint(pi: Array, p: Array, x: Array) -> Array:
    """``(N, K)`` log P(true class, x), the observed labels not looked at."""
    return jnp.log(pi) + x @ jnp.log(p) + (1 - x) @ jnp.log1p(-p)


def macro_auc(scores: Array, y: Array) -> Array:
    """Mean over classes of the probability that a member outranks a non-member."""
    # log-odds rank like probabilities, and do not all round to one
    others = jnp.where(jnp.eye(scores.shape[1], dtype=bool), -jnp.inf, scores[:, None, :])
    odds = scores - logsumexp(others, 2)
    member = jax.nn.one_hot(y, scores.shape[1])
    inside = jnp.sum(member, 0)
    ranks = jnp.sum(rankdata(odds, axis=0) * member, 0)
    pairs = inside * (len(y) - inside)
    auc = (ranks - inside * (inside + 1) / 2) / jnp.where(pairs > 0, pairs, 1)
    return jnp.sum(jnp.where(pairs > 0, auc, 0)) / jnp.sum(pairs > 0)


def naive_bayes(model: Any, y: Array, data: Any) -> tuple[Array, Array]:
    """``(pi, p)`` of naive Bayes on the labels ``y``."""
    plain = {name: c for name, c in model.items() if name != "labels"}
    q = models.start(plain, jax.nn.one_hot(y, 5), data, "map")
    values = models.values(plain, models.likelihood_params(plain, q, "map"))
    return values["class_prior"]["probs"], values["x"]["probs"].T


def one_data_set(
    key: Array, truth_key: Array, diagonal: Any, n: int, proportions: Any, off: str
) -> Any:
    """Figures of one data set, in percent or thousandths."""
    sim = simulate(key, n, diagonal, proportions, truth_key, off)
    x, y = sim.X[sim.train], sim.y_observed[sim.train]
    d, n_classes = sim.p.shape
    model = zeng2022.to_model(n_classes, d)
    data = models.Data(
        {"class_prior": None, "labels": y, "x": model["x"].pack(x)}, jnp.ones(len(y))
    )
    fit = solve(
        models.step("map"),
        models.start(model, models.initial_responsibilities(model, data), data, "map"),
        (model, data),
        tol=1e-6 * len(y),
        coordinates=models.coordinates("map"),
    )
    inb = zeng2022.parameters(model, fit.params)
    fits = {
        "NB": naive_bayes(model, y, data),
        "INB": (inb["pi"], inb["p"]),
        "NB-T": (sim.pi, sim.p),
        "clean": naive_bayes(model, sim.y_true[sim.train], data),
    }
    out: dict[str, Any] = {"acc": {}, "auc": {}, "mse_e3": {}}
    for name, (pi, p) in fits.items():
        scores = log_joint(pi, p, sim.X[sim.test])
        right = jnp.argmax(scores, 1) == sim.y_true[sim.test]
        out["acc"][name] = 100 * jnp.mean(right)
        out["auc"][name] = 100 * macro_auc(scores, sim.y_true[sim.test])
        out["mse_e3"][name] = 1e3 * jnp.mean(jnp.square(p - sim.p))
    out["delta_acc"] = out["acc"]["NB"] - out["acc"]["clean"]
    out["unsettled"] = fit.status != Status.CONVERGED
    out["permuted"] = jnp.any(jnp.argmax(inb["rho"], 0) != jnp.arange(n_classes))
    return out


@partial(jax.jit, static_argnames=("n", "proportions", "off"))
def compiled(
    keys: Array, truth_key: Array, diagonal: Any, n: int, proportions: Any, off: str
) -> Any:
    batch = None if jax.default_backend() == "cpu" else len(keys)

    def one(key: Array) -> Any:
        return one_data_set(key, truth_key, diagonal, n, proportions, off)

    return jax.tree.map(lambda v: jnp.mean(v, 0), lax.map(one, keys, batch_size=batch))


@partial(jax.jit, static_argnames="proportions")
def own_accuracy(truth_key: Array, proportions: tuple[float, ...]) -> Array:
    """Accuracy, in percent, of the true parameters on 10,000 rows."""
    sim = zeng2022.simulate(
        jax.random.key(1), 10_000, diagonal=(1, 1), proportions=proportions, truth_key=truth_key
    )
    return 100 * jnp.mean(jnp.argmax(log_joint(sim.pi, sim.p, sim.X), 1) == sim.y_true)


def truths(goal: float, proportions: tuple[float, ...], count: int) -> list[Array]:
    """Keys of draws of p whose own accuracy is within ``NEAR`` of the paper's NB-T."""
    found: list[Array] = []
    for key in map(jax.random.key, range(20_000)):
        if abs(float(own_accuracy(key, proportions)) - goal) <= NEAR:
            found.append(key)
        if len(found) == count:
            break
    return found


def replicates(
    setting: dict[str, Any],
    proportions: tuple[float, ...],
    truth_keys: list[Array],
    n_data_sets: int,
    off: str = "sequential",
) -> list[Any]:
    """Mean figures of each draw of p and rho over the data sets from it."""
    keys = jax.random.split(jax.random.key(0), n_data_sets)
    diagonal = tuple(setting["rho_kk"])
    found = [compiled(keys, k, diagonal, setting["n"], proportions, off) for k in truth_keys]
    return [jax.tree.map(float, jax.device_get(one)) for one in found]


def mean(draws: list[Any]) -> Any:
    """Figures averaged over the draws."""
    return jax.tree.map(lambda *v: float(np.mean(v)), *draws)


def title(row: dict[str, Any]) -> str:
    low, high = row["rho_kk"]
    right = f"{low:g}" if low == high else f"[{low:g}, {high:g})"
    return f"rho_kk {right}, n = {row['n']}"
