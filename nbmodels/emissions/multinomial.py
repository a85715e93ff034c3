"""Multinomial emission: counts of words, one word distribution a class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammaln
from jaxtyping import Float, Int, Key
from scipy import special

from inference.arrays import on_device
from inference.products import Matrix, matrix
from inference.pytree import register_dataclass
from nbmodels.core.component import LogLikelihood, product_log_likelihood
from nbmodels.core.families import Dirichlet, DrawKey
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.registry import register_family
from nbmodels.core.residuals import Residuals, of_counts
from nbmodels.core.roles import Emission, FeatureColumns, MomentView, admissible_log_probs
from nbmodels.data.features import Block, refuse
from nbmodels.emissions.cells import observed_cells, without
from nbmodels.emissions.columns import floats, marked, observed, padded


@register_dataclass
@dataclass(frozen=True)
class Counts:
    """Packed counts.

    Attributes:
        x: ``(N, d)``, zeros in missing cells.
        missing: ``(N, d)`` ones where a count is unknown, or None.
        length: ``(N,)`` sum of each row's known counts.
        log_coefficient: ``(N,)`` logarithm of the multinomial coefficient.
    """

    x: Matrix
    missing: Matrix | None
    length: Float[Array, " n"]
    log_coefficient: Float[Array, " n"]


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Multinomial(Emission):
    """``x_i ~ Multinomial(n_i, theta[y_i])``, ``theta ~ Dirichlet`` over the words.

    A missing count is left out: the known counts follow the multinomial over the known words, so
    ``theta`` is normalised over them. The tokens lost in the missing cells are a private latent (a
    negative multinomial), which keeps the update conjugate.

    Attributes:
        prior: Dirichlet of shape ``(d, K)``, normalised along axis 0.

    Examples:
        Counts of "nest", "garden" and "honey" in four documents about ants and bees, and in a
        fifth, whose class is asked for:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels.emissions import Multinomial
        >>> emission, classes = Multinomial.of(3, n_classes=2), jax.nn.one_hot(np.r_[0, 0, 1, 1], 2)
        >>> counts = Multinomial.pack(np.array([[5, 3, 0], [4, 2, 1], [1, 3, 6], [0, 2, 4]]))
        >>> found = emission.update(emission.stats(None, classes, counts), "map")
        >>> print(np.asarray(found.mode).T.round(1))  # P(word | class)
        [[0.6 0.3 0.1]
         [0.1 0.3 0.6]]
        >>> new = Multinomial.pack(np.array([[0, 1, 1]]))
        >>> table = emission.log_likelihood(emission.likelihood_params(found, "map"), new).table
        >>> print(np.asarray(jax.nn.softmax(table)).round(2))  # of ant and bee, alike without words
        [[0.17 0.83]]
    """

    prior: Dirichlet

    @classmethod
    def of(cls, n_features: int, n_classes: int, alpha: float = 1.0) -> Multinomial:
        """Symmetric prior: ``alpha`` pseudo-counts a word."""
        concentration = np.full((n_features, n_classes), 1.0 + alpha)
        return cls(prior=Dirichlet(on_device(concentration), axis=0))

    @staticmethod
    def pack(x: Any, missing: Any = None) -> Counts:
        """Args: x: ``(N, d)`` counts, 0 or more; missing: ``(N, d)`` booleans, or None."""
        clean = without(x, missing)
        length = np.asarray(clean.sum(axis=1), float).ravel()
        if hasattr(clean, "tocsr"):
            logs = clean.tocsr().astype(float)
            logs.data = special.gammaln(logs.data + 1)
        else:
            logs = special.gammaln(np.asarray(clean, float) + 1)
        coefficient = special.gammaln(length + 1) - np.asarray(logs.sum(axis=1)).ravel()
        return Counts(
            matrix(clean),
            None if missing is None else matrix(missing),
            on_device(length),
            on_device(coefficient),
        )

    def _known(self, likelihood_params: Float[Array, "d k"], data: Counts) -> Array:
        """``(N, K)`` probability of a word that is not missing."""
        assert data.missing is not None
        mass = 1 - data.missing.times(jnp.exp(likelihood_params))
        return jnp.maximum(mass, jnp.finfo(mass.dtype).eps)

    def log_likelihood(self, likelihood_params: Float[Array, "d k"], data: Counts) -> LogLikelihood:
        table, offset = product_log_likelihood(data.x, likelihood_params)
        if data.missing is not None:
            table = table - data.length[:, None] * jnp.log(self._known(likelihood_params, data))
        return LogLikelihood(table, offset)

    def stats(
        self,
        likelihood_params: Float[Array, "d k"],
        resp: Float[Array, "n k"],
        data: Counts,
        key: DrawKey = None,
    ) -> Float[Array, "d k"]:
        counts = data.x.transpose_times(resp)
        if data.missing is None:
            return counts
        lost = data.length[:, None] / self._known(likelihood_params, data)
        if key is None:
            return counts + jnp.exp(likelihood_params) * data.missing.transpose_times(resp * lost)
        first, second = jax.random.split(key)
        drawn = jax.random.gamma(first, data.length, dtype=resp.dtype)[:, None]
        rate = resp * lost * drawn / jnp.maximum(data.length, 1)[:, None]
        mean = jnp.exp(likelihood_params) * data.missing.transpose_times(rate)
        return counts + jax.random.poisson(second, mean).astype(counts.dtype)

    def size(self, data: Counts) -> Float[Array, " n"]:
        return data.length

    def relabel(self, q: Dirichlet, order: Int[Array, " k"]) -> Dirichlet:
        return replace(q, concentration=q.concentration[:, order])

    def base_measure(self, data: Counts) -> Float[Array, " n"]:
        return data.log_coefficient

    def values(self, likelihood_params: Float[Array, "d k"]) -> dict[str, Array]:
        return {"probs": jnp.exp(likelihood_params).T}

    def sites(self, name: str) -> dict[str, Any]:
        words = dist.Dirichlet(self.prior.concentration.T).to_event(1)
        return {"probs": numpyro.sample(f"{name}_probs", words)}

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Counts) -> None:
        x, probs = data.x.to_dense(), values["probs"][y]
        known = jnp.ones(x.shape, bool) if data.missing is None else observed_cells(data.missing)
        # written out, not dist.Multinomial: counts need not be whole (TF-IDF), some may be missing
        probs = jnp.where(known, probs, 0)
        probs = probs / probs.sum(-1, keepdims=True)
        logs = jnp.where(x > 0, x * jnp.log(jnp.where(x > 0, probs, 1)), 0).sum(-1)
        coefficient = gammaln(x.sum(-1) + 1) - gammaln(x + 1).sum(-1)
        numpyro.factor(name, logs + coefficient)

    def simulate(
        self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"], length: int = 30
    ) -> Int[Array, "n d"]:
        """Documents of ``length`` words each."""
        words = jnp.log(values["probs"])[y]
        drawn = jax.random.categorical(key, words[None], shape=(length, len(y)))
        return jax.vmap(lambda w: jnp.bincount(w, length=words.shape[1]), 1)(drawn)

    def residuals(
        self, likelihood_params: Any, data: Counts, rows: np.ndarray, most: int
    ) -> Residuals | None:
        if data.missing is not None:
            return None  # what is expected of a count depends on which others are known
        x = data.x.to_host()[rows]
        return of_counts(x, np.exp(np.asarray(likelihood_params, float)).T, most)

    def moment_view(self, data: Counts) -> MomentView:
        def read(means: Array, pooled: Array, weights: Float[Array, " n"]) -> Array:
            return admissible_log_probs(self.prior, means, pooled)

        share = 1 / jnp.maximum(data.length, 1)
        return MomentView(data.x, share, np.arange(data.x.shape[1]), False, read)

    def dims(self) -> dict[str, list[str]]:
        return {"probs": ["true_class", "feature"]}


@dataclass(frozen=True)
class MultinomialColumns(FeatureColumns):
    """Coding of counts, or of non-negative weights such as TF-IDF.

    Attributes:
        n_features: number of columns.
        alpha: pseudo-counts of each column in each class.
        proper: whether all cells are whole numbers.

    Examples:
        Weights of words are distinguished from their counts, and numbers below zero are neither:

        >>> import numpy as np
        >>> from nbmodels import DataError
        >>> from nbmodels.data.features import Block
        >>> from nbmodels.emissions import MultinomialColumns
        >>> for x in ([[3.0, 0], [1, 2]], [[0.4, 0], [0.1, 0.7]], [[3.0, 0], [-1, 2]]):
        ...     block = Block(np.array(x), None, ("nest", "honey"))
        ...     coding = MultinomialColumns.fit(block, np.ones(2))
        ...     try:
        ...         print(coding.proper, coding.pack(coding.component(2), block, 2).length.round(1))
        ...     except DataError as error:
        ...         print(error)
        True [3. 3.]
        False [0.4 0.8]
        X: row 1, column 'nest' is -1.0; expected a count, 0 or more
        (Negative values in data)
    """

    settings: ClassVar[tuple[str, ...]] = ("alpha",)
    sparse: ClassVar[bool] = True

    n_features: int
    alpha: float
    proper: bool = True  # type: ignore[misc]  # a constant elsewhere, learned here

    @classmethod
    def fit(cls, block: Block, weights: np.ndarray, alpha: float = 1.0) -> MultinomialColumns:
        cells = np.asarray(block.x.data, float) if block.is_sparse else floats(block)
        known = cells[np.isfinite(cells)]
        return cls(len(block.names), alpha, bool((known == np.floor(known)).all()))

    def component(self, n_classes: int) -> Emission:
        return Multinomial.of(self.n_features, n_classes, self.alpha)

    def pack(self, component: Emission, block: Block, length: int) -> Any:
        wrong = marked(block.x, block.x.data < 0) if block.is_sparse else floats(block) < 0
        refuse(block, observed(block, wrong), "a count, 0 or more (Negative values in data)")
        return Multinomial.pack(*padded(block, length))


register_family("multinomial", MultinomialColumns)
