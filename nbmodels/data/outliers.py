"""Values that are far out in their columns."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from nbmodels.data.features import Block
from nbmodels.data.validation import plain
from nbmodels.errors import Caution, NbmodelsWarning, counted

#: Interquartile ranges beyond a quartile from which on a value is far out.
_FAR_OUT = 3.0

#: Interquartile ranges from the median from which on a cell is rather an error than a measurement,
#: and largest share of such cells in a column: more of them are its tail.
_GROSS, _FEW = 100.0, 0.01

#: Standard deviations from the mean within which no cell is one of so few that are so far out, of
#: many rows; and share of the largest number that there can be of few rows.
_LEAST_SD, _OF_POSSIBLE = 9.0, 0.9


def cells_far_out(block: Block, weights: Float[np.ndarray, " n"]) -> tuple[Caution, ...]:
    """A warning of single cells that are so far out that they set the scale of their column.

    A lost decimal point or another unit: normal classes are then as wide as the error is.

    Args:
        block: ``(n, d)`` numbers; sparse ones are not looked at.
        weights: of the rows; those of weight 0 are left out.
    """
    if block.is_sparse:
        return ()
    x = block.x
    if x.dtype.kind not in "iuf":  # of a table with other columns
        x = pd.DataFrame(x).apply(pd.to_numeric, errors="coerce").to_numpy(float)
    counts = np.flatnonzero(np.asarray(weights) > 0)
    found = []
    for j in _with_far_ends(x):
        name, column = block.names[j], np.asarray(x[:, j], float)
        known = counts[np.isfinite(column[counts])]
        cells = column[known]
        if len(cells) < 2:
            continue
        low, middle, high = np.quantile(cells, [0.25, 0.5, 0.75])
        far = known[np.abs(cells - middle) > _GROSS * (high - low)]
        if high > low and 0 < len(far) <= max(1, _FEW * len(cells)):
            found.append((name, far, column[far[0]], middle))
    if not found:
        return ()
    name, far, value, middle = found[0]
    rest = sum(len(one[1]) for one in found) - 1
    more = f" ({counted(rest, 'more cell')} like it)" * (rest > 0)
    message = (
        f"X: row {far[0]} has {value:g} in column {plain(name)!r}, whose median is {middle:g}, "
        f"over {_GROSS:g} interquartile ranges away{more}: it sets the scale of the column; if it "
        "is an error, correct it, leave the row out, or mark the cell as missing"
    )
    return (Caution(NbmodelsWarning, message),)


def _with_far_ends(x: Any) -> Int[np.ndarray, " m"]:
    """Columns that may hold such cells, and those with NaN; quantiles take ten times as long."""
    n = len(x)
    with np.errstate(invalid="ignore", over="ignore"):
        mean = x.mean(0, dtype=float)
        sd = np.sqrt(np.maximum(np.einsum("ij,ij->j", x, x, dtype=float) / n - mean**2, 0))
        far = np.maximum(x.max(0) - mean, mean - x.min(0))
        near = far <= min(_LEAST_SD, _OF_POSSIBLE * np.sqrt(n - 1)) * sd
    return np.flatnonzero(~near)


class Winsoriser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Columns cut off where values are far out: at Tukey's outer fences (Tukey 1977).

    One cell in which a decimal point is missing otherwise sets the scale of its column, and a
    random tree splits where no row lies. Where half of a column is one value nothing is far out.

    Attributes:
        low_: ``(d,)`` least value of each column.
        high_: ``(d,)`` largest value of each column.

    Examples:
        >>> import numpy as np
        >>> from nbmodels.data.outliers import Winsoriser
        >>> lengths = np.array([[1.1], [1.2], [1.3], [1.4], [1.5], [120.0]])
        >>> Winsoriser().fit_transform(lengths).ravel().round(2).tolist()
        [1.1, 1.2, 1.3, 1.4, 1.5, 2.22]
    """

    low_: Float[np.ndarray, " d"]
    high_: Float[np.ndarray, " d"]

    def fit(self, X: Float[np.ndarray, "n d"], y: Any = None) -> Self:
        """Learn the fences; NaN is passed over.

        Args:
            X: ``(N, d)`` numbers.
            y: not used.
        """
        x = np.asarray(X, float)
        low, high = np.nanquantile(x, [0.25, 0.75], axis=0)
        fence = np.where(high > low, _FAR_OUT * (high - low), np.inf)
        self.low_, self.high_ = low - fence, high + fence
        self.n_features_in_ = x.shape[1]
        return self

    def transform(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """``(N, d)`` values between the fences."""
        return np.clip(np.asarray(X, float), self.low_, self.high_)
