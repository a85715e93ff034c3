"""Whether an item has a label at all, where that depends on its class (missing not at random)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import Array
from jaxtyping import Float

from inference.arrays import on_device
from inference.pytree import register_dataclass
from nbmodels.channels.transition import Transition
from nbmodels.core.families import Dirichlet


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class LabellingRates(Transition):
    """``P(an item is labelled | true class)``, a selection model (Heckman 1979; Rubin 1976).

    Where a rare class is labelled more often than others, classes of items without a label are not
    those of items with one, and a model that takes labels for missing at random is drawn to the
    latter. The outcome is 1 of an item with a label, 0 of one without.

    Attributes:
        prior: Dirichlet of shape ``(K, 2)``.

    Examples:
        Nine bees in ten are labelled, and one ant in ten: what no label says of an item.

        >>> import numpy as np
        >>> from nbmodels.channels import LabellingRates
        >>> channel = LabellingRates.even(2)
        >>> ants_and_bees = np.eye(2)[np.repeat([0, 1], 100)]
        >>> labelled = LabellingRates.pack(np.repeat([1, 0, 1, 0], [10, 90, 90, 10]), 2)
        >>> found = channel.update(channel.stats(None, ants_and_bees, labelled), "map")
        >>> read = channel.likelihood_params(found, "map")
        >>> none = LabellingRates.pack(np.array([0]), 2)
        >>> print(np.exp(channel.log_likelihood(read, none).table).round(1))
        [[0.9 0.1]]
    """

    @classmethod
    def even(cls, n_classes: int) -> LabellingRates:
        """Prior of one pseudo-item of each class with a label, and one without."""
        return cls(prior=Dirichlet(on_device(np.full((n_classes, 2), 2.0))))

    def initial_responsibilities(self, data: Array) -> Any:
        """None: a rate names no class."""

    def transition(self, values: dict[str, Any]) -> Float[Array, "k observed"] | None:
        """None: the outcomes are no classes."""
        return None

    def dims(self) -> dict[str, list[str]]:
        return {"transition": ["true_class", "labelled"]}
