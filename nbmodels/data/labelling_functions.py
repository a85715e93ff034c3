"""Outputs of labelling functions, one row an item and one column a function, as votes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from nbmodels.data.annotations import COLUMNS, Votes
from nbmodels.data.long_format import CodedColumn, columns_named
from nbmodels.data.validation import own_index
from nbmodels.errors import DataError

#: Words for an abstention, in lower case.
_ABSTAIN = ("abstain", "abstains", "abstained", "abstention")


class VoteSource(NamedTuple):
    """Votes with the items and annotators that there are, also those without a vote."""

    table: Votes
    tasks: np.ndarray
    workers: np.ndarray


def read_outputs(outputs: Any, abstain: Any, name: str = "votes") -> VoteSource:
    """Votes of labelling functions; items are rows, functions are columns.

    Args:
        outputs: ``(N, W)`` data frame, array or sparse matrix. In a sparse one, what is not stored
            is an abstention. Items are named by the index of a data frame where it has names that
            differ, and by their positions else.
        abstain: value by which a function abstains; nulls are abstentions, too.
        name: of the argument, for messages.

    Raises:
        DataError: no matrix, or a table in long format.
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
        index = own_index(frame, len(frame))
        named = index is not None and index.is_unique
        tasks = frame.index.to_numpy() if named else np.arange(len(frame))
        workers = frame.columns.to_numpy()
        values = frame.to_numpy()
        task, worker = np.nonzero(~pd.isna(values))
        label = values[task, worker]
    voted = np.flatnonzero(np.asarray(label != abstain))
    label = pd.Series(label[voted]).infer_objects().to_numpy()
    if label.dtype.kind == "f" and (label % 1 == 0).all():
        label = label.astype(int)
    task, worker = task[voted], worker[voted]
    votes = Votes(CodedColumn(task, tasks), CodedColumn(worker, workers), CodedColumn.of(label))
    return VoteSource(votes, tasks, workers)


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
