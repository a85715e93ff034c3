"""Labelling functions: annotators whose abstentions count, too (weak supervision).

A function that only ever names one class says something by naming it, and by abstaining. Given that
it votes its vote is certain, so that an abstention has to be an outcome of its own (Ratner et al.
2016, *Data programming*). Evidence and statistics of abstentions are those of all items less those
of the votes: time and memory grow with the votes, not with items times functions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int, Key

from inference.products import Matrix
from nbmodels.channels.annotators import Annotators, right_labels
from nbmodels.channels.one_coin_annotators import OneCoinAnnotators, likeliest_accuracy, one_coin
from nbmodels.core.component import LogLikelihood, product_log_likelihood
from nbmodels.core.families import Dirichlet, Rule
from nbmodels.core.lazy import numpyro
from nbmodels.core.roles import LabelChannel


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class LabellingFunctions(OneCoinAnnotators):
    """Annotators with "abstains" as their last label.

    Each row of a function's matrix has a prior centred at one accuracy, the same for all classes,
    and one share of abstentions, as strong as ``strength`` votes of the function.

    Attributes:
        prior: Dirichlet of shape ``(functions, observed + 1, K)``, abstention last.
        strength: pseudo-votes of each row.
        pseudo: ``(2,)`` right and wrong pseudo-votes of an accuracy.
    """

    @classmethod
    def of(
        cls,
        n_annotators: int,
        n_classes: int,
        n_observed: int | None = None,
        alpha: float = 1.0,
        diagonal: float = 2.0,
        strength: float = 5.0,
    ) -> LabellingFunctions:
        """Prior by pseudo-votes of each accuracy, half of the outcomes abstentions."""
        observed = n_classes if n_observed is None else n_observed
        plain = OneCoinAnnotators.of(n_annotators, n_classes, observed, alpha, diagonal, strength)
        votes = plain.prior.concentration - 1
        both = 1 + jnp.concatenate([votes, jnp.sum(votes, 1, keepdims=True)], 1)
        prior = Dirichlet(both, axis=1)
        return cls(prior=prior, strength=plain.strength, pseudo=plain.pseudo)

    @property
    def _shape(self) -> tuple[int, int, int]:
        """Numbers of functions, of labels and of classes."""
        functions, outcomes, classes = self.prior.concentration.shape
        return functions, outcomes - 1, classes

    def log_likelihood(self, likelihood_params: Array, data: Matrix) -> LogLikelihood:
        voted, abstained = likelihood_params[:, :-1], likelihood_params[:, -1:]
        table = (voted - abstained).reshape(-1, voted.shape[2])
        return product_log_likelihood(data, table, jnp.sum(abstained, (0, 1)))

    def stats(
        self,
        likelihood_params: Any,
        resp: Float[Array, "n k"],
        data: Matrix,
        key: Key[Array, ""] | None = None,
    ) -> Array:
        voted = data.transpose_times(resp).reshape(self._shape)
        abstained = jnp.sum(resp, 0) - jnp.sum(voted, 1, keepdims=True)
        return jnp.concatenate([voted, jnp.maximum(abstained, 0)], 1)

    def transition(self, values: dict[str, Any]) -> Float[Array, "k observed"]:
        """``(K, observed)`` of a vote of a function taken at random."""
        voted = jnp.mean(values["transitions"], 0)[:, :-1]
        return voted / jnp.sum(voted, 1, keepdims=True)

    def initial_responsibilities(self, data: Matrix) -> Float[Array, "n k"]:
        plain = OneCoinAnnotators(prior=replace(self.prior, concentration=jnp.ones(self._shape)))
        return plain.initial_responsibilities(data)

    def pooled(self, q: Dirichlet, rule: Rule) -> LabellingFunctions:
        """With accuracies and shares of abstentions learned from ``q``."""
        counts = jnp.maximum(q.concentration - self.prior.concentration, 0)
        voted = counts[:, :-1]
        accuracy = likeliest_accuracy(voted, self.strength, self._around_the_crowd(voted))
        sizes = jnp.sum(voted, (1, 2)), jnp.sum(counts, (1, 2))
        odds = ((sizes[1] - sizes[0] + 0.5) / (sizes[0] + 0.5))[:, None, None]
        around = self.strength * one_coin(accuracy, right_labels(*voted.shape[1:]))
        abstained = jnp.broadcast_to(self.strength * odds, (len(voted), 1, voted.shape[2]))
        extra = 1.0 if rule == "map" else 0.0
        both = extra + jnp.concatenate([around, abstained], 1)
        return replace(self, prior=replace(self.prior, concentration=both))

    def for_draws(self, q: Dirichlet) -> tuple[LabelChannel, Any]:
        """With the prior learned, as known."""
        return replace(self, prior=self.prior.centred), q

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Matrix) -> None:
        functions, observed, _ = self._shape
        votes = data.to_dense().reshape(-1, functions, observed)
        votes = jnp.concatenate([votes, 1 - jnp.sum(votes, 2, keepdims=True)], 2)
        of_class = jnp.swapaxes(values["transitions"], 0, 1)[y]
        logs = jnp.where(votes > 0, jnp.log(jnp.where(votes > 0, of_class, 1)), 0)
        numpyro.factor(name, (votes * logs).sum((-2, -1)))

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Array:
        """Votes of all functions on all items, as counts; none where one abstains."""
        return Annotators.simulate(self, key, values, y)[..., :-1]

    def dims(self) -> dict[str, list[str]]:
        return {"transitions": ["annotator", "true_class", "outcome"]}
