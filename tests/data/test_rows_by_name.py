"""Rows that have names: tables in different orders are refused, and ids are those of the index."""

import numpy as np
import pandas as pd
import pytest
from marks import slow
from sklearn.linear_model import LogisticRegression

from nbmodels import (
    AutoNoisyClassifier,
    ClassConditionalNB,
    CollaborativeClassifier,
    DataError,
    DawidSkene,
    JointNB,
    NbmodelsWarning,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
    NoisyMultinomialNB,
    NoisyNeighbours,
    PartialLabelNB,
    PositiveUnlabelledNB,
    UnlabelledNB,
    compare,
)
from nbmodels.data.labels import Classes, LabelColumn, names_excluded, names_several, spelt_alike
from nbmodels.data.noisy_labels import by_item, read_labels
from nbmodels.data.user_item_graph import labelled_items, of_items, rows_of_items
from nbmodels.data.validation import check_orders

N = 60
K = np.repeat([0, 1], N // 2)
NAMES = np.array(["ant", "bee"])
IDS = np.array([f"leaf {i}" for i in range(N)])
X = pd.DataFrame(
    np.random.default_rng(0).normal(4 * K[:, None], size=(N, 2)), columns=["a", "b"], index=IDS
)
VOTES = pd.DataFrame(
    {"task": np.repeat(IDS, 3), "worker": ["u", "v", "w"] * N, "label": np.repeat(NAMES[K], 3)}
)


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_labels_of_the_same_rows_in_another_order_are_refused():
    y = pd.Series(NAMES[K], index=IDS)
    with pytest.raises(DataError, match=r"^y: its index has the rows of X in another order"):
        NoisyGaussianNB().fit(X, y[::-1])
    with pytest.raises(DataError, match=r"^y: its index has the rows of a in another order"):
        JointNB({"a": NoisyGaussianNB()}).fit({"a": X}, y[::-1])
    # rows that are only counted are taken as they come
    NoisyGaussianNB.published(random_state=0).fit(X, y.reset_index(drop=True))


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (NoisyGaussianNB(), ("sample_weight", "trusted", "groups")),
        (NoisyLogisticRegression(), ("sample_weight", "trusted", "groups")),
        (NoisyLabelClassifier(LogisticRegression()), ("sample_weight", "trusted", "groups")),
        (NoisyNeighbours(), ("sample_weight", "trusted", "groups")),
        (AutoNoisyClassifier(), ("y", "sample_weight", "trusted", "groups")),
        (ClassConditionalNB(), ("y", "sample_weight", "trusted")),
        (PositiveUnlabelledNB(positive="bee"), ("y", "sample_weight")),
        (UnlabelledNB(), ("sample_weight",)),
        (PartialLabelNB(), ("y", "sample_weight", "excluded")),
    ],
    ids=lambda one: type(one).__name__,
)
def test_no_argument_may_have_the_rows_in_another_order(model, names):
    # which would give each row what belongs to another one
    values = {"y": NAMES[K], "trusted": NAMES[K], "excluded": NAMES[1 - K]}
    values |= {"sample_weight": 1.0 + K, "groups": np.arange(N)}
    for name in names:
        wrong = pd.Series(values[name], index=IDS)[::-1]
        with pytest.raises(DataError, match=rf"^{name}: its index has the rows of X in another"):
            model.fit(X, **{"y": NAMES[K], name: wrong})


def test_scores_and_comparisons_take_no_labels_in_another_order():
    y = pd.Series(NAMES[K], index=IDS)
    model = NoisyGaussianNB.published(random_state=0).fit(X, y)
    assert model.score(X, y) == model.score(X, NAMES[K]) == 1
    refused = pytest.raises(DataError, match=r"^y: its index has the rows of X in another order")
    with refused:
        model.score(X, y[::-1])
    with refused:
        compare([model], X, y[::-1])


@pytest.mark.parametrize("shuffled", [slow("X"), "y"])
def test_rows_that_are_counted_in_another_order_are_told(shuffled):
    # which was shuffled, and which numbered anew, nobody can know
    both = {"X": X.reset_index(drop=True), "y": pd.Series(NAMES[K])}
    both[shuffled] = both[shuffled][::-1]
    told = pytest.warns(NbmodelsWarning, match=r"^y: its index has the numbers of the rows of X in")
    with told:
        check_orders(both["X"], y=both["y"])
    with pytest.warns(NbmodelsWarning, match=r"^y: .* by number, give y.loc\[a.index\], and if by"):
        model = JointNB({"a": NoisyGaussianNB()}, random_state=0).fit({"a": both["X"]}, both["y"])
    rows = both["X"].index
    assert model.corrected_labels()["row"].tolist() == rows.tolist()
    check_orders(both["X"], y=pd.Series(NAMES[K], index=rows))
    check_orders(both["X"], y=pd.Series(NAMES[K], index=IDS))


