"""Clusterability: labels of an item and of its neighbours as votes with one noise matrix.

Where near items are of one class, their labels are several votes on it, and three votes or more
identify the noise matrix without a model of the features (HOC, Zhu, Song and Liu 2021; mixtures of
multinomials, Nguyen, Do and Carneiro 2023). Classes that overlap count as noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key

from inference.arrays import on_device
from inference.pytree import register_dataclass
from nbmodels.channels.transition import Transition
from nbmodels.core.codes import checked_table
from nbmodels.core.component import LogLikelihood, centred
from nbmodels.core.families import Dirichlet
from nbmodels.core.lazy import numpyro
from nbmodels.core.roles import LabelChannel
from nbmodels.errors import DataError

#: Votes on each simulated item: as few as identify a noise matrix.
_SIMULATED = 3


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class NeighbourVotes(Transition):
    """Votes of an item and its neighbours: ``counts ~ Multinomial(transition[y])``.

    The likelihood is a composite one: each label votes on as many items as an item has neighbours.
    In a fit the prior is counted as often, and draws count every item as one label, so that
    intervals are as wide as those of the labels that there are.

    Attributes:
        prior: Dirichlet of shape ``(K, observed)``.
        uses: number of items that each label votes on.
        composite: whether statistics are those of all votes; else each item counts as one label.

    Examples:
        Twenty groups of five near items, in each of which one label is wrong. An item's votes are
        the labels of its group, so that each label is used five times:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import NeighbourVotes
        >>> from nbmodels.class_priors import Proportions
        >>> y = np.repeat([0, 1], 50)
        >>> labels = np.where(np.arange(100) % 5 == 0, 1 - y, y)
        >>> counts = np.eye(2)[labels].reshape(20, 5, 2).sum(1).repeat(5, axis=0)
        >>> model = {"class_prior": Proportions.of(2), "votes": NeighbourVotes.of(2, uses=5)}
        >>> data = Data({"class_prior": None, "votes": NeighbourVotes.pack(counts)}, np.ones(100))
        >>> found = fit(model, data, key=jax.random.key(0))
        >>> print(np.asarray(found.params["votes"].mode).round(1))  # [true, observed]
        [[0.8 0.2]
         [0.2 0.8]]
        >>> print((labels == y).sum(), (found.resp.argmax(1) == y).sum())
        80 100
    """

    overlap_is_noise: ClassVar[bool] = True

    uses: Any = field(default=1.0)
    composite: bool = field(default=True, metadata={"static": True})

    @classmethod
    def of(
        cls,
        n_classes: int,
        n_observed: int | None = None,
        alpha: float = 1.0,
        diagonal: float = 2.0,
        uses: float = 1.0,
    ) -> NeighbourVotes:
        """Prior by pseudo-labels of each class: ``alpha`` wrong, shared out, ``diagonal`` right."""
        one = Transition.of(n_classes, n_observed, alpha * uses, diagonal * uses)
        return cls(prior=one.prior, uses=uses)

    @staticmethod
    def pack(labels: Any, n_observed: int | None = None) -> Array:
        """Counts of votes.

        Args:
            labels: ``(N, observed)`` counts, which need not be whole.
            n_observed: number of classes that votes may name; None for as many as columns.

        Raises:
            DataError: another number of columns, or a count that is negative or not finite.
        """
        table = np.asarray(labels, float)
        checked_table("counts", table, lambda x: ~(np.isfinite(x) & (x >= 0)), "a count, 0 or more")
        if table.ndim != 2 or n_observed not in (None, table.shape[1]):
            raise DataError(f"counts: expected (N, {n_observed or 'K'}); got shape {table.shape}")
        return on_device(table)

    def log_likelihood(self, likelihood_params: Array, data: Array) -> LogLikelihood:
        return centred(data @ likelihood_params.T)

    def stats(
        self,
        likelihood_params: Any,
        resp: Float[Array, "n k"],
        data: Array,
        key: Key[Array, ""] | None = None,
    ) -> Array:
        counts = data
        if not self.composite:
            counts = data / jnp.maximum(jnp.sum(data, 1, keepdims=True), 1)
        return resp.T @ counts

    def transition(self, values: dict[str, Any]) -> None:
        """None: a neighbour of another class is no wrong label."""

    def initial_responsibilities(self, data: Any) -> Float[Array, "n k"]:
        """Shares of the votes."""
        n_classes, n_observed = self.prior.concentration.shape
        votes = data[:, : min(n_classes, n_observed)]
        xp = votes.__array_namespace__()
        votes = xp.pad(votes, ((0, 0), (0, n_classes - votes.shape[1])))
        return votes / xp.maximum(votes.sum(1, keepdims=True), 1)

    def for_draws(self, q: Dirichlet) -> tuple[LabelChannel, Any]:
        """Draws in which each item counts as one label."""
        once = replace(
            self.prior, concentration=1 + (self.prior.concentration - 1) / self.uses
        ).centred
        counts = (q.concentration - self.prior.concentration) / self.uses
        channel = replace(self, prior=once, uses=1.0, composite=False)
        return channel, replace(once, concentration=once.concentration + counts)

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Array) -> None:
        of_class = values["transition"][y]
        # a vote that nobody cast must not meet the logarithm of zero
        logs = jnp.where(data > 0, jnp.log(jnp.where(data > 0, of_class, 1)), 0)
        numpyro.factor(name, (data * logs).sum(-1))

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Array:
        """Three votes on each item, as counts: of triples that share no label."""
        logs = jnp.log(values["transition"])[y]
        votes = jax.random.categorical(key, logs, shape=(_SIMULATED, len(y)))
        return jax.nn.one_hot(votes, logs.shape[1]).sum(0)
