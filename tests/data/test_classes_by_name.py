"""Numbers of classes in series and data frames go by the classes' names, not by their place."""

import numpy as np
import pandas as pd
import pytest

from nbmodels import (
    DataError,
    DawidSkene,
    JointNB,
    NbmodelsWarning,
    NoisyGaussianNB,
    PartialLabelNB,
    PositiveUnlabelledNB,
)
from nbmodels.data.column_types import measured, measurements
from nbmodels.data.features import Block
from nbmodels.data.labels import Classes, LabelColumn, check_marker
from nbmodels.data.noisy_labels import read_labels
from nbmodels.data.possible_labels import allowed_classes
from nbmodels.data.validation import check_weights
from nbmodels.datasets import corrupt
from nbmodels.estimators.base import LatentClassModel
from nbmodels.metrics import noisy_test_scores

NAMES = np.array(["ant", "bee"])
CLASSES = Classes(NAMES)
NOISE = np.array([[0.9, 0.3], [0.1, 0.7]])
TURNED = pd.DataFrame(NOISE[::-1, ::-1], NAMES[::-1], NAMES[::-1])
RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 2, 200)
GIVEN = NAMES[corrupt(TRUTH, NOISE, RNG)]
X = RNG.normal(4 * TRUTH[:, None], size=(200, 2))


@pytest.mark.parametrize(
    ("values", "axes", "found"),
    [
        (pd.Series([0.7, 0.3], index=["bee", "ant"]), (0,), [0.3, 0.7]),
        (pd.Series([0.7, 0.3]), (0,), [0.7, 0.3]),
        ([0.7, 0.3], (0,), [0.7, 0.3]),
        (TURNED, (0, 1), NOISE),
        (pd.DataFrame([[0.1, 0.9]] * 3, columns=["bee", "ant"]), (1,), [[0.9, 0.1]] * 3),
    ],
)
def test_numbers_go_by_the_names_of_classes(values, axes, found):
    assert np.array_equal(CLASSES.in_order("shares", values, axes), found)


def test_names_of_draws_are_text():
    found = Classes(["1", "2"]).in_order("shares", pd.Series([0.7, 0.3], index=[2, 1]))
    assert found.tolist() == [0.3, 0.7]


@pytest.mark.parametrize("names", [["ant", "cow"], ["ant", "ant"], ["ant", "bee", "cow"]])
def test_other_names_than_those_of_the_classes_are_refused(names):
    with pytest.raises(
        DataError, match=r"^shares: is named ant, .* where the classes are ant, bee"
    ):
        CLASSES.in_order("shares", pd.Series(1.0, index=names))


def test_parameters_go_by_the_names_of_classes():
    shares = pd.Series(NAMES[TRUTH]).value_counts(normalize=True)  # the most common class first
    found = LatentClassModel._by_class({"class_prior": shares, "noise": TURNED, "C": 1}, CLASSES)
    assert found["class_prior"].tolist() == shares[NAMES].tolist()
    assert np.array_equal(found["noise"], NOISE)
    model = NoisyGaussianNB.published(class_prior=shares, noise=TURNED, random_state=0)
    model.fit(X, GIVEN)
    assert np.allclose(model.class_prior_, shares[NAMES])
    assert np.allclose(model.noise_matrix_, NOISE)
    with pytest.raises(DataError, match=r"^noise: is named a, b where"):
        JointNB({"x": NoisyGaussianNB()}, noise=TURNED.set_axis(["a", "b"])).fit(
            {"x": X}, NAMES[TRUTH]
        )


def test_tables_of_what_is_possible_go_by_the_names_of_classes():
    table = pd.DataFrame({"bee": TRUTH == 1, "ant": TRUTH == 0})
    assert (allowed_classes(table, 200, CLASSES).argmax(1) == TRUTH).all()
    model = PartialLabelNB(classes=NAMES)
    classes, possible, _ = model._read_partial(table, ~table[["ant", "bee"]], 200)
    assert classes.names.tolist() == ["ant", "bee"]
    assert (possible == np.eye(2, dtype=bool)[TRUTH]).all()
    with pytest.raises(DataError, match=r"^y: has 2 columns for 3 classes"):
        PartialLabelNB(classes=["ant", "bee", "cow"])._read_partial(table, None, 200)


