"""Tables of votes: ids and labels of any kind as codes, the last of several votes, and errors."""

import numpy as np
import pandas as pd
import pytest

from nbmodels.data.annotations import Votes, row_ids, vote_columns
from nbmodels.data.labels import Classes
from nbmodels.data.long_format import CodedColumn
from nbmodels.data.validation import distinct_codes, sorted_unique
from nbmodels.errors import DataError


def drawn(n=600, tasks=40, workers=7, k=3, seed=0):
    """Votes of which most are repeated by their worker."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"task": rng.integers(0, tasks, n), "worker": rng.integers(0, workers, n)}
    ).assign(label=rng.integers(0, k, n))


KINDS = {
    "int": lambda x: x,
    "far": lambda x: x * 10**12 - 5,
    "float": lambda x: x / 2,
    "str": lambda x: "v" + x.astype(str),
    "object": lambda x: ("v" + x.astype(str)).astype(object),
    "category": lambda x: ("v" + x.astype(str)).astype("category"),
    "nullable": lambda x: x.astype("Int64"),
    "dates": lambda x: pd.Timestamp("2020-01-01") + pd.to_timedelta(x, "D"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_the_last_votes_in_order(kind):
    plain = drawn()
    votes = plain.apply(KINDS[kind])
    read = Votes.read(votes)
    tasks, workers, names = read.tasks(), read.workers(), np.sort(read.label.names)
    for ids, column in ((tasks, "task"), (workers, "worker")):
        np.testing.assert_array_equal(ids, np.sort(pd.unique(votes[column].to_numpy())))
    cells = read.cells(tasks, workers, Classes(names))
    codes = {c: np.unique(plain[c]) for c in plain}
    if kind in ("str", "object", "category"):  # "v10" comes before "v2"
        codes = {c: np.array(sorted(x, key=lambda v: f"v{v}")) for c, x in codes.items()}
    place = {c: {v: i for i, v in enumerate(x)} for c, x in codes.items()}
    last = {}
    for task, worker, label in plain.itertuples(index=False):
        last[place["task"][task], place["worker"][worker]] = place["label"][label]
    expected = [(*at, last[at]) for at in sorted(last)]
    assert len(expected) < len(plain)
    np.testing.assert_array_equal(np.stack(cells, 1), expected)
    dense = np.zeros((len(tasks), len(workers), 3))
    dense[tuple(np.array(expected).T)] = 1
    counts = read.counts(tasks, workers, Classes(names)).toarray()
    np.testing.assert_array_equal(counts, dense.reshape(len(tasks), -1))


ITEMS = [
    "task", "item", "question", "example", "instance", "document", "doc", "sample", "image",
    "photo", "picture", "text", "sentence", "tweet", "Image ID", "docId", "photo-id",
]  # fmt: skip
ANNOTATORS = [
    "worker", "annotator", "rater", "judge", "coder", "labeler", "labeller", "performer", "user",
    "reviewer", "expert", "WorkerID",
]  # fmt: skip
LABELS = ["label", "response", "answer", "vote", "class", "judgement", "rating", "category"]
NAMES = [
    *((item, "rater", "label") for item in ITEMS),
    *(("image", worker, "label") for worker in ANNOTATORS),
    *(("image", "rater", label) for label in LABELS),
]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0), (2, 0, 1)])
def test_columns_are_found_by_name_in_any_order(order):
    """Items and annotators with the same ids: only names tell which is which."""
    votes = drawn(tasks=7)
    for names in NAMES:
        table = votes.set_axis(names, axis=1)[[names[i] for i in order]]
        read = Votes.read(table)
        for column, found in zip(votes, (read.task, read.worker, read.label), strict=True):
            np.testing.assert_array_equal(found.values, votes[column], err_msg=str(names))
        assert vote_columns(table.drop_duplicates(list(names[:2]))) == [names[:2]]


def test_an_id_goes_before_what_is_shown_of_an_item():
    votes = drawn().rename(columns={"task": "item", "label": "answer"})
    shown = votes.assign(text="a text", category="news", expert=True)[::-1]
    read = Votes.read(shown)
    np.testing.assert_array_equal(read.task.values, shown["item"])
    np.testing.assert_array_equal(read.label.values, shown["answer"])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"image": 0}, r"\['photo', 'image'\] could each be the task"),
        ({"judge": 0}, r"\['rater', 'judge'\] could each be the worker"),
        ({"vote": 0}, r"\['answer', 'vote'\] could each be the label"),
    ],
)
def test_columns_whose_names_leave_it_open_are_refused(other, words):
    votes = drawn().set_axis(["photo", "rater", "answer"], axis=1)
    Votes.read(votes)
    with pytest.raises(DataError, match=words):
        Votes.read(votes.assign(**other))


def test_more_ids_than_a_short_number_holds():
    votes = drawn()
    read = Votes.read(votes)
    short = read.cells(np.arange(40), np.arange(7), Classes(np.arange(3)))
    long = read.cells(np.arange(2**20), np.arange(2**12), Classes(np.arange(3)))
    for one, other in zip(short, long, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("column", ["task", "worker", "label"])
@pytest.mark.parametrize("kind", ["int", "str"])
def test_unknown_ids_and_classes_are_named_with_their_row(column, kind):
    votes = drawn().apply(KINDS[kind])
    ids = {c: np.sort(pd.unique(votes[c].to_numpy())) for c in votes}
    gone = votes[column].tolist()[17]
    first = int(np.argmax((votes[column] == gone).to_numpy()))
    ids[column] = ids[column][ids[column] != gone]
    with pytest.raises(DataError, match=f"row {first} has the {column} {gone!r}"):
        Votes.read(votes).cells(ids["task"], ids["worker"], Classes(ids["label"]))


@pytest.mark.parametrize("null", [None, np.nan, pd.NA])
def test_nulls_are_refused_with_their_row(null):
    votes = drawn().astype({"worker": object})
    votes.loc[[30, 500], "worker"] = null
    with pytest.raises(DataError, match="row 30 has no worker"):
        Votes.read(votes)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "category"])
def test_rows_whose_id_repeats_are_refused_only_where_a_vote_is_on_them(kind):
    votes = drawn().apply(KINDS[kind])
    read, ids = Votes.read(votes), pd.Index(np.sort(pd.unique(votes["task"])))
    assert row_ids(read, ids) is ids
    other = KINDS[kind](pd.Series([77, 77, 77])).array
    more = ids.insert(40, other[0]).insert(41, other[1]).insert(42, other[2])
    classes = Classes(np.sort(read.label.names))
    expected = read.cells(ids, read.workers(), classes)
    for found, want in zip(
        read.cells(row_ids(read, more), read.workers(), classes), expected, strict=True
    ):
        np.testing.assert_array_equal(found, want)
    at = int(np.argmax((votes["task"] == ids[3]).to_numpy()))
    with pytest.raises(DataError, match=rf"^votes: row {at} has the task .*, which is 2 rows by"):
        row_ids(read, ids.insert(0, ids[3]))


def test_a_class_that_is_named_once_is_refused_with_its_row():
    votes = drawn()
    votes.loc[33, "label"] = 9
    with pytest.raises(DataError, match="row 33 has the label 9, which occurs once"):
        Votes.read(votes).check_labels(None)
    Votes.read(votes).check_labels([0, 1, 2, 9])


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "dates"])
def test_codes_give_the_values_back(kind):
    values = KINDS[kind](drawn()["task"])
    codes, names = distinct_codes(values)
    np.testing.assert_array_equal(names[codes], values.to_numpy())
    assert len(names) == len(np.unique(codes)) == values.nunique()
    known = np.sort(names)[1:]
    with pytest.raises(DataError, match="is unknown"):
        CodedColumn.of(values).among("votes", known, "task")


def test_many_short_texts_are_sorted_as_python_sorts_them():
    rng = np.random.default_rng(0)
    texts = np.array([chr(c) * int(n) for c, n in rng.integers((33, 1), (900, 9), (5_000, 2))], "O")
    assert sorted_unique(texts).tolist() == sorted(set(texts))
    ends = np.array([*texts, "a\0", "a"], object)
    assert sorted_unique(ends).tolist() == sorted(set(ends))


def advice(votes):
    """What the refusal of a table adds to the columns that it lacks."""
    with pytest.raises(DataError, match=r"^votes: expected columns task, worker, label") as refusal:
        Votes.read(votes)
    shown = str(refusal.value)
    assert "rename them" in shown
    return shown.partition("'task'})")[2].lstrip("; ")


@pytest.mark.parametrize("kind", ["int", "str"])
def test_a_table_of_votes_with_other_names_is_not_made_long(kind):
    votes = drawn().apply(KINDS[kind])
    assert advice(votes.set_axis(["foo", "bar", "baz"], axis=1)) == ""
    given = votes.to_numpy()
    names = "an array of a row a vote gets names by pd.DataFrame(votes, columns=['task', 'worker', "
    assert advice(given).startswith(f"{names}'label']), in the order")
    assert "melt" not in advice(given)
    assert advice(given.tolist()) == advice(given)


def test_a_table_with_a_column_an_annotator_is_made_long():
    votes = drawn(300, tasks=60, workers=5).drop_duplicates(["task", "worker"])
    votes = votes.assign(label=np.array(["ant", "bee", "fly"])[votes["label"]])
    wide = votes.pivot(index="task", columns="worker", values="label").rename(columns="w{}".format)
    expected = votes.assign(worker="w" + votes["worker"].astype(str))
    with_ids = wide.rename_axis("id").reset_index()
    for table in (wide, with_ids, with_ids.assign(id=wide.index.map("t{}".format))):
        code = advice(table)
        assert code.startswith("a table with a row an item and a column an annotator is made long")
        long = eval(code.partition(" by ")[2], {"votes": table})
        assert len(long) == len(expected)
        tasks = long["task"].astype(str).str.removeprefix("t").astype(int)
        found = set(zip(tasks, long["worker"], long["label"], strict=True))
        assert found == set(expected.itertuples(index=False, name=None))
    assert "made long by pd.DataFrame(votes)" in advice(wide.to_numpy())


@pytest.mark.parametrize(
    ("column", "value", "kind"),
    [("worker", ["ann"], "list"), ("label", {"cat"}, "set"), ("task", (["x"],), "tuple")],
)
def test_containers_are_no_ids_and_no_labels(column, value, kind):
    table = pd.DataFrame({"task": [0, 1], "worker": ["a", "b"], "label": ["cat", "dog"]})
    table[column] = pd.Series([("x",), value], dtype=object)
    with pytest.raises(DataError, match=f"votes: the {column} of row 1 is a {kind} that"):
        Votes.read(table)
