"""How X becomes a block of columns: matrices of numbers, and tables of anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import validate_data

from nbmodels.encoders import Block, refuse
from nbmodels.errors import DataError


def _validated(estimator: Any, X: Any, **options: Any) -> Any:
    """scikit-learn's own checks, with the argument's name put before their message."""
    try:
        return validate_data(estimator, X, ensure_all_finite=False, **options)
    except ValueError as error:
        raise DataError(f"X: {error}") from error


def _names(estimator: Any, n_features: int) -> tuple[str, ...]:
    named = getattr(estimator, "feature_names_in_", None)
    return tuple(map(str, range(n_features) if named is None else named))


def _marked(x: Any, marker: Any) -> Any:
    """Where ``x`` holds the marker of missing cells, or a null."""
    nulls = np.asarray(pd.isna(x), bool)
    if marker is None or pd.isna(marker):
        return nulls
    return nulls | (x == marker)


def numbers(estimator: Any, X: Any, *, reset: bool, accept_sparse: bool) -> Block:
    """A numeric matrix, dense or CSR, with its missing cells.

    Raises:
        DataError: not a matrix of numbers, other columns than at fit, infinite cells.
    """
    x = _validated(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr" if accept_sparse else False,
        dtype=[np.float64, np.float32],
    )
    names = _names(estimator, x.shape[1])
    if sparse.issparse(x):
        missing = x.copy()
        missing.data = _marked(x.data, estimator.missing_values)
        infinite = x.copy()
        infinite.data = np.isinf(x.data)
        missing.eliminate_zeros()
    else:
        missing, infinite = _marked(x, estimator.missing_values), np.isinf(x)
    some = missing.nnz if sparse.issparse(missing) else missing.any()
    block = Block(x, missing.astype(bool) if some else None, names)
    refuse(block, infinite, "neither NaN nor infinity")
    return block


def table(estimator: Any, X: Any, *, reset: bool) -> tuple[Block, pd.DataFrame]:
    """A table whose columns may be of any kind: the block of objects, and a frame with dtypes.

    Raises:
        DataError: not a table, other columns than at fit, infinite cells.
    """
    x = _validated(estimator, X, reset=reset, dtype=None)
    names = _names(estimator, x.shape[1])
    if isinstance(X, pd.DataFrame):
        frame = X.set_axis(list(names), axis=1)
    else:
        frame = pd.DataFrame(x, columns=list(names)).infer_objects()
    objects = np.asarray(x, object)
    missing = _marked(objects, estimator.missing_values)
    block = Block(objects, missing if missing.any() else None, names)
    infinite = np.zeros(objects.shape, bool)
    for j, name in enumerate(names):
        if pd.api.types.is_float_dtype(frame[name].dtype):
            infinite[:, j] = np.isinf(frame[name].to_numpy(float, na_value=0.0))
    refuse(block, infinite, "neither NaN nor infinity")
    return block, frame
