"""Input of a joint model: which items and classes there are, by labels and by the sources' data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from nbmodels.core.model import PRIOR
from nbmodels.data.noisy_labels import LabelData, read_labels
from nbmodels.data.possible_labels import allowed_classes, check_possible, names_of_known
from nbmodels.data.validation import as_column, check_order, row_index, row_tables
from nbmodels.errors import DataError, counted
from nbmodels.estimators.sources import Items, LearnedSource, Source
from nbmodels.fitting.label_sources import LabelSource, candidate_sets, label_sources

#: Names of the components that are not sources.
_TAKEN = (PRIOR, "labels", "trusted", "possible")


def check_names(sources: Any, X: Any) -> None:
    """Check that sources are estimators that can be one, and data are of these.

    Args:
        sources: estimators by name, as the caller gave them.
        X: data by source, likewise.

    Raises:
        DataError: they are not.
    """
    if not isinstance(sources, Mapping) or not sources:
        raise DataError("sources: expected a mapping from names to estimators")
    if not isinstance(X, Mapping) or not X:
        raise DataError("X: expected a mapping from sources to their data")
    for name in sources:
        if name in _TAKEN:
            raise DataError(f"sources: {name!r} is a name of the model's own; take another")
        if not getattr(sources[name], "_is_source", False):
            raise DataError(
                f"sources: {name}: {type(sources[name]).__name__} cannot be a source; see "
                "JointNB for those that can"
            )
    for name in X:
        if name not in sources:
            known = ", ".join(map(str, sources))
            raise DataError(f"X: there is no source {name!r}; the sources are {known}")


def read_all_labels(
    sources: Mapping[str, Source],
    X: Mapping[str, Any],
    given: tuple[Any, Any, Any],
    n: int,
    reader: str,
    declared: Any,
    marker: Any,
) -> tuple[LabelData, dict[str, LabelSource]]:
    """Labels of every kind, and the classes that they and the sources name.

    Args:
        sources: estimators by the sources' names.
        X: data by source.
        given: noisy labels, checked labels, and possible classes, each a row an item or None.
        n: number of items.
        reader: who reads them.
        declared: names of all classes, or None.
        marker: of a missing label.

    Raises:
        DataError: no label names the class of any item, or one is of no class.
    """
    y, trusted, possible = given
    named = [sources[name]._source_classes(values) for name, values in X.items()]
    others = [v for v in named if v is not None]
    if y is None and declared is None:
        others += names_of_known(trusted, possible, n, marker)
    if possible is not None and declared is not None:
        others.append(np.asarray(declared, object))  # which sets may name
    read = read_labels(
        y,
        n,
        reader=reader,
        declared=declared,
        marker=marker,
        trusted=trusted,
        others=others,
    )
    labels = label_sources(read)
    if possible is not None:
        allowed = allowed_classes(possible, n, read.classes)
        check_possible(allowed, read)
        labels["possible"] = candidate_sets(allowed)
    if not labels and all(v is None for v in named):
        raise DataError(
            "y: no label names the class of any item; give y, votes, trusted or possible"
        )
    return read, labels


def item_ids(
    sources: Mapping[str, Source], X: Mapping[str, Any], rows: Mapping[str, Any], items: Any
) -> np.ndarray:
    """Ids of the items; their number from whatever has a row an item.

    Ids are those of the first table that has an index, a pair's features and labels included; where
    none has one, those of the labels.

    Args:
        sources: estimators by the sources' names.
        X: data by source.
        rows: other arguments with a row an item, by name.
        items: ids that are given, or None.
    """
    sizes = {name: sources[name]._source_items(values) for name, values in X.items()}
    known = {name: size for name, size in sizes.items() if size is not None}
    if rows.get("y") is not None:
        known["y"] = len(rows["y"])
    if items is not None:
        ids = as_column("items", items)
        if len(pd.unique(ids)) != len(ids):
            raise DataError("items: an id occurs twice")
        known = {"items": len(ids), **known}
    if not known:
        raise DataError(
            "items: expected ids of the items, since votes and interactions alone do not say "
            "which items there are and in which order"
        )
    first, n = next(iter(known.items()))
    for name, size in known.items():
        if size != n:
            by_id = "; name its rows by their ids" * (first == "items")
            raise DataError(f"{name}: has {counted(size, 'row')} where {first} has {n}{by_id}")
    tables = {label: t for name in known if name in X for label, t in row_tables(name, X[name])}
    framed = [(t, v.index) for t, v in tables.items() if isinstance(v, pd.DataFrame | pd.Series)]
    named = (one for one in framed if not one[1].equals(pd.RangeIndex(n)))
    of, index = next(named, framed[0] if framed else ("", None))
    if index is None and (index := row_index(None, rows.get("y"))) is not None:
        of = "y"
    if items is not None:
        of, index = "items", pd.Index(ids)
    for name, values in {**tables, **rows}.items():
        check_order(name, values, index, of, "items" if items is not None else "")
    if items is not None:
        return ids
    return index.to_numpy() if index is not None and index.is_unique else np.arange(n)


def of_all_items(sources: Mapping[str, Source], X: Mapping[str, Any], items: Any) -> dict[str, Any]:
    """Sources' data, of which a data frame of some items has a row of each, missing cells added.

    Args:
        sources: estimators by the sources' names.
        X: data by source.
        items: ids that are given, or None: a table then has a row an item.

    Raises:
        DataError: a frame of some items whose estimator takes no missing cells.
    """
    ids, out = None if items is None else pd.Index(as_column("items", items)), dict(X)
    for name, values in X.items():
        if ids is None or not isinstance(values, pd.DataFrame) or not ids.is_unique:
            continue
        if sources[name]._source_items(values) is None or len(values) >= len(ids):
            continue
        own = values.index
        if not len(own) or not own.is_unique or not own.isin(ids).all():
            continue
        if getattr(sources[name], "missing_values", None) is None:
            raise DataError(
                f"{name}: has a row of {len(own)} of the {counted(len(ids), 'item')}; the cells of "
                "the others are missing: take an estimator with missing_values=np.nan for it"
            )
        out[name] = values.reindex(ids)
    return out


def naming(name: str, method: Callable[..., Any], *args: Any) -> Any:
    """What a method of a source returns, with errors that name the source."""
    try:
        return method(*args)
    except DataError as error:
        raise type(error)(f"{name}: {error}") from error


def learned_sources(
    sources: Mapping[str, Source], X: Mapping[str, Any], items: Items
) -> dict[str, LearnedSource]:
    """What each source learns from its data, with errors that name it."""
    return {
        name: naming(name, sources[name]._source_learn, values, items) for name, values in X.items()
    }


def _cells(values: Any) -> int:
    """Number of cells of a source's data, of both where they are features with labels."""
    if isinstance(values, tuple):
        return sum(map(_cells, values))
    return int(values.nnz) if hasattr(values, "nnz") else int(np.size(values))


def cells_of(X: Mapping[str, Any]) -> int:
    """Number of cells of all sources' data."""
    return sum(map(_cells, X.values()))
