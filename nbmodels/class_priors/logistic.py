"""Multinomial logistic regression as a class prior: the class given real features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key
from scipy import sparse

from inference import Coordinates, Total, add, negate, solve, total
from inference.arrays import on_device
from inference.driver import Step
from inference.products import Matrix, matrix
from inference.pytree import register_dataclass
from nbmodels.core.component import LogLikelihood
from nbmodels.core.families import DiagonalNormal, DrawKey, Rule
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.roles import ClassPrior

#: Longest fit to given responsibilities, in accepted points, and the gain in nats per item at which
#: it ends sooner.
_STEPS = 300
_TOL = 1e-6


class Design(NamedTuple):
    """A matrix of features as logistic regression reads it.

    Attributes:
        x: ``(N, d)``.
        size: its absolute values; the same object where no entry is negative.
    """

    x: Matrix
    size: Matrix


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Logistic(ClassPrior):
    """Class prior that depends on features: ``P(y = k | x) = softmax(intercept + coef x)_k``.

    With a channel of labels this is logistic regression with the noise on top (Bootkrajang and
    Kaban 2012, *Label-noise robust logistic regression*), fitted by EM. Only ``P(y | x)`` is
    modelled: features may depend on each other as they like. With many of them it overfits to
    the wrong labels, so that its predictions of the items that it was fitted to are no evidence
    about their labels: see :mod:`nbmodels.fitting.discriminative`.

    There is no conjugate family: ``q`` is normal, one step an iteration, centred at the maximum of
    a quadratic bound from below. Its curvature is ``1/2`` for each class (Boehning 1992, *Ann.
    Inst. Statist. Math.* 44, eq. (3.3)), and for each item its product with ``x`` is bounded by a
    diagonal, ``(sum_j x_j b_j)^2 <= sum_i |x_i| sum_j |x_j| b_j^2`` (De Pierro 1995). So no step
    falls, and none costs more than the two products. All rules read the centre, but a draw.

    Attributes:
        prior: normals of the intercepts, then of the coefficients; shape ``(1 + d, K)``.

    Examples:
        The boundary between ants and bees, from lengths and labels of which one in five is wrong:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import Transition
        >>> from nbmodels.class_priors import Logistic
        >>> length = np.linspace(-3, 3, 100)[:, None]
        >>> labels = np.where(np.arange(100) % 5 == 2, length[:, 0] < 0, length[:, 0] > 0)
        >>> model = {"class_prior": Logistic.of(1, 2), "labels": Transition.of(2)}
        >>> packed = {"class_prior": Logistic.pack(length), "labels": Transition.pack(labels, 2)}
        >>> found = fit(model, Data(packed, np.ones(100)), key=jax.random.key(0))
        >>> print(np.asarray(found.params["labels"].mode).round(1))  # [true, observed]
        [[0.8 0.2]
         [0.2 0.8]]
        >>> at, new = found.params["class_prior"].mean, Logistic.pack(np.c_[-2.0, 0.0, 2.0].T)
        >>> print(np.exp(model["class_prior"].log_probs(at, new)).round(1))
        [[1.  0. ]
         [0.5 0.5]
         [0.  1. ]]
    """

    prior: DiagonalNormal

    @classmethod
    def of(
        cls, n_features: int, n_classes: int, scale: float = 1.0, intercept_sd: float = 10.0
    ) -> Logistic:
        """Prior ``coef ~ N(0, scale^2)`` and ``intercept ~ N(0, intercept_sd^2)``."""
        precision = np.ones((1 + n_features, n_classes)) * scale**-2.0
        precision[0] = intercept_sd**-2.0
        mean = on_device(np.zeros_like(precision))
        return cls(prior=DiagonalNormal(mean, on_device(precision)))

    @staticmethod
    def pack(x: Any) -> Design:
        """Args: x: ``(N, d)`` finite features, dense or sparse."""
        packed = matrix(x)
        return Design(packed, packed if sparse.issparse(x) and x.min() >= 0 else matrix(abs(x)))

    def log_probs(
        self, likelihood_params: Float[Array, "p k"], data: Design | None
    ) -> Float[Array, "n k"]:
        """``(N, K)``, or ``(1, K)`` of an item without features."""
        linear = 0.0 if data is None else data.x.times(likelihood_params[1:])
        return jax.nn.log_softmax(likelihood_params[:1] + linear)

    def log_likelihood(
        self, likelihood_params: Float[Array, "p k"], data: Design | None
    ) -> LogLikelihood:
        return LogLikelihood(
            self.log_probs(likelihood_params, data), jnp.zeros((1,), likelihood_params.dtype)
        )

    def stats(
        self,
        likelihood_params: Float[Array, "p k"],
        resp: Float[Array, "n k"],
        data: Design,
        key: DrawKey = None,
    ) -> tuple[Float[Array, "p 1"], Float[Array, "p k"]]:
        """``(1 + d, 1)`` curvature ``H`` of the bound, and ``H theta + gradient``."""
        items = jnp.sum(resp, 1, keepdims=True)
        gap = resp - items * jnp.exp(self.log_probs(likelihood_params, data))
        ones = jnp.ones((data.x.shape[1], 1), likelihood_params.dtype)
        share = 0.5 * items * (1 + data.size.times(ones))
        curvature = jnp.concatenate([jnp.sum(share, 0)[None], data.size.transpose_times(share)])
        gradient = jnp.concatenate([jnp.sum(gap, 0)[None], data.x.transpose_times(gap)])
        return curvature, curvature * likelihood_params + gradient

    def start(self, resp: Float[Array, "n k"], data: Design, rule: Rule) -> DiagonalNormal:
        """Fitted to the responsibilities as they are."""
        result = solve(
            _fit_step(rule),
            self.prior,
            (self, resp, data),
            max_steps=_STEPS,
            tol=_TOL * jnp.sum(resp),
            coordinates=_coordinates(rule),
        )
        return result.params

    def relabel(self, q: DiagonalNormal, order: Int[Array, " k"]) -> DiagonalNormal:
        return DiagonalNormal(q.mean[:, order], q.precision[:, order])

    def values(self, likelihood_params: Float[Array, "p k"]) -> dict[str, Array]:
        return {"intercept": likelihood_params[0], "coef": likelihood_params[1:].T}

    def sites(self, name: str) -> dict[str, Any]:
        scale = 1 / jnp.sqrt(self.prior.precision)
        intercept = dist.Normal(self.prior.mean[0], scale[0]).to_event(1)
        coef = dist.Normal(self.prior.mean[1:].T, scale[1:].T).to_event(2)
        return {
            "intercept": numpyro.sample(f"{name}_intercept", intercept),
            "coef": numpyro.sample(f"{name}_coef", coef),
        }

    def probs(self, values: dict[str, Any], data: Design | None) -> Float[Array, "*n k"]:
        linear = 0.0 if data is None else data.x.to_dense() @ values["coef"].T
        return jax.nn.softmax(values["intercept"] + linear, -1)

    def log_class_probs(self, values: dict[str, Any], data: Design | None) -> Float[Array, "*n k"]:
        # large coefficients underflow probabilities, and the logarithm of zero has no gradient
        linear = 0.0 if data is None else data.x.to_dense() @ values["coef"].T
        return jax.nn.log_softmax(values["intercept"] + linear, -1)

    def covariates(self, key: Key[Array, ""], n_items: int) -> Float[Array, "n d"]:
        """Features to simulate classes from."""
        return jax.random.normal(key, (n_items, len(self.prior.mean) - 1))

    def dims(self) -> dict[str, list[str]]:
        return {"intercept": ["true_class"], "coef": ["true_class", "feature"]}


@cache
def _fit_step(rule: Rule) -> Step:
    """The fixed-point map of a fit to given responsibilities."""

    def step(
        q: DiagonalNormal, context: tuple[Logistic, Array, Design]
    ) -> tuple[DiagonalNormal, Total]:
        component, resp, data = context
        likelihood_params = component.likelihood_params(q, rule)
        inside = component.weight * resp * component.log_probs(likelihood_params, data)
        value = add(total(inside), negate(total(component.penalty(q, rule))))
        stats = component.stats(likelihood_params, resp, data)
        return component.update(jax.tree.map(lambda s: component.weight * s, stats), rule), value

    return step


@cache
def _coordinates(rule: Rule) -> Coordinates:
    def free(q: DiagonalNormal, _: Any) -> Any:
        return q.free(rule)

    def constrain(moved: Any, q: DiagonalNormal, _: Any) -> DiagonalNormal:
        return q.constrain(moved, rule)

    return Coordinates(free, constrain)
