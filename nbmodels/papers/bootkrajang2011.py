"""Bootkrajang and Kaban 2011: normal discriminant analysis with labelling errors (rNDA).

Section 2 of the paper [1] in its notation; none of it calls a component's ``log_likelihood``.
:func:`to_model` describes the same data by components.

=============================  =============================  =====================================
the paper                      this module                    the components
=============================  =============================  =====================================
``x_n``                        ``x`` ``(N, d)``               data of ``"x"``
``yhat_n``, ``t_n^j``          ``y_hat`` ``(N,)``             data of ``"labels"``
``y_n``                        ``y``, summed over             the latent true class
``theta_k = mu_k, Sigma_k``    ``mu``, ``Sigma``              ``FullGaussian``, ``mu, covariance``
``gamma_jk``, eq. (7)          ``gamma[observed, true]``      ``Proportions`` and ``Transition``
``p(yhat = j)``                ``p_hat`` ``(K,)``             ``Proportions`` and ``Transition``
eq. (4)                        :func:`posterior`              responsibilities
eqs. (5)-(7)                   :func:`m_step`                 ``stats`` and ``update``
eq. (8)                        :func:`predict`                posterior without ``"labels"``
class separation               :func:`separation`
=============================  =============================  =====================================

The table of pairs of labels is ``p(y = k, yhat = j) = gamma[j, k] p_hat[j] = pi[k] T[k, j]``. The
paper writes it the first way, the components the second; with maximum likelihood, or flat priors,
both reach the same table and the same objective. Here ``gamma`` and ``p_hat`` have flat priors, and
``mu`` and ``Sigma`` the conjugate one of our components; the paper has none. The labels' shares
``p_hat`` drop out of eqs. (4)-(7); the paper "intends" a uniform one. In eq. (8) they matter: the
estimator takes those of the training labels, :func:`predict` what it is given.

Beyond the paper, :func:`rnda` takes degrees of freedom ``dof`` of a Student t in the place of each
normal.

Slip in the paper: the sentence before eq. (7) defines ``gamma_jk`` as the probability that a label
has flipped from class k to class j; that would be ``p(yhat = j | y = k)``. The formula,
``p(y = k | yhat = j)``, is right.

Not met: table 1 has separations 0.305 of Iris and 0.350 of Wine. :func:`separation` of their class
means and covariances is 0.98 and 0.14, of standardised features 0.78 and 0.63.

**References:**

    1. Bootkrajang, J., and Kaban, A. (2011). "Multi-class Classification in the Presence of
       Labelling Errors." ESANN.
    2. Dasgupta, S. (1999). "Learning mixtures of Gaussians." FOCS. (class separation)

Examples:
    >>> import jax
    >>> import numpy as np
    >>> from nbmodels import fit
    >>> from nbmodels.papers import bootkrajang2011
    >>> y = np.repeat([0, 1, 2], 50)
    >>> x = np.random.default_rng(0).normal(size=(150, 2)) + 10 * np.eye(3, 2)[y]
    >>> y_hat = np.where(np.arange(150) % 5 == 0, (y + 1) % 3, y)  # every fifth label is wrong
    >>> model = bootkrajang2011.to_model(K=3, d=2)
    >>> fitted = fit(model, bootkrajang2011.to_data(x, y_hat, K=3), key=jax.random.key(0))
    >>> int((y_hat != y).sum()), int((fitted.resp.argmax(1) != y).sum())
    (30, 0)
    >>> found = bootkrajang2011.parameters(model, fitted.params)
    >>> print(found["gamma"].round(1))  # a row an observed label
    [[0.8 0.  0.2]
     [0.2 0.8 0. ]
     [0.  0.2 0.8]]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.scipy.special import logsumexp

from inference.pytree import register_dataclass
from nbmodels.channels import Transition
from nbmodels.class_priors import Proportions
from nbmodels.core import model as models
from nbmodels.core.component import Component
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.emissions import FullGaussian, FullStudent

# Section 2 ----------------------------------------------------------------------------------------


def log_density(x: Array, mu: Array, Sigma: Array, dof: Any = None) -> Array:
    """``(N, K)`` log p(x_n | y_n = k), normal or, with ``dof``, Student t."""
    lower = jnp.linalg.cholesky(Sigma)
    if dof is None:
        return dist.MultivariateNormal(mu, scale_tril=lower).log_prob(x[:, None])
    return dist.MultivariateStudentT(dof, mu, lower).log_prob(x[:, None])


def log_likelihood(
    x: Array, y_hat: Array, mu: Array, Sigma: Array, gamma: Array, p_hat: Array
) -> Array:
    """Eq. (2)."""
    logs = log_density(x, mu, Sigma) + jnp.log(gamma)[y_hat]
    return jnp.sum(logsumexp(logs, 1) + jnp.log(p_hat)[y_hat])


def posterior(x: Array, y_hat: Array, mu: Array, Sigma: Array, gamma: Array) -> Array:
    """``(N, K)`` p(y_n = k | x_n, yhat_n), eq. (4)."""
    return jax.nn.softmax(log_density(x, mu, Sigma) + jnp.log(gamma)[y_hat], 1)


def m_step(x: Array, y_hat: Array, p: Array) -> tuple[Array, Array, Array]:
    """``mu``, ``Sigma`` and ``gamma`` from the posterior ``p``, eqs. (5)-(7)."""
    size = jnp.sum(p, 0)
    mu = p.T @ x / size[:, None]
    gap = x[:, None] - mu
    Sigma = jnp.einsum("nk,nki,nkj->kij", p, gap, gap) / size[:, None, None]
    pairs = jax.nn.one_hot(y_hat, p.shape[1]).T @ p
    return mu, Sigma, pairs / jnp.sum(pairs, 1, keepdims=True)


def predict(x: Array, mu: Array, Sigma: Array, gamma: Array, p_hat: Array) -> Array:
    """``(N, K)`` p(y_n = k | x_n) of items without a label, eq. (8)."""
    return jax.nn.softmax(log_density(x, mu, Sigma) + jnp.log(p_hat @ gamma), 1)


def separation(mu: Any, Sigma: Any) -> Array:
    """Class separation ``c`` of section 3.1, after [2]."""
    widest = jnp.max(jnp.linalg.eigvalsh(Sigma))
    gap = jnp.linalg.norm(mu[:, None] - mu[None], axis=-1)
    gap = jnp.where(jnp.eye(len(mu), dtype=bool), jnp.inf, gap)
    return jnp.min(gap) / jnp.sqrt(mu.shape[1] * widest)


# The model, with the true labels enumerated -------------------------------------------------------


def rnda(
    x: Array,
    y_hat: Array,
    K: int,
    *,
    kappa: float = 0.01,
    extra_dof: float = 2.0,
    scale: float = 0.1,
    dof: float | None = None,
) -> None:
    """Eq. (2) with conjugate priors of the classes and flat ones of the labels.

    Args:
        x: ``(N, d)`` real numbers, standardised.
        y_hat: ``(N,)`` observed labels in ``0..K-1``.
        K: number of classes.
        kappa: pseudo-items behind a mean of zero.
        extra_dof, scale: ``Sigma ~ InverseWishart(d + 1 + extra_dof, scale * I)``.
        dof: degrees of freedom of a Student t; None for normal classes.
    """
    d = x.shape[1]
    p_hat = numpyro.sample("p_hat", dist.Dirichlet(jnp.ones(K)))
    gamma = numpyro.sample("gamma", dist.Dirichlet(jnp.ones((K, K))).to_event(1))
    wishart = dist.InverseWishart(d + 1 + extra_dof, scale_matrix=scale * jnp.eye(d))
    Sigma = numpyro.sample("Sigma", wishart.expand((K,)).to_event(1))
    prior = dist.MultivariateNormal(jnp.zeros(d), Sigma / kappa)
    mu = numpyro.sample("mu", prior.to_event(1))
    lower = jnp.linalg.cholesky(Sigma)
    with numpyro.plate("n", len(x)):
        numpyro.sample("y_hat", dist.Categorical(p_hat), obs=y_hat)
        y = numpyro.sample(
            "y", dist.Categorical(gamma[jnp.asarray(y_hat)]), infer={"enumerate": "parallel"}
        )
        if dof is None:
            numpyro.sample("x", dist.MultivariateNormal(mu[y], scale_tril=lower[y]), obs=x)
        else:
            numpyro.sample("x", dist.MultivariateStudentT(dof, mu[y], lower[y]), obs=x)


# The same model as components ---------------------------------------------------------------------


def to_model(
    K: int,
    d: int,
    *,
    kappa: float = 0.01,
    extra_dof: float = 2.0,
    scale: float = 0.1,
    dof: float | None = None,
) -> dict[str, Component]:
    """Components of the model of :func:`rnda`; arguments as there, ``d`` features."""
    how: dict[str, Any] = {"kappa": kappa, "extra_dof": extra_dof, "scale": scale}
    classes = FullGaussian.of(d, K, **how) if dof is None else FullStudent.of(d, K, dof=dof, **how)
    return {
        PRIOR: Proportions.of(K, 0.0),
        "labels": Transition.of(K, alpha=0.0, diagonal=0.0),
        "x": classes,
    }


def to_data(x: Any, y_hat: Any, K: int) -> Data:
    """Data of :func:`to_model` from the arrays of the paper's model."""
    parts = {PRIOR: None, "labels": Transition.pack(y_hat, K), "x": FullGaussian.pack(x)}
    return Data(parts, jnp.ones(len(y_hat)))


