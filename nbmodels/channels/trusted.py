"""Trusted labels: true classes of items that were verified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int, Key

from inference.pytree import register_dataclass
from nbmodels.channels.candidates import CandidateSets
from nbmodels.channels.transition import pack_labels


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class TrustedLabels(CandidateSets):
    """Verified labels as sets of one candidate, held as codes; zero rows for other items.

    Attributes:
        prior: ``(K,)`` zeros; there is nothing to learn, only K to know.

    Examples:
        Verified items show that half of the bees are labelled "ant":

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import Transition, TrustedLabels
        >>> from nbmodels.class_priors import Proportions
        >>> labels = np.repeat([0, 0, 1, 0, 0, 1], 20)
        >>> verified = np.repeat([0, 1, 1, -1, -1, -1], 20)  # half of the items were not checked
        >>> model = {"class_prior": Proportions.of(2), "labels": Transition.of(2)}
        >>> model["verified"] = TrustedLabels.of(2)
        >>> parts = {"class_prior": None, "labels": Transition.pack(labels, 2)}
        >>> parts["verified"] = TrustedLabels.pack(verified, 2)
        >>> found = fit(model, Data(parts, np.ones(120)), key=jax.random.key(0))
        >>> print(np.asarray(found.params["labels"].mode).round(1))  # [true, observed]
        [[1.  0. ]
         [0.5 0.5]]
    """

    pack = staticmethod(pack_labels)

    def possible(self, data: Array) -> Array:
        k = self.prior.shape[0]
        return (data[:, None] == np.arange(k)) | (data == k)[:, None]

    def excludes(self, data: Any) -> Any:
        return data < self.prior.shape[0]

    def simulate(self, key: Key[Array, ""], values: dict[str, Any], y: Int[Array, " n"]) -> Array:
        """Checks about a third of the items."""
        return jnp.where(jax.random.bernoulli(key, 1 / 3, y.shape), y, -1)
