"""Zeng et al. 2022: naive Bayes whose observed labels may be mistaken (INB).

The models below are written from sections 3.1-3.2 and appendix .1 of the paper [1], in its
notation, and never call a component's ``log_likelihood``. :func:`to_model` describes the same data
by components; :func:`parameters` puts a fit of theirs into the notation of this module.

===============================  ==========================  ===================================
the paper                        this module                 the components
===============================  ==========================  ===================================
``N``, ``K``, ``d``, ``d_2``     ``N``, ``K``, ``d``         shapes of data and priors
``Y*_i`` true label              ``y_star``                  the latent true class
``Y_i`` observed label           ``Y``, -1 where missing     data of ``"labels"``
``X_ij`` binary feature          ``X`` ``(N, d)``            data of ``"x"``
``Z_ij`` real feature, app. .1   ``Z`` ``(N, d_2)``          data of ``"z"``
``pi_k``                         ``pi`` ``(K,)``             ``Proportions``, ``probs``
``rho_{k1 k2}``, eq. (1)         ``rho[observed, true]``     ``Transition``, transposed
``p_jk``                         ``p`` ``(d, K)``            ``Bernoulli``, ``probs``, transposed
``mu_jk``, ``sigma_jk``          ``mu``, ``sigma``           ``DiagonalGaussian``, transposed
``gamma_ik``, eq. (7)            summed over                 responsibilities
``ACC - ACC*``, section 3.4      the mislabelling effect     a benchmark
===============================  ==========================  ===================================

The paper maximises the likelihood. Here each parameter has the conjugate prior of our components.
A Dirichlet or Beta concentration is one plus a pseudo-count, and the pseudo-counts are the keyword
arguments: zeros make the priors of ``pi``, ``rho`` and ``p`` flat.

Slips in the paper, and how they are read here:

- Appendix .1: the exponent of the normal density lacks its square.
- Eq. (4) writes ``X_ij > 1`` for ``X_ij = 1``.
- The display after eq. (5) lacks the division by ``P(X_ij = 1)``, which eqs. (3) and (4) have.
- After eq. (5), ``rho / (1 - rho) + 1`` is said to be at least 11 where ``rho >= 0.9``; it is 10.
- Section 3.5 starts ``p`` at random; EM then ends in permuted classes, which section 3.3 says are
  as likely. Fits here start from the observed labels.
- Section 4.1 says that with ``rho_kk = 1`` NB, INB and NB-T "become identical"; its Table 1 has
  NB-T 8.4 points above the others at ``n = 500``. We read it of NB and INB.
- Table 1: NB-T depends on ``n``, which cannot come from the sample size, and not on ``rho``: ``p``
  seems to have been drawn once for each ``n``. :func:`simulate` draws it anew by default.
- Table 1: with ``rho_kk = 1`` the error of ``p`` is the mean of ``p (1 - p)`` over the items of a
  class, 2.6, 1.3 and 0.26 thousandths for ``p`` as section 4.1 draws it. The paper prints 2.3, 1.1
  and 0.2, as if the mean of ``p`` were about 0.75 and not 0.70. Not followed here.

**References:**

    1. Zeng, Q., Zhu, Y., Zhu, X., Wang, F., Zhao, W., Sun, S., Su, M., and Wang, H. (2022).
       "Improved Naive Bayes with Mislabeled Data."

Examples:
    >>> import jax
    >>> import numpy as np
    >>> from nbmodels import fit
    >>> from nbmodels.papers import zeng2022
    >>> truth = np.repeat([0, 1], 100)
    >>> X = (np.random.default_rng(0).random((200, 8)) < 0.1 + 0.8 * truth[:, None]).astype(int)
    >>> Y = np.where(np.arange(200) < 20, 1, truth)  # a fifth of class 0 are labelled 1
    >>> model = zeng2022.to_model(K=2, d=8)
    >>> fitted = fit(model, zeng2022.to_data(model, Y, X), key=jax.random.key(0))
    >>> print(zeng2022.parameters(model, fitted.params)["rho"].round(1))
    [[0.8 0. ]
     [0.2 1. ]]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array

from inference.pytree import register_dataclass
from nbmodels.channels import Transition
from nbmodels.class_priors import Proportions
from nbmodels.core import model as models
from nbmodels.core.component import Component
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.emissions import Bernoulli, DiagonalGaussian

# The paper's models -------------------------------------------------------------------------------


def _pi(K: int, alpha: float) -> Array:
    return numpyro.sample("pi", dist.Dirichlet(jnp.full(K, 1 + alpha)))


def _rho(K: int, alpha: float, diagonal: float) -> Array:
    wrong = jnp.full((K, K), 1 + alpha / max(K - 1, 1))
    concentration = jnp.where(jnp.eye(K, dtype=bool), 1 + diagonal, wrong)
    columns = numpyro.sample("rho_columns", dist.Dirichlet(concentration).to_event(1))
    return numpyro.deterministic("rho", columns.T)


def _p(d: int, K: int, alpha: float) -> Array:
    ones = jnp.full((d, K), 1 + alpha)
    return numpyro.sample("p", dist.Beta(ones, ones).to_event(2))


def _mu_sigma(d: int, K: int, kappa: float, shape: float, rate: float) -> tuple[Array, Array]:
    full = jnp.ones((d, K))
    sigma2 = numpyro.sample("sigma2", dist.InverseGamma(shape * full, rate).to_event(2))
    sigma = numpyro.deterministic("sigma", jnp.sqrt(sigma2))
    mu = numpyro.sample("mu", dist.Normal(0.0, sigma / jnp.sqrt(kappa)).to_event(2))
    return mu, sigma


def _y_star(pi: Array) -> Array:
    return numpyro.sample("y_star", dist.Categorical(pi), infer={"enumerate": "parallel"})


def _observe_labels(rho: Array, y_star: Array, Y: Array) -> None:
    seen = Y >= 0
    label = dist.Categorical(rho.T[y_star]).mask(seen)
    numpyro.sample("Y", label, obs=jnp.where(seen, Y, 0))


def binary(
    X: Array,
    Y: Array,
    K: int,
    *,
    alpha_pi: float = 1.0,
    alpha_rho: float = 1.0,
    diagonal_rho: float = 2.0,
    alpha_p: float = 1.0,
) -> None:
    """Sections 3.1 and 3.2: binary features and mislabelling, eqs. (1) and (2).

    Args:
        X: ``(N, d)`` zeros and ones.
        Y: ``(N,)`` observed labels in ``0..K-1``, -1 where missing.
        K: number of classes.
        alpha_pi: pseudo-items a class.
        alpha_rho: pseudo-labels that are wrong, a true class, shared out evenly.
        diagonal_rho: pseudo-labels that are right, a true class.
        alpha_p: pseudo-items for each value of each feature in each class.
    """
    pi = _pi(K, alpha_pi)
    rho = _rho(K, alpha_rho, diagonal_rho)
    p = _p(X.shape[1], K, alpha_p)
    with numpyro.plate("i", len(Y)):
        y_star = _y_star(pi)
        _observe_labels(rho, y_star, jnp.asarray(Y))
        numpyro.sample("X", dist.Bernoulli(p.T[y_star]).to_event(1), obs=X)


def continuous(
    Z: Array,
    Y: Array,
    K: int,
    *,
    alpha_pi: float = 1.0,
    alpha_rho: float = 1.0,
    diagonal_rho: float = 2.0,
    kappa: float = 0.01,
    shape: float = 1.0,
    rate: float = 0.1,
) -> None:
    """Appendix .1 with ``d_1 = 0``: real features and mislabelling.

    Args:
        Z: ``(N, d_2)`` real numbers, standardised.
        Y, K, alpha_pi, alpha_rho, diagonal_rho: as in :func:`binary`.
        kappa: pseudo-items behind a mean of zero.
        shape, rate: of the inverse gamma prior of ``sigma^2``.
    """
    pi = _pi(K, alpha_pi)
    rho = _rho(K, alpha_rho, diagonal_rho)
    mu, sigma = _mu_sigma(Z.shape[1], K, kappa, shape, rate)
    with numpyro.plate("i", len(Y)):
        y_star = _y_star(pi)
        _observe_labels(rho, y_star, jnp.asarray(Y))
        numpyro.sample("Z", dist.Normal(mu.T[y_star], sigma.T[y_star]).to_event(1), obs=Z)


def mixed(
    X: Array,
    Z: Array,
    Y: Array,
    K: int,
    *,
    alpha_pi: float = 1.0,
    alpha_rho: float = 1.0,
    diagonal_rho: float = 2.0,
    alpha_p: float = 1.0,
    kappa: float = 0.01,
    shape: float = 1.0,
    rate: float = 0.1,
) -> None:
    """Appendix .1: binary and real features and mislabelling.

    Args:
        X, Y, K, alpha_pi, alpha_rho, diagonal_rho, alpha_p: as in :func:`binary`.
        Z, kappa, shape, rate: as in :func:`continuous`.
    """
    pi = _pi(K, alpha_pi)
    rho = _rho(K, alpha_rho, diagonal_rho)
    p = _p(X.shape[1], K, alpha_p)
    mu, sigma = _mu_sigma(Z.shape[1], K, kappa, shape, rate)
    with numpyro.plate("i", len(Y)):
        y_star = _y_star(pi)
        _observe_labels(rho, y_star, jnp.asarray(Y))
        numpyro.sample("X", dist.Bernoulli(p.T[y_star]).to_event(1), obs=X)
        numpyro.sample("Z", dist.Normal(mu.T[y_star], sigma.T[y_star]).to_event(1), obs=Z)


# The same models as components --------------------------------------------------------------------


def to_model(
    K: int,
    d: int = 0,
    d_2: int = 0,
    *,
    alpha_pi: float = 1.0,
    alpha_rho: float = 1.0,
    diagonal_rho: float = 2.0,
    alpha_p: float = 1.0,
    kappa: float = 0.01,
    shape: float = 1.0,
    rate: float = 0.1,
) -> dict[str, Component]:
    """Components of the same model, under the names of the table above.

    Args:
        K: number of classes.
        d: number of binary features; none by default.
        d_2: number of real features; none by default.
        alpha_pi, alpha_rho, diagonal_rho, alpha_p: as in :func:`binary`.
        kappa, shape, rate: as in :func:`continuous`.
    """
    model: dict[str, Component] = {
        PRIOR: Proportions.of(K, alpha_pi),
        "labels": Transition.of(K, alpha=alpha_rho, diagonal=diagonal_rho),
    }
    if d:
        model["x"] = Bernoulli.of(d, K, alpha_p)
    if d_2:
        model["z"] = DiagonalGaussian.of(d_2, K, kappa, shape, rate)
    return model


def to_data(model: Model, Y: Any, X: Any = None, Z: Any = None) -> Data:
    """Data of :func:`to_model` from the arrays of the paper's model; ``Y`` may hold -1."""
    parts: dict[str, Any] = {
        PRIOR: None,
        "labels": Transition.pack(Y, model["labels"].prior.concentration.shape[1]),
    }
    if X is not None:
        parts["x"] = Bernoulli.pack(X)
    if Z is not None:
        parts["z"] = DiagonalGaussian.pack(Z)
    return Data(parts, jnp.ones(len(Y)))


