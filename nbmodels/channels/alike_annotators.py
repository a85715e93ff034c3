"""Annotators of whom votes do not show who is better: one accuracy for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key

from inference.arrays import on_device
from inference.products import Matrix
from inference.pytree import register_dataclass
from nbmodels.channels.annotators import Annotators, right_labels
from nbmodels.channels.drawn_annotators import DrawnAnnotators
from nbmodels.core.component import LogLikelihood
from nbmodels.core.families import Dirichlet, Rule, beta
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.roles import LabelChannel


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class AlikeAnnotators(Annotators):
    """Annotators held to one matrix, which draws take for unknown: see :class:`SharedAccuracy`.

    Attributes:
        prior: Dirichlet of shape ``(annotators, observed, K)``, that holds the matrix.
        pseudo: ``(2,)`` right and wrong pseudo-votes of the accuracy in draws.

    Examples:
        Ten annotators voted once each, on ants, and three of them were wrong. A fit knows the
        matrix, and draws do not:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels.channels.alike_annotators import AlikeAnnotators
        >>> votes = np.repeat([[1.0, 0.0], [0.0, 1.0]], [7, 3], 0)  # for ant and for bee
        >>> counts = np.stack([votes, 0 * votes], 2)  # (annotators, observed, true)
        >>> held = AlikeAnnotators.sharing(10, 1 + 1000 * np.array([[0.7, 0.3], [0.3, 0.7]]))
        >>> channel, q = held.for_draws(held.update(counts, "map"))
        >>> draw = jax.vmap(lambda key: channel.values(channel.likelihood_params(q, "draw", key)))
        >>> right = np.asarray(draw(jax.random.split(jax.random.key(0), 1000))["accuracy"])
        >>> print(right.mean().round(1), right.std().round(1))
        0.7 0.1
    """

    pseudo: Any = field(default=(2.0, 1.0))

    def for_draws(self, q: Dirichlet) -> tuple[LabelChannel, Any]:
        """The channel of their accuracy, whose chains begin at the votes that the fit expects."""
        n_annotators, n_observed, n_classes = self.prior.concentration.shape
        counts = jnp.maximum(q.concentration - self.prior.concentration, 0)
        prior = Dirichlet(on_device(self.pseudo, float), axis=0)
        channel = SharedAccuracy(prior=prior, shape=(n_annotators, n_observed, n_classes))
        return channel, channel.update(channel.of_counts(counts), "mean")


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class SharedAccuracy(DrawnAnnotators):
    """Every vote is right with probability ``accuracy ~ Beta``, then any other label alike.

    Attributes:
        prior: Beta over (right, wrong), a Dirichlet of shape ``(2,)``.
        shape: numbers of annotators, labels and classes.
    """

    prior: Dirichlet
    shape: tuple[int, int, int] = field(metadata={"static": True})

    @classmethod
    def of(
        cls, n_annotators: int, n_classes: int, alpha: float = 1.0, diagonal: float = 2.0
    ) -> SharedAccuracy:
        """Prior by pseudo-votes: ``alpha`` wrong and ``diagonal`` right ones."""
        prior = beta(np.asarray(1.0 + alpha), np.asarray(1.0 + diagonal))
        return cls(prior=prior, shape=(n_annotators, n_classes, n_classes))

    @property
    def _right(self) -> np.ndarray:
        return right_labels(*self.shape[1:])

    @property
    def _annotators(self) -> Annotators:
        return Annotators(prior=Dirichlet(jnp.ones(self.shape), axis=1))

    def likelihood_params(
        self, q: Dirichlet, rule: Rule, key: Key[Array, ""] | None = None
    ) -> Float[Array, "observed k"]:
        right, wrong = q.likelihood_params(rule, key)
        return jnp.where(self._right, right, wrong - np.log(max(self.shape[1] - 1, 1)))

    def log_likelihood(
        self, likelihood_params: Float[Array, "observed k"], data: Matrix
    ) -> LogLikelihood:
        return self._annotators.log_likelihood(self._each(likelihood_params), data)

    def stats(
        self,
        likelihood_params: Any,
        resp: Float[Array, "n k"],
        data: Matrix,
        key: Key[Array, ""] | None = None,
    ) -> Float[Array, " 2"]:
        return self.of_counts(data.transpose_times(resp).reshape(self.shape))

    def of_counts(self, counts: Float[Array, "w observed k"]) -> Float[Array, " 2"]:
        """Right and wrong votes."""
        right = jnp.sum(jnp.where(self._right, counts, 0))
        return jnp.stack([right, jnp.sum(counts) - right])

    def _each(self, matrix: Float[Array, "observed k"]) -> Float[Array, "w observed k"]:
        return jnp.broadcast_to(matrix, self.shape)

    def relabel(self, q: Dirichlet, order: Int[Array, " k"]) -> Dirichlet:
        return q

    def values(self, likelihood_params: Float[Array, "observed k"]) -> dict[str, Array]:
        own = self._annotators.values(self._each(likelihood_params))
        return {**own, "accuracy": jnp.exp(likelihood_params[0, 0])}

    def sites(self, name: str) -> dict[str, Any]:
        right, wrong = self.prior.concentration
        accuracy = numpyro.sample(f"{name}_accuracy", dist.Beta(right, wrong))
        others = (1 - accuracy) / max(self.shape[1] - 1, 1)
        matrix = jnp.where(self._right, accuracy, others)
        return {"transitions": jnp.swapaxes(self._each(matrix), 1, 2), "accuracy": accuracy}

    def dims(self) -> dict[str, list[str]]:
        return {**self._annotators.dims(), "accuracy": []}
