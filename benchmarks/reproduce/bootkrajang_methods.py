"""NDA, rNDA, nearest neighbour and depuration, and the data of Bootkrajang and Kaban 2011."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.neighbors import KNeighborsClassifier

from inference import solve
from nbmodels.core import model as models
from nbmodels.papers import bootkrajang2011 as page

#: Features, classes and separation of table 1.
SYNTH = {"Synth-1": (2, 3, 1.5), "Synth-2": (10, 4, 0.5), "Synth-3": (6, 5, 1.5)}
REAL = {"Iris": load_iris, "Wine": load_wine}
N_TEST = 1000

#: Training features and labels, test features and classes.
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def gaussian(
    x: np.ndarray, given: np.ndarray, k: int, pseudo: float, noisy: bool
) -> dict[str, Any]:
    """rNDA (``noisy``) or NDA, in the notation of the paper's page.

    Args:
        x: ``(N, d)`` standardised features.
        given: ``(N,)`` labels.
        k: number of classes.
        pseudo: items that an identity covariance counts as, in each class.
        noisy: whether labels may be mistaken.
    """
    model = page.to_model(k, x.shape[1], extra_dof=pseudo, scale=pseudo)
    data = page.to_data(x, given, k)
    return _mistrusted(model, data) if noisy else _trusted(model, data, jax.nn.one_hot(given, k))


@jax.jit
def _trusted(model: Any, data: Any, resp: Any) -> dict[str, Any]:
    """NDA; this and what follows are compiled once a shape."""
    model = {name: part for name, part in model.items() if name != "labels"}
    start = models.start(model, resp, data, "map")
    values = models.values(model, models.likelihood_params(model, start, "map"))
    found = {"mu": values["x"]["mu"], "Sigma": values["x"]["covariance"]}
    return {**found, "gamma": jnp.eye(resp.shape[1])}


@jax.jit
def _mistrusted(model: Any, data: Any) -> dict[str, Any]:
    """rNDA at the end of EM."""
    start = models.start(model, models.initial_responsibilities(model, data), data, "map")
    tol = 1e-6 * len(data.weights)
    how = models.step("map"), models.coordinates("map")
    found = solve(how[0], start, (model, data), tol=tol, coordinates=how[1]).params
    return page.parameters(model, found)


_predict = jax.jit(page.predict)
_simulate = jax.jit(page.simulate, static_argnums=(1, 2, 3))


def posterior(found: dict[str, Any], x: np.ndarray, given: np.ndarray, k: int) -> np.ndarray:
    """``(N, K)`` P(true class | x), eq. (8), label shares those of the training labels."""
    shares = (np.bincount(given, minlength=k) + 1e-9) / len(given)
    return np.asarray(_predict(x, found["mu"], found["Sigma"], found["gamma"], shares))


def depurated(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Items relabelled as two of their three nearest others; dropped where no two agree."""
    near = KNeighborsClassifier(4).fit(x, y).kneighbors(x, return_distance=False)
    # the item itself is nearest, or as near as its doubles
    others = np.array([[j for j in row if j != i][:3] for i, row in enumerate(near)])
    votes = np.stack([(y[others] == k).sum(1) for k in range(y.max() + 1)], 1)
    kept = votes.max(1) >= 2
    return (x[kept], votes.argmax(1)[kept]) if kept.any() else (x, y)


def accuracies(split: Split, k: int, pseudo: float) -> dict[str, float]:
    """Percent of right predictions, by method."""
    x, given, x_test, y_test = split
    guesses = {
        name: posterior(gaussian(x, given, k, pseudo, noisy), x_test, given, k).argmax(1)
        for name, noisy in (("NDA", False), ("rNDA", True))
    }
    guesses["NN"] = KNeighborsClassifier(1).fit(x, given).predict(x_test)
    guesses["Dep."] = KNeighborsClassifier(1).fit(*depurated(x, given)).predict(x_test)
    return {name: float(100 * np.mean(guess == y_test)) for name, guess in guesses.items()}


def standardised(x: np.ndarray, x_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean, spread = x.mean(0), x.std(0)
    return (x - mean) / spread, (x_test - mean) / spread


def synthetic(seed: int, d: int, k: int, c: float, noise: float, n: int) -> Split:
    sim = jax.tree.map(np.asarray, _simulate(jax.random.key(seed), n + N_TEST, d, k, c, noise))
    x, x_test = standardised(sim.x[:n], sim.x[n:])
    return x, sim.y_hat[:n], x_test, sim.y[n:]


def real(seed: int, name: str, noise: float) -> Split:
    """Iris or Wine, halved at random."""
    x, y = REAL[name](return_X_y=True)
    rng = np.random.default_rng(seed)
    train, test = np.array_split(rng.permutation(len(y)), 2)
    rho = np.asarray(page.flips(3, noise))
    given = np.array([rng.choice(3, p=rho[:, k] / rho[:, k].sum()) for k in y[train]])
    x_train, x_test = standardised(x[train], x[test])
    return x_train, given, x_test, y[test]
