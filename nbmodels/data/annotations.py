"""Annotations by several annotators, in long format: one row per vote, ids of any kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nbmodels.data.labels import Classes, is_missing
from nbmodels.data.long_format import codes_of, counted, distinct, read_long
from nbmodels.errors import DataError

#: Columns of a table of votes.
COLUMNS = ("task", "worker", "label")


@dataclass(frozen=True)
class Votes:
    """A long table of votes, read and checked.

    Attributes:
        task: ``(V,)`` id of the item.
        worker: ``(V,)`` id of the annotator.
        label: ``(V,)`` class named.
    """

    task: np.ndarray
    worker: np.ndarray
    label: np.ndarray

    @classmethod
    def read(cls, votes: Any, name: str = "votes") -> Votes:
        """From a table with columns ``task``, ``worker``, ``label``, or with three columns.

        Raises:
            DataError: no such table, no rows, or a null cell, with its row.
        """
        return cls(*read_long(name, votes, COLUMNS))

    def workers(self, name: str = "votes") -> np.ndarray:
        """``(W,)`` ids of the annotators, sorted."""
        return distinct(name, self.worker, "worker")

    def counts(
        self, tasks: Any, workers: Any, classes: Classes, name: str = "votes"
    ) -> sparse.csr_array:
        """``(N, W * K)`` how often each annotator gave each class to each item.

        Raises:
            DataError: an unknown item, annotator or class, with its row.
        """
        row = codes_of(name, self.task, tasks, "task")
        worker = codes_of(name, self.worker, workers, "worker")
        label = classes.encode(name, self.label, np.zeros(len(self.label), bool))
        shape = (len(tasks), len(workers) * len(classes))
        return counted(row, worker * len(classes) + label, shape)


def votes_of(table: Any, missing: Any = None) -> dict[str, np.ndarray]:
    """The long table of an array with a row an item and a column an annotator.

    Args:
        table: ``(N, W)`` labels.
        missing: what marks a vote that was not cast; any null by default.

    Returns:
        columns ``task`` and ``worker`` (positions) and ``label``.
    """
    cells = np.asarray(table)
    if cells.ndim != 2:
        raise DataError(
            f"table: expected a row an item and a column an annotator; got {cells.shape}"
        )
    cast = ~is_missing(cells.ravel(), missing).reshape(cells.shape)
    task, worker = np.nonzero(cast)
    return {"task": task, "worker": worker, "label": cells[cast]}
