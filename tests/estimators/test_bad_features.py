"""Unusable features are refused, with argument, row and column in the message."""

import numpy as np
import pandas as pd
import pytest
from refusals import (
    CLASSES,
    FAMILIES,
    MIXED,
    SPARSE,
    AcceptedError,
    D,
    N,
    cell,
    every_kind,
    features,
    fitted,
    forbid_fits,
    labels,
    make,
    put,
    refuses,
)
from scipy import sparse
from sklearn.exceptions import NotFittedError

from nbmodels import (
    DataError,
    NoisyMixedNB,
)

NUMERIC = ["bernoulli", "multinomial", "gaussian"]


@pytest.fixture(autouse=True)
def no_fit(monkeypatch):
    forbid_fits(monkeypatch)


@every_kind
def test_the_valid_input_is_accepted(kind):
    with pytest.raises(AcceptedError):
        make(kind).fit(features(kind), labels())


@every_kind
def test_no_rows_or_no_columns(kind):
    x = features(kind)
    refuses("^X: Found array with 0 sample", make(kind), x[:0], labels()[:0])
    none = x.iloc[:, :0] if kind == "mixed" else x[:, :0]
    refuses("^X: (Found array with )?(0 feature|at least one)", make(kind), none, labels())


@every_kind
@pytest.mark.parametrize("bad", [None, 3.0, [1.0, 2.0], np.zeros((N, D, 2)), [[1.0, 2.0], [3.0]]])
def test_x_is_not_a_table(kind, bad):
    refuses("^X: ", make(kind), bad, labels())


@pytest.mark.parametrize("kind", ["categorical", "gaussian", "mixed"])
def test_sparse_x_where_dense_is_needed(kind):
    refuses("^X: Sparse data was passed", make(kind), sparse.csr_array(np.eye(N)), labels())


@every_kind
@pytest.mark.parametrize("value", [np.nan, None, np.inf, -np.inf])
@pytest.mark.parametrize("column", range(D))
def test_nan_and_infinity(kind, value, column):
    x = put(features(kind), 7, column, value)
    missing = value is None or np.isnan(value)
    what = "no NaN or null .declare.* missing_values" if missing else "neither NaN nor infinity"
    refuses(cell(x, 7, column) + f".*expected {what}", make(kind), x, labels())


@every_kind
def test_infinity_is_no_missing_value(kind):
    x = put(features(kind), 7, 1, np.inf)
    estimator = make(kind, missing_values=np.nan)
    refuses(cell(x, 7, 1) + "-?inf; expected neither", estimator, x, labels())


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_in_sparse_x(kind, value):
    x = sparse.csr_array(put(features(kind), 7, 1, value))
    refuses(cell(x, 7, 1) + ".*(missing_values|neither)", make(kind), x, labels())


@pytest.mark.parametrize(
    "layout", [np.asarray, sparse.csr_array, sparse.csc_matrix, np.ndarray.tolist]
)
def test_negative_counts(layout):
    x = put(features("multinomial"), 5, 2, -1)
    refuses(cell(x, 5, 2) + "-1.*a count, 0 or more", make("multinomial"), layout(x), labels())


@pytest.mark.parametrize(
    "layout", [np.asarray, sparse.csr_array, sparse.csc_matrix, np.ndarray.tolist]
)
@pytest.mark.parametrize("value", [2, -1, 0.5])
def test_features_that_are_not_binary(layout, value):
    x = put(features("bernoulli"), 5, 2, value)
    refuses(cell(x, 5, 2) + f"{value}.*0 or 1", make("bernoulli"), layout(x), labels())


def test_repeated_entries_of_sparse_x_are_summed_before_they_are_checked():
    indptr = np.r_[0, np.arange(2, N + 2)]
    columns = np.r_[1, 1, np.zeros(N - 1, int)]
    twice = sparse.csr_array((np.ones(N + 1), columns, indptr), shape=(N, D))
    refuses(cell(twice, 0, 1) + "2.0", make("bernoulli"), twice, labels())
    twice.data[:2] = 1, -3
    refuses(cell(twice, 0, 1) + "-2.0", make("multinomial"), twice, labels())
    assert twice.nnz == N + 1, "the caller's matrix was changed"


def test_mixed_columns_are_checked_by_their_family():
    x = features("mixed")
    refuses(cell(x, 3, 0) + "2.*0 or 1", make("mixed"), put(x, 3, 0, 2), labels())
    refuses(cell(x, 3, 1) + "-2.*a count", make("mixed"), put(x, 3, 1, -2), labels())
    for j in range(3):
        family = list(FAMILIES)[j]
        match = cell(x, 3, j) + f"'many'; the {family} family needs numbers"
        refuses(match, make("mixed"), put(x, 3, j, "many"), labels())


@pytest.mark.parametrize("kind", NUMERIC)
@pytest.mark.parametrize("layout", [np.asarray, pd.DataFrame, np.ndarray.tolist])
def test_text_in_numbers(kind, layout):
    x = put(features(kind), 4, 1, "many")
    refuses(cell(x, 4, 1) + "'many'; expected a number", make(kind), layout(x), labels())


@pytest.mark.parametrize("kind", NUMERIC)
def test_objects_in_numbers(kind):
    """scikit-learn's checks want a TypeError here."""
    x = put(features(kind), 4, 1, {})
    match = cell(x, 4, 1) + "{}; expected a number"
    refuses(match, make(kind), x, labels())
    with pytest.raises(TypeError, match=match):
        make(kind).fit(x, labels())