def parameters(model: Model, q: Any, rule: Any = "map") -> dict[str, Array]:
    """A fit in the paper's notation: ``mu``, ``Sigma``, ``gamma`` and ``p_hat``."""
    values = models.values(model, models.likelihood_params(model, q, rule))
    joint = values["labels"]["transition"].T * values[PRIOR]["probs"]  # [observed, true]
    p_hat = jnp.sum(joint, 1)
    features = values["x"]
    return {
        "mu": features["mu"],
        "Sigma": features["covariance"],
        "gamma": joint / p_hat[:, None],
        "p_hat": p_hat,
    }


# Section 3.1: synthetic data ----------------------------------------------------------------------


@register_dataclass
@dataclass(frozen=True)
class Simulation:
    """One synthetic data set and what it was drawn from.

    Attributes:
        x: ``(N, d)``.
        y: ``(N,)`` true labels.
        y_hat: ``(N,)`` observed labels.
        mu: ``(K, d)``.
        Sigma: ``(K, d, d)``.
        rho: ``(K, K)`` ``[observed, true]``.
    """

    x: Array
    y: Array
    y_hat: Array
    mu: Array
    Sigma: Array
    rho: Array


def flips(K: int, noise: Any) -> Array:
    """``(K, K)`` P(observed | true): labels wrong at rate ``noise``, all mistakes alike."""
    eye = jnp.eye(K)
    return (1 - noise) * eye + noise * (1 - eye) / max(K - 1, 1)


