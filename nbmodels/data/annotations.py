"""Annotations by several annotators, in long format: one row per vote, ids of any kind."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int
from scipy import sparse

from nbmodels.data.labels import Classes, seen_once, spelt_alike
from nbmodels.data.long_format import (
    CodedColumn,
    Columns,
    columns_named,
    distinct,
    ordered_matrix,
    read_coded,
)
from nbmodels.data.validation import in_pandas, plain, positions
from nbmodels.errors import Caution, DataError, NbmodelsWarning, counted

#: Columns of a table of votes, with the other names by which each is found. Items go by an id
#: before they go by what is shown of them, and names that features have, too, are the last choice.
COLUMNS: Columns = {
    "task": [
        ("item", "unit", "question", "example", "instance", "document", "object"),
        ("doc", "sample"),
        ("image", "photo", "picture", "text", "sentence", "tweet"),
    ],
    "worker": [
        ("annotator", "performer", "rater", "labeler", "labeller", "coder", "judge", "user"),
        ("reviewer", "expert"),
    ],
    "label": [
        ("vote", "answer", "response", "annotation", "judgment", "judgement", "class"),
        ("rating", "category"),
    ],
}


#: Share of votes that are again of the same annotator on the same item, up to which a table seems
#: to be one of votes.
_REPEATED = 0.1


@dataclass(frozen=True)
class Votes:
    """A long table of votes, read and checked.

    Attributes:
        task: ids of the items, one a vote.
        worker: ids of the annotators.
        label: classes named.
    """

    task: CodedColumn
    worker: CodedColumn
    label: CodedColumn

    @classmethod
    def read(cls, votes: Any, name: str = "votes") -> Votes:
        """From a table with columns ``task``, ``worker`` and ``label``, or other names for them.

        Raises:
            DataError: no such table, no rows, columns that are not there, or a null cell, with its
                row.
        """
        try:
            return cls(*read_coded(name, votes, COLUMNS, by_name=True))
        except DataError as error:
            if hint := _advice(name, votes):
                raise DataError(f"{error}; {hint}") from error
            raise

    def tasks(self, name: str = "votes") -> np.ndarray:
        """``(N,)`` ids of the items, sorted."""
        return distinct(name, self.task.names, "task")

    def workers(self, name: str = "votes") -> np.ndarray:
        """``(W,)`` ids of the annotators, sorted."""
        return distinct(name, self.worker.names, "worker")

    def check_labels(self, declared: Any, known: Any = (), name: str = "votes") -> None:
        """Refuse a class that one vote alone names, where no classes are declared.

        Args:
            declared: names of all classes, or None.
            known: classes that occur elsewhere, each once.
            name: of the argument, for messages.

        Raises:
            DataError: such a label, with its row.
        """
        if declared is not None:
            return
        codes, names = self.label.codes, self.label.names
        once = seen_once(codes, len(names)) & (positions(known, names) < 0)
        if once.any():
            at = int(np.argmax(once[codes]))
            raise DataError(
                f"{name}: row {at} has the label {plain(names[codes[at]])!r}, which occurs "
                f"once in {len(codes)} votes; correct it, or name all classes with classes="
            )

    def cells(
        self, tasks: Any, workers: Any, classes: Classes, name: str = "votes"
    ) -> tuple[Int[np.ndarray, " v"], Int[np.ndarray, " v"], Int[np.ndarray, " v"]]:
        """``(V,)`` items, annotators and classes of each annotator's last vote on each item.

        They are positions among those given, sorted by item and annotator.

        Raises:
            DataError: an unknown item, annotator or class, with its row.
        """
        row = self.task.among(name, tasks, "task")
        worker = self.worker.among(name, workers, "worker")
        label = positions(classes.names, self.label.names)
        if (label < 0).any():  # which says in which row
            classes.encode(name, self.label.values, np.zeros(len(row), bool))
        sizes = len(tasks), len(workers), len(classes)
        of_task, of_worker, of_label = (max(int(size) - 1, 1).bit_length() for size in sizes)
        # one number a vote, as small as can be: it is what takes time to sort
        small = of_task + of_worker + of_label < 32
        kind: Any = np.int32 if small else np.int64
        votes = row.astype(kind) << of_worker | worker.astype(kind)
        votes = votes << of_label | label.astype(kind)[self.label.codes]
        ordered = np.sort(votes)
        pairs = ordered >> of_label
        if (pairs[1:] == pairs[:-1]).any():
            again = pd.Series(votes >> of_label).duplicated(keep="last").to_numpy()
            ordered = np.sort(votes[~again])
            pairs = ordered >> of_label
        ordered, pairs = ordered.astype(np.intp), pairs.astype(np.intp)
        lowest = (1 << of_worker) - 1, (1 << of_label) - 1
        return pairs >> of_worker, pairs & lowest[0], ordered & lowest[1]

    def repeated(self, n_cast: int) -> tuple[Caution, ...]:
        """A warning of many votes that are again of one annotator on one item.

        Args:
            n_cast: number of votes without those before the last.
        """
        n = len(self.task.codes)
        if n - n_cast <= _REPEATED * n:
            return ()
        message = (
            f"votes: {n - n_cast} of {n} are again of the same worker on the same task, of which "
            "the last one counts; see whether these columns are those of the tasks and workers"
        )
        return (Caution(NbmodelsWarning, message),)

    def counts(
        self, tasks: Any, workers: Any, classes: Classes, name: str = "votes"
    ) -> sparse.csr_array:
        """``(N, W * K)`` which class each annotator gave to each item, in their last vote on it.

        Raises:
            DataError: an unknown item, annotator or class, with its row.
        """
        row, worker, label = self.cells(tasks, workers, classes, name)
        return ordered_matrix(
            np.ones(len(row)),
            row,
            worker * len(classes) + label,
            (len(tasks), len(workers) * len(classes)),
        )


def _advice(name: str, votes: Any) -> str:
    """How a table without the columns of votes may be made one; empty where nothing shows it.

    Args:
        name: of the argument.
        votes: as given.
    """
    table = in_pandas(votes)
    try:
        frame = pd.DataFrame(table)
    except (TypeError, ValueError):
        return ""
    named = (columns_named(frame, role, COLUMNS) for role in ("worker", "label"))
    if frame.shape[1] < 2 or any(named):
        return ""
    shown = name if isinstance(table, pd.DataFrame) else f"pd.DataFrame({name})"
    out = []
    if not isinstance(table, pd.DataFrame | Mapping) and frame.shape[1] == len(COLUMNS):
        out.append(
            f"an array of a row a vote gets names by pd.DataFrame({name}, "
            f"columns={list(COLUMNS)}), in the order that its columns have"
        )
    if (ids := _ids_of_wide(frame)) is not None:
        items = ".rename_axis('task').reset_index()"
        if ids:
            items = f".rename(columns={{{plain(ids[0])!r}: 'task'}})"
        out.append(
            "a table with a row an item and a column an annotator is made long by "
            f"{shown}{items}.melt('task', var_name='worker', value_name='label').dropna()"
        )
    return "; ".join(out)


def _ids_of_wide(frame: pd.DataFrame) -> list[Any] | None:
    """The column of the items' ids, or none, of a table with a column an annotator; None of others.

    The annotators' columns hold values of one set, and one other column at most names the rows.
    """
    columns = [frame.iloc[:, i].dropna() for i in range(frame.shape[1])]
    try:
        values = [set(column) for column in columns]
    except TypeError:  # cells that are no labels
        return None
    times = Counter(itertools.chain.from_iterable(values))
    theirs = [2 * sum(times[v] > 1 for v in one) >= len(one) for one in values]
    others = [i for i, one in enumerate(theirs) if not one]
    labels = set().union(*itertools.compress(values, theirs))
    cells = sum(map(len, itertools.compress(columns, theirs)))
    unique = all(len(values[i]) == len(frame) for i in others)
    wide = sum(theirs) > 1 and len(others) < 2 and unique and len(labels) < cells
    return [frame.columns[i] for i in others] if wide else None


def vote_columns(frame: pd.DataFrame, text: str | None = None) -> list[tuple[str, str]]:
    """Pairs of columns that may be items and annotators; none where rows seem to be no votes.

    Both go by a usual name, several annotators vote on an item and on several items each, and
    hardly a pair of them occurs twice. There are several pairs where names leave it open.

    Args:
        frame: the table, without its labels.
        text: column of texts, of which an item that is voted on has one: reviews of it differ.
    """
    tasks, workers = (columns_named(frame, role, COLUMNS) for role in ("task", "worker"))
    if text is not None:
        tasks = [task for task in tasks if frame.groupby(task)[text].nunique().max() <= 1]
    return [pair for pair in itertools.product(tasks, workers) if _seem_votes(frame[[*pair]])]


def _seem_votes(pairs: pd.DataFrame) -> bool:
    """Whether rows seem to be votes, by items and annotators."""
    pairs = pairs.dropna()
    several = all(2 * pairs[column].nunique() <= len(pairs) for column in pairs)
    return several and len(pairs) > 0 and bool(pairs.duplicated().mean() < _REPEATED)


def row_ids(votes: Votes, index: Any, name: str = "votes") -> Any:
    """``(N,)`` ids by which votes name rows, each once.

    Args:
        votes: table.
        index: ``(N,)`` ids of the rows, which may repeat where no vote is on them.
        name: of the argument, for messages.

    Raises:
        DataError: a vote is on an id of several rows, with its row.
    """
    ids = pd.Index(index)
    if ids.is_unique:
        return index
    repeated = ids.duplicated(keep=False)
    named = positions(ids[repeated].unique(), votes.task.names) >= 0
    if named.any():
        at = int(np.argmax(named[votes.task.codes]))
        task = votes.task.names[votes.task.codes[at]]
        raise DataError(
            f"{name}: row {at} has the task {plain(task)!r}, which is {(ids == task).sum()} rows "
            "by the index of X"
        )
    out = ids.to_numpy(object, copy=True)
    out[repeated] = [object() for _ in range(repeated.sum())]  # which no vote can name
    return out


def trusted_tasks(trusted: Any, tasks: np.ndarray) -> np.ndarray | None:
    """``(N,)`` one checked class a task, None where unchecked.

    Args:
        trusted: mapping or series from some tasks to their classes, or one class a task in their
            order, None where unchecked; or None.
        tasks: ``(N,)`` ids.

    Raises:
        DataError: something else, or a task that has no vote.
    """
    if trusted is None:
        return None
    if not isinstance(trusted, Mapping | pd.Series):
        given = np.array(trusted, object)
        if given.shape != (len(tasks),):
            raise DataError(
                "trusted: expected a mapping or series from tasks to classes, or one for each of "
                f"{counted(len(tasks), 'task')} in the order of tasks_; got shape {given.shape}"
            )
        given[pd.isna(given)] = None
        return given
    index = {task: i for i, task in enumerate(tasks.tolist())}
    out = np.full(len(tasks), None, object)
    for task, label in trusted.items():
        if task not in index:
            raise DataError(f"trusted: there is no vote on task {task!r}")
        out[index[task]] = label
    return out


def workers_spelt_alike(workers: np.ndarray) -> tuple[Caution, ...]:
    """A caution about annotators whose ids differ in blanks and upper case alone, or none."""
    alike = spelt_alike(workers, "annotators")
    message = f"workers: {alike}; merge them where they are one"
    return (Caution(NbmodelsWarning, message),) if alike else ()
