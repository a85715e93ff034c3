"""Annotations by several annotators, in long format: one row per vote, ids of any kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nbmodels.data.labels import Classes
from nbmodels.data.long_format import codes_of, counted, distinct, read_long

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
