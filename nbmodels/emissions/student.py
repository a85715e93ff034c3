"""Student's t emissions: real features with heavy tails, as a scale mixture of normals.

``x_i | u_i ~ N(mu, Sigma / u_i)`` and ``u_i ~ Gamma(dof / 2, dof / 2)``, so that a far-off item of
small ``u`` moves neither mean nor covariance much. The scale ``u_i`` is a private latent:

- the log-likelihood integrates it out. Under ``"ml"`` and ``"map"`` it is the exact t log-density,
  and the objective is the likelihood of what was observed. Under ``"vb"`` it is the logarithm of
  ``E exp E log N(x | mu, Sigma / u)``, the expectations over ``u`` and over the parameters: the
  bound of a posterior in which each item's class and scale are joint, and the parameters
  independent of them. It has the form of a t density with the expected squared distance in it;
- the statistics average over it, ``E[u | x, class] = (dof + d) / (dof + square)``; a Gibbs sweep
  draws it.

One ``u`` is shared by all observed cells of a row: with a diagonal ``Sigma`` the features are
uncorrelated given the class but not independent, for a row that is far off in one of them is
expected to be so in others. Missing cells are left out, and ``d`` counts the observed ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.special import gammaln
from jaxtyping import Float, Int, Key

from inference.pytree import register_dataclass
from inference.triangular import factor, log_diagonal
from nbmodels.core.component import LogLikelihood, centred
from nbmodels.core.families import DrawKey, Rule
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.roles import Emission
from nbmodels.emissions.cells import Cells, observed_cells
from nbmodels.emissions.gaussian import DiagonalGaussian, Distances, count_cells
from nbmodels.emissions.gaussian_full import FullGaussian, Rows

#: Most steps of EM over the items' scales to given responsibilities, and the relative change of a
#: scale from which on there are more. Of 2 to 300 columns, with tails of 1.2 degrees of freedom and
#: normal ones, parameters are within a thousandth of the fixed point after 20 steps.
_STEPS, _CHANGE = 20, 0.003


def student_log_likelihood(at: Distances, dof: Any) -> LogLikelihood:
    """Log-density of a multivariate t distribution of ``dof`` degrees of freedom."""
    d = at.size[:, None]
    half = (dof + d) / 2
    constant = gammaln(half) - gammaln(dof / 2) - d / 2 * jnp.log(dof * jnp.pi)
    return centred(constant + at.log_det / 2 - half * jnp.log1p(at.square / dof))


def precisions(at: Distances, dof: Any, key: Key[Array, ""] | None) -> Float[Array, "n k"]:
    """``(N, K)`` scale ``u`` given the data and the class: its mean, or a draw."""
    d = at.size[:, None]
    if key is None:
        return (dof + d) / (dof + at.square)
    shape = jnp.broadcast_to((dof + d) / 2, at.square.shape)
    drawn = jax.random.gamma(key, shape, dtype=at.square.dtype)
    return 2 * drawn / (dof + at.square)


def _observe(name: str, dof: Any, mean: Any, lower: Any, x: Any, seen: Any) -> None:
    """NumPyro's statement; ``lower`` has ones on the diagonal where a cell is not ``seen``."""
    if seen is None:
        numpyro.sample(name, dist.MultivariateStudentT(dof, mean, lower), obs=x)
        return
    gap = jnp.where(seen, x - mean, 0)
    solved = jax.scipy.linalg.solve_triangular(lower, gap[..., None], lower=True)[..., 0]
    d = seen.sum(-1)
    density = gammaln((dof + d) / 2) - gammaln(dof / 2) - d / 2 * jnp.log(dof * jnp.pi)
    density = density - log_diagonal(lower)
    numpyro.factor(name, density - (dof + d) / 2 * jnp.log1p(jnp.sum(solved**2, -1) / dof))


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class _ScaleMixture(Emission):
    """What Student's t adds to a normal emission: a scale of each item, integrated out.

    Attributes:
        dof: degrees of freedom, above 0, one for all classes.
    """

    dof: Any = field(default=4.0)
    has_latent: ClassVar[bool] = True

    @property
    def _dof(self) -> Any:
        return self.dof

    def log_likelihood(self, likelihood_params: Any, data: Any) -> LogLikelihood:
        normal: Any = self  # the emission that this is mixed with
        return student_log_likelihood(normal.distances(likelihood_params, data), self.dof)

    def stats(
        self,
        likelihood_params: Any,
        resp: Float[Array, "n k"],
        data: Any,
        key: DrawKey = None,
    ) -> tuple[Array, ...]:
        normal: Any = self
        first, second = (None, None) if key is None else jax.random.split(key)
        u = precisions(normal.distances(likelihood_params, data), self.dof, first)
        return self.scaled_stats(likelihood_params, resp, data, u, second)

    def scaled_stats(
        self,
        likelihood_params: Any,
        resp: Float[Array, "n k"],
        data: Any,
        u: Float[Array, "n k"],
        key: DrawKey = None,
    ) -> tuple[Array, ...]:
        """Number of items, and the sums of a normal emission, under known scales ``u``."""
        raise NotImplementedError  # as the normal emission has them

    def update(self, stats: tuple[Array, ...], rule: Rule) -> Any:
        items, mass, first, second = stats
        return self.prior.posterior((mass, first, second), rule, items)

    def start(self, resp: Float[Array, "n k"], data: Any, rule: Rule) -> Any:
        """``q`` of given responsibilities: EM over the items' scales, from the normal fit on.

        Cross-fitted features are fitted by this alone. One step from the prior would weight items
        by their distance from the prior's mean: no outlier would count less, no scale be learned.
        """
        normal: Any = self
        size = self._of_one_scale(jnp.sum(resp, 0))

        def fitted(read: Any, u: Array) -> Any:
            stats = self.scaled_stats(read, resp, data, u)
            return self.update(jax.tree.map(lambda s: s * self.weight, stats), rule)

        def step(at: tuple[Any, Array, Any, Any]) -> tuple[Any, Array, Any, Any]:
            q, last, _, number = at
            read = self.likelihood_params(q, rule)
            u = precisions(normal.distances(read, data), self.dof, None)
            # of mean one, as at a maximum of the likelihood (Kent, Tyler and Vardi 1994): without
            # that, EM hardly moves the scale of many columns, and their priors together set it
            mass = self._of_one_scale(jnp.sum(resp * u, 0))
            u = u * jnp.where(mass > 0, size / jnp.where(mass > 0, mass, 1), 1)
            change = jnp.max(jnp.where(resp > 0, jnp.abs(u - last) / u, 0))
            return fitted(read, u), u, change, number + 1

        # expectations under the prior exist even where its mode does not
        even = jnp.ones_like(resp)
        first = fitted(self.likelihood_params(self.prior, "vb"), even)
        begin = first, even, jnp.asarray(jnp.inf, resp.dtype), 0
        return lax.while_loop(lambda at: (at[2] > _CHANGE) & (at[3] < _STEPS), step, begin)[0]

    def _of_one_scale(self, sums: Float[Array, " k"]) -> Float[Array, " k"]:
        """Sums by class, over all classes that share their covariance."""
        return sums

    def simulate(
        self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]
    ) -> Float[Array, "n d"]:
        first, second = jax.random.split(key)
        normal = super().simulate(first, values, y)
        u = 2 / self.dof * jax.random.gamma(second, self.dof / 2, (len(y), 1))
        centre = values["mu"][y]
        return centre + (normal - centre) / jnp.sqrt(u)


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class DiagonalStudent(_ScaleMixture, DiagonalGaussian):  # type: ignore[misc]  # one more count
    """``x_i ~ t(dof, mu[y_i], diag(sigma[y_i]^2))`` with a normal-inverse-gamma prior.

    Attributes:
        prior: of ``mu`` and ``sigma^2``, each parameter of shape ``(K, d)``.
        dof: degrees of freedom, above 0, one for all classes; the variance is
            ``dof / (dof - 2) * sigma^2``.

    Examples:
        Sizes of ants, of which one was written down ten times too large:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.class_priors import Proportions
        >>> from nbmodels.emissions import DiagonalStudent
        >>> sizes = np.array([1.0, 1.2, 0.8, 1.0, 10.0])[:, None]
        >>> model = {"class_prior": Proportions.of(1), "sizes": DiagonalStudent.of(1, 1, dof=2.0)}
        >>> data = Data({"class_prior": None, "sizes": DiagonalStudent.pack(sizes)}, np.ones(5))
        >>> mean, scale = fit(model, data, key=jax.random.key(0)).params["sizes"].mode
        >>> print(sizes.mean().round(1), np.asarray(mean).round(1))  # plain, and of t
        2.8 [[1.]]
    """

    def scaled_stats(
        self,
        likelihood_params: Any,
        resp: Float[Array, "n k"],
        data: Cells,
        u: Float[Array, "n k"],
        key: DrawKey = None,
    ) -> tuple[Array, ...]:
        sums = DiagonalGaussian.stats(self, likelihood_params, resp * u, data)
        return count_cells(resp, data), *sums

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Cells) -> None:
        scale = jnp.sqrt(values["variance"])[y]
        seen = None if data.missing is None else observed_cells(data.missing)
        lower = (scale if seen is None else jnp.where(seen, scale, 1))[..., None, :]
        lower = lower * jnp.eye(scale.shape[-1])
        _observe(name, self.dof, values["mu"][y], lower, data.x.to_dense(), seen)


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class FullStudent(_ScaleMixture, FullGaussian):  # type: ignore[misc]  # one more count
    """``x_i ~ t(dof, mu[y_i], Sigma[y_i])`` with a normal-inverse-Wishart prior.

    Attributes:
        prior: of ``mu`` and ``Sigma``; ``scale`` of shape ``(K, d, d)``, or ``(1, d, d)`` where the
            classes share one matrix.
        dof: degrees of freedom, above 0, one for all classes; the covariance is
            ``dof / (dof - 2) * Sigma``.

    Examples:
        Lengths and widths agree, but for four items in forty. The correlation of all of them is
        negative, that of the t distribution is not:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.class_priors import Proportions
        >>> from nbmodels.emissions import FullStudent
        >>> x = np.stack([np.linspace(-1, 1, 40)] * 2, 1)
        >>> x[:, 1] += 0.1 * np.sin(np.arange(40))
        >>> x[::10] = [3.0, -3.0]
        >>> model = {"class_prior": Proportions.of(1), "sizes": FullStudent.of(2, 1, dof=2.0)}
        >>> data = Data({"class_prior": None, "sizes": FullStudent.pack(x)}, np.ones(40))
        >>> mean, scale = fit(model, data, key=jax.random.key(0)).params["sizes"].mode
        >>> of_t = scale[0, 0, 1] / np.sqrt(scale[0, 0, 0] * scale[0, 1, 1])
        >>> print(round(float(np.corrcoef(x.T)[0, 1]), 1), round(float(of_t), 1))
        -0.4 1.0
    """

    def scaled_stats(
        self,
        likelihood_params: Any,
        resp: Float[Array, "n k"],
        data: Rows,
        u: Float[Array, "n k"],
        key: DrawKey = None,
    ) -> tuple[Array, ...]:
        return jnp.sum(resp, 0), *self._moments(likelihood_params, resp, data, key, u)

    def _of_one_scale(self, sums: Float[Array, " k"]) -> Float[Array, " k"]:
        return jnp.full_like(sums, jnp.sum(sums)) if self.prior.tied else sums

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Rows) -> None:
        covariance = values["covariance"][0 * y if self.prior.tied else y]
        seen = None if data.missing is None else observed_cells(data.missing)
        if seen is not None:
            both = seen[:, :, None] & seen[:, None, :]
            covariance = jnp.where(both, covariance, jnp.eye(covariance.shape[-1]))
        lower = factor(covariance)[0]
        _observe(name, self.dof, values["mu"][y], lower, data.x.to_dense(), seen)
