"""Columns that were made from the labels, with which every label looks right."""

import numpy as np
import pandas as pd
import pytest
from marks import slow
from sklearn.linear_model import LogisticRegression

from nbmodels import (
    AutoNoisyClassifier,
    NbmodelsWarning,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
    NoisyMixedNB,
)
from nbmodels.data.features import Block
from nbmodels.data.label_copies import label_copies
from nbmodels.data.user_table import like_votes

CODES = np.random.default_rng(0).integers(0, 3, 120)
NAMES = np.array(["ant", "bee", "cow"])


def told(column, codes=CODES, missing=None):
    cells = np.c_[np.arange(len(codes)) % 7, column].astype(object)
    hidden = None if missing is None else np.c_[np.zeros(len(codes), bool), missing]
    return [one.message for one in label_copies(Block(cells, hidden, ("day", "code")), codes)]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (NAMES[CODES], "column 'code' has 3 values"),
        (CODES * 10.0, "column 'code' has 3 values"),
        (2 * CODES + np.arange(120) % 2, "column 'code' has 6 values"),  # a finer label
    ],
)
def test_codes_of_the_labels_are_told(column, said):
    assert said in told(column)[0]
    assert said in told(column, np.where(np.arange(120) % 3, CODES, -1))[0]
    both = np.arange(120) % 2 == 0
    assert told(column, np.where(both, CODES, -1), missing=~both)  # where there is a label, all
    hidden = np.arange(120) < 30
    assert said in told(np.where(hidden, None, column), missing=hidden)[0]


def test_rows_may_be_sorted_by_their_labels():
    codes = np.repeat([0, 1, 2], 400)
    assert "column 'code' has 3 values" in told(NAMES[codes], codes)[0]


def test_columns_that_are_none_stay_silent():
    wrong = CODES.copy()
    wrong[-1] = (wrong[-1] + 1) % 3
    assert told(CODES, wrong) == []  # one label is not that of its value
    assert told(CODES, np.zeros(120, int)) == []
    assert told(np.arange(120)) == []
    assert told(np.arange(120) // 4, np.arange(120) // 4 % 3) == []  # few rows a value
    assert told(np.where(CODES == 0, 1, 0)) == []  # it tells one class alone
    mostly = np.arange(120) > 40
    assert told(CODES, missing=mostly) == []


def test_columns_of_votes_are_told():
    rng = np.random.default_rng(1)
    wide = pd.DataFrame(NAMES[rng.integers(0, 3, (60, 3))], columns=["eva", "jan", "tom"])
    wide["size"] = rng.normal(size=60)
    assert like_votes(wide, [*wide], NAMES).startswith("'eva', 'jan', 'tom' have the values of")
    assert like_votes(wide, ["eva", "size"], NAMES) == ""
    assert like_votes(wide, [*wide], ["ant", "bee"]) == ""
    stars = pd.DataFrame(rng.integers(1, 4, (60, 2)), columns=["eva", "jan"]).replace(1, np.nan)
    assert "'eva', 'jan' have" in like_votes(stars, [*stars], ["2", "3"])


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
@pytest.mark.parametrize(
    "model",
    [
        NoisyMixedNB.published(random_state=0),
        NoisyGaussianNB.published(random_state=0),
        slow(NoisyLogisticRegression(random_state=0)),
        NoisyLabelClassifier(LogisticRegression(), rounds=0, random_state=0),
        AutoNoisyClassifier(emission="gaussian", random_state=0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_estimators_of_tables_tell_of_them(model):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"size": rng.normal(CODES), "weight": rng.normal(CODES), "code": CODES})
    with pytest.warns(NbmodelsWarning, match="'code' has 3 values, of which each has one label"):
        model.fit(X, NAMES[CODES])
