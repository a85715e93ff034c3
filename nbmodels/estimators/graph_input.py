"""Errors and warnings of input that users of tables may bring to a graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from nbmodels.data.long_format import columns_named, read_long
from nbmodels.data.user_item_graph import COLUMNS, Graph, spelt_otherwise
from nbmodels.errors import Caution, DataError, IdentifiabilityWarning, NbmodelsWarning

#: Names of columns that would count interactions.
_COUNTS = ("weight", "weights", "count", "counts", "number")

#: Median up to which whole numbers may be counts, or grades; those of times and ids are larger.
_MOST_COUNTED = 100


def refuse_arguments(reader: str, others: Mapping[str, Any]) -> None:
    """Refuse arguments that other estimators have.

    Raises:
        TypeError: there is one; the message names it.
    """
    for name in others:
        advice = ""
        if name == "votes":
            advice = "; for several annotators beside a graph see JointNB"
        elif name == "groups":
            advice = "; items of one group may have a user of their own"
        raise TypeError(f"{reader}.fit takes no argument {name!r}{advice}")


@contextmanager
def with_names_of_graphs() -> Iterator[list[Caution]]:
    """Errors and warnings of labels by the names that arguments have here.

    Yields:
        a list, which holds the warnings once all was read.

    Raises:
        DataError: as raised inside.
    """
    found: list[Caution] = []
    try:
        with warnings.catch_warnings(record=True, action="always") as caught:
            yield found
    except DataError as error:
        words = str(error).replace("; X has", "; interactions has")
        if " rows where X has " in words:
            words = words.replace(" rows where X has ", " rows where there are ")
            words += (
                " items, the columns of a matrix (users x items) or the ids in a table; give a "
                "series of labels by the items' ids, or all ids as items="
            )
        raise type(error)(_of_labels(words)) from error
    for one in caught:
        if issubclass(one.category, NbmodelsWarning):
            found.append(Caution(one.category, _of_labels(str(one.message))))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _of_labels(words: str) -> str:
    return "labels" + words[1:] if words.startswith("y: ") else words


def graph_cautions(
    interactions: Any, labels: Any, graph: Graph, *, in_order: bool
) -> tuple[Caution, ...]:
    """Warnings of input that is read in another way than it may be meant.

    Args:
        interactions: as given.
        labels: as given.
        graph: as read.
        in_order: whether labels are taken in the order of the items, which nobody has named.
    """
    columns = unread_counts(interactions) if isinstance(interactions, pd.DataFrame) else ()
    out = [
        Caution(
            NbmodelsWarning,
            f"interactions: column {column!r} is not read, a row is one interaction; if it counts "
            "interactions, repeat rows, or give a sparse matrix (users x items) of counts",
        )
        for column in columns
    ]
    if in_order and _another_order(interactions, graph.items):
        first = ", ".join(map(repr, graph.items[:3].tolist()))
        words = (
            "labels: are taken in the order of the sorted ids of the items, of which the first are "
            f"{first}; give a series by item id, or items= where they are in another order"
        )
        out.append(Caution(NbmodelsWarning, words))
    if spelt := spelt_otherwise(interactions, labels):
        out.append(Caution(NbmodelsWarning, spelt))
    if not graph.edges.nnz:
        words = "interactions: there are no edges, so that labels stay as they are"
        out.append(Caution(IdentifiabilityWarning, words))
    return tuple(out)


def by_item_id(labels: Any) -> Any:
    """Labels in a frame of one column whose index names the items as a series; others as given."""
    if not isinstance(labels, pd.DataFrame) or labels.shape[1] != 1:
        return labels
    return labels if isinstance(labels.index, pd.RangeIndex) else labels.iloc[:, 0]


def unread_counts(interactions: pd.DataFrame) -> list[Any]:
    """Columns named as counts, or that may be: small whole numbers of pairs that occur once."""
    pair = [columns_named(interactions, wanted, COLUMNS) for wanted in COLUMNS]
    ids = [name for names in pair for name in names]
    once = all(len(names) == 1 for names in pair) and not interactions.duplicated(ids).any()
    return [
        name
        for name, values in interactions.items()
        if str(name).lower() in _COUNTS or (once and name not in ids and _may_count(values))
    ]


def _may_count(values: pd.Series) -> bool:
    known = values.dropna()
    if values.dtype.kind not in "iu" or not len(known):
        return False
    return bool(known.min() >= 1 and known.max() >= 2 and known.median() <= _MOST_COUNTED)


def _another_order(interactions: Any, items: np.ndarray) -> bool:
    """Whether ids of a table do not occur in their sorted order, and do not only count the items.

    Args:
        interactions: as given; the columns of a matrix are in their order.
        items: ``(N,)`` ids, sorted.
    """
    if sparse.issparse(interactions):
        return False
    counts = any(np.array_equal(items, np.arange(first, first + len(items))) for first in (0, 1))
    _, item = read_long("interactions", interactions, COLUMNS)
    return not counts and not np.array_equal(pd.unique(item), items)
