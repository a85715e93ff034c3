"""Categorical emission: symbolic attributes, independent given the class (Denis 2006, 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from jaxtyping import Float, Int, Key
from scipy import sparse

from inference.arrays import on_device
from inference.products import Matrix, matrix
from inference.pytree import register_dataclass
from nbmodels.core.codes import checked_codes
from nbmodels.core.component import LogLikelihood, product_log_likelihood
from nbmodels.core.families import Dirichlet, DrawKey
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.registry import register_family
from nbmodels.core.residuals import Residuals, of_indicators
from nbmodels.core.roles import Emission, FeatureColumns, MomentView, admissible_log_probs
from nbmodels.data.features import Block
from nbmodels.data.validation import pad_rows
from nbmodels.errors import Caution, CellTypeError, DataError, NbmodelsWarning, counted, issue


@register_dataclass
@dataclass(frozen=True)
class Codes:
    """Packed attributes.

    Attributes:
        onehot: ``(N, sum of sizes)``, the attributes' indicators side by side.
        codes: ``(N, attributes)`` integers, -1 where missing or unknown.
    """

    onehot: Matrix
    codes: Int[Array, "n attributes"]


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Categorical(Emission):
    """``x_ij ~ Categorical(theta_j[y_i])``, ``theta_j ~ Dirichlet``, one for each attribute.

    A missing cell, and a category that training never saw, is left out of the likelihood.

    Attributes:
        prior: Dirichlet of shape ``(sum of sizes, K)``, several simplices along axis 0.

    Examples:
        Colour (black, yellow) and wings (no, yes) of three ants and three bees, and of two other
        items. The wings of the first of these were not seen:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels.emissions import Categorical
        >>> emission = Categorical.of((2, 2), n_classes=2)
        >>> known = emission.pack([[0, 0], [0, 0], [1, 0], [1, 1], [1, 1], [0, 1]])
        >>> classes = jax.nn.one_hot(np.array([0, 0, 0, 1, 1, 1]), 2)
        >>> found = emission.update(emission.stats(None, classes, known), "map")
        >>> new = emission.pack([[1, -1], [1, 0]])
        >>> table = emission.log_likelihood(emission.likelihood_params(found, "map"), new).table
        >>> print(np.asarray(jax.nn.softmax(table)).round(2))  # of ant and bee, alike without looks
        [[0.4  0.6 ]
         [0.73 0.27]]
    """

    prior: Dirichlet

    @classmethod
    def of(cls, sizes: tuple[int, ...], n_classes: int, alpha: float = 1.0) -> Categorical:
        """Symmetric prior: ``alpha`` pseudo-items a category.

        Args:
            sizes: number of categories of each attribute.
        """
        concentration = on_device(np.full((sum(sizes), n_classes), 1.0 + alpha))
        return cls(prior=Dirichlet(concentration, axis=0, sizes=tuple(int(s) for s in sizes)))

    @property
    def sizes(self) -> tuple[int, ...]:
        assert self.prior.sizes is not None
        return self.prior.sizes

    def pack(self, codes: Any) -> Codes:
        """Codes, with their indicators.

        Args:
            codes: ``(N, attributes)`` integers below each attribute's size, negative where missing
                or unknown.

        Raises:
            DataError: another number of attributes, NaN, not whole, or a code beyond the last.
        """
        if np.shape(codes)[1:] != (len(self.sizes),):
            raise DataError(
                f"codes: expected (N, {len(self.sizes)}), one column an attribute; "
                f"got {np.shape(codes)}"
            )
        codes = checked_codes("codes", codes, self.sizes)
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        rows, columns = np.nonzero(codes >= 0)
        entries = (codes + starts)[rows, columns]
        onehot = sparse.csr_array(
            (np.ones(len(rows)), (rows, entries)), shape=(len(codes), sum(self.sizes))
        )
        # room by the shape: how many rows are padding must not matter
        indicators = matrix(onehot, room=codes.size)
        return Codes(indicators, on_device(np.where(codes < 0, -1, codes), jnp.int32))

    def log_likelihood(self, likelihood_params: Float[Array, "s k"], data: Codes) -> LogLikelihood:
        return product_log_likelihood(data.onehot, likelihood_params)

    def stats(
        self, likelihood_params: Any, resp: Float[Array, "n k"], data: Codes, key: DrawKey = None
    ) -> Float[Array, "s k"]:
        return data.onehot.transpose_times(resp)

    def relabel(self, q: Dirichlet, order: Int[Array, " k"]) -> Dirichlet:
        return replace(q, concentration=q.concentration[:, order])

    def _split(self, table: Array) -> dict[str, Array]:
        parts = jnp.split(table, np.cumsum(self.sizes)[:-1], axis=0)
        return {f"probs_{j}": part.T for j, part in enumerate(parts)}

    def values(self, likelihood_params: Float[Array, "s k"]) -> dict[str, Array]:
        return self._split(jnp.exp(likelihood_params))

    def sites(self, name: str) -> dict[str, Any]:
        return {
            part: numpyro.sample(f"{name}_{part}", dist.Dirichlet(concentration).to_event(1))
            for part, concentration in self._split(self.prior.concentration).items()
        }

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Codes) -> None:
        for j in range(len(self.sizes)):
            code = data.codes[:, j]
            site = dist.Categorical(probs=values[f"probs_{j}"][y]).mask(code >= 0)
            numpyro.sample(f"{name}_{j}", site, obs=jnp.maximum(code, 0))

    def simulate(
        self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]
    ) -> Int[Array, "n attributes"]:
        keys = jax.random.split(key, len(self.sizes))
        columns = [
            jax.random.categorical(k, jnp.log(values[f"probs_{j}"])[y]) for j, k in enumerate(keys)
        ]
        return jnp.stack(columns, 1)

    def observed(self, data: Codes) -> Int[Array, "n attributes"]:
        return data.codes

    def residuals(
        self, likelihood_params: Any, data: Codes, rows: np.ndarray, most: int
    ) -> Residuals:
        probs = np.exp(np.asarray(likelihood_params, float)).T
        of = np.repeat(np.arange(len(self.sizes)), self.sizes)
        missing = (np.asarray(data.codes)[rows] < 0)[:, of]
        return of_indicators(data.onehot.to_host()[rows], probs, missing, of, most)

    def moment_view(self, data: Codes) -> MomentView:
        def read(means: Array, pooled: Array, weights: Float[Array, " n"]) -> Array:
            return admissible_log_probs(self.prior, means, pooled)

        attribute = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return MomentView(data.onehot, jnp.ones(data.onehot.shape[0]), attribute, True, read)

    def dims(self) -> dict[str, list[str]]:
        return {f"probs_{j}": ["true_class", f"category_{j}"] for j in range(len(self.sizes))}


@dataclass(frozen=True)
class CategoricalColumns(FeatureColumns):
    """Ordinal coding of symbolic attributes, one a column: values of any kind.

    Attributes:
        categories: of each column, sorted.
        alpha: pseudo-items of each category in each class.

    Examples:
        Categories are coded by their rank, and one that training never saw is left out:

        >>> import numpy as np
        >>> from nbmodels.data.features import Block
        >>> from nbmodels.emissions import CategoricalColumns
        >>> names = ("colour", "wings")
        >>> training = Block(np.array([["red", "no"], ["black", "yes"]], object), None, names)
        >>> coding = CategoricalColumns.fit(training, np.ones(2))
        >>> print([list(known) for known in coding.categories])
        [['black', 'red'], ['no', 'yes']]
        >>> emission = coding.component(n_classes=2)
        >>> new = Block(np.array([["red", "yes"], ["green", "no"]], object), None, names)
        >>> print(np.asarray(coding.pack(emission, new, 2).codes))
        [[ 1  1]
         [-1  0]]
    """

    settings: ClassVar[tuple[str, ...]] = ("alpha",)
    numeric: ClassVar[bool] = False

    categories: tuple[np.ndarray, ...]
    alpha: float

    @classmethod
    def fit(cls, block: Block, weights: np.ndarray, alpha: float = 1.0) -> CategoricalColumns:
        categories = []
        for j, name in enumerate(block.names):
            rows = np.arange(len(block.x))
            if block.missing is not None:
                rows = rows[~block.missing[:, j]]
            column = block.x[rows, j]
            try:
                known = sorted(set(column))
            except TypeError as error:
                for i, value in enumerate(column):
                    if not isinstance(value, Hashable):
                        raise CellTypeError(
                            f"X: row {rows[i]}, column {name!r} is {value!r}; argument must be a "
                            "string or a number"
                        ) from error
                kinds = [type(value) for value in column]
                # the odd cell is one of the rarest type, which may be that of the first row
                odd = kinds.index(Counter(kinds).most_common()[-1][0])
                raise DataError(
                    f"X: row {rows[odd]}, column {name!r} is {column[odd]!r}; expected values of "
                    "one type that can be sorted (make them all strings)"
                ) from error
            exist = set(column[weights[rows] > 0])  # an item of weight 0 does not
            categories.append(np.fromiter((v for v in known if v in exist or not exist), object))
        return cls(tuple(categories), alpha)

    def component(self, n_classes: int) -> Emission:
        return Categorical.of(tuple(len(c) for c in self.categories), n_classes, self.alpha)

    def coords(self) -> dict[str, np.ndarray]:
        """The categories of each column; numbers stay numbers where all are."""
        known = [pd.Series(c, dtype=object).infer_objects() for c in self.categories]
        return {f"category_{j}": one.to_numpy() for j, one in enumerate(known)}

    def pack(self, component: Categorical, block: Block, length: int) -> Any:
        """Categories that training never saw are left out, like missing cells.

        Warns:
            NbmodelsWarning: a column has cells, and none is a category that training saw.
        """
        codes = np.full(block.x.shape, -1)
        cells = np.ones(block.x.shape, bool)
        if block.missing is not None:
            cells = ~np.asarray(block.missing)
        for j, known in enumerate(self.categories):
            column = pd.Index(known).get_indexer(pd.Index(block.x[:, j]))
            codes[:, j] = np.where(cells[:, j], column, -1)
        unseen = cells.any(0) & (codes < 0).all(0)
        if unseen.any():
            issue([self._unseen(block, cells, np.flatnonzero(unseen))])
        return component.pack(pad_rows(codes, length, -1))

    def _unseen(self, block: Block, cells: np.ndarray, columns: np.ndarray) -> Caution:
        """About columns of which training saw no category, by the first of them."""
        j = columns[0]
        row, known = int(np.argmax(cells[:, j])), self.categories[j]
        seen = ", ".join(map(repr, known[:4])) + (", ..." if len(known) > 4 else "")
        rest = len(columns) - 1
        others = f" (likewise in {counted(rest, 'other column')})" if rest else ""
        return Caution(
            NbmodelsWarning,
            f"X: training saw none of the categories in column {block.names[j]!r}, which have no "
            f"influence: row {row} is {block.x[row, j]!r}, and training saw {seen}{others}",
        )


register_family("categorical", CategoricalColumns)
