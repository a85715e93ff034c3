"""Unusable labels, weights and trusted labels are refused, with the row in the message."""

import re

import numpy as np
import pandas as pd
import pytest
from refusals import N, every_kind, features, forbid_fits, labels, make, refuses


@pytest.fixture(autouse=True)
def no_fit(monkeypatch):
    forbid_fits(monkeypatch)


def with_label(value):
    y = labels()
    y[6] = value
    return y


@every_kind
def test_no_labels(kind):
    refuses("^y: .*requires y to be passed", make(kind), features(kind), None)
    refuses("^y: expected one value a row", make(kind), features(kind), "a")
    refuses("^y: .*shape", make(kind), features(kind), np.full((N, 2), "a"))


@every_kind
@pytest.mark.parametrize("layout", [np.asarray, list, pd.Series])
@pytest.mark.parametrize("null", [None, np.nan, pd.NA])
def test_null_labels_without_a_marker(kind, layout, null):
    match = "^y: row 6 has no label .*missing_label"
    refuses(match, make(kind), features(kind), layout(with_label(null)))
    # a marker of another kind does not declare nulls
    refuses(match, make(kind, missing_label=""), features(kind), layout(with_label(null)))


@pytest.mark.parametrize("layout", [np.asarray, list, pd.Series])
@pytest.mark.parametrize("marker", [None, -1])
def test_labels_that_are_no_number(layout, marker):
    y = np.arange(N) % 3.0
    y[6] = np.nan
    estimator = make("gaussian", missing_label=marker)
    refuses("^y: row 6 has no label", estimator, features("gaussian"), layout(y))
    y[6] = np.inf
    refuses("^y: row 6 is infinity", estimator, features("gaussian"), layout(y))


@every_kind
@pytest.mark.parametrize("layout", [np.asarray, list, pd.Series])
@pytest.mark.parametrize("other", [3, 2.5, True, b"a"])
def test_labels_of_mixed_types(kind, layout, other):
    y = np.empty(N, object)
    y[:] = labels()
    y[6] = other
    match = f"^y: labels of mixed types .*{type(other).__name__}.*str"
    refuses(match, make(kind), features(kind), layout(y))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.linspace(0, 1, N), "Unknown label type: continuous, numbers with fractions such"),
        (labels().astype("S1"), "(Unknown label type|Support for labels)"),
    ],
)
def test_labels_of_a_wrong_type(y, words):
    refuses(f"^y: {words}", make("gaussian"), features("gaussian"), y)


@every_kind
def test_one_class(kind):
    refuses("^y: at least two classes.*only 'a' occurs", make(kind), features(kind), ["a"] * N)
    hidden = make(kind, missing_label="")
    refuses("^y: at least two .*no label occurs", hidden, features(kind), [""] * N)
    refuses("^y: at least two .*only 'a'", hidden, features(kind), ["", "a"] * (N // 2))
    refuses("^classes: at least two", make(kind, classes=["a"]), features(kind), ["a"] * N)
    refuses("^classes: at least two", make(kind, classes=[]), features(kind), labels())


@every_kind
def test_a_label_outside_the_classes(kind):
    estimator = make(kind, classes=["a", "b", "c"])
    match = r"^y: row 6 has the label 'd', which is not among the 3 classes \(a, b, c\)"
    refuses(match, estimator, features(kind), with_label("d"))
    refuses("^y: row 2 has the label 'c'", make(kind, classes=["a", "b"]), features(kind), labels())
    told = r"^trusted: row 3 has the label 'd'.* \(a, b, c\); name all classes with classes="
    refuses(told, make(kind), features(kind), labels(), trusted={3: "d"})


@pytest.mark.parametrize(
    ("classes", "match"),
    [
        (["a", "b", "c", "a"], "a name occurs twice"),
        (["a", "b", "c", None], "a name is null"),
        ([0.0, 1.0, np.nan], "a name is null"),
        ("abc", "expected one value"),
        ({"a", "b", "c"}, "expected one value"),
        ([["a", "b"], ["c", "d"]], "expected one value"),
        ([["a", "b"], ["c"]], "."),
    ],
)
def test_declared_classes(classes, match):
    refuses(f"^classes: {match}", make("gaussian", classes=classes), features("gaussian"), labels())


@every_kind
@pytest.mark.parametrize("n", [0, N - 1, N + 1])
def test_lengths_that_differ(kind, n):
    x, y = features(kind), labels()
    rows = f"has {n} rows where X has {N}$"
    refuses(f"^y: {rows}", make(kind), x, np.resize(y, n))
    refuses(f"^sample_weight: {rows}", make(kind), x, y, np.ones(n))
    refuses(f"^trusted: {rows}", make(kind), x, y, trusted=[None] * n)


@every_kind
@pytest.mark.parametrize("value", [-1.0, -1e-300, np.nan, np.inf, -np.inf, None])
def test_bad_weights(kind, value):
    weights = [1.0] * N
    weights[9] = value
    refuses(
        "^sample_weight: row 9 is .*finite, 0 or more",
        make(kind),
        features(kind),
        labels(),
        weights,
    )


@every_kind
def test_useless_weights(kind):
    x, y = features(kind), labels()
    refuses("^sample_weight: all weights are zero", make(kind), x, y, np.zeros(N))
    refuses("^sample_weight: all weights are zero", make(kind), x, y, 0)
    refuses("^sample_weight: .*1D array", make(kind), x, y, np.ones((N, 1)))
    refuses("^sample_weight: expected real numbers", make(kind), x, y, ["heavy"] * N)
    refuses("^sample_weight: expected real numbers", make(kind), x, y, np.ones(N) * 1j)
    huge = np.ones(N)
    huge[9] = 1e308
    refuses("^sample_weight: row 9 is too large", make(kind), x, y, huge)


@every_kind
def test_bad_trusted_labels(kind):
    x, y = features(kind), labels()
    outside = [None] * 9 + ["d"] + [None] * (N - 10)
    for trusted in (outside, pd.Series(outside), {0: "a", 9: "d"}):
        refuses("^trusted: row 9 has the label 'd'", make(kind), x, y, trusted=trusted)
    for row in (N, -1, "0", 1.5, None):
        match = f"^trusted: row {re.escape(repr(row))} does not exist; X has {N} rows"
        refuses(match, make(kind), x, y, trusted={0: "a", row: "b"})
    refuses("^trusted: expected one value", make(kind), x, y, trusted=3)
    refuses("^trusted: expected one value", make(kind), x, y, trusted=[["a", "b"]] * N)
