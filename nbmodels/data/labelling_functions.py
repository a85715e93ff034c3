"""Outputs of labelling functions, one row an item and one column a function, as votes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from nbmodels.data.annotations import Votes
from nbmodels.data.long_format import CodedColumn
from nbmodels.errors import DataError


class VoteSource(NamedTuple):
    """Votes with the items and annotators that there are, also those without a vote."""

    table: Votes
    tasks: np.ndarray
    workers: np.ndarray


def read_outputs(outputs: Any, abstain: Any, name: str = "votes") -> VoteSource:
    """Votes of labelling functions; items are rows, functions are columns.

    Args:
        outputs: ``(N, W)`` data frame, array or sparse matrix. In a sparse one, what is not stored
            is an abstention.
        abstain: value by which a function abstains; nulls are abstentions, too.
        name: of the argument, for messages.

    Raises:
        DataError: no matrix, or no vote at all.
    """
    if sparse.issparse(outputs):
        cells = sparse.coo_array(outputs)
        task, worker, label = cells.row, cells.col, cells.data
        tasks, workers = map(np.arange, outputs.shape)
    else:
        frame = outputs if isinstance(outputs, pd.DataFrame) else _frame(name, outputs)
        tasks, workers = np.arange(len(frame)), frame.columns.to_numpy()
        values = frame.to_numpy()
        task, worker = np.nonzero(~pd.isna(values))
        label = values[task, worker]
    voted = np.flatnonzero(np.asarray(label != abstain))
    if not len(voted):
        raise DataError(f"{name}: every function abstains from every item")
    label = pd.Series(label[voted]).infer_objects().to_numpy()
    if label.dtype.kind == "f" and (label % 1 == 0).all():
        label = label.astype(int)
    task, worker = task[voted], worker[voted]
    votes = Votes(CodedColumn(task, tasks), CodedColumn(worker, workers), CodedColumn.of(label))
    return VoteSource(votes, tasks, workers)


def check_abstentions(source: VoteSource, abstain: Any, name: str = "votes") -> None:
    """Refuse -1 as a class where it seems to be the abstention, as in most libraries.

    Args:
        source: votes whose classes are not declared.
        abstain: value by which a function is said to abstain.
        name: of the argument, for messages.

    Raises:
        DataError: no function ever abstains, and -1 occurs beside others than 1.
    """
    label = source.table.label
    everywhere = len(label.codes) == len(source.tasks) * len(source.workers)
    found = label.names
    usual = found.dtype.kind in "iu" and -1 in found and not np.isin(found, (-1, 1)).all()
    if everywhere and usual:
        share = np.mean(found[label.codes] == -1)
        raise DataError(
            f"{name}: abstain={abstain!r} does not occur, and -1, by which labelling functions "
            f"usually abstain, is {share:.0%} of the outputs; pass abstain=-1, or name all classes "
            "with classes= if -1 is one"
        )


def _frame(name: str, outputs: Any) -> pd.DataFrame:
    values = np.asarray(outputs)
    if values.ndim != 2:
        raise DataError(
            f"{name}: expected a matrix with a row an item and a column a labelling function, got "
            f"shape {values.shape}"
        )
    return pd.DataFrame(values)