def test_items_of_a_joint_model_are_named_by_all_arguments():
    model, y = JointNB({"a": NoisyGaussianNB()}), NAMES[K]
    with pytest.raises(DataError, match=r"^a: its index .* items in ano.*, as in a.loc\[items]"):
        model.fit({"a": X[::-1]}, y, items=IDS)
    for name in ("trusted", "possible", "sample_weight"):
        wrong = pd.Series(1.0 + K if name == "sample_weight" else y, index=IDS)[::-1]
        with pytest.raises(DataError, match=rf"^{name}: its index has the rows of a in another"):
            model.fit({"a": X}, y, **{name: wrong})
    with pytest.raises(DataError, match=r"^trusted: item 3 does not exist; there are 60 items, of"):
        model.fit({"a": X}, y, trusted={3: "ant"})
    assert by_item("trusted", {IDS[3]: "bee"}, IDS) == {3: "bee"}
    assert by_item("trusted", pd.Series(["bee"], index=[IDS[3]]), IDS) == {3: "bee"}


def test_some_rows_are_a_series_by_the_index():
    some = pd.Series(["bee", "ant"], index=[IDS[4], IDS[50]])
    read = read_labels(NAMES[K], N, reader="one", trusted=some, items=X.index)
    assert np.flatnonzero(read.trusted >= 0).tolist() == [4, 50]
    assert read.trusted[[4, 50]].tolist() == [1, 0]
    with pytest.raises(DataError, match=r"^trusted: its index has row 'leaf 4' twice"):
        NoisyGaussianNB().fit(X, NAMES[K], trusted=pd.concat([some, some]))
    with pytest.raises(DataError, match=r"^trusted: has 2 rows where X has 60"):
        NoisyGaussianNB().fit(X, NAMES[K], trusted=some.reset_index(drop=True))


def test_rows_whose_names_repeat_are_refused_in_another_order():
    twice = X.set_axis(np.repeat(IDS[::2], 2), axis=0)
    y = pd.Series(NAMES[K], index=twice.index)
    with pytest.raises(DataError, match=r"^y: its .* in another order; .* one order or give an"):
        NoisyGaussianNB().fit(twice, y[::-1])


def test_items_of_a_graph_are_named_by_all_arguments():
    pairs = pd.DataFrame({"user": np.arange(N) % 7, "item": IDS})
    y, model = pd.Series(NAMES[K], index=IDS), CollaborativeClassifier.published(2)
    weights = pd.Series(1.0 + np.arange(N), index=IDS)
    fitted = model.fit(pairs, dict(y[::-1]), weights[::-1], trusted=y[::-5])
    items = fitted.items_
    assert items.tolist() != IDS.tolist()  # sorted as texts
    assert (fitted._labels.given == y[items]).all()
    checked = fitted._labels.trusted
    assert set(items[checked >= 0]) == set(IDS[::-5])
    assert (NAMES[checked[checked >= 0]] == y[items[checked >= 0]]).all()
    assert (np.asarray(fitted.fitted_.data.weights)[:N] == weights[items]).all()
    prior = pd.DataFrame({"p": np.arange(N)}, index=IDS)
    assert rows_of_items(prior[::-1], items)["p"].tolist() == prior.loc[items, "p"].tolist()
    assert len(rows_of_items(prior[3:], items)) == N - 3  # which is refused by its shape
    with pytest.raises(DataError, match=r"^sample_weight: item 'leaf 0' has no weight"):
        model.fit(pairs, y, dict(weights[1:]))


