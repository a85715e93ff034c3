"""Partial labels: sets of candidate classes, all others being excluded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int, Key

from inference.arrays import floating, on_device
from inference.pytree import register_dataclass
from nbmodels.core.component import Given, LogLikelihood
from nbmodels.core.families import Rule
from nbmodels.core.lazy import numpyro
from nbmodels.core.roles import LabelChannel
from nbmodels.errors import DataError

#: Weight of a single candidate, which is certain, against a noisy label in the first guess.
_CERTAIN = 1e6


def pack_candidates(possible: Any, n_classes: int, /) -> Bool[Array, "n k"]:
    """Data of :class:`CandidateSets`: ``(N, K)`` booleans.

    Args:
        possible: ``(N, K)`` true where the item may be of the class; a row of true values carries
            no information, one true value is a positive label, one false value a negative one.

    Raises:
        DataError: not ``(N, K)``, or an item for which no class is left.
    """
    table = np.asarray(possible, bool)
    if table.ndim != 2 or table.shape[1] != n_classes:
        raise DataError(f"possible: expected a column a class, {n_classes}; got {table.shape}")
    empty = np.flatnonzero(~table.any(1))
    if len(empty):
        raise DataError(f"possible: row {empty[0]} excludes every class; leave at least one")
    return on_device(table)


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class CandidateSets(Given, LabelChannel):
    """Likelihood of candidate sets: one for a candidate, zero for others (Chen 2019, section 3.1).

    Positive labels, negative labels and anything between: what is possible is as likely as it was,
    what is excluded has probability zero.

    Attributes:
        prior: ``(K,)`` zeros; there is nothing to learn, only K to know.

    Examples:
        What is excluded has no probability left, and the candidates keep their shares:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import CandidateSets
        >>> from nbmodels.class_priors import FixedProportions
        >>> model = {
        ...     "class_prior": FixedProportions(prior=np.array([0.5, 0.3, 0.2])),  # ant, bee, cow
        ...     "candidates": CandidateSets.of(3),
        ... }
        >>> possible = [[True, False, False], [False, True, True], [True, True, True]]
        >>> candidates = CandidateSets.pack(possible, 3)
        >>> data = Data({"class_prior": None, "candidates": candidates}, np.ones(3))
        >>> print(fit(model, data, key=jax.random.key(0)).resp.round(2))
        [[1.  0.  0. ]
         [0.  0.6 0.4]
         [0.5 0.3 0.2]]
    """

    @classmethod
    def of(cls, n_classes: int) -> Self:
        return cls(prior=on_device(np.zeros(n_classes)))

    pack = staticmethod(pack_candidates)

    def possible(self, data: Array) -> Array:
        """``(N, K)`` booleans."""
        return data

    def excludes(self, data: Any) -> Any:
        """``(N,)`` whether any class is excluded; of arrays on the host, too."""
        return ~data.all(1)

    def likelihood_params(self, q: Array, rule: Rule, key: Key[Array, ""] | None = None) -> Array:
        return q

    def log_likelihood(self, likelihood_params: Array, data: Array) -> LogLikelihood:
        table = jnp.where(self.possible(data), likelihood_params, -jnp.inf)
        return LogLikelihood(table, jnp.zeros((1,), likelihood_params.dtype))

    def initial_responsibilities(self, data: Any) -> Float[Array, "n k"]:
        possible: Any = self.possible(data)
        xp = possible.__array_namespace__()
        size = xp.maximum(possible.sum(1, keepdims=True), 1).astype(floating())
        weight = xp.where(size == 1, _CERTAIN, xp.where(size < possible.shape[1], 1 / size, 0))
        return weight * possible

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Any) -> None:

        possible = self.possible(data)
        numpyro.factor(name, jnp.where(possible[jnp.arange(len(possible)), y], 0.0, -jnp.inf))

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Array:
        """The true class, and each other one with probability one half."""
        k = self.prior.shape[0]
        return jax.random.bernoulli(key, 0.5, (len(y), k)) | (y[:, None] == jnp.arange(k))
