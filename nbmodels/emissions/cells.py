"""Feature matrices with missing cells, as the emissions hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import Array
from jaxtyping import Bool

from inference.products import Matrix
from inference.pytree import register_dataclass


@register_dataclass
@dataclass(frozen=True)
class Cells:
    """A matrix whose missing cells hold zero, and where those are.

    Attributes:
        x: ``(N, d)``.
        missing: ``(N, d)`` ones where a cell is missing, or None.
    """

    x: Matrix
    missing: Matrix | None


def without(x: Any, missing: Any) -> Any:
    """``x`` with zeros in its missing cells, whatever stood there."""
    if missing is None:
        return x
    if hasattr(x, "tocsr"):
        rows = x.tocsr(copy=True)
        hidden = missing.tocsr() if hasattr(missing, "tocsr") else None
        if hidden is None:
            raise TypeError("missing: a sparse x needs a sparse missing")
        at = np.asarray(hidden[rows.nonzero()]).ravel().astype(bool)
        rows.eliminate_zeros()
        rows.data[at] = 0
        rows.eliminate_zeros()
        return rows
    return np.where(np.asarray(missing, bool), 0, np.asarray(x))


def observed_cells(missing: Matrix) -> Bool[Array, "n d"]:
    """``(N, d)`` booleans, dense; for the NumPyro programs only."""
    return missing.to_dense() == 0
