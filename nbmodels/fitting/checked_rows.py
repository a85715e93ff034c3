"""Rows whose class was checked by hand, beside their given labels."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from nbmodels.core.model import Data


def checked_rows(data: Data, n_rows: int, n_classes: int) -> Bool[np.ndarray, " n"]:
    """``(N,)`` whether each item's class is known by a check.

    Args:
        data: encoded data.
        n_rows: number of rows before padding.
        n_classes: K.
    """
    if "trusted" not in data.parts:
        return np.zeros(n_rows, bool)
    known = np.asarray(data.parts["trusted"])[:n_rows]
    # of votes they are candidates, the sub-types of one class
    return np.any(~known, axis=1) if known.ndim == 2 else known < n_classes


def contradicted(data: Data, n_classes: int) -> bool:
    """Whether a checked label differs from the given one: some labels are wrong, that is sure."""
    n = len(data.weights)
    if "labels" not in data.parts:
        return False
    given = np.asarray(data.parts["labels"])[:n]
    both = checked_rows(data, n, n_classes) & (given < n_classes) & (np.asarray(data.weights) > 0)
    return bool(np.any(both) and np.any(given[both] != np.asarray(data.parts["trusted"])[:n][both]))