def test_labels_of_other_items_than_those_of_the_graph_are_told():
    pairs = pd.DataFrame({"user": [0, 1], "item": ["a", "b"]})
    with pytest.raises(DataError, match=r"none of its 2 items, of which the first is 0, occurs in"):
        labelled_items(pairs, pd.Series(["ant", "bee"]))
    with pytest.raises(DataError, match=r"^labels: item 'a' is there twice"):
        of_items("labels", pd.Series([1, 2], index=["a", "a"]), np.array(["a", "b"]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_items_of_several_sources_are_those_of_the_index():
    sources = {"a": NoisyGaussianNB(), "crowd": DawidSkene()}
    mixed = X.sample(frac=1, random_state=0)
    model = JointNB(sources, random_state=0).fit({"a": mixed, "crowd": VOTES})
    found = model.corrected_labels().set_index("row")["suggested"]
    assert found.index.tolist() == mixed.index.tolist()
    assert (found[IDS] == NAMES[K]).all()


def test_excluded_labels_are_named_by_the_index():
    model = PartialLabelNB(features="gaussian", estimator="em").fit(
        X, None, excluded=dict(zip(IDS, NAMES[1 - K], strict=True))
    )
    assert (model.predict(X) == NAMES[K]).all()
    with pytest.raises(DataError, match=r"^excluded: row 3 does not exist; X has 60 rows, named"):
        PartialLabelNB(features="gaussian").fit(X, list(NAMES[K]), excluded={3: "ant"})


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["ant", "ant ", "bee"], "'ant' and 'ant ' are two classes"),
        (["Lost  parcel", "late", "lost parcel"], "'Lost  parcel' and 'lost parcel'"),
        (
            ["a", "A", "b", "B"],
            "'a' and 'A' are two classes, whose names differ in blanks or upper "
            "case alone (and 1 other pair)",
        ),
        (["ant", "anti", "bee"], ""),
        ([1, 2], ""),
    ],
)
def test_classes_that_are_spelt_alike_are_told(names, told):
    assert spelt_alike(names).startswith(told)
    assert bool(spelt_alike(names)) == bool(told)
    if told:
        with pytest.warns(NbmodelsWarning, match="merge them, or name all classes"):
            Classes.infer(np.array(names))
        assert len(Classes.infer(np.array(names), names)) == len(names)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["ant", "ant|bee", "bee"], "'ant|bee' is a class of its own beside 'ant', 'bee'"),
        (["ant", "ant, bee", "bee"], "'ant, bee' is"),
        (["1", "1/2", "2"], "'1/2' is"),
        (["ant", "ant or bee", "bee"], "'ant or bee' is"),
        (["ant", "ant/bee"], ""),
        (["AC/DC", "other"], ""),
        ([1, 2], ""),
    ],
)
def test_classes_that_list_others_are_told(names, told):
    assert names_several(names).startswith(told)
    assert bool(names_several(names)) == bool(told)
    if told:
        with pytest.warns(NbmodelsWarning, match=r"give PartialLabelNB sets of labels; else name"):
            Classes.infer(np.array(names))
        assert len(Classes.infer(np.array(names), names)) == len(names)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["ant", "bee", "not ant"], "'not ant' is a class of its own beside 'ant'"),
        (["!ant", "ant", "bee"], "'!ant' is"),
        (["not spam", "spam"], ""),
        (["ant", "bee", "not fly"], ""),
        (["no", "not sure", "yes"], ""),
        ([1, 2, 3], ""),
    ],
)
def test_classes_that_exclude_others_are_told(names, told):
    assert names_excluded(names).startswith(told)
    assert bool(names_excluded(names)) == bool(told)
    if told:
        with pytest.warns(NbmodelsWarning, match=r"give it as excluded= of PartialLabelNB"):
            Classes.infer(np.array(names))
        assert len(Classes.infer(np.array(names), names)) == len(names)


def test_dates_and_texts_are_named_in_messages():
    dated = X.assign(seen=pd.date_range("2024-01-01", periods=N))
    with pytest.raises(DataError, match="X: column 'seen' holds dates or times"):
        NoisyGaussianNB().fit(dated, NAMES[K])
    with pytest.raises(DataError, match="turn texts into counts first"):
        NoisyMultinomialNB().fit(["an ant", "a bee"] * 30, NAMES[K])
    with pytest.raises(DataError, match=r"(?s)^X: Expected 2D array.*first, as by Count") as found:
        AutoNoisyClassifier().fit(np.array(["an ant, which is long", "a bee"] * 30), NAMES[K])
    assert len(str(found.value)) < 800


def test_a_cell_of_text_is_named():
    texts = X.assign(b=pd.Series(NAMES[K], index=IDS).astype("string"))
    with pytest.raises(DataError, match=r"^X: row 0, column 'b' is 'ant'; expected a number"):
        NoisyGaussianNB().fit(texts, NAMES[K])


@pytest.mark.parametrize("kind", ["votes", "graph"])
def test_scores_of_tasks_and_items_go_by_their_ids(kind):
    rng = np.random.default_rng(0)
    n = 60
    ids = pd.Index([f"i{i}" for i in range(n)])  # sorted: i0, i1, i10, ...
    truth = pd.Series(np.where(rng.random(n) < 0.5, "a", "b"), ids)
    if kind == "votes":
        rows = [(i, w, truth[i] if rng.random() < 0.9 else "a") for i in ids for w in range(3)]
        model, X = (
            DawidSkene(random_state=0),
            pd.DataFrame(rows, columns=["task", "worker", "label"]),
        )
        model.fit(X)
    else:
        rows = [(f"{truth[i]}{rng.integers(9)}", i) for i in ids for _ in range(5)]
        model, X = (
            CollaborativeClassifier(random_state=0),
            pd.DataFrame(rows, columns=["user", "item"]),
        )
        model.fit(X, truth)
    order = np.sort(ids)
    right = np.mean(model.predict() == truth[order].to_numpy())
    assert right > 0.8
    for y in (truth, truth[::-1], truth.to_dict(), truth[order].to_numpy()):
        assert model.score(None, y) == pytest.approx(right)
    unnamed = truth[order].reset_index(drop=True)
    assert model.score(None, unnamed) == pytest.approx(right)
    some = truth.iloc[:20]
    by_id = pd.Series(model.predict(), order)
    assert model.score(None, some) == pytest.approx(np.mean(by_id[some.index] == some))
    heavy = pd.Series(1.0 * (by_id == truth[order]), order)
    assert model.score(None, truth, heavy[::-1]) == 1
    assert model.score(X, truth) > 0.8
    with pytest.raises(DataError, match="y: item 'i99' does not exist"):
        model.score(None, pd.concat([truth, pd.Series({"i99": "a"})]))
    with pytest.raises(DataError, match="y: 10 values for 60 predictions"):
        model.score(None, truth.to_numpy()[:10])
    with pytest.raises(DataError, match="y: no class is given"):
        model.score(None, {"i0": None})


