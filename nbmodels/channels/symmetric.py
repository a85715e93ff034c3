"""Symmetric (uniform) label noise: one error rate, all wrong classes equally likely."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key

from inference.arrays import on_device, one_hot
from inference.pytree import register_dataclass
from nbmodels.channels.transition import (
    discount,
    draw_labels,
    observe,
    pack_labels,
    read_labels,
)
from nbmodels.core.component import LogLikelihood
from nbmodels.core.families import Dirichlet, Rule, beta
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.roles import LabelChannel


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class SymmetricTransition(LabelChannel):
    """A label is wrong with probability ``epsilon ~ Beta``, then any other class alike.

    Attributes:
        prior: Beta over (right, wrong), a Dirichlet of shape ``(2,)``.
        n_classes: K, true and observed alike.

    Examples:
        A quarter of 60 verified labels was wrong, and what labels of other items say by that:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels.channels import SymmetricTransition
        >>> channel, y = SymmetricTransition.of(3), np.tile([0, 1, 2], 20)  # ant, bee, cow
        >>> labels = SymmetricTransition.pack(np.where(np.arange(60) % 4 == 0, (y + 1) % 3, y), 3)
        >>> counts = channel.stats(None, jax.nn.one_hot(y, 3), labels)
        >>> print(counts)  # right, wrong
        [45. 15.]
        >>> found = channel.update(counts, "map")
        >>> new = SymmetricTransition.pack([0, 2], 3)
        >>> read = channel.likelihood_params(found, "map")
        >>> print(np.exp(channel.log_likelihood(read, new).table).round(2))
        [[0.75 0.13 0.13]
         [0.13 0.13 0.75]]
    """

    prior: Dirichlet
    n_classes: int = field(metadata={"static": True})

    @classmethod
    def of(cls, n_classes: int, alpha: float = 1.0, diagonal: float = 2.0) -> SymmetricTransition:
        """Prior by pseudo-labels: ``alpha`` wrong and ``diagonal`` right ones."""
        prior = beta(np.asarray(1.0 + alpha), np.asarray(1.0 + diagonal))
        return cls(prior=prior, n_classes=n_classes)

    pack = staticmethod(pack_labels)

    def _table(self, right: Any, wrong: Any) -> Array:
        return jnp.where(jnp.eye(self.n_classes, dtype=bool), right, wrong)

    def likelihood_params(
        self, q: Dirichlet, rule: Rule, key: Key[Array, ""] | None = None
    ) -> Array:
        right, wrong = q.likelihood_params(rule, key)
        return self._table(right, wrong - jnp.log(max(self.n_classes - 1, 1)))

    def log_likelihood(self, likelihood_params: Array, data: Array) -> LogLikelihood:
        return read_labels(likelihood_params, data)

    def stats(
        self,
        likelihood_params: Any,
        resp: Float[Array, "n k"],
        data: Array,
        key: Key[Array, ""] | None = None,
    ) -> Array:
        right = jnp.sum(resp * jax.nn.one_hot(data, self.n_classes, dtype=resp.dtype))
        labelled = jnp.sum(resp * (data < self.n_classes)[:, None])
        return jnp.stack([right, labelled - right])

    def transition(self, values: dict[str, Any]) -> Float[Array, "k observed"]:
        wrong = values["epsilon"]
        return self._table(1 - wrong, wrong / max(self.n_classes - 1, 1))

    def initial_responsibilities(self, data: Array) -> Float[Array, "n k"]:
        return one_hot(data, self.n_classes)

    def start(self, resp: Float[Array, "n k"], data: Array, rule: Rule) -> Dirichlet:
        return super().start(discount(resp), data, rule)

    def without_errors(self, pseudo: float) -> SymmetricTransition:
        before = np.asarray(self.prior.concentration)
        sure = before + np.array([self.n_classes * pseudo, 0], before.dtype)
        return replace(self, prior=replace(self.prior, concentration=on_device(sure)))

    def for_draws(self, q: Dirichlet) -> tuple[LabelChannel, Any]:
        return replace(self, prior=self.prior.centred), q

    def relabel(self, q: Dirichlet, order: Int[Array, " k"]) -> Dirichlet:
        return q

    def values(self, likelihood_params: Array) -> dict[str, Array]:
        return {"epsilon": 1 - jnp.exp(likelihood_params[0, 0])}

    def sites(self, name: str) -> dict[str, Any]:

        right, wrong = self.prior.concentration
        return {"epsilon": numpyro.sample(f"{name}_epsilon", dist.Beta(wrong, right))}

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Any) -> None:
        observe(name, self.transition(values), y, data)

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Array:
        return draw_labels(key, self.transition(values), y)

    def dims(self) -> dict[str, list[str]]:
        return {"epsilon": []}
