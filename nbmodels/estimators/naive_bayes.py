"""Noise-aware naive Bayes, one estimator an emission."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Literal

import jax
import numpy as np
import pandas as pd

from nbmodels.core.registry import family, family_names
from nbmodels.data.features import Block, numbers, table
from nbmodels.data.validation import check_nonnegative
from nbmodels.emissions import (
    BernoulliColumns,
    CategoricalColumns,
    MultinomialColumns,
    RealColumns,
)
from nbmodels.errors import DataError
from nbmodels.estimators.base import Columns, NoisyClassifier, TableClassifier
from nbmodels.estimators.latent import with_inherited_parameters

#: Pseudo-items that are compared, Laplace's first.
SMOOTHING = {"alpha": (1.0, 0.1, 0.01)}

#: Forms of the covariances that are compared.
COVARIANCES = {"covariance": ("diag", "tied", "full")}


def _everything(block: Block, name: str, encoder: Any) -> list[Columns]:
    return [Columns(name, np.arange(len(block.names)), encoder)]


@with_inherited_parameters
class NoisyBernoulliNB(NoisyClassifier):
    """Naive Bayes on binary features with noisy labels (Zeng 2022); dense or sparse X.

    Parameters:
        alpha: pseudo-items of each value of each feature in each class (Laplace smoothing), or
            ``"auto"``.
        binarize: values above it become one; None where X must hold zeros and ones already.
    """

    grids = SMOOTHING

    def __init__(
        self,
        *,
        alpha: Any = "auto",
        binarize: float | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.alpha = alpha
        self.binarize = binarize

    def _block(self, X: Any, *, reset: bool) -> Block:
        return numbers(self, X, reset=reset, accept_sparse=True)

    def _columns(self, block: Block, weights: np.ndarray) -> list[Columns]:
        check_nonnegative("alpha", self.alpha)
        if self.binarize is not None and not (
            isinstance(self.binarize, Real) and np.isfinite(float(self.binarize))
        ):
            raise DataError(f"binarize: expected a finite number or None, got {self.binarize!r}")
        return _everything(
            block,
            "features",
            BernoulliColumns.fit(block, weights, alpha=self.alpha, binarize=self.binarize),
        )

    def _read_out(self) -> None:
        self.feature_log_prob_ = np.asarray(self.fit_.point["features"][1], float).T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@with_inherited_parameters
class NoisyMultinomialNB(NoisyClassifier):
    """Naive Bayes on counts, or weights such as TF-IDF, with noisy labels; dense or sparse X.

    Parameters:
        alpha: pseudo-counts of each feature in each class, or ``"auto"``.
    """

    grids = SMOOTHING

    def __init__(self, *, alpha: Any = "auto", **shared: Any) -> None:
        super().__init__(**shared)
        self.alpha = alpha

    def _block(self, X: Any, *, reset: bool) -> Block:
        return numbers(self, X, reset=reset, accept_sparse=True)

    def _columns(self, block: Block, weights: np.ndarray) -> list[Columns]:
        check_nonnegative("alpha", self.alpha)
        return _everything(
            block, "features", MultinomialColumns.fit(block, weights, alpha=self.alpha)
        )

    def _read_out(self) -> None:
        self.feature_log_prob_ = np.asarray(self.fit_.point["features"], float).T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # as scikit-learn says of its own: shifted real numbers are not counts
        tags.classifier_tags.poor_score = True
        return tags


class AttributesClassifier(TableClassifier):
    """Base of the estimators of symbolic attributes: every distinct value is a category."""

    parameters_doc = """
    alpha: pseudo-items of each category in each class; ``"auto"``, where labels can choose.
    """

    def __init__(self, *, alpha: float = 1.0, **shared: Any) -> None:
        super().__init__(**shared)
        self.alpha = alpha

    def _block(self, X: Any, *, reset: bool) -> Block:
        return table(self, X, reset=reset)[0]

    def _columns(self, block: Block, weights: np.ndarray) -> list[Columns]:
        check_nonnegative("alpha", self.alpha)
        return _everything(
            block, "features", CategoricalColumns.fit(block, weights, alpha=self.alpha)
        )

    @property
    def categories_(self) -> list[np.ndarray]:
        """Values of each column, in the order of their parameters."""
        encoder: Any = self._columns_[0].encoder
        return list(encoder.categories)

    def _read_out(self) -> None:
        values = self.fit_.model["features"].values(self.fit_.point["features"])
        self.feature_log_prob_ = [
            np.log(np.asarray(values[f"probs_{j}"], float)) for j in range(len(self.categories_))
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


@with_inherited_parameters
class NoisyCategoricalNB(AttributesClassifier, NoisyClassifier):
    """Naive Bayes on symbolic attributes of any kind and size, with noisy labels.

    Every distinct value of a column is a category. At prediction, a category that training never
    saw is left out of the likelihood, like a missing cell.

    Parameters:
    """

    grids = SMOOTHING

    def __init__(self, *, alpha: Any = "auto", **shared: Any) -> None:
        super().__init__(alpha=alpha, **shared)


def _check_covariance(covariance: Any) -> None:
    if covariance not in ("diag", "full", "tied"):
        raise DataError(f"covariance: expected 'diag', 'full' or 'tied', got {covariance!r}")


@with_inherited_parameters
class NoisyGaussianNB(NoisyClassifier):
    """Normal features with noisy labels: naive Bayes, or discriminant analysis; dense X.

    Parameters:
        covariance: ``"diag"`` (naive Bayes), ``"full"`` (each class its own covariance matrix,
            as in Bootkrajang 2011), ``"tied"`` (one for all classes) or ``"auto"``.
    """

    grids = COVARIANCES

    def __init__(
        self, *, covariance: Literal["diag", "full", "tied", "auto"] = "diag", **shared: Any
    ) -> None:
        super().__init__(**shared)
        self.covariance = covariance

    def _block(self, X: Any, *, reset: bool) -> Block:
        return numbers(self, X, reset=reset, accept_sparse=False)

    def _columns(self, block: Block, weights: np.ndarray) -> list[Columns]:
        _check_covariance(self.covariance)
        encoder = RealColumns.fit(block, weights, covariance=self.covariance)
        return _everything(block, "features", encoder)

    def _read_out(self) -> None:
        raw = self.fit_.model["features"].values(self.fit_.point["features"])
        values = self._columns_[0].encoder.units(jax.tree.map(np.asarray, raw))
        self.theta_ = values["mu"]
        covariance = self._chosen.covariance
        if covariance == "diag":
            self.var_ = values["variance"]
        else:
            tied = covariance == "tied"
            self.covariance_ = values["covariance"][0] if tied else values["covariance"]


@with_inherited_parameters
class NoisyMixedNB(NoisyClassifier):
    """Columns of different kinds, each with its own emission, with noisy labels; dense X.

    Columns that ``families`` does not name are assigned by their dtype and values: booleans and
    columns of zeros and ones are binary; text, objects and pandas categories are categorical; other
    numbers are Gaussian. Counts must be named, because they cannot be told from measurements.

    Parameters:
        families: ``"auto"``, or columns by family: a mapping from ``"bernoulli"``,
            ``"multinomial"``, ``"categorical"``, ``"gaussian"`` or another registered family
            (:mod:`nbmodels.core.registry`) to names or positions of columns.
        alpha: pseudo-items or pseudo-counts of each value, for the discrete families, or
            ``"auto"``.
        covariance: of the Gaussian columns, ``"diag"``, ``"full"``, ``"tied"`` or ``"auto"``.
    """

    grids: ClassVar[Mapping[str, Any]] = SMOOTHING | COVARIANCES

    def __init__(
        self,
        *,
        families: Any = "auto",
        alpha: Any = "auto",
        covariance: Literal["diag", "full", "tied", "auto"] = "diag",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.families = families
        self.alpha = alpha
        self.covariance = covariance

    def _block(self, X: Any, *, reset: bool) -> Block:
        block, frame = table(self, X, reset=reset)
        if reset:
            self.families_ = assign_families(block, frame, self.families)
        for j, kind in enumerate(self.families_.values()):
            if family(kind).numeric:
                _check_numeric(block, j, kind)
        return block

    def _columns(self, block: Block, weights: np.ndarray) -> list[Columns]:
        check_nonnegative("alpha", self.alpha)
        _check_covariance(self.covariance)
        mine = {"alpha": self.alpha, "covariance": self.covariance}
        kinds = np.asarray(list(self.families_.values()))
        out = []
        for kind in family_names():
            where, columns = np.flatnonzero(kinds == kind), family(kind)
            if len(where):
                settings = {name: mine[name] for name in columns.settings if name in mine}
                fitted = columns.fit(block.columns(where), weights, **settings)
                out.append(Columns(kind, where, fitted))
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def assign_families(block: Block, frame: pd.DataFrame, families: Any) -> dict[str, str]:
    """The family of each column, by its name, in the columns' order.

    Raises:
        DataError: an unknown family or column, a column named twice.
    """
    assigned: dict[str, str] = {}
    if families != "auto":
        if not isinstance(families, Mapping) or not set(families) <= set(family_names()):
            raise DataError(
                f"families: expected 'auto' or a mapping from {family_names()} to columns, "
                f"got {families!r}"
            )
        for kind, columns in families.items():
            if isinstance(columns, str) or not np.iterable(columns):
                raise DataError(f"families: {kind}: expected a list of columns, got {columns!r}")
            for column in columns:
                whole = isinstance(column, int | np.integer)
                if isinstance(column, str) and column in block.names:
                    name = column
                elif whole and 0 <= column < len(block.names):
                    name = block.names[column]
                else:
                    raise DataError(f"families: there is no column {column!r} in X")
                if name in assigned:
                    raise DataError(f"families: column {name!r} is named twice")
                assigned[name] = kind
    out = {}
    for j, name in enumerate(block.names):
        out[name] = assigned.get(name) or _infer_family(block, frame[name], j)
    return out


def _infer_family(block: Block, column: pd.Series, j: int) -> str:
    if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column.dtype):
        return "bernoulli" if pd.api.types.is_bool_dtype(column.dtype) else "categorical"
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return "categorical"
    values = block.x[:, j]
    if block.missing is not None:
        values = values[~block.missing[:, j]]
    return "bernoulli" if set(values.tolist()) == {0, 1} else "gaussian"


def _check_numeric(block: Block, j: int, kind: str) -> None:
    for i, value in enumerate(block.x[:, j]):
        hidden = block.missing is not None and block.missing[i, j]
        if not hidden and not isinstance(value, Real | np.bool_):
            raise DataError(
                f"X: row {i}, column {block.names[j]!r} is {value!r}; "
                f"the {kind} family needs numbers"
            )
