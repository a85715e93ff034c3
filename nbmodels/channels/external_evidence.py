"""Given log-likelihoods of each item's classes, from another model or an item's own prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int, Key

from inference.arrays import floating, on_device
from inference.pytree import register_dataclass
from nbmodels.core.codes import checked_table
from nbmodels.core.component import Given, LogLikelihood, centred
from nbmodels.core.families import Rule
from nbmodels.core.lazy import numpyro
from nbmodels.core.roles import LabelChannel


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class ExternalEvidence(Given, LabelChannel):
    """Log-likelihoods that are given: an item's own prior, or the output of another model.

    Maystre 2021's ``beta`` is such a table, when it is given and not learned from labels.

    Attributes:
        prior: ``(K,)`` zeros; there is nothing to learn, only K to know.

    Examples:
        Three items are labelled "bee", and another model has seen their pictures:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import ExternalEvidence, FixedTransition
        >>> from nbmodels.class_priors import FixedProportions
        >>> model = {
        ...     "class_prior": FixedProportions(prior=np.array([0.5, 0.5])),
        ...     "labels": FixedTransition(prior=np.array([[0.8, 0.2], [0.2, 0.8]])),
        ...     "pictures": ExternalEvidence.of(2),
        ... }
        >>> pictures = ExternalEvidence.pack(np.log([[0.5, 0.5], [0.8, 0.2], [0.99, 0.01]]))
        >>> labels = FixedTransition.pack(np.ones(3, int), 2)
        >>> data = Data({"class_prior": None, "labels": labels, "pictures": pictures}, np.ones(3))
        >>> print(fit(model, data, key=jax.random.key(0)).resp.round(2))  # of ant and bee
        [[0.2  0.8 ]
         [0.5  0.5 ]
         [0.96 0.04]]
    """

    @classmethod
    def of(cls, n_classes: int) -> ExternalEvidence:
        return cls(prior=on_device(np.zeros(n_classes)))

    @staticmethod
    def pack(log_evidence: Any) -> Array:
        """Log-likelihoods as an array.

        Args:
            log_evidence: ``(N, K)``, up to a constant in each row; minus infinity excludes a class.

        Raises:
            DataError: NaN or plus infinity.
        """
        expected = "a log-likelihood, neither NaN nor plus infinity"
        checked_table("log_evidence", log_evidence, lambda x: ~(x < np.inf), expected)
        return on_device(log_evidence, floating())

    def likelihood_params(self, q: Array, rule: Rule, key: Key[Array, ""] | None = None) -> Array:
        return q

    def log_likelihood(self, likelihood_params: Array, data: Array) -> LogLikelihood:
        return centred(likelihood_params + data)

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Array) -> None:

        numpyro.factor(name, data[jnp.arange(len(data)), y])

    def simulate(
        self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]
    ) -> np.ndarray:
        """Noise with a lift of one for the true class."""
        noise = jax.random.normal(key, (len(y), self.prior.shape[0]))
        return np.asarray(noise + jax.nn.one_hot(y, self.prior.shape[0]))
