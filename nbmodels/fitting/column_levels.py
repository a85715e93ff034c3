"""Levels of columns: their values where these are few, ranges between quantiles elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

#: Distinct values up to which they are the levels, few or more, and number of quantiles otherwise.
#: 30 codes are no order, and 30 ages are: which it is held-out labels show.
_VALUES, _QUANTILES = (20, 50), 8


@dataclass(frozen=True)
class ColumnLevels:
    """Cuts of columns into levels.

    Attributes:
        cuts: by column, shares at which a level ends.
    """

    cuts: tuple[Float[np.ndarray, " c"], ...]

    @classmethod
    def of(cls, shares: Float[np.ndarray, "n d"]) -> Sequence[ColumnLevels]:
        """Between the values of columns that have few, else at quantiles; one or two ways."""
        ordered = np.sort(shares, axis=0)
        number = 1 + np.count_nonzero(np.diff(ordered, axis=0), axis=0)
        quantiles = np.arange(1, _QUANTILES) / _QUANTILES
        cuts = [quantiles] * shares.shape[1]
        found: list[ColumnLevels] = []
        for least, most in pairwise((0, *_VALUES)):
            some = np.flatnonzero((number > least) & (number <= most))
            for j in some:
                values = np.unique(ordered[:, j])
                cuts[j] = (values[1:] + values[:-1]) / 2
            if len(some) or not found:
                found.append(cls(tuple(cuts)))
        return found

    @property
    def sizes(self) -> Int[np.ndarray, " d"]:
        """Number of levels of each column."""
        return np.array([len(one) + 1 for one in self.cuts])

    def __call__(self, shares: Float[np.ndarray, "n d"]) -> Int[np.ndarray, "n d"]:
        """Level of each cell."""
        about = zip(self.cuts, shares.T, strict=True)
        return np.stack([np.searchsorted(*one, side="right") for one in about], axis=1)
