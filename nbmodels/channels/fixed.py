"""Label channel with a known noise matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key

from inference.arrays import on_device, one_hot
from inference.pytree import register_dataclass
from nbmodels.channels.transition import draw_labels, observe, pack_labels, read_labels
from nbmodels.core.component import Given, LogLikelihood
from nbmodels.core.roles import LabelChannel


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class FixedTransition(Given, LabelChannel):
    """Noisy labels through a known noise matrix P(observed | true).

    Attributes:
        prior: ``(K, observed)`` probabilities ``[true, observed]``, rows summing to one.

    Examples:
        Three bees in ten are labelled "ant", and no ant is labelled "bee":

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import FixedTransition
        >>> from nbmodels.class_priors import FixedProportions
        >>> model = {
        ...     "class_prior": FixedProportions(prior=np.array([0.5, 0.5])),
        ...     "labels": FixedTransition(prior=np.array([[1.0, 0.0], [0.3, 0.7]])),
        ... }
        >>> labels = FixedTransition.pack(np.array([0, 1, -1]), 2)  # ant, bee, none
        >>> data = Data({"class_prior": None, "labels": labels}, np.ones(3))
        >>> print(fit(model, data, key=jax.random.key(0)).resp.round(2))
        [[0.77 0.23]
         [0.   1.  ]
         [0.5  0.5 ]]
    """

    pack = staticmethod(pack_labels)

    def log_likelihood(self, likelihood_params: Array, data: Array) -> LogLikelihood:
        return read_labels(likelihood_params, data)

    def transition(self, values: dict[str, Any]) -> Float[Array, "k observed"]:
        return self.prior

    def initial_responsibilities(self, data: Array) -> Float[Array, "n k"]:
        n_classes, n_observed = self.prior.shape
        return one_hot(data, n_observed)[:, :n_classes]

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Any) -> None:
        observe(name, self.prior, y, data)

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Array:
        return draw_labels(key, self.prior, y)


def fixed_at(transition: Float[np.ndarray, "k observed"]) -> FixedTransition:
    """Noise matrix held at its estimate: a channel that is not learned any further.

    Args:
        transition: P(observed | true), up to rounding.
    """
    return FixedTransition(prior=on_device(transition / transition.sum(1, keepdims=True)))
