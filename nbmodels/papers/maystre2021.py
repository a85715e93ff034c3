"""Maystre et al. 2021: collaborative classification from noisy labels.

The model, the two algorithms and the two generators below are written from sections 3 to 5 of the
paper [1], in its notation, and never call a component's ``log_likelihood``. :func:`to_model`
describes the same data by components.

===============================  =============================  ================================
the paper                        this module                    the components
===============================  =============================  ================================
``M`` users, ``N`` items, ``K``  ``M``, ``N``, ``K``            shapes of data and priors
``(i, j)`` in ``E``              ``edges`` ``(N, M)``           data of ``"users"``
``v_j`` class of item j          ``v``                          the latent true class
``v^_j`` noisy label             ``v_hat``, -1 where missing    data of ``"labels"``
``u_i`` proportions of user i    ``u`` ``(M, K)``               ``Users``, ``u``
``alpha`` prior of ``u``         ``alpha``                      ``Users``, prior
``delta`` rate of wrong labels   ``delta``                      ``FixedTransition``
``beta_j`` prior of item j       :func:`beta`                   prior and channel together
``beta-bar``, ``alpha-bar``      :func:`algorithm_1`            responsibilities, ``q``
===============================  =============================  ================================

Model (1) is a product of factors, not a generative program: each edge has the factor
``Cat(v_j | u_i)``. As a program, users' proportions are latent Dirichlet sites, items' classes are
summed out; the log-likelihood of class k is ``log beta_jk + sum over its users of log u_ik``.

What is read differently here: section 3.1 gives ``beta`` from a known ``delta``; learning the noise
is named as future work in section 6, and is what :class:`nbmodels.CollaborativeClassifier` does.

**References:**

    1. Maystre, L., Kumarappan, N., Bütepage, J., and Lalmas, M. (2021). "Collaborative
       Classification from Noisy Labels." AISTATS.

Examples:
    >>> import jax
    >>> import numpy as np
    >>> from nbmodels import fit
    >>> from nbmodels.papers import maystre2021 as paper
    >>> rng = np.random.default_rng(0)
    >>> drawn = paper.simulate(rng, M=200, N=100, K=3, S=10, alpha=0.1, delta=0.2)
    >>> model, data = paper.to_model(drawn.edges, drawn.v_hat, K=3, alpha=0.1, delta=0.2)
    >>> fitted = fit(model, data, rule="vb", key=jax.random.key(0))
    >>> # wrong labels as they are given, and after the fit
    >>> int((drawn.v_hat != drawn.v).sum()), int((fitted.resp.argmax(1) != drawn.v).sum())
    (22, 0)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from scipy import sparse
from scipy.special import digamma

from nbmodels.channels import FixedTransition
from nbmodels.class_priors import FixedProportions
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.emissions import Users


def noise(K: int, delta: float) -> np.ndarray:
    """``(K, K)`` ``[true, observed]``: wrong with probability ``delta``, then any other class."""
    table = np.full((K, K), delta / (K - 1))
    np.fill_diagonal(table, 1 - delta)
    return table


def beta(v_hat: np.ndarray, K: int, delta: float) -> np.ndarray:
    """``(N, K)`` prior of each item given its noisy label (section 3.1); even without one."""
    seen = np.where(v_hat >= 0, v_hat, 0)
    return np.where((v_hat >= 0)[:, None], noise(K, delta).T[seen], 1 / K)


def model(edges: Array, v_hat: Array, K: int, *, alpha: Any = 1.0, delta: float = 0.1) -> None:
    """Model (1), the classes of the items summed out.

    Args:
        edges: ``(N, M)`` numbers of edges.
        v_hat: ``(N,)`` noisy labels in ``0..K-1``, -1 where missing.
        K: number of classes.
        alpha: concentration of the users' proportions; broadcasts to ``(M, K)``.
        delta: probability that a label is wrong.
    """
    N, M = edges.shape
    u = numpyro.sample("u", dist.Dirichlet(jnp.broadcast_to(alpha, (M, K))).to_event(1))
    prior = jnp.asarray(beta(np.asarray(v_hat), K, delta))
    with numpyro.plate("items", N):
        probs = prior / prior.sum(1, keepdims=True)
        v = numpyro.sample("v", dist.Categorical(probs), infer={"enumerate": "parallel"})
        numpyro.factor("edges", (edges * jnp.log(u).T[v]).sum(-1))


def to_model(
    edges: Any, v_hat: np.ndarray, K: int, *, alpha: Any = 1.0, delta: float = 0.1
) -> tuple[Model, Data]:
    """The same model and data as components."""
    n_items, n_users = edges.shape
    components = {
        PRIOR: FixedProportions(prior=jnp.full(K, 1 / K)),
        "labels": FixedTransition(prior=jnp.asarray(noise(K, delta))),
        "users": Users.of(n_users, K, alpha),
    }
    labels = FixedTransition.pack(v_hat, K)
    parts = {PRIOR: None, "labels": labels, "users": Users.pack(edges)}
    return components, Data(parts, jnp.ones(n_items))


# The algorithms, as plain loops -------------------------------------------------------------------


class Marginals(NamedTuple):
    """Variational parameters.

    Attributes:
        alpha: ``(M, K)`` of the users.
        beta: ``(N, K)`` of the items.
    """

    alpha: np.ndarray
    beta: np.ndarray


def algorithm_1(
    edges: np.ndarray, beta: np.ndarray, alpha: np.ndarray, iterations: int = 1
) -> Marginals:
    """CAVI, line by line: the oracle of the tests, too slow for anything else.

    Args:
        edges: ``(N, M)`` numbers of edges, dense.
        beta: ``(N, K)`` priors of the items, where the items' marginals begin.
        alpha: ``(M, K)`` concentrations of the users.
        iterations: of the outer loop.
    """
    N, M = edges.shape
    alpha_bar, beta_bar = alpha.astype(float), beta.astype(float)
    for _ in range(iterations):
        for i in range(M):
            alpha_bar[i] = alpha[i] + sum(edges[j, i] * beta_bar[j] for j in range(N))
        beta_bar = beta_bar.copy()
        for j in range(N):
            z = np.log(beta[j]) + sum(edges[j, i] * digamma(alpha_bar[i]) for i in range(M))
            z = np.exp(z - z.max())
            beta_bar[j] = z / z.sum()
    return Marginals(alpha_bar, beta_bar)


def algorithm_2(edges: np.ndarray, v_hat: np.ndarray, K: int) -> np.ndarray:
    """wvRN, line by line: ``(N, K)`` votes ``z``; ``benchmarks/baselines`` has a fast one."""
    N, M = edges.shape
    x = np.zeros((M, K))
    for i in range(M):
        for j in range(N):
            x[i, v_hat[j]] += edges[j, i]
    z = np.zeros((N, K))
    for j in range(N):
        for k in range(K):
            z[j, k] = sum(edges[j, i] * (x[i, k] - edges[j, i] * (v_hat[j] == k)) for i in range(M))
    return z


# The generators of sections 4 and 5 ---------------------------------------------------------------


class Platform(NamedTuple):
    """A drawn platform.

    Attributes:
        edges: ``(N, M)`` sparse.
        v: ``(N,)`` classes.
        v_hat: ``(N,)`` noisy labels.
        u: ``(M, K)`` proportions.
    """

    edges: sparse.csr_array
    v: np.ndarray
    v_hat: np.ndarray
    u: np.ndarray


def simulate(
    rng: Any,
    *,
    M: int,
    N: int = 1000,
    K: int = 5,
    S: int = 5,
    alpha: float = 0.5,
    delta: float = 0.1,
    popularity: float | None = None,
) -> Platform:
    """The sparse and biased interaction model (section 4), or with popular items (section 5.1).

    Args:
        rng: NumPy generator.
        M: number of users.
        N: number of items.
        K: number of classes.
        S: interactions of a user.
        alpha: concentration of users' proportions; small ones have a taste.
        delta: probability that a label is wrong.
        popularity: shape of the Pareto II law of the items' popularity, 2 in the paper; None for
            items that are all alike.
    """
    v = rng.integers(0, K, N)
    u = rng.dirichlet(np.full(K, alpha), M)
    score = np.ones(N) if popularity is None else rng.pareto(popularity, N) + 1e-12
    members = [np.flatnonzero(v == k) for k in range(K)]
    shares = [score[m] / score[m].sum() for m in members]
    rows, columns = [], []
    for i, counts in enumerate(rng.multinomial(S, u)):
        for k in np.flatnonzero(counts):
            # a user touches an item once; a class of fewer items than that is used up
            n = min(counts[k], len(members[k]))
            rows.append(rng.choice(members[k], n, replace=False, p=shares[k]))
            columns.append(np.full(n, i))
    item, user = np.concatenate(rows), np.concatenate(columns)
    edges = sparse.coo_array((np.ones(len(item)), (item, user)), shape=(N, M)).tocsr()
    wrong = rng.random(N) < delta
    v_hat = np.where(wrong, (v + rng.integers(1, K, N)) % K, v)
    return Platform(edges, v, v_hat, u)
