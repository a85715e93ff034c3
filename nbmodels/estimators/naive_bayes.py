"""Noise-aware naive Bayes, one estimator an emission."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal

import jax
import numpy as np

from nbmodels.data.column_types import assign_families, check_numbers
from nbmodels.data.features import Block, numbers, table
from nbmodels.data.validation import check_nonnegative
from nbmodels.emissions.encoders import BinaryEncoder, CategoryEncoder, CountEncoder, RealEncoder
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
            BinaryEncoder.fit(block, weights, alpha=self.alpha, binarize=self.binarize),
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
        return _everything(block, "features", CountEncoder.fit(block, weights, alpha=self.alpha))

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
        return _everything(block, "features", CategoryEncoder.fit(block, weights, alpha=self.alpha))

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
        encoder = RealEncoder.fit(block, weights, covariance=self.covariance)
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
            ``"multinomial"``, ``"categorical"`` or ``"gaussian"`` to names or positions of columns.
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
        check_numbers(block, self.families_)
        return block

    def _columns(self, block: Block, weights: np.ndarray) -> list[Columns]:
        check_nonnegative("alpha", self.alpha)
        _check_covariance(self.covariance)
        makers: dict[str, Any] = {
            "bernoulli": partial(BinaryEncoder.fit, alpha=self.alpha),
            "multinomial": partial(CountEncoder.fit, alpha=self.alpha),
            "categorical": partial(CategoryEncoder.fit, alpha=self.alpha),
            "gaussian": partial(RealEncoder.fit, covariance=self.covariance),
        }
        kinds = np.asarray(list(self.families_.values()))
        out = []
        for kind, make in makers.items():
            where = np.flatnonzero(kinds == kind)
            if len(where):
                out.append(Columns(kind, where, make(block.columns(where), weights)))
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
