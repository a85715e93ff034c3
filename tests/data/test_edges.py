"""Tables of user-item pairs: columns are found by their names, never by their order."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nbmodels.data.annotations import Votes
from nbmodels.data.user_item_graph import labelled_items, read_graph
from nbmodels.errors import DataError

PAIRS = [("ann", "x"), ("ann", "y"), ("bob", "y"), ("cem", "y")]
NAMES = [
    ("user", "item"),
    ("user_id", "item_id"),
    ("Users", "Items"),
    ("customer", "product"),
    ("author", "thread_id"),
    ("ReaderID", "documents"),
    ("reviewer", "item"),
]


def assert_is_of_the_pairs(graph):
    assert graph.users.tolist() == ["ann", "bob", "cem"]
    assert graph.items.tolist() == ["x", "y"]
    np.testing.assert_array_equal(graph.edges.toarray(), [[1, 0, 0], [1, 1, 1]])


@pytest.mark.parametrize("names", NAMES, ids=str)
def test_names_of_columns_tell_users_from_items(names):
    table = pd.DataFrame(PAIRS, columns=names)
    for one in (
        table,
        table[table.columns[::-1]],
        table.assign(when=0),
        table[::-1].to_dict("list"),
    ):
        assert_is_of_the_pairs(read_graph(one))
        assert labelled_items(one, {"z": 0}).tolist() == ["x", "y", "z"]


def test_pairs_without_names_are_of_user_and_item():
    for one in (PAIRS, np.array(PAIRS), np.array(PAIRS, object)):
        assert_is_of_the_pairs(read_graph(one))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", "b"], "no column is the user, the table has 'a', 'b'"),
        ([0, 1], "no column is the user, the table has 0, 1"),
        (["user", "customer"], "no column is the item"),
        (["user_id", "customer"], r"\['user_id', 'customer'\] could each be the user"),
        (["user", "user"], r"\['user', 'user'\] could each be the user"),
    ],
)
def test_columns_of_other_names_are_refused(names, words):
    with pytest.raises(DataError, match=f"^interactions: expected columns user, item; {words}"):
        read_graph(pd.DataFrame(PAIRS, columns=names))


def test_an_item_that_is_given_twice_is_refused():
    with pytest.raises(DataError, match=r"^items: row 2 is 'x' again"):
        read_graph(PAIRS, ["x", "y", "x"])
    with pytest.raises(DataError, match=r"^items: row 1 is 5 again"):
        read_graph([("ann", 5)], [5, 5])


class Other:
    """A table of another library, which lists its columns where pandas expects rows."""

    def __init__(self, frame):
        self.frame = frame

    def __iter__(self):
        return (self.frame[c] for c in self.frame)

    def __len__(self):
        return self.frame.shape[1]

    def to_pandas(self):
        return self.frame


def test_tables_of_other_libraries_are_read_by_name():
    table = pd.DataFrame(PAIRS, columns=["user", "item"])[["item", "user"]]
    assert_is_of_the_pairs(read_graph(Other(table)))
    votes = pd.DataFrame({"label": [0, 1], "task": ["s", "t"], "worker": ["a", "a"]})
    read = Votes.read(Other(votes))
    assert read.tasks().tolist() == ["s", "t"]
    assert read.label.values.tolist() == [0, 1]


@pytest.mark.parametrize("duplicates", ["count", "once"])
@pytest.mark.parametrize("cell", [0.5, -1.0, np.nan, np.inf])
def test_cells_of_a_matrix_are_counts(cell, duplicates):
    matrix = sparse.csr_array([[0.0, 2.0, 1.0], [0.0, 1.0, cell]])
    with pytest.raises(DataError, match=rf"^interactions: item 2 has {cell} edges .* a whole numb"):
        read_graph(matrix, duplicates=duplicates)
    assert read_graph(matrix[:, [0, 1]]).degree.tolist() == [0, 2]
