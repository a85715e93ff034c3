"""Rows that have names: tables in different orders are refused, and ids are those of the index."""

import numpy as np
import pandas as pd
import pytest

from nbmodels import (
    DataError,
    DawidSkene,
    JointNB,
    NbmodelsWarning,
    NoisyGaussianNB,
    NoisyMultinomialNB,
    PartialLabelNB,
)
from nbmodels.data.labels import Classes, spelt_alike

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
    model = PartialLabelNB(features="gaussian").fit(
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


def test_dates_and_texts_are_named_in_messages():
    dated = X.assign(seen=pd.date_range("2024-01-01", periods=N))
    with pytest.raises(DataError, match="X: column 'seen' holds dates or times"):
        NoisyGaussianNB().fit(dated, NAMES[K])
    with pytest.raises(DataError, match="turn texts into counts first"):
        NoisyMultinomialNB().fit(["an ant", "a bee"] * 30, NAMES[K])