def parameters(model: Model, q: Any) -> dict[str, Array]:
    """A fit under rule ``"map"`` in the paper's notation: ``pi``, ``rho``, ``p``, ``mu, sigma``."""
    values = models.values(model, models.likelihood_params(model, q, "map"))
    out = {"pi": values[PRIOR]["probs"], "rho": values["labels"]["transition"].T}
    if "x" in model:
        out["p"] = values["x"]["probs"].T
    if "z" in model:
        out["mu"] = values["z"]["mu"].T
        out["sigma"] = jnp.sqrt(values["z"]["variance"]).T
    return out


# Section 3.4: the impact of mislabelling ----------------------------------------------------------


def label_given_feature(pi: Array, rho: Array, p_j: Array) -> Array:
    """``(K,)`` probabilities ``P(Y = k | X_j = 1)`` of the observed label, for any ``rho``."""
    joint = pi * p_j
    return rho @ joint / jnp.sum(joint)


def impact_two_classes(p_j1: Any, p_j2: Any, rho: Any) -> Any:
    """Eq. (3): ``P(Y = 1 | X_j = 1) - P(Y = 2 | X_j = 1)`` for two equally common classes.

    Its sign is that of ``p_j1 - p_j2``: symmetric mistakes leave the prediction alone.

    Args:
        p_j1, p_j2: ``P(X_j = 1)`` in either class.
        rho: probability of a right label, the same in both, above 1/2.
    """
    feature = 0.5 * (p_j1 + p_j2)
    return 0.5 * (p_j1 - p_j2) * (rho - (1 - rho)) / feature


