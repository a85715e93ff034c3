"""Rows whose labels judge candidates, where there are more than it takes.

Features are learned from all rows. How far their scores count and the noise are far fewer numbers,
and are fitted to a sample of the rows while candidates are compared; held-out labels of the same
rows compare them. Candidates that it cannot distinguish differ by about a standard error of its
labels, some 0.006 nats a label. What is selected is then fitted to all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from inference.arrays import on_device
from nbmodels.core import model as models
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.fitting.options import HELD_OUT_SEED

#: Rows by which candidates are compared, and rows that the noise is learned from in self-training
#: rounds of larger tables; rows a class, where that is more. Of up to twice as many rows, all are
#: taken.
JUDGED, LEARNED, _PER_CLASS = 8192, 16_384, 64

#: Channels of which each item has a row.
_BY_ROW = {"labels", "trusted"}


def judged_rows(
    model: Model, data: Data, given: Float[np.ndarray, "n k"], size: int
) -> Int[np.ndarray, " m"] | None:
    """A sample of the rows, each given class in its share; None where all are to be taken.

    Args:
        model: labels, without the features.
        data: their data.
        given: the labels as responsibilities; rows of zeros where there is none.
        size: number of rows wanted.
    """
    rows = np.flatnonzero((np.asarray(data.weights) > 0) & given.any(1))
    size = max(size, _PER_CLASS * given.shape[1])
    by_row = "labels" in model and set(model) <= {PRIOR, *_BY_ROW}
    if len(rows) <= 2 * size or not by_row:
        return None
    order = np.random.default_rng(HELD_OUT_SEED).permutation(len(rows))
    order = order[np.argsort(given[rows[order]].argmax(1), kind="stable")]
    drawn: Int[np.ndarray, " m"] = np.sort(rows[order[np.arange(size) * len(rows) // size]])
    return drawn


def of_rows(data: Data, rows: Int[np.ndarray, " m"] | None) -> Data:
    """Labels and scores of some rows; of all for None."""
    if rows is None:
        return data

    def some(array: Any) -> Any:
        return on_device(np.asarray(array)[rows])

    parts: Mapping[str, Any] = data.parts
    taken = {name: None if part is None else some(part) for name, part in parts.items()}
    powers = {name: some(power) for name, power in data.powers.items()}
    return replace(models.with_parts(data, taken), weights=some(data.weights), powers=powers)


def to_all(
    values: Float[np.ndarray, " m"], rows: Int[np.ndarray, " m"] | None, n_rows: int
) -> Float[np.ndarray, " n"]:
    """Values of some rows as one of each row, NaN elsewhere; None stands for all rows."""
    if rows is None:
        return values
    out = np.full(n_rows, np.nan)
    out[rows] = values
    return out
