"""Input of graphs in other words than those of tables, and input that may be meant otherwise."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nbmodels import CollaborativeClassifier, DataError, IdentifiabilityWarning, NbmodelsWarning
from nbmodels.data.user_item_graph import read_graph
from nbmodels.diagnostics.findings import Finding, about_edges
from nbmodels.diagnostics.share_wrong import share_limits
from nbmodels.estimators.graph_input import by_item_id, graph_cautions
from nbmodels.estimators.graph_source import EdgesOf

EDGES = sparse.csr_array(np.eye(6)[[0, 1, 2, 3, 4, 5, 0]])
LABELS = np.array([0, 1, 2, 0, 1, 2])


def test_errors_name_the_arguments_of_graphs():
    model = CollaborativeClassifier()
    with pytest.raises(DataError, match="labels: a graph needs one noisy label an item"):
        model.fit(EDGES, None)
    with pytest.raises(DataError, match="trusted: item 99 does not exist; there are 6 items"):
        model.fit(EDGES, LABELS, trusted={99: 1})
    with pytest.raises(DataError, match="labels: row 0 has no label"):
        model.fit(EDGES, np.where(LABELS, LABELS, np.nan))
    with pytest.raises(TypeError, match=r"no argument 'votes'; .* see JointNB"):
        model.fit(EDGES, LABELS, votes=pd.DataFrame())
    with pytest.raises(TypeError, match="no argument 'groups'"):
        model.fit(EDGES, LABELS, groups=LABELS)


def cautions(interactions, labels=None, *, in_order=False):
    found = graph_cautions(interactions, labels, read_graph(interactions), in_order=in_order)
    assert all(issubclass(one.category, NbmodelsWarning) for one in found)
    return [one.message for one in found]


def test_input_that_may_be_meant_otherwise_is_reported():
    pairs = pd.DataFrame({"user": [0, 1], "item": [0, 1]})
    assert cautions(pairs) == []
    assert "'weight' is not read" in cautions(pairs.assign(weight=3))[0]
    assert "'n_plays' is not read" in cautions(pairs.assign(n_plays=[1, 7]))[0]
    for other in ([1, 1], [2019, 2021], [0.5, 2.5], ["a", "b"], pd.array([None, None], "Int64")):
        assert cautions(pairs.assign(other=other)) == []
    twice = pd.concat([pairs, pd.DataFrame([[1, 2], [3, 4]], columns=["n", "n"])], axis=1)
    assert len(cautions(twice)) == 2
    assert cautions(pd.concat([pairs, pairs]).assign(length=[1, 2, 3, 4])) == []
    assert "there are no edges" in cautions(sparse.csr_array((3, 6)))[0]
    assert cautions(EDGES) == []
    assert cautions(EDGES, in_order=True) == []
    assert cautions(pairs[::-1], in_order=True) == []  # which are counted
    named = pairs.assign(item=["b", "a"])
    assert cautions(named[::-1], in_order=True) == cautions(named) == []
    assert "of which the first are 'a', 'b'; give a series" in cautions(named, in_order=True)[0]


def test_a_frame_of_one_column_goes_by_the_ids_of_its_index():
    pairs = pd.DataFrame({"user": [0, 1, 2, 0], "item": ["c", "a", "b", "b"]})
    labels = pd.Series(["x", "y", "x"], ["b", "a", "c"])
    frame = labels.to_frame("genre")
    assert by_item_id(frame).equals(labels)
    by_position = frame.reset_index(drop=True)
    assert by_item_id(by_position) is by_position
    found = CollaborativeClassifier(random_state=0).fit(pairs, frame).corrected_labels()
    assert found.set_index("row")["given"].to_dict() == labels.to_dict()


def test_ids_that_are_spelt_in_two_ways_are_told():
    pairs = pd.DataFrame({"user": [0, 1, 1], "item": ["ant-1", "bee", "fly"]})
    found = cautions(pairs, {"Ant-1 ": "x", "bee": "y", "BEE": "y", "moth": "x"})
    assert found == [
        "labels: 1 item has no interactions as 'Ant-1 ' is spelt, while interactions have 'ant-1' "
        "without a label; spell ids in one way where these are one item"
    ]
    assert cautions(pairs, {"ant-1": "x", "bee": "y", "moth": "x"}) == []
    assert cautions(pairs, pd.Series(["x", "y"], ["ANT-1", "bee"]))
    assert cautions(pairs, ["x", "y", "x"]) == []


def test_a_table_of_labels_is_a_series_by_item():
    labels = pd.DataFrame({"film": ["a", "b"], "genre": [0, 1]})
    pairs = pd.DataFrame({"user": [0, 1], "item": ["a", "b"]})
    told = r"labels: expected one label an item; .* as labels.set_index\('film'\)\['genre'\]"
    with pytest.raises(DataError, match=told):
        CollaborativeClassifier().fit(pairs, labels)


def test_findings_of_graphs_are_about_edges():
    found = Finding("a", "Do features help?", 0.0, 1.0, 0.0, 0.1, False, "the features' part", ())
    found = about_edges(found)
    assert (found.question, found.sentence) == ("Do edges help?", "the edges' part")


def test_a_matrix_that_lies_on_its_side_is_told():
    edges = sparse.csr_array(np.random.default_rng(0).random((60, 20)) < 0.2).astype(float)
    with pytest.raises(DataError, match=r"labels: has 60 rows where there are 20 items, the colum"):
        CollaborativeClassifier().fit(edges, np.repeat(["ant", "bee"], 30))


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
@pytest.mark.parametrize("first", ["u0", 1], ids=["strings", "from 1 on"])
def test_rows_of_a_matrix_of_new_items_are_the_users_of_the_fit(first):
    rng = np.random.default_rng(0)
    truth, likes = rng.integers(0, 2, 60), rng.integers(0, 2, 9)
    ids = np.array([f"u{i}" for i in range(9)]) if first == "u0" else np.arange(9) + first
    visits = sparse.csr_array(rng.poisson(np.where(likes[:, None] == truth, 0.9, 0.1)))
    user, item = np.repeat(visits.nonzero(), visits.data, axis=1)
    pairs = pd.DataFrame({"user": ids[user], "item": item})
    model = CollaborativeClassifier.published(2).fit(pairs, pd.Series(truth))
    np.testing.assert_array_equal(model.users_, ids)
    new = np.arange(8)
    of_pairs = model.predict_proba(pairs[pairs["item"].isin(new)])
    has = np.unique(pairs["item"][pairs["item"].isin(new)])
    matrix = visits[:, new]
    np.testing.assert_allclose(model.predict_proba(matrix)[has], of_pairs)
    beside = EdgesOf(model.users_, "count").edges(matrix, new)
    np.testing.assert_array_equal(beside.toarray(), matrix.toarray().T)
    for wrong in (matrix[:-1], matrix.T, sparse.vstack([matrix, matrix[:1]])):
        with pytest.raises(DataError, match=r"interactions: the matrix has .* expected 9, one a u"):
            model.predict(wrong)


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_a_probability_is_not_below_zero_by_rounding(monkeypatch):
    model = CollaborativeClassifier.published(3).fit(EDGES, LABELS)
    resp = np.eye(3)[LABELS] * (1 + 2 * np.finfo(float).eps)
    monkeypatch.setattr(type(model), "label_posterior_", resp)
    table = model.corrected_labels()
    assert (table["p_wrong"] == 0).all()
    assert (table["p_suggested"] == 1).all()


def test_a_joint_model_without_edges_names_the_default():
    rng = np.random.default_rng(0)
    edges, labels = sparse.csr_array(rng.poisson(0.1, (20, 90))), rng.integers(0, 3, 90)
    model = CollaborativeClassifier(training="joint", alpha=1.0, random_state=0)
    words = "^the joint model of the graph does not predict .* the default, with training, alpha"
    with pytest.warns(IdentifiabilityWarning, match=words):
        model.fit(edges, labels)
    assert not share_limits(model.fitted_).estimated


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_a_joint_model_whose_edges_count_estimates_the_share_of_wrong_labels():
    model = CollaborativeClassifier.published(3).fit(EDGES, LABELS)
    assert share_limits(model.fitted_).estimated
    assert "not estimated" not in model.verdict().sentence


@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
@pytest.mark.parametrize("none", ["", "N/A"])
def test_warnings_of_labels_have_the_argument_s_name(none):
    """A mapping by id has no marker of its own: words for none were classes, silently."""
    rng = np.random.default_rng(0)
    labels = pd.Series({f"i{i}": "ab"[i % 2] for i in range(40)})
    pairs = [(f"{label}{rng.integers(5)}", item) for item, label in labels.items() for _ in "1234"]
    labels.iloc[::8] = none
    model = CollaborativeClassifier(random_state=0)
    with pytest.warns(NbmodelsWarning, match=f"labels: {none!r} is taken for a class"):
        model.fit(pd.DataFrame(pairs, columns=["user", "item"]), labels)