def impact_constant(p_j: Array, k_1: int, k_2: int, rho: Any) -> Array:
    """Eq. (4): ``P(Y = k_1 | X_j = 1) - P(Y = k_2 | X_j = 1)`` where all mistakes are alike.

    Args:
        p_j: ``(K,)`` values of ``P(X_j = 1)`` in the classes, which are equally common.
        k_1, k_2: two classes.
        rho: probability of a right label, the same in all classes, above 1/2.
    """
    K = p_j.shape[0]
    return (p_j[k_1] - p_j[k_2]) / K * (K * rho - 1) / (K - 1) / jnp.mean(p_j)


def confusing_class(K: int, rho: Any) -> Array:
    """Eq. (5): the ``(K, K)`` mislabelling matrix that sends all mistakes through class 1.

    Mistaken items of the first class become the second, those of all others become the first.
    """
    first = jnp.zeros((K, K)).at[0].set(1).at[0, 0].set(0).at[1, 0].set(1)
    return rho * jnp.eye(K) + (1 - rho) * first


def impact_confusing_class(p_j1: Any, p_j2: Any, K: int, rho: Any) -> Any:
    """After eq. (5): ``P(Y = 1 | X_j = 1) - P(Y = k | X_j = 1)`` for ``k > 2``.

    Positive for large ``K`` even where ``p_j1`` is far below ``p_j2``: the prediction is turned.
    The paper leaves out the division by ``P(X_j = 1)``, which does not change the sign.

    Args:
        p_j1: ``P(X_j = 1)`` in class 1.
        p_j2: the same in every other class; classes are equally common.
        K: number of classes.
        rho: probability of a right label, in ``[0.9, 1)``.
    """
    odds = rho / (1 - rho)
    feature = (p_j1 + (K - 1) * p_j2) / K
    return (1 - rho) / K * (odds * p_j1 + (K - 1) * p_j2 - odds * p_j2) / feature


