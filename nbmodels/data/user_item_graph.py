"""Bipartite user-item graphs, from a sparse matrix or from pairs of ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int
from scipy import sparse

from nbmodels.data.long_format import Columns, codes_of, counted, distinct, read_long
from nbmodels.data.validation import check_length, plain, positions
from nbmodels.errors import DataError
from nbmodels.errors import counted as counted_things

#: Columns of a table of interactions, with the other names by which each is found.
COLUMNS: Columns = {
    "user": [("customer", "person", "author", "reader", "rater", "reviewer", "visitor", "member")],
    "item": [
        ("product", "thread", "document", "article", "post", "page", "movie", "book", "object")
    ],
}


@dataclass(frozen=True)
class Graph:
    """A checked user-item graph.

    Attributes:
        edges: ``(N, users)`` numbers of edges, CSR.
        users: ``(users,)`` ids.
        items: ``(N,)`` ids.
    """

    edges: sparse.csr_array
    users: np.ndarray
    items: np.ndarray

    @property
    def degree(self) -> Int[np.ndarray, " n"]:
        """``(N,)`` number of users of each item."""
        return np.diff(self.edges.indptr)


def read_graph(
    interactions: Any,
    items: Any = None,
    *,
    users: np.ndarray | None = None,
    duplicates: str = "count",
    name: str = "interactions",
) -> Graph:
    """A graph from a sparse users x items matrix or a table of (user, item) pairs.

    Args:
        interactions: SciPy sparse matrix ``(users, items)`` of counts, or a table with columns
            ``user`` and ``item``, or other names for them, ids of any kind. Pairs whose columns
            have no names (a list of tuples) are of user and item, in this order.
        items: ids of the items, in the order wanted; those that occur, sorted, where None. For a
            matrix, names of its columns.
        users: ids of the users of a fit, which are the rows of a matrix, in their order; None where
            a matrix numbers its users. A table names its own.
        duplicates: what to do with a pair that occurs more than once: ``"count"`` every
            occurrence, ``"once"`` take it for one edge, ``"refuse"``; ``"auto"`` counts, and leaves
            it to the fit what a count says.
        name: of the argument, for messages.

    Raises:
        DataError: naming the row or the pair, or columns that are not there; a matrix of another
            number of users.
    """
    if duplicates not in ("auto", "count", "once", "refuse"):
        raise DataError(
            f"duplicates: expected 'auto', 'count', 'once' or 'refuse', got {duplicates!r}"
        )
    if sparse.issparse(interactions):
        edges = sparse.csr_array(interactions.T).astype(float)
        if users is None:
            users = np.arange(edges.shape[1])
        if len(users) != edges.shape[1]:
            raise DataError(
                f"{name}: the matrix has {counted_things(edges.shape[1], 'row')}; expected "
                f"{len(users)}, one a user of the fit in the order of users_ (or pairs of ids)"
            )
        ids = np.arange(edges.shape[0]) if items is None else np.asarray(items)
        check_length("items", ids, edges.shape[0])
        whole = np.isfinite(edges.data) & (edges.data == np.floor(edges.data))
        bad = np.flatnonzero(~(whole & (edges.data >= 0)))
        if len(bad):
            row = int(np.searchsorted(edges.indptr, bad[0], side="right")) - 1
            raise DataError(
                f"{name}: item {plain(ids[row])!r} has {edges.data[bad[0]]} edges to a user; "
                "expected a count, a whole number, 0 or more"
            )
    elif isinstance(interactions, np.ndarray) and interactions.dtype.kind not in "OUS":
        raise DataError(
            f"{name}: expected a SciPy sparse matrix (users x items), or a table with columns "
            f"{' and '.join(COLUMNS)}; got an array of numbers"
        )
    else:
        user, item = read_long(name, interactions, COLUMNS)
        users = distinct(name, user, "user")
        ids = distinct(name, item, "item") if items is None else _once(items)
        pairs = codes_of(name, item, ids, "item"), codes_of(name, user, users, "user")
        edges = counted(*pairs, (len(ids), len(users)))
    edges.sum_duplicates()
    edges.eliminate_zeros()
    if duplicates in ("once", "refuse"):
        twice = np.flatnonzero(edges.data != 1)
        if duplicates == "refuse" and len(twice):
            row = int(np.searchsorted(edges.indptr, twice[0], side="right")) - 1
            user_id, item_id = plain(users[edges.indices[twice[0]]]), plain(ids[row])
            raise DataError(
                f"{name}: user {user_id!r} and item {item_id!r} have {edges.data[twice[0]]:g} "
                "edges; expected one (duplicates='count' counts them, 'once' takes them for one)"
            )
        edges.data[:] = 1
    return Graph(edges, users, ids)


def _once(items: Any) -> np.ndarray:
    """``(N,)`` ids of items by which pairs name them.

    Raises:
        DataError: one that occurs twice.
    """
    ids = np.asarray(items)
    twice = pd.Index(ids).duplicated()
    if twice.any():
        raise DataError(f"items: row {np.argmax(twice)} is {plain(ids[twice][0])!r} again")
    return ids


def labelled_items(interactions: Any, labels: Any) -> np.ndarray | None:
    """All items that have an edge or a label, sorted; None where labels are not given by id."""
    if isinstance(labels, pd.DataFrame) and labels.shape[1] > 1:
        one, other = (str(name) for name in labels.columns[:2])
        raise DataError(
            "labels: expected one label an item; a table of items and labels is given as a series "
            f"by item id, as labels.set_index({one!r})[{other!r}]"
        )
    if not isinstance(labels, Mapping | pd.Series) or sparse.issparse(interactions):
        return None
    _, item = read_long("interactions", interactions, COLUMNS)
    keys = pd.Index(list(labels.keys())).to_numpy()
    if len(keys) > 1 and not pd.Index(keys).isin(item).any():
        raise DataError(
            f"labels: a mapping or series is read by item id, and none of its {len(keys)} items, "
            f"of which the first is {plain(keys[0])!r}, occurs in interactions, whose first is "
            f"{plain(item[0])!r}"
        )
    return distinct("labels", pd.concat([pd.Series(keys), pd.Series(item)]).to_numpy(), "item")


def spelt_otherwise(interactions: Any, labels: Any) -> str:
    """A sentence about items that labels and interactions spell in two ways, or nothing.

    Upper case, blanks and zeros at the beginning are no part of how an item is called here.

    Args:
        interactions: as :func:`read_graph` takes them.
        labels: mapping or series by item id; of others nothing is compared.
    """
    if not isinstance(labels, Mapping | pd.Series) or sparse.issparse(interactions):
        return ""
    _, item = read_long("interactions", interactions, COLUMNS)
    keys = pd.Index(list(labels.keys()))
    alone, unlabelled = keys[~keys.isin(item)], pd.Index(pd.unique(item)).difference(keys)
    theirs = dict(zip(map(_plainly, unlabelled), unlabelled, strict=True))
    found = [(key, theirs[_plainly(key)]) for key in alone if _plainly(key) in theirs]
    if not found:
        return ""
    one, other = map(plain, found[0])
    of_items = counted_things(len(found), "item has", "items have")
    return (
        f"labels: {of_items} no interactions as {one!r} is spelt, while interactions have "
        f"{other!r} without a label; spell ids in one way where these are one item"
    )


def _plainly(item: Any) -> str:
    return "".join(str(item).split()).casefold().lstrip("0")


def of_items(name: str, values: Any, items: np.ndarray) -> Any:
    """One value an item, in the items' order; None where a mapping has none.

    Args:
        name: of the argument, for messages.
        values: mapping or series by item id, or one value an item, which is passed on.
        items: ``(N,)`` ids.

    Raises:
        DataError: an item that is not there, or is there twice.
    """
    if not isinstance(values, Mapping | pd.Series):
        return values
    keys = pd.Index(list(values.keys()))
    if keys.has_duplicates:
        raise DataError(f"{name}: item {plain(keys[keys.duplicated()][0])!r} is there twice")
    at = positions(items, keys.to_numpy())
    if (at < 0).any():
        raise DataError(
            f"{name}: item {plain(keys[at < 0][0])!r} does not exist; there are "
            f"{counted_things(len(items), 'item')}, of which the first is {plain(items[0])!r}"
        )
    found = np.full(len(items), None, object)
    found[at] = [None if pd.isna(v) else v for _, v in values.items()]
    return found


def rows_of_items(table: Any, items: np.ndarray) -> Any:
    """A data frame whose index names all items, in their order; anything else as it is."""
    if not isinstance(table, pd.DataFrame):
        return table
    at = table.index.get_indexer(pd.Index(items)) if table.index.is_unique else np.array([-1])
    return table.iloc[at] if (at >= 0).all() else table


def item_weights(values: Any, items: np.ndarray) -> Any:
    """One weight an item, in the items' order; as :func:`of_items`, of all items.

    Raises:
        DataError: an item without a weight.
    """
    found = of_items("sample_weight", values, items)
    if found is values:
        return values
    lacking = np.flatnonzero(pd.isna(found))
    if len(lacking):
        raise DataError(f"sample_weight: item {plain(items[lacking[0]])!r} has no weight")
    return found


def edges_to_known(
    users: np.ndarray, interactions: Any, items: Any = None, *, duplicates: str = "count"
) -> sparse.csr_array:
    """``(N, users)`` edges of items to the users of a fit.

    Args:
        users: their ids.
        interactions: as :func:`read_graph` takes them. The rows of a matrix are these users, in
            their order; pairs with other users are left out.
        items: as :func:`read_graph` takes them.
        duplicates: likewise.

    Raises:
        DataError: as :func:`read_graph`.
    """
    graph = read_graph(interactions, items, users=users, duplicates=duplicates)
    place = pd.Index(users).get_indexer(pd.Index(graph.users))
    edges = graph.edges.tocoo()
    known = place[edges.col] >= 0
    where = (edges.row[known], place[edges.col[known]])
    shape = (len(graph.items), len(users))
    return sparse.coo_array((edges.data[known], where), shape=shape).tocsr()
