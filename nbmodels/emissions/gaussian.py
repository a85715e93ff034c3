"""Gaussian emission: real features, independent given the class (Zeng 2022, appendix .1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, Key

from inference.arrays import on_device
from inference.blocks import rows_of_block
from inference.products import Dense
from inference.pytree import register_dataclass
from nbmodels.core.component import LogLikelihood, centred
from nbmodels.core.families import DiagonalGaussianParams, DrawKey, NormalInverseGamma
from nbmodels.core.families.base import LOG_2PI
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.residuals import Residuals, of_reals, without_missing
from nbmodels.core.roles import Emission
from nbmodels.emissions.cells import Cells, observed_cells, without


def pack_reals(x: Any, missing: Any = None) -> Cells:
    """Data of the Gaussian emissions.

    Args:
        x: ``(N, d)`` real numbers, dense.
        missing: ``(N, d)`` booleans, or None; missing cells may hold anything.
    """
    hidden = None if missing is None else Dense(on_device(missing, float))
    return Cells(Dense(on_device(without(x, missing), float)), hidden)


class Distances(NamedTuple):
    """What a density of elliptical shape reads of each item and class.

    Attributes:
        square: ``(N, K)`` (expected) squared distance from the mean, in units of the covariance.
        log_det: ``(N or 1, K)`` (expected) log-determinant of the observed cells' precision.
        size: ``(N or 1,)`` number of observed cells.
    """

    square: Float[Array, "n k"]
    log_det: Float[Array, "n_or_1 k"]
    size: Float[Array, " n_or_1"]


def _add_column(square: Array, column: tuple[Array, ...]) -> tuple[Array, None]:
    """``(K, N)`` squared distances and one more column's, whose items are next to each other.

    A sum over the columns of a ``(K, N, d)`` table takes five times as long.
    """
    x, mean, precision, *seen = column
    more = precision[:, None] * jnp.square(x - mean[:, None])
    return square + (more * seen[0] if seen else more), None


def _squares(
    at: DiagonalGaussianParams, spread: Float[Array, " k"], x: Float[Array, "n d"]
) -> Float[Array, "n k"]:
    """Squared distances of rows without missing cells."""
    start = jnp.broadcast_to(spread[:, None], (len(spread), len(x))).astype(x.dtype)
    return lax.scan(_add_column, start, (x.T, at.mean.T, at.precision.T))[0].T


def _by_blocks(of: Callable[[Array], Array], x: Float[Array, "n d"], n_classes: int) -> Array:
    """A table of items and classes, block by block where it has many cells."""
    n, d = x.shape
    rows = rows_of_block(n, n_classes)
    return of(x) if rows == n else lax.map(of, x.reshape(-1, rows, d)).reshape(n, n_classes)


def normal_log_likelihood(at: Distances) -> LogLikelihood:
    """Log-density of a normal distribution."""
    return centred((at.log_det - at.size[:, None] * LOG_2PI - at.square) / 2)


def count_cells(resp: Float[Array, "n k"], data: Cells) -> Float[Array, "k d"]:
    """``(K, d)`` items in each class whose cell is observed."""
    count = jnp.broadcast_to(jnp.sum(resp, 0)[:, None], (resp.shape[1], data.x.shape[1]))
    if data.missing is None:
        return count
    return jnp.maximum(count - data.missing.transpose_times(resp).T, 0)


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class DiagonalGaussian(Emission):
    """``x_ij ~ N(mu_j[y_i], sigma_j[y_i]^2)`` with a normal-inverse-gamma prior.

    Missing cells are left out of the likelihood.

    Attributes:
        prior: normal-inverse-gamma, each parameter of shape ``(K, d)``.

    Examples:
        Two groups of items, of which each fifth has the other label:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import Transition
        >>> from nbmodels.class_priors import Proportions
        >>> from nbmodels.emissions import DiagonalGaussian
        >>> y = np.repeat([0, 1], 50)  # ant, bee
        >>> x = np.where(y, 3.0, -3.0)[:, None] + np.random.default_rng(0).normal(size=(100, 2))
        >>> labels = np.where(np.arange(100) % 5 == 0, 1 - y, y)
        >>> model = {"class_prior": Proportions.of(2), "labels": Transition.of(2)}
        >>> model["sizes"] = DiagonalGaussian.of(2, 2)
        >>> parts = {"labels": Transition.pack(labels, 2), "sizes": DiagonalGaussian.pack(x)}
        >>> data = Data({"class_prior": None, **parts}, np.ones(100))
        >>> found = fit(model, data, key=jax.random.key(0))
        >>> print((labels == y).sum(), (found.resp.argmax(1) == y).sum())
        80 100
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
        **fields: Any,
    ) -> Self:
        """A weak prior for standardised features: mean 0, ``kappa`` pseudo-items behind it.

        Args:
            n_features: d.
            n_classes: K.
            kappa: pseudo-items behind the mean.
            shape: of the inverse-gamma prior of the variances.
            rate: of the same.
            fields: further attributes, such as ``dof`` of a t distribution.
        """
        size = (n_classes, n_features)
        parts = (on_device(np.full(size, float(value))) for value in (0, kappa, shape, rate))
        prior = NormalInverseGamma(*parts)
        return cls(prior=prior, **fields)

    pack = staticmethod(pack_reals)

    def distances(self, likelihood_params: DiagonalGaussianParams, data: Cells) -> Distances:
        """Of the observed cells."""
        n, x = likelihood_params, data.x.to_dense()
        if data.missing is None:
            whole = partial(_squares, n, jnp.sum(n.spread, 1))
            log_det = jnp.sum(n.log_precision, 1)[None, :]
            return Distances(_by_blocks(whole, x, len(n.mean)), log_det, jnp.full((1,), x.shape[1]))
        seen = 1 - data.missing.to_dense()
        start = (n.spread @ seen.T).astype(x.dtype)
        square, _ = lax.scan(_add_column, start, (x.T, n.mean.T, n.precision.T, seen.T))
        return Distances(square.T, seen @ n.log_precision.T, jnp.sum(seen, 1))

    def log_likelihood(
        self, likelihood_params: DiagonalGaussianParams, data: Cells
    ) -> LogLikelihood:
        return normal_log_likelihood(self.distances(likelihood_params, data))

    def stats(
        self, likelihood_params: Any, resp: Float[Array, "n k"], data: Cells, key: DrawKey = None
    ) -> tuple[Float[Array, "k d"], Float[Array, "k d"], Float[Array, "k d"]]:
        first = data.x.transpose_times(resp).T
        second = Dense(jnp.square(data.x.to_dense())).transpose_times(resp).T
        return count_cells(resp, data), first, second

    def relabel(self, q: NormalInverseGamma, order: Int[Array, " k"]) -> NormalInverseGamma:
        return jax.tree.map(lambda leaf: leaf[order], q)

    def values(self, likelihood_params: DiagonalGaussianParams) -> dict[str, Array]:
        return {"mu": likelihood_params.mean, "variance": 1 / likelihood_params.precision}

    def sites(self, name: str) -> dict[str, Any]:
        p = self.prior
        inverse_gamma = dist.InverseGamma(p.shape, p.rate).to_event(2)
        variance = numpyro.sample(f"{name}_variance", inverse_gamma)
        normal = dist.Normal(p.mean, jnp.sqrt(variance / p.kappa)).to_event(2)
        return {"mu": numpyro.sample(f"{name}_mu", normal), "variance": variance}

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Cells) -> None:
        site = dist.Normal(values["mu"][y], jnp.sqrt(values["variance"])[y])
        if data.missing is not None:
            site = site.mask(observed_cells(data.missing))
        numpyro.sample(name, site.to_event(1), obs=data.x.to_dense())

    def simulate(
        self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]
    ) -> Float[Array, "n d"]:
        noise = jax.random.normal(key, (len(y), values["mu"].shape[1]))
        return values["mu"][y] + noise * jnp.sqrt(values["variance"])[y]

    def observed(self, data: Cells) -> Float[Array, "n d"]:
        return data.x.to_dense()

    def residuals(
        self, likelihood_params: DiagonalGaussianParams, data: Cells, rows: np.ndarray, most: int
    ) -> Residuals:
        x = without_missing(data.x, data.missing, rows)
        variance = 1 / np.asarray(likelihood_params.precision, float)
        return of_reals(x, np.asarray(likelihood_params.mean, float), variance, most, self._dof)

    @property
    def _dof(self) -> Any:
        """None: of a normal distribution."""
        return None

    def dims(self) -> dict[str, list[str]]:
        return {"mu": ["true_class", "feature"], "variance": ["true_class", "feature"]}