def test_annotators_who_are_spelt_alike_are_told():
    rows = [(task, who, "ab"[task % 2]) for task in range(30) for who in ("ann", "Ann ", "bob")]
    votes = pd.DataFrame(rows, columns=["task", "worker", "label"])
    with pytest.warns(NbmodelsWarning, match="workers: 'Ann ' and 'ann' are two annotators"):
        DawidSkene(random_state=0).fit(votes)


def test_a_label_seen_once_is_taken_for_the_most_frequent_class_like_it():
    labels = ["PREMIUM"] * 2 + ["premium"] * 9 + ["basic"] * 9 + ["premum"]
    (found,) = LabelColumn.of(pd.Series(labels), "y").seen_once(())
    assert "'premum' occurs once among 21, in row 21: is it 'premium', misspelt?" in found


def test_tables_that_lost_different_rows_are_refused():
    y = pd.Series(NAMES[K], index=IDS)
    short, other = X.drop(index=IDS[7]), y.drop(index=IDS[40])
    match = (
        r"^y: rows .* by their position, and row 'leaf 8' is at position 8 here, at 7 in X; give"
    )
    with pytest.raises(DataError, match=match) as refused:
        NoisyGaussianNB().fit(short, other)
    assert "give both the same rows (they share 58)" in str(refused.value)
    # a row that has another name, and numbers of rows, are no rows at other places
    check_orders(short, y=other.iloc[:7])
    check_orders(X.rename(index={IDS[3]: "twig"}), y=y)
    check_orders(short.reset_index(drop=True), y=other)


@pytest.mark.parametrize(
    "model",
    [NoisyGaussianNB.published(random_state=0), slow(NoisyNeighbours())],
    ids=["table", "neighbours"],
)
def test_rows_without_names_have_those_of_the_labels(model):
    order = np.random.default_rng(1).permutation(N)
    y = pd.Series(NAMES[K], index=IDS)
    y.iloc[:10] = "bee"
    checked = pd.Series("ant", index=[IDS[0], IDS[3]])
    given = y.iloc[order]
    model.fit(X.to_numpy()[order], given, trusted=checked)
    found = model.corrected_labels().set_index("row")
    assert set(found.index) == set(IDS)
    assert (found["given"] == y[found.index]).all()
    assert (found.loc[checked.index, "suggested"] == "ant").all()
    rows = model._label_data.trusted
    assert given.index[rows >= 0].sort_values().tolist() == sorted(checked.index)


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_features_and_labels_of_a_source_are_one_table():
    y = pd.Series(NAMES[K], index=IDS)
    near = {"near": NoisyNeighbours()}
    with pytest.raises(DataError, match=r"^near: y: its index has the rows of near: X in another"):
        JointNB(near).fit({"near": (X, y[::-1])})
    with pytest.raises(DataError, match=r"^near: X: its index has the rows of a in another order"):
        JointNB({"a": NoisyGaussianNB(), **near}).fit({"a": X, "near": (X[::-1], y[::-1])})
    model = JointNB({**near, "votes": DawidSkene()}, random_state=0)
    model.fit({"near": (X, y), "votes": VOTES})
    assert model.items_.tolist() == IDS.tolist()
    with pytest.raises(DataError, match=r"^y: its index has the rows of near: X in another order"):
        model.score({"near": (X, y)}, y[::-1])
    with pytest.raises(DataError, match=r"^y: expected one class a row of X, not a mapping"):
        model.score({"near": (X, y)}, dict(y))
    assert model.score({"near": (X, y)}, y) == 1


def test_items_of_arrays_are_named_by_the_labels():
    y = pd.Series(NAMES[K], index=IDS)
    sources = {"a": NoisyGaussianNB(), "votes": DawidSkene()}
    model = JointNB(sources, random_state=0).fit({"a": X.to_numpy(), "votes": VOTES}, y)
    assert model.items_.tolist() == IDS.tolist()