def simulate(
    key: Array, n: int, d: int, K: int, c: float, noise: Any = 0.3, dof: Any = None
) -> Simulation:
    """Equally common classes with random covariances, means scaled to separation ``c``; pure.

    The paper's table 1 has ``(d, K, c)`` of (2, 3, 1.5), (10, 4, 0.5) and (6, 5, 1.5). It does not
    say how means, covariances and flips were drawn: here a covariance is ``A A^T / (2 d)`` with
    ``A`` of ``2 d`` columns of normal numbers, and flips are as in :func:`flips`.

    Args:
        key: random key.
        n: number of items.
        d: number of features.
        K: number of classes.
        c: class separation.
        noise: rate of wrong labels.
        dof: degrees of freedom of the features; None for normal ones.
    """
    first, second, third, fourth, fifth, sixth = jax.random.split(key, 6)
    A = jax.random.normal(first, (K, d, 2 * d))
    Sigma = A @ jnp.swapaxes(A, 1, 2) / (2 * d)
    mu = jax.random.normal(second, (K, d))
    mu = mu * c / separation(mu, Sigma)
    y = jax.random.randint(third, (n,), 0, K)
    gap = jnp.einsum("nij,nj->ni", jnp.linalg.cholesky(Sigma)[y], jax.random.normal(fourth, (n, d)))
    if dof is not None:
        gap = gap / jnp.sqrt(2 / dof * jax.random.gamma(fifth, dof / 2, (n, 1)))
    rho = flips(K, noise)
    y_hat = jax.random.categorical(sixth, jnp.log(rho).T[y])
    return Simulation(mu[y] + gap, y, y_hat, mu, Sigma, rho)
