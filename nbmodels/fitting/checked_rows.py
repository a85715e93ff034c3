"""Rows whose class was checked by hand, beside their given labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from nbmodels.channels import TrustedLabels
from nbmodels.core.model import Data, Model

#: Checked rows of a class that say which it is, whatever its items are labelled.
_NAMED = 5


def checked_rows(model: Model, data: Data, n_rows: int) -> Bool[np.ndarray, " n"]:
    """``(N,)`` whether each item's class is known by a check.

    Args:
        model: components by name, of which ``"trusted"`` knows how its checks are held: as codes,
            or as the sub-types of one class.
        data: encoded data.
        n_rows: number of rows before padding.
    """
    if "trusted" not in data.parts:
        return np.zeros(n_rows, bool)
    channel: Any = model["trusted"]
    return np.asarray(channel.excludes(np.asarray(data.parts["trusted"])[:n_rows]), bool)


def named_by_checks(model: Model, data: Data, n_classes: int) -> Bool[np.ndarray, " k"]:
    """``(K,)`` whether so many rows of a class were checked that they say which class it is.

    Args:
        model, data: see :func:`checked_rows`.
        n_classes: K.
    """
    if not isinstance(model.get("trusted"), TrustedLabels):
        return np.zeros(n_classes, bool)
    codes = np.asarray(data.parts["trusted"])[np.asarray(data.weights) > 0]
    return np.bincount(codes, minlength=n_classes + 1)[:n_classes] >= _NAMED


def with_checked(codes: Int[np.ndarray, " n"], model: Model, data: Data) -> Int[np.ndarray, " n"]:
    """Given labels, with checked ones in their place.

    Args:
        codes: ``(N,)`` given labels, negative where there is none.
        model, data: see :func:`checked_rows`.
    """
    known = checked_rows(model, data, len(codes))
    if not known.any():
        return codes
    return np.where(known, np.asarray(data.parts["trusted"])[: len(codes)], codes)


def contradicted(model: Model, data: Data, n_classes: int) -> bool:
    """Whether a checked label differs from the given one: some labels are wrong, that is sure."""
    n = len(data.weights)
    if "labels" not in data.parts:
        return False
    given = np.asarray(data.parts["labels"])[:n]
    both = checked_rows(model, data, n) & (given < n_classes) & (np.asarray(data.weights) > 0)
    return bool(np.any(both) and np.any(given[both] != np.asarray(data.parts["trusted"])[:n][both]))
