"""NB, INB and NB-T on the simulated data of section 4.1 of Zeng et al. 2022, compiled."""

from __future__ import annotations

from dataclasses import dataclass
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
#: Features and classes.
D, K = 500, 5


def sequential(key: Array, right: Array) -> Array:
    """``(K, K)`` rho, its diagonal ``right``, other entries drawn one after the other.

    Every entry is uniform between 0 and what the earlier ones leave; the last takes what is left.
    """
    draws = jax.random.uniform(key, (K - 1, K)).at[-1].set(1)
    left = jnp.concatenate([jnp.ones((1, K)), jnp.cumprod(1 - draws, 0)[:-1]])
    parts = (1 - right) * draws * left
    rows = jnp.array([[r for r in range(K) if r != k] for k in range(K)])
    return jnp.diag(right).at[rows.T, jnp.arange(K)].set(parts)


@dataclass(frozen=True)
class Reading:
    """How section 4.1 is read where it leaves room.

    Attributes:
        off: entries of rho beside the diagonal, sampled "from [0, 1) such that" a column sums to
            one: ``"sequential"``, each below what the earlier ones leave, or ``"scaled"`` uniform
            numbers.
        anew: whether each data set has a rho of its own.
        p: mean and standard deviation of normal p; None for the sum that is printed.
        shared: whether the uniform part of p is one number a feature, the same in all classes.
        train: share of the rows for training; the rest is for testing.
    """

    off: str = "sequential"
    anew: bool = False
    p: tuple[float, float] | None = None
    shared: bool = False
    train: float = 0.8


AS_PRINTED = Reading()


@partial(jax.jit, static_argnames="reading")
def probabilities(key: Array, reading: Reading) -> Array:
    """``(d, K)`` p of a reading."""
    uniform_key, normal_key = jax.random.split(key)
    if reading.p is not None:
        center, spread = reading.p
        p = center + spread * jax.random.normal(normal_key, (D, K))
    else:
        normal = 0.65 + 0.06 * jax.random.normal(normal_key, (D, K))
        columns = 1 if reading.shared else K
        p = normal + jax.random.uniform(uniform_key, (D, columns), maxval=0.1)
    return jnp.clip(p, 1e-3, 1 - 1e-3)


@partial(jax.jit, static_argnames="off")
def mistakes(key: Array, diagonal: Array, off: str) -> Array:
    """``(K, K)`` rho, its diagonal uniform in an interval."""
    right_key, off_key = jax.random.split(key)
    right = jax.random.uniform(right_key, (K,), minval=diagonal[0], maxval=diagonal[1])
    if off == "sequential":
        return sequential(off_key, right)
    others = jax.random.uniform(off_key, (K, K)) * (1 - jnp.eye(K))
    return jnp.diag(right) + (1 - right) * others / jnp.sum(others, 0)


def sample(key: Array, rho: Array, p: Array, pi: Array, n: int, n_train: int) -> Any:
    """One data set of known parameters."""
    first, second, third = jax.random.split(key, 3)
    y = jax.random.categorical(first, jnp.log(pi), shape=(n,))
    given = jax.random.categorical(second, jnp.log(rho).T[y])
    x = jax.random.bernoulli(third, p.T[y]).astype(p.dtype)
    return zeng2022.Simulation(x, y, given, pi, p, rho, n_train)


def shares(proportions: Any) -> Array:
    size = jnp.asarray(proportions, float)
    return size / jnp.sum(size)


def simulate(key: Array, row: dict[str, Any], proportions: Any, truth_key: Array) -> Any:
    """One data set of a row of the tables; ``truth_key`` draws p and rho."""
    first, second = jax.random.split(truth_key)
    rho = mistakes(second, jnp.asarray(row["rho_kk"], float), AS_PRINTED.off)
    p, n = probabilities(first, AS_PRINTED), row["n"]
    return sample(key, rho, p, shares(proportions), n, round(0.8 * n))


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
    q = models.start(plain, jax.nn.one_hot(y, K), data, "map")
    values = models.values(plain, models.likelihood_params(plain, q, "map"))
    return values["class_prior"]["probs"], values["x"]["probs"].T


def one_data_set(sim: Any) -> Any:
    """Figures of one data set, in percent or thousandths."""
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
    out["unsettled"] = jnp.asarray(fit.status != Status.CONVERGED, float)
    moved = jnp.any(jnp.argmax(inb["rho"], 0) != jnp.arange(n_classes))
    out["permuted"] = jnp.asarray(moved, float)
    return out


@partial(jax.jit, static_argnames=("n", "n_train"))
def compiled(keys: Array, rhos: Array, p: Array, pi: Array, n: int, n_train: int) -> Any:
    """Means and variances of the figures over data sets of ``rhos``, by ``keys``."""
    batch = None if jax.default_backend() == "cpu" else len(keys)

    def one(args: tuple[Array, Array]) -> Any:
        return one_data_set(sample(*args, p, pi, n, n_train))

    each = lax.map(one, (keys, rhos), batch_size=batch)
    ddof = min(1, len(keys) - 1)
    return {
        "mean": jax.tree.map(lambda v: jnp.mean(v, 0), each),
        "variance": jax.tree.map(lambda v: jnp.var(v, 0, ddof=ddof), each),
    }


@jax.jit
def own_accuracy(p: Array, pi: Array) -> Array:
    """Accuracy, in percent, of the true parameters on 10,000 rows."""
    sim = sample(jax.random.key(1), jnp.eye(K), p, pi, 10_000, 0)
    return 100 * jnp.mean(jnp.argmax(log_joint(pi, p, sim.X), 1) == sim.y_true)


def truths(goal: float, proportions: tuple[float, ...], count: int) -> list[Array]:
    """Keys of draws of p whose own accuracy is within ``NEAR`` of the paper's NB-T."""
    found: list[Array] = []
    for key in map(jax.random.key, range(20_000)):
        p = probabilities(jax.random.split(key)[0], AS_PRINTED)
        if abs(float(own_accuracy(p, shares(proportions))) - goal) <= NEAR:
            found.append(key)
        if len(found) == count:
            break
    return found


def replicates(
    row: dict[str, Any],
    proportions: tuple[float, ...],
    truth_keys: list[Array],
    n_data_sets: int,
    reading: Reading = AS_PRINTED,
) -> list[Any]:
    """Means and variances of the figures over the data sets of each draw of p and rho."""
    n, n_train = row["n"], round(row["n"] * reading.train)
    diagonal = jnp.asarray(row["rho_kk"], float)
    found = []
    for truth_key in truth_keys:
        first, second = jax.random.split(truth_key)
        # data sets of one draw are independent of those of another
        keys = jax.random.split(jax.random.fold_in(truth_key, 1), n_data_sets)
        own = jax.random.split(second, n_data_sets) if reading.anew else [second] * n_data_sets
        rhos = jnp.stack([mistakes(key, diagonal, reading.off) for key in own])
        p = probabilities(first, reading)
        found.append(compiled(keys, rhos, p, shares(proportions), n, n_train))
    return [jax.tree.map(float, jax.device_get(one)) for one in found]


def mean(draws: list[Any]) -> Any:
    """Figures averaged over the draws."""
    return jax.tree.map(lambda *v: float(np.mean(v)), *(draw["mean"] for draw in draws))


def title(row: dict[str, Any]) -> str:
    low, high = row["rho_kk"]
    right = f"{low:g}" if low == high else f"[{low:g}, {high:g})"
    return f"rho_kk {right}, n = {row['n']}"
