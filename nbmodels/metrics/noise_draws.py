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
        noise: ``(K, K)`` known matrix, ``(S, K, K)`` draws, the ``DataTree`` of ``posterior()``, or
            a noise matrix among its variables.

    Raises:
        DataError: another shape, columns that are no distributions, or a matrix that maps two
            mixtures of classes to the same labels.
    """
    names = None
    if hasattr(noise, "predict_proba"):
        raise DataError("noise: a model is none; give its posterior(), or its noise_matrix_")
    if hasattr(noise, "children"):
        noise = _of_labels(noise)
    if {"observed_class", "true_class"} <= set(getattr(noise, "dims", ())):
        drawn = noise.transpose(..., "observed_class", "true_class")
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


def left_open(noise: Any) -> str:
    """What the fit of a posterior could not tell of its noise, as a sentence; empty where nothing.

    Args:
        noise: as :func:`read_noise` takes it.
    """
    return str(noise.attrs.get("undecided", "")) if hasattr(noise, "children") else ""


def _of_labels(tree: Any) -> Any:
    """Draws of the noise matrix of an item's label.

    That of votes is not taken for it: the majority of several votes on an item errs less than one.

    Raises:
        DataError: there are none; the message says which other ones can be passed.
    """
    there = tree["posterior"].data_vars if "posterior" in tree.children else {}
    if "noise_matrix" in there:
        return there["noise_matrix"]
    message = "noise: the tree holds no draws of a 'noise_matrix' of labels"
    others = [str(name) for name in there if str(name).endswith("_noise_matrix")]
    if others:
        message += (
            f"; pass noise=tree['posterior'][{others[0]!r}] if each test label is the vote of one "
            "annotator taken at random, whose noise that is. A majority of several votes errs less"
        )
    raise DataError(message)
