"""Feature encoders: check a block of columns, remember its coding, hand it to an emission.

One frozen dataclass a kind of column. ``fit`` learns the coding from training data, ``component``
builds the emission, ``pack`` encodes rows for it; ``log_jacobian`` is what the coding adds to an
item's log-density.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import pandas as pd

from nbmodels.core.component import Component
from nbmodels.data.features import Block, refuse
from nbmodels.data.validation import pad_rows
from nbmodels.emissions import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    DiagonalStudent,
    FullGaussian,
    FullStudent,
    Multinomial,
)
from nbmodels.errors import CellTypeError, DataError


class Encoder(Protocol):
    """What the estimators need of a kind of column."""

    @classmethod
    def fit(cls, block: Block, weights: np.ndarray, **options: Any) -> Self:
        """Check training data and learn their coding."""

    def component(self, n_classes: int) -> Component:
        """The emission, with its prior."""

    def pack(self, component: Component, block: Block, length: int) -> Any:
        """Check rows and pack them for the emission, padded to ``length``."""

    def log_jacobian(self, block: Block) -> np.ndarray:
        """``(N,)`` log-density that the coding adds to each item."""

    def units(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The emission's parameters, or draws of them, in the units of the data."""


def _marked(x: Any, bad: np.ndarray) -> Any:
    """Sparse booleans from booleans of the stored entries."""
    return type(x)((bad, x.indices, x.indptr), shape=x.shape)


def _seen(block: Block, bad: Any) -> Any:
    """``bad`` without the missing cells."""
    if block.missing is None:
        return bad
    return bad > block.missing if block.is_sparse else bad & ~block.missing


def _floats(block: Block) -> np.ndarray:
    """A dense block's cells as floats, whatever stands in the missing ones."""
    hide = block.missing is not None and block.x.dtype == object
    return np.asarray(np.where(block.missing, 0.0, block.x) if hide else block.x, float)


def _padded(block: Block, length: int) -> tuple[Any, Any]:
    """``x`` and ``missing`` with rows of zeros appended; sparse ones stay as they are."""
    if block.is_sparse:
        return block.x, block.missing
    missing = None if block.missing is None else pad_rows(np.asarray(block.missing), length)
    return pad_rows(_floats(block), length), missing


