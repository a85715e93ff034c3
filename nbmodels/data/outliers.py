"""Values that are far out in their columns."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

#: Interquartile ranges beyond a quartile from which on a value is far out.
_FAR_OUT = 3.0


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