def test_scores_of_a_test_set_go_by_names():
    given, right = pd.Series(GIVEN), NAMES[TRUTH]
    one = noisy_test_scores(given, right, NOISE, scores=np.eye(2)[TRUTH])
    scores = pd.DataFrame(np.eye(2)[1 - TRUTH], columns=["bee", "ant"])
    other = noisy_test_scores(given, right, TURNED, scores=scores)
    assert one.table().equals(other.table())
    named = given.set_axis(np.arange(200)[::-1] + 5)
    for name, values in {"y_pred": named[::-1], "trusted": named[::-1]}.items():
        with pytest.raises(DataError, match=f"^{name}: its index has the rows of y_given in ano"):
            noisy_test_scores(named, **{"y_pred": right, name: values}, noise=NOISE)
    some_rows = pd.Series(right, index=named.index)[:20]
    some = noisy_test_scores(named, right, NOISE, trusted=some_rows)
    same = noisy_test_scores(given, right, NOISE, trusted={i: right[i] for i in range(20)})
    assert some.independence.sentence == same.independence.sentence


def test_votes_that_replace_others_and_labels_beside_votes_are_told():
    votes = pd.DataFrame({"task": np.arange(60) // 3, "worker": np.arange(60) % 3})
    votes["label"] = np.array(["ant", "bee"])[votes["task"] % 2]
    model = DawidSkene(random_state=0)
    few = pd.concat([votes, votes[:3]])
    model.fit(few)  # no warning
    with pytest.warns(NbmodelsWarning, match=r"^votes: 60 of 120 are again of the same worker on"):
        model.fit(pd.concat([votes, votes]))
    with pytest.warns(NbmodelsWarning, match=r"^y: is not used; .* given as trusted="):
        model.fit(votes, np.zeros(20))


def test_a_model_is_no_noise_matrix():
    with pytest.raises(DataError, match=r"^noise: a model is none; give its posterior\(\), or its"):
        noisy_test_scores(GIVEN, NAMES[TRUTH], NoisyGaussianNB())


def test_scores_of_a_test_set_take_any_random_state():
    about = GIVEN, NAMES[TRUTH], NOISE
    state = np.random.RandomState(0)
    for one in (state, None):
        assert noisy_test_scores(*about, random_state=one).accuracy.value > 0.95
    with pytest.raises(DataError, match=r"^random_state: expected None, a whole number, 0 or more"):
        noisy_test_scores(*about, random_state=-1)


def test_a_class_that_seems_to_be_a_missing_label_is_told():
    with pytest.warns(NbmodelsWarning, match=r"^y: -1 is taken for a class; .* missing_label=-1"):
        check_marker(np.array([-1, 0, 1]), None)
    for names, marker in (([-1, 1], None), ([-2, -1, 0], None), ([0, 1], -1), (["a", "b"], -1)):
        check_marker(np.array(names), marker)
    with pytest.raises(DataError, match=r"^missing_label: '-1' \(str\) .* label -1 \(int\)"):
        check_marker(np.array([-1, 0, 1]), "-1")
    read_labels(np.array([-1, 0, 1]), 3, reader="one", declared=[-1, 0, 1])  # no warning
    check_marker(np.array([False, True]), None)
    for names in (["?", "ant", "bee"], ["", "ant"], ["N/A", "ant"], ["-1", "0", "1"]):
        with pytest.warns(NbmodelsWarning, match=r"^y: .* is taken for a class; .* missing_label="):
            check_marker(np.array(names, object), None)
    check_marker(np.array(["none", "unknown", "other"]), None)  # which may be classes


def test_a_class_that_one_label_names_is_told():
    y = np.repeat(["ant", "bee"], 30).astype(object)
    y[7] = "bea"
    with pytest.warns(
        NbmodelsWarning, match=r"^y: 'bea' occurs once in 60 labels, in row 7, and is"
    ):
        read_labels(y, 60, reader="one")
    read_labels(y, 60, reader="one", declared=["ant", "bea", "bee"])  # no warning
    read_labels(y[:12], 12, reader="one")  # of a handful of labels each is rare


def test_votes_that_seem_to_be_missing_are_told():
    votes = {
        "task": np.repeat([0, 1, 2], 3),
        "worker": [0, 1, 2] * 3,
        "label": [0, 0, 0, 1, -1, 1, 2, 2, 2],
    }
    with pytest.warns(NbmodelsWarning, match=r"^votes: -1 is taken for a class; .* such rows out"):
        DawidSkene(random_state=0).fit(votes)
    column = pd.Series(["?", "ant", "bee"] * 9)
    told = LabelColumn.of(column, "kind").odd_names()
    assert told == ["'?' is taken for a class; where there is no label, leave the cell empty"]


def test_weights_that_are_shares_are_told():
    with pytest.warns(NbmodelsWarning, match=r"^sample_weight: weights sum to 1, .* multiplied"):
        check_weights(np.full(50, 1 / 50), 50)
    check_weights(np.arange(3.0), 3)  # no warning
    with pytest.warns(NbmodelsWarning, match=r"^sample_weight: .* divided by their mean"):
        check_weights(np.full(50, 250.0), 50)


def test_symbols_that_hardly_repeat_are_told():
    symbols = np.arange(200)
    block = Block(np.c_[symbols % 5, symbols].astype(object), None, ("letter", "size"))
    assert measurements(block).startswith("X: column 'size' has 200 different values in 200 rows")
    assert measurements(block.rows(symbols < 20)) == ""
    lengths = Block((symbols % 30 / 2).astype(object)[:, None], None, ("length",))
    assert measurements(lengths) == ""
    assert measured(lengths)[0].message.startswith("X: column 'length' has 30 different values")
    assert measured(Block(np.round(lengths.x.astype(float)).astype(object), None, ("n",))) == ()
    assert measured(lengths.rows(symbols % 30 < 20)) == ()
    with pytest.warns(NbmodelsWarning, match=r"column '0' has 200 different values"):
        PositiveUnlabelledNB(positive="bee", estimator="moments").fit(
            X, np.where(symbols % 3, "bee", "unknown")
        )


def test_labels_beside_positive_ones_are_one():
    y = np.array(["bee", "unknown", "other"])[np.arange(200) % 3]
    with pytest.raises(DataError, match=r"Got 3 classes; give all items that are not positive one"):
        PositiveUnlabelledNB(positive="bee").fit(X.round(), y)


def test_shares_may_be_a_mapping_by_name():
    one, other = (
        NoisyGaussianNB.published(class_prior=shares).fit(X, GIVEN)
        for shares in ({"bee": 0.45, "ant": 0.55}, [0.55, 0.45])
    )
    np.testing.assert_array_equal(one.class_prior_, [0.55, 0.45])
    np.testing.assert_array_equal(one.label_posterior_, other.label_posterior_)
    with pytest.raises(
        DataError, match=r"^class_prior: is named ant where the classes are ant, bee"
    ):
        NoisyGaussianNB.published(class_prior={"ant": 1.0}).fit(X, GIVEN)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0, 1, 0, 0], ", of 0, 1: such as positive=1"),
        ([True, False, False, False], ", of False, True: such as positive=True"),
        (["spam", "?", "?", np.nan], ", of '?', 'spam': such as positive='spam'"),
        ([[1], [2], None, [3]], ""),
    ],
)
def test_labels_that_may_be_positive_are_named(y, words):
    with pytest.raises(DataError) as error:
        PositiveUnlabelledNB().fit(X[:4], np.array(y, object))
    assert str(error.value) == f"positive: name the label of y that marks positive items{words}"