@dataclass(frozen=True)
class BinaryEncoder:
    """Zeros and ones, for the Bernoulli emission.

    Attributes:
        n_features: number of columns.
        alpha: pseudo-items of each value in each class.
        binarize: values above it become one; None where data must be binary already.
    """

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
    ) -> BinaryEncoder:
        return cls(len(block.names), alpha, binarize)

    def component(self, n_classes: int) -> Component:
        return Bernoulli.of(self.n_features, n_classes, self.alpha)

    def _binary(self, block: Block) -> Block:
        x: Any = block.x if block.is_sparse else _floats(block)
        wrong: Any
        if self.binarize is not None:
            if block.is_sparse and self.binarize < 0:
                raise DataError("binarize: must be 0 or more for sparse X")
            above = x > self.binarize
            x = above.astype(float) if block.is_sparse else np.asarray(above, float)
        elif block.is_sparse:
            wrong = _seen(block, _marked(x, (x.data != 0) & (x.data != 1)))
            refuse(block, wrong, "0 or 1 (set binarize to cut other values)")
        else:
            wrong = _seen(block, (x != 0) & (x != 1))
            refuse(block, wrong, "0 or 1 (set binarize to cut other values)")
        return Block(x, block.missing, block.names)

    def pack(self, component: Component, block: Block, length: int) -> Any:
        return Bernoulli.pack(*_padded(self._binary(block), length))

    def log_jacobian(self, block: Block) -> np.ndarray:
        return np.zeros(1)

    def units(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return values


@dataclass(frozen=True)
class CountEncoder:
    """Counts, or non-negative weights such as TF-IDF, for the multinomial emission.

    Attributes:
        n_features: number of columns.
        alpha: pseudo-counts of each column in each class.
    """

    n_features: int
    alpha: float

    @classmethod
    def fit(cls, block: Block, weights: np.ndarray, alpha: float = 1.0) -> CountEncoder:
        return cls(len(block.names), alpha)

    def component(self, n_classes: int) -> Component:
        return Multinomial.of(self.n_features, n_classes, self.alpha)

    def pack(self, component: Component, block: Block, length: int) -> Any:
        wrong = _marked(block.x, block.x.data < 0) if block.is_sparse else _floats(block) < 0
        refuse(block, _seen(block, wrong), "a count, 0 or more (Negative values in data)")
        return Multinomial.pack(*_padded(block, length))

    def log_jacobian(self, block: Block) -> np.ndarray:
        return np.zeros(1)

    def units(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return values


@dataclass(frozen=True)
class CategoryEncoder:
    """Values of any kind, one attribute a column, for the categorical emission.

    Attributes:
        categories: of each column, sorted.
        alpha: pseudo-items of each category in each class.
    """

    categories: tuple[np.ndarray, ...]
    alpha: float

    @classmethod
    def fit(cls, block: Block, weights: np.ndarray, alpha: float = 1.0) -> CategoryEncoder:
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
                # the odd cell is one of the rarest type, which may be that of the first row
                kinds = [type(value) for value in column]
                odd = kinds.index(Counter(kinds).most_common()[-1][0])
                raise DataError(
                    f"X: row {rows[odd]}, column {name!r} is {column[odd]!r}; expected values of "
                    "one type that can be sorted (make them all strings)"
                ) from error
            exist = set(column[weights[rows] > 0])  # an item of weight 0 does not
            categories.append(np.fromiter((v for v in known if v in exist or not exist), object))
        return cls(tuple(categories), alpha)

    def component(self, n_classes: int) -> Component:
        return Categorical.of(tuple(len(c) for c in self.categories), n_classes, self.alpha)

    def pack(self, component: Component, block: Block, length: int) -> Any:
        """Categories that training never saw are left out, like missing cells."""
        codes = np.full(block.x.shape, -1)
        for j, known in enumerate(self.categories):
            codes[:, j] = pd.Index(known).get_indexer(pd.Index(block.x[:, j]))
        if block.missing is not None:
            codes[np.asarray(block.missing)] = -1
        assert isinstance(component, Categorical)
        return component.pack(pad_rows(codes, length, -1))

    def log_jacobian(self, block: Block) -> np.ndarray:
        return np.zeros(1)

    def units(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return values


@dataclass(frozen=True)
class RealEncoder:
    """Real numbers, standardised, for the Gaussian and Student emissions.

    The model sees ``(x - location) / scale``: one prior and single precision then serve any unit.

    Attributes:
        location: ``(d,)`` weighted means of the training data.
        scale: ``(d,)`` weighted standard deviations, 1 for constant columns.
        covariance: ``"diag"``, ``"full"`` or ``"tied"``.
        dof: degrees of freedom of a t distribution, None for a normal one.
    """

    location: np.ndarray
    scale: np.ndarray
    covariance: str
    dof: float | None = None

    @classmethod
    def fit(
        cls,
        block: Block,
        weights: np.ndarray,
        covariance: str = "diag",
        dof: float | None = None,
    ) -> RealEncoder:
        x = _floats(block)
        seen = np.ones(x.shape) if block.missing is None else 1.0 - block.missing
        mass = weights[:, None] * seen
        count = np.maximum(mass.sum(0), np.finfo(float).tiny)
        x = np.where(seen > 0, x, 0)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            location = (mass * x).sum(0) / count
            scale = np.sqrt((mass * np.square(x - location)).sum(0) / count)
            widest = np.max(np.where(mass > 0, np.abs(x - location), 0), axis=0)
        # a column that varies by less than its values' rounding is constant
        flat = widest <= 1e-12 * np.abs(location)
        fair = (flat & np.isfinite(location)) | ((scale > 1e-150) & (scale < 1e150))
        bad = np.flatnonzero(~fair)
        if len(bad):
            raise DataError(
                f"X: column {block.names[bad[0]]!r} varies by {widest[bad[0]]:.3g}, whose square "
                "is beyond floating point; rescale it"
            )
        return cls(location, np.where(flat, 1.0, scale), covariance, dof)

    def component(self, n_classes: int) -> Component:
        d = len(self.location)
        if self.covariance == "diag":
            if self.dof is None:
                return DiagonalGaussian.of(d, n_classes)
            return DiagonalStudent.of(d, n_classes, dof=self.dof)
        tied = self.covariance == "tied"
        if self.dof is None:
            return FullGaussian.of(d, n_classes, tied=tied)
        return FullStudent.of(d, n_classes, tied=tied, dof=self.dof)

    def pack(self, component: Component, block: Block, length: int) -> Any:
        x = (_floats(block) - self.location) / self.scale
        standard = Block(x, block.missing, block.names)
        # every emission has a pack, each of its own signature, so the protocol names none
        return type(component).pack(*_padded(standard, length))  # type: ignore[attr-defined]

    def log_jacobian(self, block: Block) -> np.ndarray:
        shift = np.broadcast_to(-np.log(self.scale), block.x.shape)
        return shift.sum(1) if block.missing is None else (shift * ~block.missing).sum(1)

    def units(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        out = {"mu": self.location + self.scale * np.asarray(values["mu"], float)}
        if "variance" in values:
            out["variance"] = np.asarray(values["variance"], float) * self.scale**2
        if "covariance" in values:
            square = np.outer(self.scale, self.scale)
            out["covariance"] = np.asarray(values["covariance"], float) * square
        return out
