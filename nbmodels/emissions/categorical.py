"""Symbolic attributes of different sizes, independent given the class (Denis 2006, section 2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy import sparse

from inference.products import Matrix, matrix
from nbmodels.core.component import Component, LogLikelihood, product_log_likelihood
from nbmodels.core.families import Dirichlet
from nbmodels.core.residuals import Residuals, of_indicators


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Codes:
    """Packed attributes.

    Attributes:
        onehot: ``(N, sum of sizes)``, the attributes' indicators side by side.
        codes: ``(N, attributes)`` integers, -1 where missing or unknown.
    """

    onehot: Matrix
    codes: Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Categorical(Component):
    """``x_ij ~ Categorical(theta_j[y_i])``, ``theta_j ~ Dirichlet``, one for each attribute.

    A missing cell, and a category that training never saw, is left out of the likelihood.

    Attributes:
        prior: Dirichlet of shape ``(sum of sizes, K)``, several simplices along axis 0.
    """

    prior: Dirichlet

    @classmethod
    def of(cls, sizes: tuple[int, ...], n_classes: int, alpha: float = 1.0) -> Categorical:
        """Symmetric prior: ``alpha`` pseudo-items a category.

        Args:
            sizes: number of categories of each attribute.
        """
        concentration = jnp.full((sum(sizes), n_classes), 1.0 + alpha)
        return cls(prior=Dirichlet(concentration, axis=0, sizes=tuple(int(s) for s in sizes)))

    @property
    def sizes(self) -> tuple[int, ...]:
        assert self.prior.sizes is not None
        return self.prior.sizes

    def pack(self, codes: Any) -> Codes:
        """Args: codes: ``(N, attributes)`` integers, negative where missing or unknown."""
        codes = np.asarray(codes)
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        rows, columns = np.nonzero(codes >= 0)
        entries = (codes + starts)[rows, columns]
        onehot = sparse.csr_array(
            (np.ones(len(rows)), (rows, entries)), shape=(len(codes), sum(self.sizes))
        )
        return Codes(matrix(onehot), jnp.asarray(np.where(codes < 0, -1, codes), jnp.int32))

    def log_likelihood(self, likelihood_params: Array, data: Codes) -> LogLikelihood:
        return product_log_likelihood(data.onehot, likelihood_params)

    def stats(
        self, likelihood_params: Any, resp: Array, data: Codes, key: Array | None = None
    ) -> Array:
        return data.onehot.transpose_times(resp)

    def relabel(self, q: Dirichlet, order: Array) -> Dirichlet:
        return replace(q, concentration=q.concentration[:, order])

    def _split(self, table: Array) -> dict[str, Array]:
        parts = jnp.split(table, np.cumsum(self.sizes)[:-1], axis=0)
        return {f"probs_{j}": part.T for j, part in enumerate(parts)}

    def values(self, likelihood_params: Array) -> dict[str, Array]:
        return self._split(jnp.exp(likelihood_params))

    def sites(self, name: str) -> dict[str, Any]:
        import numpyro
        from numpyro import distributions as dist

        return {
            part: numpyro.sample(f"{name}_{part}", dist.Dirichlet(concentration).to_event(1))
            for part, concentration in self._split(self.prior.concentration).items()
        }

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Codes) -> None:
        import numpyro
        from numpyro import distributions as dist

        for j in range(len(self.sizes)):
            code = data.codes[:, j]
            site = dist.Categorical(probs=values[f"probs_{j}"][y]).mask(code >= 0)
            numpyro.sample(f"{name}_{j}", site, obs=jnp.maximum(code, 0))

    def simulate(self, key: Array, values: dict[str, Array], y: Array) -> Array:
        keys = jax.random.split(key, len(self.sizes))
        columns = [
            jax.random.categorical(k, jnp.log(values[f"probs_{j}"])[y]) for j, k in enumerate(keys)
        ]
        return jnp.stack(columns, 1)

    def observed(self, data: Codes) -> Array:
        return data.codes

    def residuals(
        self, likelihood_params: Any, data: Codes, rows: np.ndarray, most: int
    ) -> Residuals:
        probs = np.exp(np.asarray(likelihood_params, float)).T
        of = np.repeat(np.arange(len(self.sizes)), self.sizes)
        missing = (np.asarray(data.codes)[rows] < 0)[:, of]
        return of_indicators(data.onehot.to_host()[rows], probs, missing, of, most)

    def dims(self) -> dict[str, list[str]]:
        return {f"probs_{j}": ["true_class", f"category_{j}"] for j in range(len(self.sizes))}
