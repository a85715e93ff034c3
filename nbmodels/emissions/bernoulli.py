"""Bernoulli emission: binary features, independent given the class (Zeng 2022, section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key

from inference.arrays import on_device
from inference.products import matrix
from inference.pytree import register_dataclass
from nbmodels.core.component import LogLikelihood, product_log_likelihood
from nbmodels.core.families import Dirichlet, DrawKey, beta
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.registry import register_family
from nbmodels.core.residuals import Residuals, of_indicators
from nbmodels.core.roles import LEAST_SHARE, Emission, FeatureColumns, MomentView
from nbmodels.data.features import Block, refuse
from nbmodels.emissions.cells import Cells, observed_cells, without
from nbmodels.emissions.columns import floats, marked, observed, padded
from nbmodels.errors import DataError


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Bernoulli(Emission):
    """``x_ij ~ Bernoulli(p_j[y_i])``, ``p ~ Beta``.

    Missing cells are left out of the likelihood. Dense and sparse data give the same numbers.

    Attributes:
        prior: Beta distributions, a Dirichlet of shape ``(2, d, K)`` over the values (0, 1).

    Examples:
        Words of two documents about ants and two about bees, and a fifth document, whose third word
        could not be read:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels.emissions import Bernoulli
        >>> emission, classes = Bernoulli.of(3, n_classes=2), jax.nn.one_hot(np.r_[0, 0, 1, 1], 2)
        >>> words = Bernoulli.pack(np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1]]))
        >>> found = emission.update(emission.stats(None, classes, words), "map")
        >>> print(np.asarray(found.mode)[1].T.round(2))  # P(word | class)
        [[0.75 0.5  0.25]
         [0.25 0.5  0.75]]
        >>> new = Bernoulli.pack(np.array([[1, 0, 0]]), missing=np.array([[False, False, True]]))
        >>> table = emission.log_likelihood(emission.likelihood_params(found, "map"), new).table
        >>> print(np.asarray(jax.nn.softmax(table)).round(2))  # of ant and bee, alike without words
        [[0.75 0.25]]
    """

    prior: Dirichlet

    @classmethod
    def of(cls, n_features: int, n_classes: int, alpha: float = 1.0) -> Bernoulli:
        """Symmetric prior: ``alpha`` pseudo-items for each of the two values."""
        pseudo = np.full((n_features, n_classes), 1.0 + alpha)
        return cls(prior=beta(pseudo, pseudo))

    @staticmethod
    def pack(x: Any, missing: Any = None) -> Cells:
        """Args: x: ``(N, d)`` of zeros and ones; missing: ``(N, d)`` booleans, or None."""
        return Cells(matrix(without(x, missing)), None if missing is None else matrix(missing))

    def log_likelihood(
        self, likelihood_params: Float[Array, "2 d k"], data: Cells
    ) -> LogLikelihood:
        zero, one = likelihood_params
        table, offset = product_log_likelihood(data.x, one - zero, jnp.sum(zero, 0))
        if data.missing is not None:
            left_out = product_log_likelihood(data.missing, zero)
            table, offset = table - left_out.table, offset - left_out.offset
        return LogLikelihood(table, offset)

    def stats(
        self, likelihood_params: Any, resp: Float[Array, "n k"], data: Cells, key: DrawKey = None
    ) -> Float[Array, "2 d k"]:
        ones = data.x.transpose_times(resp)
        count = jnp.broadcast_to(jnp.sum(resp, 0), ones.shape)
        if data.missing is not None:
            count = count - data.missing.transpose_times(resp)
        return jnp.stack([jnp.maximum(count - ones, 0), ones])

    def size(self, data: Cells) -> Float[Array, " n"]:
        """Number of ones."""
        return on_device(np.asarray(data.x.to_host().sum(1)).ravel())

    def relabel(self, q: Dirichlet, order: Int[Array, " k"]) -> Dirichlet:
        return replace(q, concentration=q.concentration[:, :, order])

    def values(self, likelihood_params: Float[Array, "2 d k"]) -> dict[str, Array]:
        return {"probs": jnp.exp(likelihood_params[1]).T}

    def sites(self, name: str) -> dict[str, Any]:
        zeros, ones = jnp.swapaxes(self.prior.concentration, 1, 2)
        return {"probs": numpyro.sample(f"{name}_probs", dist.Beta(ones, zeros).to_event(2))}

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Cells) -> None:
        site = dist.Bernoulli(probs=values["probs"][y])
        if data.missing is not None:
            site = site.mask(observed_cells(data.missing))
        numpyro.sample(name, site.to_event(1), obs=data.x.to_dense())

    def simulate(
        self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]
    ) -> Int[Array, "n d"]:
        return jax.random.bernoulli(key, values["probs"][y]).astype(jnp.int32)

    def observed(self, data: Cells) -> Float[Array, "n d"]:
        return data.x.to_dense()

    def residuals(
        self, likelihood_params: Any, data: Cells, rows: np.ndarray, most: int
    ) -> Residuals:
        missing = None if data.missing is None else data.missing.to_host()[rows]
        probs = np.exp(np.asarray(likelihood_params[1], float)).T
        return of_indicators(
            data.x.to_host()[rows], probs, missing, np.arange(probs.shape[1]), most
        )

    def moment_view(self, data: Cells) -> MomentView:
        def read(means: Array, pooled: Array, weights: Float[Array, " n"]) -> Array:
            if data.missing is not None:
                mass = jnp.sum(weights)
                hidden = data.missing.transpose_times(weights[:, None])
                seen = jnp.maximum(mass - hidden, jnp.finfo(hidden.dtype).tiny) / mass
                means, pooled = means / seen, pooled / seen
            one = jnp.clip(means, LEAST_SHARE * pooled, 1 - LEAST_SHARE * (1 - pooled))
            one = jnp.clip(one, jnp.finfo(one.dtype).tiny, 1 - jnp.finfo(one.dtype).eps)
            return jnp.stack([jnp.log1p(-one), jnp.log(one)])

        n_rows, d = data.x.shape
        return MomentView(data.x, jnp.ones(n_rows), np.arange(d), False, read)

    def dims(self) -> dict[str, list[str]]:
        return {"probs": ["true_class", "feature"]}


@dataclass(frozen=True)
class BernoulliColumns(FeatureColumns):
    """Coding of binary features: zeros and ones, or numbers above a threshold.

    Attributes:
        n_features: number of columns.
        alpha: pseudo-items of each value in each class.
        binarize: values above it become one; None where data must be binary already.

    Examples:
        Lengths above 5 are ones; without a threshold they are refused:

        >>> import numpy as np
        >>> from nbmodels import DataError
        >>> from nbmodels.data.features import Block
        >>> from nbmodels.emissions import BernoulliColumns
        >>> block = Block(np.array([[2.0, 7.0], [9.0, 1.0]]), None, ("head", "wing"))
        >>> coding = BernoulliColumns.fit(block, np.ones(2), binarize=5.0)
        >>> emission = coding.component(n_classes=2)
        >>> print(np.asarray(coding.pack(emission, block, 2).x.to_dense()))
        [[0. 1.]
         [1. 0.]]
        >>> try:
        ...     BernoulliColumns.fit(block, np.ones(2)).pack(emission, block, 2)
        ... except DataError as error:
        ...     print(error)
        X: row 0, column 'head' is 2.0; expected 0 or 1
        (set binarize to a threshold for other values)
    """

    settings: ClassVar[tuple[str, ...]] = ("alpha", "binarize")
    sparse: ClassVar[bool] = True

    n_features: int
    alpha: float
    binarize: float | None

    @classmethod
    def fit(
        cls,
        block: Block,
        weights: np.ndarray,
        alpha: float = 1.0,
        binarize: float | None = None,
    ) -> BernoulliColumns:
        return cls(len(block.names), alpha, binarize)

    def component(self, n_classes: int) -> Emission:
        return Bernoulli.of(self.n_features, n_classes, self.alpha)

    def _binary(self, block: Block) -> Block:
        x: Any = block.x if block.is_sparse else floats(block)
        if self.binarize is not None:
            if block.is_sparse and self.binarize < 0:
                raise DataError("binarize: must be 0 or more for sparse X")
            above = x > self.binarize
            x = above.astype(float) if block.is_sparse else np.asarray(above, float)
        else:
            cells = x.data if block.is_sparse else x
            wrong = (cells != 0) & (cells != 1)
            wrong = observed(block, marked(x, wrong) if block.is_sparse else wrong)
            refuse(block, wrong, "0 or 1 (set binarize to a threshold for other values)")
        return Block(x, block.missing, block.names)

    def pack(self, component: Emission, block: Block, length: int) -> Any:
        return Bernoulli.pack(*padded(self._binary(block), length))


register_family("bernoulli", BernoulliColumns)
