"""Real features, normal and independent given the class (Zeng 2022, appendix .1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference.products import Dense
from nbmodels.component import Component, Evidence, centred
from nbmodels.emissions.cells import Cells, observed_cells, without
from nbmodels.families import NormalInverseGamma, Scalars

_LOG_2PI = float(np.log(2 * np.pi))


def pack_reals(x: Any, missing: Any = None) -> Cells:
    """Data of the Gaussian emissions.

    Args:
        x: ``(N, d)`` real numbers, dense.
        missing: ``(N, d)`` booleans, or None; missing cells may hold anything.
    """
    floating = jnp.zeros(()).dtype
    hidden = None if missing is None else Dense(jnp.asarray(missing, floating))
    return Cells(Dense(jnp.asarray(without(x, missing), floating)), hidden)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class DiagonalGaussian(Component):
    """``x_ij ~ N(mu_j[y_i], sigma_j[y_i]^2)`` with a normal-inverse-gamma prior.

    Missing cells are left out of the likelihood.

    Attributes:
        prior: normal-inverse-gamma, each parameter of shape ``(K, d)``.
    """

    prior: NormalInverseGamma

    @classmethod
    def of(
        cls,
        n_features: int,
        n_classes: int,
        kappa: float = 0.01,
        shape: float = 1.0,
        rate: float = 0.1,
    ) -> DiagonalGaussian:
        """A weak prior for standardised features: mean 0, ``kappa`` pseudo-items behind it."""
        full = jnp.zeros((n_classes, n_features))
        return cls(prior=NormalInverseGamma(full, full + kappa, full + shape, full + rate))

    pack = staticmethod(pack_reals)

    def evidence(self, natural: Scalars, data: Cells) -> Evidence:
        x = data.x.to_dense()
        seen = None if data.missing is None else 1 - data.missing.to_dense()

        def of_class(n: Scalars) -> Array:
            terms = n.log_precision - _LOG_2PI - n.spread - n.precision * jnp.square(x - n.mean)
            return jnp.sum(terms if seen is None else terms * seen, 1) / 2

        return centred(jax.vmap(of_class)(natural).T)

    def stats(
        self, natural: Any, resp: Array, data: Cells, key: Array | None = None
    ) -> tuple[Array, Array, Array]:
        first = data.x.transpose_times(resp).T
        second = Dense(jnp.square(data.x.to_dense())).transpose_times(resp).T
        count = jnp.broadcast_to(jnp.sum(resp, 0)[:, None], first.shape)
        if data.missing is not None:
            count = jnp.maximum(count - data.missing.transpose_times(resp).T, 0)
        return count, first, second

    def relabel(self, q: NormalInverseGamma, order: Array) -> NormalInverseGamma:
        return jax.tree.map(lambda leaf: leaf[order], q)

    def values(self, natural: Scalars) -> dict[str, Array]:
        return {"mu": natural.mean, "variance": 1 / natural.precision}

    def sites(self, name: str) -> dict[str, Any]:
        import numpyro
        from numpyro import distributions as dist

        p = self.prior
        inverse_gamma = dist.InverseGamma(p.shape, p.rate).to_event(2)
        variance = numpyro.sample(f"{name}_variance", inverse_gamma)
        normal = dist.Normal(p.mean, jnp.sqrt(variance / p.kappa)).to_event(2)
        return {"mu": numpyro.sample(f"{name}_mu", normal), "variance": variance}

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Cells) -> None:
        import numpyro
        from numpyro import distributions as dist

        site = dist.Normal(values["mu"][y], jnp.sqrt(values["variance"])[y])
        if data.missing is not None:
            site = site.mask(observed_cells(data.missing))
        numpyro.sample(name, site.to_event(1), obs=data.x.to_dense())

    def simulate(self, key: Array, values: dict[str, Array], y: Array) -> Array:
        noise = jax.random.normal(key, (len(y), values["mu"].shape[1]))
        return values["mu"][y] + noise * jnp.sqrt(values["variance"])[y]

    def dims(self) -> dict[str, list[str]]:
        return {"mu": ["true_class", "feature"], "variance": ["true_class", "feature"]}
