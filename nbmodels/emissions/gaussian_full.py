"""Multivariate Gaussian emission, with own covariance matrices or one shared by the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key

from inference.arrays import on_device
from inference.products import Dense
from inference.pytree import register_dataclass
from inference.triangular import factor, log_diagonal, semidefinite_root
from nbmodels.core.component import LogLikelihood
from nbmodels.core.families import DrawKey, FullGaussianParams, NormalInverseWishart
from nbmodels.core.families.base import LOG_2PI
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.residuals import Residuals, of_reals, without_missing
from nbmodels.core.roles import Emission
from nbmodels.emissions.cells import observed_cells, without
from nbmodels.emissions.gaussian import Distances, normal_log_likelihood

#: Cells of one temporary array; classes are worked on in groups that keep within it.
_CELLS = 20_000_000


def _groups(size: int, n: int) -> list[slice]:
    """Slices of ``range(n)``, unrolled: a loop inside the driver's loop would run on one core."""
    each = max(1, min(n, _CELLS // max(size, 1)))
    return [slice(i, min(i + each, n)) for i in range(0, n, each)]


def _covariance(likelihood_params: FullGaussianParams) -> tuple[Array, Array]:
    """Inverse of the (expected) precision matrix, and its log-determinant."""
    lower, half = factor(likelihood_params.whiten @ jnp.swapaxes(likelihood_params.whiten, -1, -2))
    return jnp.swapaxes(half, -1, -2) @ half, -2 * log_diagonal(lower)


@register_dataclass
@dataclass(frozen=True)
class Rows:
    """Packed rows; those with missing cells are listed, because they need their own factorisation.

    Attributes:
        x: ``(N, d)``, zeros in missing cells.
        missing: ``(N, d)`` ones where a cell is missing, or None.
        incomplete: ``(n,)`` rows with missing cells, or None.
    """

    x: Dense
    missing: Dense | None
    incomplete: Int[Array, " incomplete"] | None


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class FullGaussian(Emission):
    """``x_i ~ N(mu[y_i], Sigma[y_i])`` with a normal-inverse-Wishart prior (Bootkrajang 2011).

    Missing cells are integrated out, exactly: an incomplete row is scored by the marginal normal of
    its observed cells, and its missing ones are a private latent of the update.

    Attributes:
        prior: normal-inverse-Wishart; ``scale`` of shape ``(K, d, d)``, or ``(1, d, d)`` where the
            classes share one covariance matrix.

    Examples:
        Length and width rise together among ants, and one falls as the other rises among bees. Only
        the covariances tell the classes apart:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels.emissions import FullGaussian
        >>> emission, length = FullGaussian.of(2, n_classes=2), np.linspace(-2, 2, 20)
        >>> noise = 0.3 * np.cos(9 * length)
        >>> ants, bees = (np.stack([length, sign * length + noise], 1) for sign in (1, -1))
        >>> classes = jax.nn.one_hot(np.repeat([0, 1], 20), 2)
        >>> stats = emission.stats(None, classes, FullGaussian.pack(np.concatenate([ants, bees])))
        >>> found = emission.update(stats, "map")
        >>> new = FullGaussian.pack(np.array([[1.0, 1.0], [1.0, -1.0]]))
        >>> table = emission.log_likelihood(emission.likelihood_params(found, "map"), new).table
        >>> print(np.asarray(jax.nn.softmax(table)).round(2))  # of ant and bee, alike without sizes
        [[1. 0.]
         [0. 1.]]
    """

    prior: NormalInverseWishart

    @classmethod
    def of(
        cls,
        n_features: int,
        n_classes: int,
        tied: bool = False,
        kappa: float = 0.01,
        extra_dof: float = 2.0,
        scale: float = 0.1,
        **fields: Any,
    ) -> Self:
        """A weak prior for standardised features: ``Sigma ~ IW(d + 1 + extra_dof, scale * I)``.

        Args:
            n_features: d.
            n_classes: K.
            tied: whether the classes share one covariance matrix.
            kappa: pseudo-items behind the mean.
            extra_dof: degrees of freedom beyond ``d + 1``.
            scale: diagonal of the scale matrix.
            fields: further attributes, such as ``dof`` of a t distribution.
        """
        share = 1 if tied else n_classes
        prior = NormalInverseWishart(
            on_device(np.zeros((n_classes, n_features))),
            on_device(np.full(n_classes, kappa, float)),
            on_device(np.full(share, n_features + 1.0 + extra_dof)),
            on_device(np.tile(scale * np.eye(n_features), (share, 1, 1))),
        )
        return cls(prior=prior, **fields)

    @staticmethod
    def pack(x: Any, missing: Any = None) -> Rows:
        """Args: x: ``(N, d)`` dense; missing: ``(N, d)`` booleans, or None."""
        clean = Dense(on_device(without(x, missing), float))
        if missing is None or not np.any(missing):
            return Rows(clean, None, None)
        rows = np.flatnonzero(np.any(missing, 1))
        return Rows(clean, Dense(on_device(missing, float)), on_device(rows, jnp.int32))

    def distances(self, likelihood_params: FullGaussianParams, data: Rows) -> Distances:
        """Of the observed cells."""
        x, n_classes, d = data.x.to_dense(), *likelihood_params.mean.shape
        whiten = jnp.broadcast_to(likelihood_params.whiten, (n_classes, d, d))

        squares = []
        for some in _groups(x.size, n_classes):
            root = whiten[some]
            flat = jnp.moveaxis(root, 0, 1).reshape(d, -1)
            centre = (likelihood_params.mean[some][:, None, :] @ root).reshape(1, -1)
            gap = (data.x.times(flat) - centre).reshape(len(x), -1, d)
            squares.append(jnp.sum(jnp.square(gap), -1))
        square = jnp.concatenate(squares, 1) + likelihood_params.spread
        log_det = jnp.broadcast_to(likelihood_params.log_det, (1, n_classes))
        if data.missing is None:
            return Distances(square, log_det, jnp.full((1,), d))
        part, part_log_det, *_ = self._marginal(likelihood_params, data)
        log_det = jnp.broadcast_to(log_det, square.shape).at[data.incomplete].set(part_log_det)
        size = d - jnp.sum(data.missing.to_dense(), 1)
        return Distances(square.at[data.incomplete].set(part), log_det, size)

    def log_likelihood(self, likelihood_params: FullGaussianParams, data: Rows) -> LogLikelihood:
        return normal_log_likelihood(self.distances(likelihood_params, data))

    def _marginal(
        self, likelihood_params: FullGaussianParams, data: Rows
    ) -> tuple[Array, Array, Array, Array]:
        """For incomplete rows: distances, and mean and covariance of the row given what is seen.

        Squares and log-determinants of shape ``(n, K)``, then ``(n, K, d)``, ``(n, K, d, d)``.
        """
        assert data.missing is not None
        n_classes, d = likelihood_params.mean.shape
        covariance, log_det = _covariance(likelihood_params)
        covariance = jnp.broadcast_to(covariance, (n_classes, d, d))
        # of an expected logarithm, less that of the expectation
        gain = likelihood_params.log_det + log_det

        def of_row(row: tuple[Array, Array]) -> tuple[Array, Array, Array, Array]:
            x, missing = row
            seen = missing == 0

            def of_class(
                mean: Array, sigma: Array, gain: Array, spread: Array
            ) -> tuple[Array, Array, Array, Array]:
                both = seen[:, None] & seen[None, :]
                lower, half = factor(jnp.where(both, sigma, jnp.eye(d)))
                gap = half @ jnp.where(seen, x - mean, 0)
                solved = half.T @ gap
                filled = jnp.where(seen, x, mean + sigma @ solved)
                across = half @ jnp.where(seen[:, None], sigma, 0)
                rest = sigma - across.T @ across
                neither = ~seen[:, None] & ~seen[None, :]
                square, log_det = gap @ gap + spread, gain - 2 * log_diagonal(lower)
                return square, log_det, filled, jnp.where(neither, rest, 0)

            gains = jnp.broadcast_to(gain, (n_classes,))
            return jax.vmap(of_class)(
                likelihood_params.mean, covariance, gains, likelihood_params.spread
            )

        x, missing = data.x.to_dense()[data.incomplete], data.missing.to_dense()[data.incomplete]
        parts = [
            jax.vmap(of_row)((x[some], missing[some]))
            for some in _groups(n_classes * d * d, len(x))
        ]
        square, log_det, filled, rest = (jnp.concatenate(p) for p in zip(*parts, strict=True))
        return square, log_det, filled, rest

    def stats(
        self,
        likelihood_params: FullGaussianParams,
        resp: Float[Array, "n k"],
        data: Rows,
        key: DrawKey = None,
    ) -> tuple[Float[Array, " k"], Float[Array, "k d"], Float[Array, "k d d"]]:
        return self._moments(likelihood_params, resp, data, key)

    def _moments(
        self,
        likelihood_params: FullGaussianParams,
        resp: Float[Array, "n k"],
        data: Rows,
        key: Key[Array, ""] | None,
        precision: Array | None = None,
    ) -> tuple[Array, Array, Array]:
        """Statistics where item i of class k has covariance ``Sigma[k] / precision[i, k]``."""
        mass = resp if precision is None else resp * precision
        x, complete = data.x.to_dense(), mass
        if data.incomplete is not None:
            complete = mass.at[data.incomplete].set(0)

        d, n_classes = x.shape[1], resp.shape[1]
        parts = []
        for some in _groups(x.size, n_classes):
            weighted = (x[:, None, :] * complete[:, some, None]).reshape(len(x), -1)
            parts.append(data.x.transpose_times(weighted).reshape(d, -1, d))
        squares = jnp.moveaxis(jnp.concatenate(parts, 1), 1, 0)
        sums = data.x.transpose_times(complete).T
        if data.incomplete is not None:
            weight, items = mass[data.incomplete], resp[data.incomplete]
            *_, filled, rest = self._marginal(likelihood_params, data)
            if key is not None:
                noise = jax.random.normal(key, filled.shape, filled.dtype)
                if precision is not None:
                    noise = noise / jnp.sqrt(precision[data.incomplete])[..., None]
                filled = filled + jnp.einsum("nkij,nkj->nki", semidefinite_root(rest), noise)
                rest = jnp.zeros_like(rest)
            sums = sums + jnp.einsum("nk,nkd->kd", weight, filled)
            squares = squares + jnp.einsum("nk,nki,nkj->kij", weight, filled, filled)
            squares = squares + jnp.einsum("nk,nkij->kij", items, rest)
        return jnp.sum(mass, 0), sums, squares

    def relabel(self, q: NormalInverseWishart, order: Int[Array, " k"]) -> NormalInverseWishart:
        if q.tied:
            return NormalInverseWishart(q.mean[order], q.kappa[order], q.dof, q.scale)
        return jax.tree.map(lambda leaf: leaf[order], q)

    def values(self, likelihood_params: FullGaussianParams) -> dict[str, Array]:
        return {"mu": likelihood_params.mean, "covariance": _covariance(likelihood_params)[0]}

    def sites(self, name: str) -> dict[str, Any]:
        p = self.prior
        wishart = dist.InverseWishart(p.dof, scale_matrix=p.scale).to_event(1)
        covariance = numpyro.sample(f"{name}_covariance", wishart)
        normal = dist.MultivariateNormal(p.mean, covariance / p.kappa[:, None, None])
        return {"mu": numpyro.sample(f"{name}_mu", normal.to_event(1)), "covariance": covariance}

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Rows) -> None:
        mean, covariance = values["mu"][y], values["covariance"][0 * y if self.prior.tied else y]
        if data.missing is None:
            site = dist.MultivariateNormal(mean, covariance)
            numpyro.sample(name, site, obs=data.x.to_dense())
            return
        # the marginal of each row's observed cells; missing ones become N(0, 1) at zero
        seen = observed_cells(data.missing)
        both = seen[:, :, None] & seen[:, None, :]
        covariance = jnp.where(both, covariance, jnp.eye(self.prior.mean.shape[1]))
        gap = jnp.where(seen, data.x.to_dense() - mean, 0)
        padded = dist.MultivariateNormal(jnp.zeros_like(gap), covariance).log_prob(gap)
        numpyro.factor(name, padded + 0.5 * LOG_2PI * (~seen).sum(-1))

    def simulate(
        self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]
    ) -> Float[Array, "n d"]:
        lower = factor(values["covariance"])[0][y if not self.prior.tied else 0 * y]
        noise = jax.random.normal(key, (len(y), values["mu"].shape[1]))
        return values["mu"][y] + jnp.einsum("nij,nj->ni", lower, noise)

    def observed(self, data: Rows) -> Float[Array, "n d"]:
        return data.x.to_dense()

    def residuals(
        self, likelihood_params: FullGaussianParams, data: Rows, rows: np.ndarray, most: int
    ) -> Residuals:
        x = without_missing(data.x, data.missing, rows)
        whiten = np.asarray(likelihood_params.whiten, float)
        covariance = np.linalg.inv(whiten @ np.swapaxes(whiten, -1, -2))
        return of_reals(x, np.asarray(likelihood_params.mean, float), covariance, most, self._dof)

    @property
    def _dof(self) -> Any:
        """None: of a normal distribution."""
        return None

    def dims(self) -> dict[str, list[str]]:
        share = "shared" if self.prior.tied else "true_class"
        return {
            "mu": ["true_class", "feature"],
            "covariance": [share, "feature", "other_feature"],
        }
