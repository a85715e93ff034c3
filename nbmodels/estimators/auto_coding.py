"""What each of the estimators that are compared takes of X, and of new rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from nbmodels.data.features import without_marker
from nbmodels.diagnostics.reference_classifier import numeric_columns
from nbmodels.errors import DataError, NbmodelsWarning
from nbmodels.estimators.mixed import NoisyMixedNB

#: Classifiers that assume nothing of how features are distributed.
CLASSIFIERS = ("logistic", "forest")


@dataclass(frozen=True)
class _Weights:
    """TF-IDF weights of counts; a data frame keeps its index and its columns.

    Attributes:
        learned: transformer of scikit-learn's.
    """

    learned: Any

    @classmethod
    def of(cls, X: Any, marker: Any) -> _Weights:
        """Raises: DataError: a cell is missing, of which no document has a weight."""
        from sklearn.feature_extraction.text import TfidfTransformer

        x = without_marker(X, marker)
        if pd.isna(x.data if sparse.issparse(x) else np.asarray(x)).any():
            raise DataError("emission: 'tfidf' takes no missing cells; expected another one")
        return cls(TfidfTransformer().fit(X))

    def __call__(self, X: Any) -> Any:
        weights = self.learned.transform(X)
        if not isinstance(X, pd.DataFrame):
            return weights
        frames: Any = pd.DataFrame.sparse  # an accessor, which its stubs do not know
        return frames.from_spmatrix(weights, X.index, X.columns)


@dataclass(frozen=True)
class _Table:
    """A table of columns of several kinds, of which a classifier's own checks know little.

    Whatever estimator is kept, new rows are refused that naive Bayes of such a table would refuse.

    Attributes:
        reader: what the table of the fit was read by.
        names: ``(d,)`` of its columns.
        numeric: ``(d,)`` whether they are of numbers.
        marker: of missing cells.
    """

    reader: NoisyMixedNB
    names: pd.Index
    numeric: Sequence[bool]
    marker: Any

    @classmethod
    def of(cls, X: pd.DataFrame, marker: Any) -> _Table | None:
        """None for a table that naive Bayes cannot read."""
        reader = NoisyMixedNB(missing_values=marker)
        try:
            with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
                reader._checked(X, reset=True)
        except DataError:
            return None
        return cls(reader, X.columns, numeric_columns(X), marker)

    def __call__(self, X: Any) -> Any:
        if not isinstance(X, pd.DataFrame):
            X = pd.DataFrame(X, columns=self.names).infer_objects()
        self.reader._checked(X, reset=False)
        X = X if self.marker is None else without_marker(X, self.marker)
        # codes in the place of names are categories that training has not seen
        symbols = [c for c, kind in zip(X, self.numeric, strict=True) if not kind]
        return X.astype(dict.fromkeys(symbols, object))


def _as_it_is(X: Any) -> Any:
    return X


def coding(name: str, X: Any, marker: Any, *, mixed: bool) -> Callable[[Any], Any]:
    """From X to what an estimator takes, learned from the X of the fit.

    Args:
        name: of the estimator.
        X: features of the fit.
        marker: of missing cells, or None.
        mixed: whether X is a table of columns of several kinds.
    """
    if name == "tfidf":
        return _Weights.of(X, marker)
    if name not in CLASSIFIERS:
        return _as_it_is
    if mixed and isinstance(X, pd.DataFrame) and (read := _Table.of(X, marker)) is not None:
        return read
    # scikit-learn knows one marker
    return _as_it_is if marker is None else partial(without_marker, marker=marker)
