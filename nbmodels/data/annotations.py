"""Annotations by several annotators, in long format: one row per vote, ids of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from nbmodels.data.labels import Classes
from nbmodels.data.long_format import codes_of, counted, distinct, read_long
from nbmodels.data.validation import plain
from nbmodels.errors import DataError

#: Columns of a table of votes, with the other names by which each is found.
COLUMNS = {
    "task": ("item", "unit", "question", "example", "instance", "document", "object"),
    "worker": ("annotator", "performer", "rater", "labeler", "labeller", "coder", "judge", "user"),
    "label": ("vote", "answer", "response", "annotation", "judgment", "judgement", "class"),
}


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
        """From a table with columns ``task``, ``worker`` and ``label``, or other names for them.

        Raises:
            DataError: no such table, no rows, columns that are not there, or a null cell, with its
                row.
        """
        return cls(*read_long(name, votes, COLUMNS, by_name=True))

    def workers(self, name: str = "votes") -> np.ndarray:
        """``(W,)`` ids of the annotators, sorted."""
        return distinct(name, self.worker, "worker")

    def check_labels(self, declared: Any, name: str = "votes") -> None:
        """Refuse a class that one vote alone names, where no classes are declared.

        Raises:
            DataError: such a label, with its row.
        """
        if declared is not None:
            return
        codes, names = pd.factorize(self.label)
        times = np.bincount(codes, minlength=len(names))
        once = np.flatnonzero(times == 1)
        # in a handful of votes every label is rare
        if len(once) and len(codes) >= 10 * len(names):
            at = int(np.flatnonzero(codes == once[0])[0])
            raise DataError(
                f"{name}: row {at} has the label {plain(names[once[0]])!r}, which occurs "
                f"once in {len(codes)} votes; correct it, or name all classes with classes="
            )

    def counts(
        self, tasks: Any, workers: Any, classes: Classes, name: str = "votes"
    ) -> sparse.csr_array:
        """``(N, W * K)`` which class each annotator gave to each item, in their last vote on it.

        Raises:
            DataError: an unknown item, annotator or class, with its row.
        """
        row = codes_of(name, self.task, tasks, "task")
        worker = codes_of(name, self.worker, workers, "worker")
        label = classes.encode(name, self.label, np.zeros(len(self.label), bool))
        k, shape = len(classes), (len(tasks), len(workers) * len(classes))
        counts = counted(row, worker * k + label, shape)
        if not _repeated(counts, k):
            return counts
        pair = pd.Series(row.astype(np.int64) * len(workers) + worker)
        last = ~pair.duplicated(keep="last").to_numpy()
        return counted(row[last], (worker * k + label)[last], shape)


def _repeated(counts: sparse.csr_array, n_classes: int) -> bool:
    """Whether an annotator has several votes on an item."""
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    same = (np.diff(row) == 0) & (np.diff(counts.indices // n_classes) == 0)
    return bool(same.any() or (counts.data > 1).any())


def trusted_tasks(trusted: Any, tasks: np.ndarray) -> np.ndarray | None:
    """``(N,)`` one checked class a task, None where unchecked.

    Args:
        trusted: mapping or series from some tasks to their classes, or None.
        tasks: ``(N,)`` ids.

    Raises:
        DataError: something else, or a task that has no vote.
    """
    if trusted is None:
        return None
    if not isinstance(trusted, Mapping | pd.Series):
        raise DataError("trusted: expected a mapping or series from tasks to classes")
    index = {task: i for i, task in enumerate(tasks.tolist())}
    out = np.full(len(tasks), None, object)
    for task, label in trusted.items():
        if task not in index:
            raise DataError(f"trusted: there is no vote on task {task!r}")
        out[index[task]] = label
    return out
