"""Binary features, independent given the class (Zeng 2022, section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference.products import matrix
from nbmodels.core.component import Component, LogLikelihood, product_log_likelihood
from nbmodels.core.families import Dirichlet, beta
from nbmodels.core.residuals import Residuals, of_indicators
from nbmodels.emissions.cells import Cells, observed_cells, without


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Bernoulli(Component):
    """``x_ij ~ Bernoulli(p_j[y_i])``, ``p ~ Beta``.

    Missing cells are left out of the likelihood. Dense and sparse data give the same numbers.

    Attributes:
        prior: Beta distributions, a Dirichlet of shape ``(2, d, K)`` over the values (0, 1).
    """

    prior: Dirichlet

    @classmethod
    def of(cls, n_features: int, n_classes: int, alpha: float = 1.0) -> Bernoulli:
        """Symmetric prior: ``alpha`` pseudo-items for each of the two values."""
        pseudo = jnp.full((n_features, n_classes), 1.0 + alpha)
        return cls(prior=beta(pseudo, pseudo))

    @staticmethod
    def pack(x: Any, missing: Any = None) -> Cells:
        """Args: x: ``(N, d)`` of zeros and ones; missing: ``(N, d)`` booleans, or None."""
        return Cells(matrix(without(x, missing)), None if missing is None else matrix(missing))

    def log_likelihood(self, likelihood_params: Array, data: Cells) -> LogLikelihood:
        zero, one = likelihood_params
        table, offset = product_log_likelihood(data.x, one - zero, jnp.sum(zero, 0))
        if data.missing is not None:
            left_out = product_log_likelihood(data.missing, zero)
            table, offset = table - left_out.table, offset - left_out.offset
        return LogLikelihood(table, offset)

    def stats(
        self, likelihood_params: Any, resp: Array, data: Cells, key: Array | None = None
    ) -> Array:
        ones = data.x.transpose_times(resp)
        count = jnp.broadcast_to(jnp.sum(resp, 0), ones.shape)
        if data.missing is not None:
            count = count - data.missing.transpose_times(resp)
        return jnp.stack([jnp.maximum(count - ones, 0), ones])

    def size(self, data: Cells) -> Array:
        """Number of ones."""
        return data.x.times(jnp.ones((data.x.shape[1], 1)))[:, 0]

    def relabel(self, q: Dirichlet, order: Array) -> Dirichlet:
        return replace(q, concentration=q.concentration[:, :, order])

    def values(self, likelihood_params: Array) -> dict[str, Array]:
        return {"probs": jnp.exp(likelihood_params[1]).T}

    def sites(self, name: str) -> dict[str, Any]:
        import numpyro
        from numpyro import distributions as dist

        zeros, ones = jnp.swapaxes(self.prior.concentration, 1, 2)
        return {"probs": numpyro.sample(f"{name}_probs", dist.Beta(ones, zeros).to_event(2))}

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Cells) -> None:
        import numpyro
        from numpyro import distributions as dist

        site = dist.Bernoulli(probs=values["probs"][y])
        if data.missing is not None:
            site = site.mask(observed_cells(data.missing))
        numpyro.sample(name, site.to_event(1), obs=data.x.to_dense())

    def simulate(self, key: Array, values: dict[str, Array], y: Array) -> Array:
        return jax.random.bernoulli(key, values["probs"][y]).astype(jnp.int32)

    def observed(self, data: Cells) -> Array:
        return data.x.to_dense()

    def residuals(
        self, likelihood_params: Any, data: Cells, rows: np.ndarray, most: int
    ) -> Residuals:
        missing = None if data.missing is None else data.missing.to_host()[rows]
        probs = np.exp(np.asarray(likelihood_params[1], float)).T
        return of_indicators(
            data.x.to_host()[rows], probs, missing, np.arange(probs.shape[1]), most
        )

    def dims(self) -> dict[str, list[str]]:
        return {"probs": ["true_class", "feature"]}
