"""A noise matrix, exact or as posterior draws, read from what a user has of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from nbmodels.data.validation import as_floats
from nbmodels.errors import DataError

#: Condition number from which on a noise matrix is not inverted.
_SINGULAR = 1e6


def read_noise(noise: Any) -> tuple[Float[np.ndarray, "s observed k"], np.ndarray | None]:
    """Draws ``(S, K, K)`` of a noise matrix ``[observed, true]``, and class names where it has any.

    Args:
        noise: ``(K, K)`` known matrix, ``(S, K, K)`` draws, or the ``DataTree`` of ``posterior()``.

    Raises:
        DataError: another shape, columns that are no distributions, or a matrix that maps two
            mixtures of classes to the same labels.
    """
    names = None
    if hasattr(noise, "children"):
        if "posterior" not in noise.children or "noise_matrix" not in noise["posterior"]:
            raise DataError("noise: the tree holds no draws of a 'noise_matrix'")
        drawn = noise["posterior"]["noise_matrix"]
        names = drawn["true_class"].to_numpy()
        noise = drawn.to_numpy().reshape(-1, *drawn.shape[-2:])
    draws = as_floats("noise", noise)
    draws = draws[None] if draws.ndim == 2 else draws
    if draws.ndim != 3 or draws.shape[1] != draws.shape[2] or not draws.size:
        raise DataError(
            "noise: expected a (K, K) matrix [observed, true] or (S, K, K) draws of it, got shape "
            f"{np.shape(noise)}"
        )
    if not ((draws >= 0).all() and np.abs(draws.sum(1) - 1).max() <= 1e-4):
        raise DataError("noise: columns must be probabilities that sum to one: [observed, true]")
    condition = np.linalg.cond(draws.mean(0))
    if condition > _SINGULAR:
        raise DataError(
            "noise: the matrix is singular: its labels do not distinguish all classes "
            f"(condition number {condition:.0f}); merge classes that are labelled alike"
        )
    return draws, names
