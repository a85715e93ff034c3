"""Chen et al. 2019: text classification from positive and negative labels.

Sections 3 and 4 of the paper [1] in its notation: the likelihoods, the closed forms, what the
theorems state of them, and, as :func:`em`, the model in which an excluded class has probability
zero, which the paper does not have. None of it calls a component's ``log_likelihood``.
:func:`to_model` describes the same data by components.

================================  ================================  ==============================
the paper                         this module                       the components
================================  ================================  ==============================
``k`` classes, ``v`` words        ``k``, ``v``                      shapes of data and priors
``x_j`` count of word ``j``       ``x`` ``(N, v)``                  data of ``"x"``
``y_i(x)``, x in S1               ``y`` ``(N, k)``, a row of zeros  data of ``"candidates"``
                                  for documents of S2
``z_i(x)``, x in S2               ``z`` ``(N, k)``, a row of zeros  data of ``"candidates"``
                                  for documents of S1
``P(C_i)``                        ``P`` ``(k,)``                    ``Proportions``, ``probs``
``theta_{i_j}``                   ``theta`` ``(k, v)``              ``Multinomial``, ``probs``
exponents of (3.1)                :func:`weights_1`                 ``initial_responsibilities``
exponents of (3.2)                :func:`weights_2`
(3.10), (4.2), (4.4), (4.5)       :func:`centroids`                 ``start``
``|C_i|``, ``|D_i|``, ``|R_i|``   ``n_C``, ``n_D``, ``n_R``
``m`` words in every document     ``m``
================================  ================================  ==============================

The paper does not say how ``P(C_i)`` is estimated, and smooths nothing. The estimator gives the
class shares the same weights, because ``f_i`` in (3.1) and (3.2) contains ``P(C_i)``.

Slips in the paper, and how they are read here:

- (3.1): ``k - sum_{j != i} z_j`` is, where ``z_i = 0``, the number of classes not excluded.
- Theorem 2 calls both the number of excluded classes and the weight ``Z_i(x)`` by the letter K; it
  is the weight here. In the proof the last square lacks the division that the lines before it have.
- Theorem 3, 1: the bias is said to be O(t). It does not grow with ``t``: with large ``t`` every
  centroid tends to the words of all documents together, see :func:`mean_2`.
- Theorem 3, 2: a document of S2 is of a class that is not given, drawn from the others. Its
  variance is the mean of theirs, so that ``(k - 1)^2`` should read ``k - 1``, plus the variance
  between their means, which the proof leaves out and which does not shrink as documents become
  longer. So the variance is ``O(1 / |S|)``, not ``O(1 / (m |S|))``; see :func:`variance_2`.

**References:**

    1. Chen, J., Dai, Z., Duan, J., Hu, Q., Li, R., Matzinger, H., Popescu, I., and Zhai, H. (2019).
       "A cost-reducing partial labeling estimator in text classification problem."

Examples:
    >>> import numpy as np
    >>> from nbmodels.papers import chen2019
    >>> x = np.array([[8, 1, 1], [1, 8, 1], [1, 1, 8], [7, 2, 1]])  # counts of three words
    >>> y = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])  # positive labels
    >>> z = np.array([[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 1, 0]])  # not of class 1
    >>> print(chen2019.weights_1(y, z)[3])
    [0.5 0.  0.5]
    >>> theta = chen2019.centroids(chen2019.weights_1(y, z), x)
    >>> print(chen2019.label(x, np.full(3, 1 / 3), theta))
    [0 1 2 0]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array

from inference.pytree import register_dataclass
from nbmodels.channels import CandidateSets
from nbmodels.class_priors import Proportions
from nbmodels.core import model as models
from nbmodels.core.component import Component
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.emissions import Multinomial

# Sections 3 and 4: likelihoods and closed forms ---------------------------------------------------


def weights_1(y: Any, z: Any) -> Array:
    """``(N, k)`` exponents of (3.1): even over the classes that are not excluded."""
    y, z = jnp.asarray(y, float), jnp.asarray(z, float)
    k = y.shape[1]
    others = jnp.sum(z, 1, keepdims=True) - z  # sum over j != i
    positive = jnp.any(y > 0, 1, keepdims=True)
    return jnp.where(positive, y, (1 - z) / jnp.maximum(k - others, 1))


def weights_2(y: Any, z: Any, t: Any = 2.0) -> Array:
    """``(N, k)`` exponents of (3.2); with ``z = 1 - y`` those of the starred estimator, (4.5)."""
    return jnp.asarray(y, float) - jnp.asarray(z, float) + t


def log_likelihood(weights: Any, x: Any, P: Any, theta: Any) -> Array:
    """(3.3) and (3.4), with ``log f_i`` as below (3.5)."""
    log_f = jnp.log(P) + x @ jnp.log(theta).T
    return jnp.sum(weights * log_f)


def centroids(weights: Any, x: Any) -> Array:
    """``(k, v)`` maximisers: (3.10) with the labels for weights, (4.2), (4.4) and (4.5)."""
    counts = jnp.asarray(weights).T @ jnp.asarray(x)
    return counts / jnp.sum(counts, 1, keepdims=True)


def label(x: Any, P: Any, theta: Any) -> Array:
    """``(N,)`` likeliest classes, (3.5)."""
    return jnp.argmax(jnp.log(P) + x @ jnp.log(theta).T, 1)


# The theorems -------------------------------------------------------------------------------------


def variance_nb(theta: Any, n_C: Any, m: int) -> Any:
    """Theorem 1: variance of (3.10), which is unbiased, from ``n_C`` documents of ``m`` words."""
    return theta * (1 - theta) / (n_C * m)


def bias_1(theta_i: Any, l_i: Any, n_C: Any, n_R: Any, weight: Any) -> Any:
    """Theorem 2: bias of (4.2) in one class.

    Args:
        theta_i: ``(v,)`` centroid of the class.
        l_i: ``(v,)`` word shares of the documents of S2 that may be of the class.
        n_C: number of documents labelled with the class.
        n_R: number of documents of S2 that may be of it.
        weight: their weight, one over the number of classes not excluded.
    """
    return n_R * weight * (l_i - theta_i) / (n_C + n_R * weight)


def _other_classes(k: int) -> Array:
    """``(k, k)`` averages over all classes but one."""
    return (1 - jnp.eye(k)) / (k - 1)


def mean_2(theta: Any, n_C: Any, n_D: Any, t: Any) -> Array:
    """Theorem 3, 1: expectation of (4.4), ``(k, v)``.

    Documents of S2 have one excluded class each, and are of any other with equal probability.

    Args:
        theta: ``(k, v)``.
        n_C: ``(k,)`` documents labelled with each class.
        n_D: ``(k,)`` documents labelled as not of each class.
        t: as in (3.2).
    """
    theta, n_C, n_D = jnp.asarray(theta), jnp.asarray(n_C, float), jnp.asarray(n_D, float)
    other = _other_classes(len(theta)) @ theta
    everything = n_C @ theta + n_D @ other
    size = n_C - n_D + t * jnp.sum(n_C + n_D)
    return (t * everything + n_C[:, None] * theta - n_D[:, None] * other) / size[:, None]


def variance_2(theta: Any, n_C: Any, n_D: Any, m: int, t: Any) -> Array:
    """Variance of (4.4), ``(k, v)``; Theorem 3, 2 with the variance between classes kept.

    Args:
        theta, n_C, n_D, t: as in :func:`mean_2`.
        m: words in every document.
    """
    theta, n_C, n_D = jnp.asarray(theta), jnp.asarray(n_C, float), jnp.asarray(n_D, float)
    average = _other_classes(len(theta))
    within = theta * (1 - theta) / m
    between = average @ jnp.square(theta) - jnp.square(average @ theta)
    labelled, excluded = n_C[:, None] * within, n_D[:, None] * (average @ within + between)
    square = jnp.square(t) * jnp.sum(labelled + excluded, 0)
    square = square + (1 + 2 * t) * labelled + (1 - 2 * t) * excluded
    return square / jnp.square(n_C - n_D + t * jnp.sum(n_C + n_D))[:, None]


@register_dataclass
@dataclass(frozen=True)
class Simulation:
    """Documents as the theorems have them.

    Attributes:
        x: ``(N, v)`` counts of words.
        y: ``(N, k)`` positive labels, rows of zeros in S2.
        z: ``(N, k)`` negative labels, rows of zeros in S1.
        true: ``(N,)`` classes.
    """

    x: Array
    y: Array
    z: Array
    true: Array


def simulate(
    key: Array, theta: Any, n_C: tuple[int, ...], n_D: tuple[int, ...], m: int
) -> Simulation:
    """Documents of ``m`` words: ``n_C`` labelled with each class, ``n_D`` as not of each; pure.

    A document of S2 is of any class but the excluded one with equal probability.
    """
    first, second = jax.random.split(key)
    k, v = jnp.shape(theta)
    positive, negative = (np.repeat(np.arange(k), n) for n in (n_C, n_D))
    shift = jax.random.randint(first, negative.shape, 1, k)
    true = jnp.concatenate([jnp.asarray(positive), (negative + shift) % k])
    words = jax.random.categorical(second, jnp.log(theta)[true][None], shape=(m, len(true)))
    x = jax.vmap(lambda w: jnp.bincount(w, length=v), 1)(words).astype(float)
    eye, some, none = np.eye(k), len(positive), len(negative)
    y = np.concatenate([eye[positive], np.zeros((none, k))])
    z = np.concatenate([np.zeros((some, k)), eye[negative]])
    return Simulation(x, jnp.asarray(y), jnp.asarray(z), true)


def draw_negative(key: Array, true: Array, k: int) -> Array:
    """``(N, k)`` as in section 5: one class that the document is not of, any with equal chance."""
    shift = jax.random.randint(key, true.shape, 1, k)
    return jax.nn.one_hot((true + shift) % k, k)


# The same labels in a model with latent classes ---------------------------------------------------


def possible(y: Any, z: Any) -> Array:
    """``(N, k)`` booleans: the labelled class, or every class that is not excluded."""
    y, z = jnp.asarray(y) > 0, jnp.asarray(z) > 0
    return jnp.where(jnp.any(y, 1, keepdims=True), y, True) & ~z


def em(x: Array, y: Array, z: Array, *, alpha_P: float = 1.0, alpha_theta: float = 1.0) -> None:
    """Documents of unknown classes, of which the labels rule some out; there is no ``t``.

    Args:
        x: ``(N, v)`` counts of words.
        y: ``(N, k)`` positive labels, rows of zeros where there is none.
        z: ``(N, k)`` negative labels.
        alpha_P: pseudo-documents a class.
        alpha_theta: pseudo-counts a word, in each class.
    """
    k, v = y.shape[1], x.shape[1]
    P = numpyro.sample("P", dist.Dirichlet(jnp.full(k, 1 + alpha_P)))
    theta = numpyro.sample("theta", dist.Dirichlet(jnp.full((k, v), 1 + alpha_theta)).to_event(1))
    allowed = possible(y, z)
    with numpyro.plate("d", len(x)):
        C = numpyro.sample("C", dist.Categorical(P), infer={"enumerate": "parallel"})
        numpyro.factor("labels", jnp.where(allowed[jnp.arange(len(x)), C], 0.0, -jnp.inf))
        words = dist.Multinomial(jnp.sum(x, 1).astype(int), theta[C])
        numpyro.sample("x", words, obs=x)


def to_model(
    k: int, v: int, *, alpha_P: float = 1.0, alpha_theta: float = 1.0
) -> dict[str, Component]:
    """Components of the model of :func:`em`.

    Args:
        k: number of classes.
        v: number of words.
        alpha_P, alpha_theta: as in :func:`em`.
    """
    return {
        PRIOR: Proportions.of(k, alpha_P),
        "candidates": CandidateSets.of(k),
        "x": Multinomial.of(v, k, alpha_theta),
    }


def to_data(x: Any, y: Any, z: Any) -> Data:
    """Data of :func:`to_model` from the arrays of the paper's model."""
    allowed = possible(y, z)
    parts = {
        PRIOR: None,
        "candidates": CandidateSets.pack(allowed, allowed.shape[1]),
        "x": Multinomial.pack(x),
    }
    return Data(parts, jnp.ones(len(allowed)))


def parameters(model: Model, q: Any) -> dict[str, Array]:
    """A fit under rule ``"map"`` in the paper's notation: ``P`` and ``theta``."""
    values = models.values(model, models.likelihood_params(model, q, "map"))
    return {"P": values[PRIOR]["probs"], "theta": values["x"]["probs"]}