# Section 4.1: simulated data ----------------------------------------------------------------------


@register_dataclass
@dataclass(frozen=True)
class Simulation:
    """One data set of section 4.1 and what it was drawn from.

    Attributes:
        X: ``(n, d)`` zeros and ones.
        y_true: ``(n,)`` true labels.
        y_observed: ``(n,)`` observed labels.
        pi: ``(K,)``.
        p: ``(d, K)``.
        rho: ``(K, K)``, ``[observed, true]``.
        n_train: items come in no order, so the first 80 % serve for training.
    """

    X: Array
    y_true: Array
    y_observed: Array
    pi: Array
    p: Array
    rho: Array
    n_train: int = field(metadata={"static": True})

    @property
    def train(self) -> slice:
        """Rows for training; labels there are the observed ones."""
        return slice(0, self.n_train)

    @property
    def test(self) -> slice:
        """Rows for testing; labels there are the true ones."""
        return slice(self.n_train, self.X.shape[0])


def simulate(
    key: Array,
    n: int,
    d: int = 500,
    K: int = 5,
    diagonal: tuple[Any, Any] = (0.55, 0.65),
    proportions: Any = None,
    *,
    truth_key: Array | None = None,
) -> Simulation:
    """Section 4.1 (balanced) and appendix .2 (``proportions=(3, 1, 1, 1, 1)``); pure, jittable.

    How the paper is read where it leaves room:

    - ``p_jk`` is the sum of one uniform number and one normal number, both drawn for each ``j`` and
      ``k``. A sum outside (0, 1), a few in a million, is clipped.
    - Off-diagonal entries of ``rho`` are uniform numbers, scaled so that its columns sum to one.
      The paper's intervals begin above 1/2, so each is below its diagonal, as section 3.3 demands.
    - Scores are taken against the true labels of the test rows.

    Args:
        key: random key of everything but the truth.
        n: number of items, 80 % of them for training.
        d: number of features.
        K: number of classes.
        diagonal: interval of the diagonal of ``rho``, from 1/2 up.
        proportions: ``(K,)`` relative sizes of the classes; equal by default.
        truth_key: key of ``p`` and ``rho``, where several data sets shall share them; split from
            ``key`` by default.
    """
    first, second, third, fourth = jax.random.split(key, 4)
    truth_key = first if truth_key is None else truth_key
    uniform_key, normal_key, diagonal_key, off_key = jax.random.split(truth_key, 4)

    size = jnp.ones(K) if proportions is None else jnp.asarray(proportions, jnp.zeros(()).dtype)
    pi = size / jnp.sum(size)

    uniform = jax.random.uniform(uniform_key, (d, K), maxval=0.1)
    normal = 0.65 + 0.06 * jax.random.normal(normal_key, (d, K))
    p = jnp.clip(uniform + normal, 1e-3, 1 - 1e-3)
    right = jax.random.uniform(diagonal_key, (K,), minval=diagonal[0], maxval=diagonal[1])
    eye = jnp.eye(K)
    off = jax.random.uniform(off_key, (K, K)) * (1 - eye)
    rho = right * eye + (1 - right) * off / jnp.sum(off, 0)

    y_true = jax.random.categorical(second, jnp.log(pi), shape=(n,))
    y_observed = jax.random.categorical(third, jnp.log(rho).T[y_true])
    X = jax.random.bernoulli(fourth, p.T[y_true]).astype(p.dtype)
    return Simulation(X, y_true, y_observed, pi, p, rho, n_train=n * 4 // 5)
