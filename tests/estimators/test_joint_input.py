"""Input of a joint model: bad data name their source, and classes come from any labels."""

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from nbmodels import (
    CollaborativeClassifier,
    DataError,
    DawidSkene,
    JointNB,
    NbmodelsWarning,
    NoisyGaussianNB,
    NoisyMultinomialNB,
)
from nbmodels.estimators.joint_input import item_ids

NAMES = np.array(["ant", "bee", "cat"])
SOURCES = {
    "numbers": NoisyGaussianNB.published(),
    "words": NoisyMultinomialNB.published(),
    "crowd": DawidSkene(),
}
BAD = {
    "no such source": ({"colour": [1]}, None, {}, "there is no source 'colour'"),
    "length": ({"numbers": np.ones((3, 2)), "words": np.ones((4, 2))}, None, {}, "words: has 4 ro"),
    "y": ({"numbers": np.ones((3, 2))}, ["a", "b"], {}, "y: has 2 rows where numbers has 3"),
    "no label": ({"numbers": np.eye(3)}, None, {"classes": NAMES}, "no label names the class"),
    "cell": ({"numbers": [[np.nan], [1.0]]}, ["a", "b"], {}, "numbers: X: row 0"),
    "vote": (
        {"crowd": pd.DataFrame({"task": [7], "worker": ["w"], "label": ["ant"]})},
        None,
        {"classes": NAMES, "items": [1, 2]},
        "crowd: votes: row 0 has the task 7, which is unknown",
    ),
    "items": ({"numbers": np.eye(3)}, list("aba"), {"items": [1, 1, 2]}, "an id occurs twice"),
    "all excluded": (
        {"numbers": np.eye(3)},
        ["ant", "bee", "cat"],
        {"possible": [None, set(), None]},
        "row 1 excludes every class",
    ),
}


def test_a_class_that_sets_may_name_is_not_warned_of():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    x, possible = rng.normal(3.0 * y[:, None], size=(60, 2)), [{NAMES[k], "cat"} for k in y]
    model = JointNB({"numbers": NoisyGaussianNB.published()}, classes=NAMES)
    model.fit({"numbers": x}, NAMES[y], possible=possible)  # warnings are errors
    with pytest.warns(NbmodelsWarning, match="^classes: no label names 'cat'"):
        model.fit({"numbers": x}, NAMES[y])


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_its_source(case):
    evidence, y, options, words = BAD[case]
    rest = {name: value for name, value in options.items() if name != "classes"}
    with pytest.raises(DataError, match=words):
        JointNB(SOURCES, classes=options.get("classes")).fit(evidence, y, **rest)


def test_a_source_must_be_one_and_names_must_be_free():
    with pytest.raises(DataError, match="is a name of the model's own"):
        JointNB({"labels": NoisyGaussianNB()}).fit({"labels": np.eye(3)}, [0, 1, 2])
    with pytest.raises(DataError, match="cannot be a source"):
        JointNB({"x": object()}).fit({"x": np.eye(3)}, [0, 1, 2])
    assert "sources" in JointNB({"x": NoisyGaussianNB()}).get_params()
    with pytest.raises(DataError, match="x: GaussianNB cannot be a source"):
        JointNB({"x": GaussianNB()}).fit({"x": np.eye(3)}, [0, 1, 2])


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_names_of_classes_come_from_checked_labels_and_from_sets():
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=60)
    x = rng.normal(0, 3.0, (3, 5))[true] + rng.normal(size=(60, 5))
    name = NAMES[true]
    sets = [{here, NAMES[(c + 1) % 3]} for here, c in zip(name, true, strict=True)]
    model = JointNB({"x": NoisyGaussianNB()}).fit({"x": x}, possible=sets)
    assert model.classes_.tolist() == NAMES.tolist()
    model.fit({"x": x}, trusted=dict(enumerate(name[:30])))
    assert model.classes_.tolist() == NAMES.tolist()
    sets[4] = {"ant", "bee", "cat"} - {name[4]}
    with pytest.raises(DataError, match=f"possible: row 4 excludes {str(name[4])!r}, which trust"):
        model.fit({"x": x}, name, trusted={4: name[4]}, possible=sets)


def test_labels_by_id_name_the_items_of_votes_and_interactions():
    crowd, users = DawidSkene(), CollaborativeClassifier()
    sources = {"crowd": crowd, "users": users}
    X = {"crowd": pd.DataFrame(), "users": [("u", "i2"), ("u", "i1")]}
    y = pd.Series(["ant", "bee", "cat"], index=["i2", "i0", "i1"])
    assert item_ids(sources, X, {"y": y}, None).tolist() == ["i2", "i0", "i1"]
    assert item_ids(sources, X, {"y": y}, ["a", "b", "c"]).tolist() == ["a", "b", "c"]
    for by_position in (y.to_numpy(), y.reset_index(drop=True), y.set_axis(["i", "i", "j"])):
        assert item_ids(sources, X, {"y": by_position}, None).tolist() == [0, 1, 2]
    weights = pd.Series(1.0, index=y.index[::-1])
    with pytest.raises(DataError, match=r"^sample_weight: its index has the rows of y in another"):
        item_ids(sources, X, {"y": y, "sample_weight": weights}, None)
    # rows of a table without names are y's by their position
    sources["numbers"], X["numbers"] = NoisyGaussianNB(), np.eye(3)
    assert item_ids(sources, X, {"y": y}, None).tolist() == ["i2", "i0", "i1"]
    X["numbers"] = pd.DataFrame(np.eye(3))
    assert item_ids(sources, X, {"y": y}, None).tolist() == [0, 1, 2]
