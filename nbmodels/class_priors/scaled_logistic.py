"""Multinomial logistic regression of few columns, whose coefficients have an unknown scale."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key

from inference.arrays import on_device
from inference.pytree import register_dataclass
from inference.triangular import factor, log_diagonal
from nbmodels.class_priors.newton import NewtonPrior
from nbmodels.core.families import DrawKey, MultivariateT
from nbmodels.core.lazy import dist, numpyro

#: Levenberg's share of an item, which keeps a Newton step defined.
_DAMPING = 1e-6

#: Moves in each sweep.
_MOVES = 2


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class ScaledLogistic(NewtonPrior):
    """``P(y = k | x) = softmax(intercept + x coef)_k``, with coefficients of one unknown scale.

    With a channel of labels this is logistic regression with the noise on top (Bootkrajang and
    Kaban 2012, *Label-noise robust logistic regression*). How large coefficients are decides how
    much of the labels' disagreement is noise: unlike in :class:`~nbmodels.class_priors.Logistic`,
    their scale is learned, and summed out. The whole matrix of curvatures is computed, so that
    draws are of the posterior: for few columns, of about unit spread. A sweep takes
    ``N ((1 + d) K)^2`` multiplications.

    Attributes:
        prior: Student's t of the intercepts, then of the coefficients by columns; shape
            ``((1 + d) K,)``.
        n_classes: ``K``.

    Examples:
        The boundary between ants and bees, from lengths and labels of which one in five is wrong:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import Transition
        >>> from nbmodels.class_priors import ScaledLogistic
        >>> length = np.linspace(-3, 3, 100)[:, None]
        >>> labels = np.where(np.arange(100) % 5 == 2, length[:, 0] < 0, length[:, 0] > 0)
        >>> model = {"class_prior": ScaledLogistic.of(1, 2), "labels": Transition.of(2)}
        >>> given = Transition.pack(labels, 2)
        >>> packed = {"class_prior": ScaledLogistic.pack(length), "labels": given}
        >>> found = fit(model, Data(packed, np.ones(100)), key=jax.random.key(0))
        >>> print(np.asarray(found.params["labels"].mode).round(1))  # [true, observed]
        [[0.8 0.2]
         [0.2 0.8]]
    """

    prior: MultivariateT
    n_classes: int = field(metadata={"static": True})

    @classmethod
    def of(
        cls, n_features: int, n_classes: int, df: float = 1.0, intercept_sd: float = 3.0
    ) -> ScaledLogistic:
        """Prior ``coef ~ N(0, s^2)``, ``intercept ~ N(0, (intercept_sd s)^2)`` with the scale's
        ``s^2 ~ InverseGamma(df / 2, df / 2)``."""
        sd = np.ones((1 + n_features) * n_classes)
        sd[:n_classes] = intercept_sd
        precision = on_device(np.diag(sd**-2.0))
        mean = on_device(np.zeros_like(sd))
        prior = MultivariateT(mean, precision, on_device(np.asarray(1 / df)))
        return cls(prior=prior, n_classes=n_classes)

    @staticmethod
    def pack(x: Any) -> Float[Array, "n d"]:
        """Args: x: ``(N, d)`` finite features."""
        return on_device(x)

    def log_probs(
        self, likelihood_params: Float[Array, " p"], data: Float[Array, "n d"] | None
    ) -> Float[Array, "n k"]:
        """``(N, K)``, or ``(1, K)`` of an item without features."""
        table = likelihood_params.reshape(-1, self.n_classes)
        linear = table[:1] if data is None else table[:1] + data @ table[1:]
        return jax.nn.log_softmax(linear)

    def stats(
        self,
        likelihood_params: Float[Array, " p"],
        resp: Float[Array, "n k"],
        data: Float[Array, "n d"],
        key: DrawKey = None,
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"], Float[Array, " p"], Float[Array, ""]]:
        """Curvature ``H`` (Fisher's) and ``H theta + gradient`` of expected log-probabilities; the
        weight of all items times ``theta``, and that weight."""
        at = likelihood_params
        x = jnp.concatenate([jnp.ones((len(data), 1), data.dtype), data], 1)
        curvature, gradient, logs = self._derivatives(at, resp, data, x)
        if key is None:

            def gain(step: Array) -> Array:
                return jnp.sum(resp * (self.log_probs(at + step, data) - logs))

            size = jnp.sum(resp * jnp.abs(logs))
            curvature = curvature * self.shortening(at, curvature, gradient, gain, size)
        mass = jnp.sum(resp)
        return curvature, curvature @ at + gradient, mass * at, mass

    def accept(
        self,
        old: Float[Array, " p"],
        new: Float[Array, " p"],
        proposal: Any,
        resp: Float[Array, "n k"],
        data: Float[Array, "n d"],
        key: Key[Array, ""],
    ) -> Float[Array, " p"]:
        """Langevin moves of the coefficients given their scale, which is drawn first.

        Laplace's normal is a poor proposal where classes are nearly separated, as they are by
        steep slopes. Moves are preconditioned by the curvature where they begin (simplified
        manifold MALA, Girolami and Calderhead 2011, *JRSS B* 73).
        """
        prior = self.prior
        first, *keys = jax.random.split(key, 1 + _MOVES)
        df = 1 / prior.tail
        gap = old - prior.mean
        shape = 0.5 * (df + len(old))
        rate = 0.5 * (df + gap @ prior.precision @ gap)
        own = prior.precision * jax.random.gamma(first, shape, dtype=old.dtype) / rate
        x = jnp.concatenate([jnp.ones((len(data), 1), data.dtype), data], 1)

        def at(point: Array) -> tuple[Array, ...]:
            curvature, gradient, logs = self._derivatives(point, resp, data, x)
            gap = point - prior.mean
            density = self.weight * jnp.sum(resp * logs) - 0.5 * gap @ own @ gap
            lower, inverse = factor(self.weight * curvature + own)
            uphill = inverse.T @ (inverse @ (self.weight * gradient - own @ gap))
            return point, density, lower, inverse, point + 0.5 * uphill

        def proposed(point: Array, here: tuple[Array, ...]) -> Array:
            lower, centre = here[2], here[4]
            return log_diagonal(lower) - 0.5 * jnp.sum(jnp.square(lower.T @ (point - centre)))

        here = at(old)
        for one in keys:
            noise, level = jax.random.split(one)
            step = here[3].T @ jax.random.normal(noise, old.shape, old.dtype)
            there = at(here[4] + step)
            gain = there[1] + proposed(here[0], there) - here[1] - proposed(there[0], here)
            taken = jnp.log(jax.random.uniform(level, (), old.dtype)) < gain
            here = jax.tree.map(partial(jnp.where, taken), there, here)
        return here[0]

    def _derivatives(
        self, at: Array, resp: Array, data: Array, x: Float[Array, "n i"]
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"], Float[Array, "n k"]]:
        """Curvature and gradient of the expected log-probabilities, and the log-probabilities."""
        items = jnp.sum(resp, 1, keepdims=True)
        logs = self.log_probs(at, data)
        probs = jnp.exp(logs)
        damped = _DAMPING * jnp.sum(items) * jnp.eye(len(at), dtype=at.dtype)
        gradient = (x.T @ (resp - items * probs)).ravel()
        return _curvature(x, items, probs) + damped, gradient, logs

    def relabel(self, q: MultivariateT, order: Int[Array, " k"]) -> MultivariateT:
        to = jnp.arange(len(q.mean)).reshape(-1, self.n_classes)[:, order].ravel()
        return replace(q, mean=q.mean[to], precision=q.precision[to][:, to])

    def values(self, likelihood_params: Float[Array, " p"]) -> dict[str, Array]:
        return {"weights": likelihood_params.reshape(-1, self.n_classes)}

    def sites(self, name: str) -> dict[str, Any]:
        prior = self.prior
        sd = jnp.diag(1 / jnp.sqrt(jnp.diag(prior.precision)))  # a prior's is diagonal
        flat = dist.MultivariateStudentT(1 / prior.tail, prior.mean, sd)
        shape = (len(prior.mean) // self.n_classes, self.n_classes)
        table = dist.transforms.ReshapeTransform(shape, prior.mean.shape)
        return {
            "weights": numpyro.sample(f"{name}_weights", dist.TransformedDistribution(flat, table))
        }

    def probs(self, values: dict[str, Any], data: Array | None) -> Float[Array, "*n k"]:
        return jnp.exp(self.log_class_probs(values, data))

    def log_class_probs(self, values: dict[str, Any], data: Array | None) -> Float[Array, "*n k"]:
        # large coefficients underflow probabilities, and the logarithm of zero has no gradient
        intercept, coef = values["weights"][0], values["weights"][1:]
        return jax.nn.log_softmax(intercept + (0.0 if data is None else data @ coef), -1)

    def covariates(self, key: Key[Array, ""], n_items: int) -> Float[Array, "n d"]:
        """Features to simulate classes from."""
        return jax.random.normal(key, (n_items, len(self.prior.mean) // self.n_classes - 1))

    def dims(self) -> dict[str, list[str]]:
        return {"weights": ["column", "true_class"]}


def _curvature(
    x: Float[Array, "n i"], items: Float[Array, "n 1"], probs: Float[Array, "n k"]
) -> Float[Array, "p p"]:
    """Fisher's information: covariances of the derivatives under the predicted classes."""
    n, k = probs.shape
    width = x.shape[1]
    own = jnp.stack([x.T @ (items * probs[:, j, None] * x) for j in range(k)])
    apart = jnp.einsum("kij,kl->ikjl", own, jnp.eye(k, dtype=x.dtype)).reshape(width * k, -1)
    outer = ((jnp.sqrt(items) * x)[:, :, None] * probs[:, None, :]).reshape(n, -1)
    return apart - outer.T @ outer
