"""Outputs of labelling functions, one row an item and one column a function, as votes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from nbmodels.data.annotations import COLUMNS, Votes
from nbmodels.data.long_format import CodedColumn, columns_named
from nbmodels.data.validation import own_index, plain, positions
from nbmodels.errors import DataError, counted

#: Words for an abstention, in lower case.
_ABSTAIN = ("abstain", "abstains", "abstained", "abstention")


class VoteSource(NamedTuple):
    """Votes with the items and annotators that there are, also those without a vote."""

    table: Votes
    tasks: np.ndarray
    workers: np.ndarray


def read_outputs(
    outputs: Any, abstain: Any, functions: np.ndarray | None = None, name: str = "votes"
) -> VoteSource:
    """Votes of labelling functions; items are rows, functions are columns.

    Args:
        outputs: ``(N, W)`` data frame, array or sparse matrix. In a sparse one, what is not stored
            is an abstention. Items are named by the index of a data frame where it has names that
            differ, and by their positions else.
        abstain: value by which a function abstains; nulls are abstentions, too.
        functions: ids of the functions of a fit, whose outputs these are; None in a fit. Columns of
            a data frame go by their names, those of others by their position, as those of a frame
            whose columns are only numbered.
        name: of the argument, for messages.

    Raises:
        DataError: no matrix, or a table in long format; other functions than those of the fit.
    """
    if sparse.issparse(outputs):
        cells = sparse.coo_array(outputs)
        task, worker, label = cells.row, cells.col, cells.data
        tasks, workers = map(np.arange, outputs.shape)
    else:
        frame = outputs if isinstance(outputs, pd.DataFrame) else _frame(name, outputs)
        if all(columns_named(frame, role, COLUMNS) for role in COLUMNS):
            raise DataError(
                f"{name}: expected a column a labelling function; a table with a row a vote, as "
                "this one seems to be, is for DawidSkene() without abstain"
            )
        if frame.columns.has_duplicates:
            twice = frame.columns[frame.columns.duplicated()][0]
            raise DataError(f"{name}: several columns are named {plain(twice)!r}; give each a name")
        index = own_index(frame, len(frame))
        named = index is not None and index.is_unique
        tasks = frame.index.to_numpy() if named else np.arange(len(frame))
        workers = frame.columns.to_numpy()
        values = frame.to_numpy()
        task, worker = np.nonzero(~pd.isna(values))
        label = values[task, worker]
    if functions is not None:
        workers = _of_fit(name, workers, functions)
    voted = np.flatnonzero(np.asarray(label != abstain))
    label = pd.Series(label[voted]).infer_objects().to_numpy()
    if label.dtype.kind == "f" and (label % 1 == 0).all():
        label = label.astype(int)
    task, worker = task[voted], worker[voted]
    votes = Votes(CodedColumn(task, tasks), CodedColumn(worker, workers), CodedColumn.of(label))
    return VoteSource(votes, tasks, workers)


def _of_fit(name: str, columns: np.ndarray, functions: np.ndarray) -> np.ndarray:
    """The columns' names among the functions of a fit.

    Args:
        name: of the argument, for messages.
        columns: names of the columns, or their numbers.
        functions: ids of the functions of the fit.

    Raises:
        DataError: another number of columns, or a name that is not among these.
    """
    if len(columns) != len(functions):
        raise DataError(
            f"{name}: has {counted(len(columns), 'column')}, and the fit "
            f"{counted(len(functions), 'labelling function')}; where one was not run, let it "
            "abstain"
        )
    if np.array_equal(columns, np.arange(len(columns))):
        return functions
    unknown = np.flatnonzero(positions(functions, columns) < 0)
    if len(unknown):
        raise DataError(
            f"{name}: column {plain(columns[unknown[0]])!r} is no labelling function of the fit, "
            f"of which the first is {plain(functions[0])!r}; name the columns as there, or give an "
            "array in the order of workers_"
        )
    return columns


def check_abstentions(
    source: VoteSource, abstain: Any, declared: Any = None, name: str = "votes"
) -> None:
    """Refuse a class that seems to be the abstention: -1, as in most libraries, or "abstain".

    Args:
        source: votes.
        abstain: value by which a function is said to abstain.
        declared: names of all classes, or None.
        name: of the argument, for messages.

    Raises:
        DataError: every function abstains from every item; or, where no classes are declared, no
            function ever does, and -1 occurs beside others than 1, or such a word.
    """
    label = source.table.label
    if not len(label.codes):
        raise DataError(f"{name}: every function abstains from every item")
    everywhere = len(label.codes) == len(source.tasks) * len(source.workers)
    if declared is not None or not everywhere:
        return
    found = label.names
    usual = [one for one in found if str(one).casefold() in _ABSTAIN]
    if found.dtype.kind in "iu" and -1 in found and not np.isin(found, (-1, 1)).all():
        usual = [-1]
    if usual:
        share = np.mean(found[label.codes] == usual[0])
        raise DataError(
            f"{name}: abstain={abstain!r} does not occur, and {usual[0]!r}, by which labelling "
            f"functions usually abstain, is {share:.0%} of the outputs; pass "
            f"abstain={usual[0]!r}, or name all classes with classes= if {usual[0]!r} is one"
        )


def _frame(name: str, outputs: Any) -> pd.DataFrame:
    values = np.asarray(outputs)
    if values.ndim != 2:
        raise DataError(
            f"{name}: expected a matrix with a row an item and a column a labelling function, got "
            f"shape {values.shape}"
        )
    return pd.DataFrame(values)