@pytest.mark.parametrize("row", [0, 4, N - 1])
@pytest.mark.parametrize("odd", [3, {}, [1]])
def test_categories_that_cannot_be_sorted(odd, row):
    x = features("categorical")
    x[row, 1] = odd
    what = "one type that can be sorted" if odd == 3 else "argument must be a string or a number"
    match = cell(x, row, 1) + f".*{what}"
    refuses(match, make("categorical"), x, labels())


@every_kind
@pytest.mark.parametrize("marker", [np.nan, -9])
def test_nothing_but_missing_cells(kind, marker):
    x = features(kind)
    width = x.shape[1]
    estimator = make(kind, missing_values=marker)
    row, column = x, x
    for j in range(width):
        row = put(row, 8, j, marker)
    for i in range(N):
        column = put(column, i, 1, marker)
    refuses("^X: row 8 has nothing but missing values", estimator, row, labels())
    name = MIXED[1] if kind == "mixed" else "1"
    refuses(f"^X: column '{name}' has nothing but missing", estimator, column, labels())


def test_nothing_but_missing_cells_in_sparse_x():
    x = sparse.csr_array(np.where(np.arange(N)[:, None] == 8, -9, features("multinomial")))
    estimator = make("multinomial", missing_values=-9)
    refuses("^X: row 8 has nothing but missing values", estimator, x, labels())
    x = sparse.csr_array(np.where(np.arange(D) == 1, -9, features("multinomial")))
    refuses("^X: column '1' has nothing but missing values", estimator, x, labels())


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e308])
def test_real_columns_whose_variance_is_no_number(scale):
    x = features("gaussian")
    x[:, 1] = np.where(np.arange(N) % 2, scale, -scale)
    refuses("^X: column '1' varies by .* rescale it", make("gaussian"), x, labels())


@every_kind
def test_names_of_columns(kind):
    x = pd.DataFrame(features(kind))
    twice = x.set_axis(["p"] * x.shape[1], axis=1)
    refuses("^X: Expected unique column names", make(kind), twice, labels())
    both = x.set_axis(["p", *range(1, x.shape[1])], axis=1)
    refuses("^X: Feature names are only supported if all", CLASSES[kind](), both, labels())


@pytest.mark.parametrize(
    ("families", "match"),
    [
        ("none", "expected 'auto' or a mapping"),
        ({"poisson": ["size"]}, "expected 'auto' or a mapping"),
        ({"gaussian": ["length"]}, "there is no column 'length'"),
        ({"gaussian": [9]}, "there is no column 9"),
        ({"gaussian": [None]}, "there is no column None"),
        ({"gaussian": [0.5]}, "there is no column 0.5"),
        ({"gaussian": [-1]}, "there is no column -1"),
        ({"gaussian": "size"}, "gaussian: expected a list of columns, got 'size'"),
        ({"gaussian": 2}, "gaussian: expected a list of columns, got 2"),
        ({"gaussian": ["size"], "multinomial": [2]}, "column 'size' is named twice"),
    ],
)
def test_families(families, match):
    estimator = NoisyMixedNB.published(families=families)
    refuses(f"^families: {match}", estimator, features("mixed"), labels())


READ_OUTS = [
    "classes_",
    "class_prior_",
    "class_log_prior_",
    "noise_matrix_",
    "inverse_noise_matrix_",
    "label_posterior_",
    "objective_",
    "objective_trace_",
    "n_iter_",
    "converged_",
]


@every_kind
def test_not_fitted(kind):
    estimator = make(kind)
    for method in ("predict", "predict_proba", "predict_log_proba"):
        with pytest.raises(NotFittedError):
            getattr(estimator, method)(features(kind))
    for name in READ_OUTS:
        assert not hasattr(estimator, name)
    for method in ("corrected_labels", "posterior"):
        with pytest.raises(NotFittedError):
            getattr(estimator, method)()


@pytest.mark.slow
@every_kind
def test_other_columns_at_predict(kind):
    x = features(kind)
    estimator = fitted(kind)
    fewer = x.iloc[:, :-1] if kind == "mixed" else x[:, :-1]
    match = "^X: (X has|The feature names should match)"
    with pytest.raises(DataError, match=match):
        estimator.predict(fewer)
    with pytest.raises(DataError, match=r"^X: Found array with 0 sample"):
        estimator.predict(x[:0])
    if kind == "mixed":
        with pytest.raises(DataError, match=match):
            estimator.predict(x[x.columns[::-1]])


@every_kind
def test_bad_cells_at_predict(kind):
    x = features(kind)
    estimator = fitted(kind)
    for j in range(D):
        for value in (np.nan, np.inf):
            bad = put(x, 7, j, value)
            with pytest.raises(DataError, match=cell(bad, 7, j) + ".*expected (no|neither) NaN"):
                estimator.predict_proba(bad)
        if kind != "categorical":
            bad = put(x, 7, j, "many")
            with pytest.raises(DataError, match=cell(bad, 7, j) + "'many'.*number"):
                estimator.predict_proba(bad)
    wrong = {"bernoulli": (0, 2), "multinomial": (0, -1), "mixed": (1, -1)}
    if kind in wrong:
        j, value = wrong[kind]
        bad = put(x, 7, j, value)
        with pytest.raises(DataError, match=cell(bad, 7, j) + str(value)):
            estimator.predict_proba(bad)


def test_posterior_refuses():
    with pytest.raises(
        DataError, match=r"^method: expected one of 'gibbs', 'vb', 'svi', 'nuts'; got 'hmc'"
    ):
        fitted("gaussian").posterior(method="hmc")
