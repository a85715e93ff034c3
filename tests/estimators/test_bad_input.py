"""Unusable input is refused, with argument and row in the message, before anything compiles."""

import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

import nbmodels.estimators.latent as latent
from nbmodels import (
    DataError,
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyMixedNB,
    NoisyMultinomialNB,
)

N, D = 12, 3
CLASSES = {
    "bernoulli": NoisyBernoulliNB.published,
    "multinomial": NoisyMultinomialNB.published,
    "categorical": NoisyCategoricalNB.published,
    "gaussian": NoisyGaussianNB.published,
    "mixed": NoisyMixedNB.published,
}
KINDS = list(CLASSES)
NUMERIC = ["bernoulli", "multinomial", "gaussian"]
SPARSE = ["bernoulli", "multinomial"]
FAMILIES = {"bernoulli": ["flag"], "multinomial": ["count"], "gaussian": ["size"]}
MIXED = ["flag", "count", "size", "word"]
really_fit = latent.fit_pooled


class AcceptedError(Exception):
    """The estimator was about to fit what it should have refused."""


@pytest.fixture(autouse=True)
def no_fit(monkeypatch):
    def accept(*args, **kwargs):
        raise AcceptedError

    monkeypatch.setattr(latent, "fit_pooled", accept)


def features(kind):
    """Clean features, each column with every value: a frame for the mixed estimator."""
    rng = np.random.default_rng(0)
    flags = np.arange(N * D).reshape(N, D) % 2
    counts = rng.integers(0, 5, (N, D))
    codes = rng.permuted(np.arange(N)[:, None] % [3, 3, 3], axis=0)
    words = np.array(["u", "v", "w"], object)[codes]
    reals = rng.normal(size=(N, D))
    if kind == "mixed":
        columns = flags[:, 0], counts[:, 0], reals[:, 0], words[:, 0]
        return pd.DataFrame(dict(zip(MIXED, columns, strict=True)))
    tables = {"bernoulli": flags, "multinomial": counts, "categorical": words, "gaussian": reals}
    return tables[kind].copy()


def labels():
    return np.array(["a", "b", "c"], object)[np.arange(N) % 3]


def make(kind, **parameters):
    fixed = {"families": FAMILIES} if kind == "mixed" else {}
    return CLASSES[kind](**(fixed | parameters))


@cache
def fitted(kind):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latent, "fit_pooled", really_fit)
        return make(kind).fit(features(kind), labels())


def put(x, i, j, value):
    """A copy with one cell changed, in a table that can hold it."""
    if isinstance(x, pd.DataFrame):
        columns = {name: x[name].astype(object) if k == j else x[name] for k, name in enumerate(x)}
        columns[x.columns[j]].iloc[i] = value
        out = pd.DataFrame(columns)
        return out if isinstance(value, str) else out.infer_objects()
    holds = x.dtype == object or isinstance(value, float | int)
    out = x.astype(object) if not holds else x.astype(x.dtype if x.dtype == object else float)
    out[i, j] = value
    return out


def refuses(match, estimator, *args, **kwargs):
    with pytest.raises(DataError, match=match):
        estimator.fit(*args, **kwargs)


def cell(x, i, j):
    """The beginning of a message about a cell."""
    name = x.columns[j] if isinstance(x, pd.DataFrame) else str(j)
    return f"^X: row {i}, column '{name}' is "


every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_the_valid_input_is_accepted(kind):
    with pytest.raises(AcceptedError):
        make(kind).fit(features(kind), labels())


# Features ---------------------------------------------------------------------------------------


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


# Labels -----------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("y", [np.linspace(0, 1, N), labels().astype("S1")])
def test_labels_of_a_wrong_type(y):
    refuses(
        "^y: (Unknown label type|Support for labels)", make("gaussian"), features("gaussian"), y
    )


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


# Lengths, weights, trusted labels -----------------------------------------------------------------


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


# Parameters -------------------------------------------------------------------------------------

ANY = ["noise_alpha", "noise_diagonal", "class_alpha", "weight", "tol"]
NO_NUMBER = [-1.0, np.nan, np.inf, "1", None, [1.0]]


@every_kind
@pytest.mark.parametrize("value", NO_NUMBER, ids=repr)
def test_numbers_out_of_range(kind, value):
    names = ANY if kind == "gaussian" else [*ANY, "alpha"]
    for name in names:
        match = f"^{name}: expected a finite number, 0 or more; got {re.escape(repr(value))}"
        refuses(match, make(kind, **{name: value}), features(kind), labels())


@every_kind
@pytest.mark.parametrize("value", [-1, 1.5, np.nan, "1", None], ids=repr)
def test_whole_numbers_out_of_range(kind, value):
    for name in ("max_iter", "n_restarts"):
        match = f"^{name}: expected a whole number"
        refuses(match, make(kind, **{name: value}), features(kind), labels())
    refuses("^max_iter: expected a whole", make(kind, max_iter=0), features(kind), labels())


@every_kind
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("method", "em"),
        ("method", None),
        ("precision", "half"),
        ("noise", "diagonal"),
        ("missing_label", ["", "?"]),
        ("missing_values", [np.nan, -1]),
    ],
)
def test_choices(kind, name, value):
    match = f"^{name}: expected .*got {re.escape(repr(value))}"
    refuses(match, make(kind, **{name: value}), features(kind), labels())


@pytest.mark.parametrize("value", ["0", np.nan, np.inf, [0.5]], ids=repr)
def test_binarize(value):
    estimator = make("bernoulli", binarize=value)
    refuses("^binarize: expected a finite number", estimator, features("bernoulli"), labels())


def test_sparse_x_and_what_is_not_stored():
    x = sparse.csr_array(features("bernoulli"))
    refuses(
        "^binarize: must be 0 or more for sparse", make("bernoulli", binarize=-1.0), x, labels()
    )
    for kind in SPARSE:
        refuses("^missing_values: 0 cannot mark", make(kind, missing_values=0), x, labels())


@pytest.mark.parametrize("kind", ["gaussian", "mixed"])
def test_covariance(kind):
    refuses("^covariance: expected", make(kind, covariance="round"), features(kind), labels())


GOOD = np.array([[0.8, 0.1, 0.0], [0.1, 0.8, 0.3], [0.1, 0.1, 0.7]])


@every_kind
@pytest.mark.parametrize(
    "noise",
    [
        GOOD.T,
        GOOD[:2, :2],
        GOOD[None],
        GOOD * 0.9,
        np.where(GOOD == 0.3, np.nan, GOOD),
        GOOD + np.array([[0, 0, -0.1], [0, 0, 0.1], [0, 0, 0]]),
        None,
        0.2,
        [["a"] * 3] * 3,
        [[1, 0, 0], [0, 1], [0, 0, 1]],
        GOOD * 1j,
    ],
)
def test_noise_matrix(kind, noise):
    refuses("^noise: expected", make(kind, noise=noise), features(kind), labels())


@every_kind
@pytest.mark.parametrize(
    "prior",
    [
        [0.5, 0.5],
        [0.5, 0.5, 0.0],
        [0.6, 0.6, -0.2],
        [0.5, 0.5, np.nan],
        [0.5, 0.3, 0.1],
        [[0.5, 0.3, 0.2]],
        "uniform",
        1.0,
        [[0.5], [0.3, 0.2]],
    ],
)
def test_class_prior(kind, prior):
    refuses("^class_prior: expected", make(kind, class_prior=prior), features(kind), labels())


# After the fit ----------------------------------------------------------------------------------

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


# Generated --------------------------------------------------------------------------------------

#: What a random corruption may do to features, by kind: values that no cell may hold.
WRONG_CELLS = {
    "bernoulli": [np.nan, np.inf, -np.inf, None, 2, -1, 0.5, "?", ""],
    "multinomial": [np.nan, np.inf, -np.inf, None, -1, -0.5, "?", ""],
    "categorical": [np.nan, np.inf, -np.inf, None, pd.NA, 3, True],
    "gaussian": [np.nan, np.inf, -np.inf, None, "?", ""],
    "mixed": [np.nan, np.inf, -np.inf, None, pd.NA],
}
LAYOUTS = {
    "bernoulli": [np.asarray, pd.DataFrame, np.ndarray.tolist, np.asfortranarray],
    "multinomial": [np.asarray, pd.DataFrame, np.ndarray.tolist, np.asfortranarray],
    "categorical": [np.asarray, pd.DataFrame, np.ndarray.tolist],
    "gaussian": [np.asarray, pd.DataFrame, np.ndarray.tolist, np.asfortranarray],
    "mixed": [pd.DataFrame],
}
ROW, COLUMNS = st.integers(0, N - 1), st.integers(0, D - 1)
BAD_WEIGHTS = st.one_of(
    st.floats(max_value=0, exclude_max=True, allow_nan=False), st.sampled_from([np.nan, np.inf])
)


def corrupt_cell(draw, kind, x, y, options, parameters):
    i, j, value = draw(ROW), draw(COLUMNS), draw(st.sampled_from(WRONG_CELLS[kind]))
    bad = put(x, i, j, value)
    return draw(st.sampled_from(LAYOUTS[kind]))(bad), y, cell(bad, i, j)


def corrupt_label(draw, kind, x, y, options, parameters):
    i, value = draw(ROW), draw(st.sampled_from([None, np.nan, pd.NA, pd.NaT, "d", 0, 1.5, b"a"]))
    y[i] = value
    y = draw(st.sampled_from([np.asarray, list, tuple, pd.Series]))(y)
    if isinstance(value, str):
        parameters["classes"] = draw(st.permutations("abc"))
        return x, y, f"^y: row {i} has the label 'd'"
    if pd.isna(value):
        return x, y, f"^y: row {i} has no label"
    return x, y, "^y: labels of mixed types"


def corrupt_length(draw, kind, x, y, options, parameters):
    n = draw(st.integers(0, 3 * N).filter(lambda n: n != N))
    which = draw(st.sampled_from(["y", "sample_weight", "trusted"]))
    options |= {"sample_weight": np.ones(n)} if which == "sample_weight" else {}
    options |= {"trusted": np.resize(y, n)} if which == "trusted" else {}
    return x, np.resize(y, n) if which == "y" else y, f"^{which}: has {n} rows where X has {N}"


def corrupt_weight(draw, kind, x, y, options, parameters):
    i = draw(ROW)
    weights = np.ones(N)
    weights[i] = draw(BAD_WEIGHTS)
    options["sample_weight"] = draw(st.sampled_from([np.asarray, list, pd.Series]))(weights)
    return x, y, f"^sample_weight: row {i} is "


def corrupt_trusted(draw, kind, x, y, options, parameters):
    i, value = draw(ROW), draw(st.sampled_from(["d", "", 0, "A"]))
    trusted = np.full(N, None, object)
    trusted[i] = value
    options["trusted"] = draw(st.sampled_from([trusted, list(trusted), {i: value}]))
    return x, y, f"^trusted: row {i} has the label {value!r}"


def corrupt_parameter(draw, kind, x, y, options, parameters):
    name = draw(st.sampled_from(ANY))
    odd = ["", "1", b"1", None, [], 1j, np.nan, np.ones(1)]
    negative = st.floats(max_value=0, exclude_max=True)
    parameters[name] = draw(negative | st.integers(max_value=-1) | st.sampled_from(odd))
    return x, y, f"^{name}: expected a finite number"


def corrupt_matrix(draw, kind, x, y, options, parameters):
    noise = GOOD.copy()
    change = draw(st.floats(-2, 2).filter(lambda v: abs(v) > 1e-5))
    noise[draw(COLUMNS), draw(COLUMNS)] += change
    parameters["noise"] = noise
    return x, y, "^noise: expected a 3 x 3 matrix"


def corrupt_prior(draw, kind, x, y, options, parameters):
    prior = np.array([0.5, 0.3, 0.2])
    prior[draw(COLUMNS)] += draw(st.floats(-2, 2).filter(lambda v: abs(v) > 1e-5))
    parameters["class_prior"] = prior
    return x, y, "^class_prior: expected 3 positive"


CORRUPTIONS = [
    corrupt_cell,
    corrupt_label,
    corrupt_length,
    corrupt_weight,
    corrupt_trusted,
    corrupt_parameter,
    corrupt_matrix,
    corrupt_prior,
]


@every_kind
@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda f: f.__name__)
@settings(max_examples=25)
@given(data=st.data())
def test_a_random_corruption_is_refused(corrupt, kind, data):
    options, parameters = {}, {}
    x, y, match = corrupt(data.draw, kind, features(kind), labels(), options, parameters)
    estimator = make(kind, **parameters)
    with pytest.raises(DataError, match=match):
        estimator.fit(x, y, **options)


@every_kind
@settings(max_examples=40)
@given(data=st.data())
def test_a_random_corruption_is_refused_at_predict(kind, data):
    i, j = data.draw(ROW), data.draw(COLUMNS)
    # a category of another type is one that training never saw, and is left out
    values = [v for v in WRONG_CELLS[kind] if kind != "categorical" or pd.isna(v) or np.isinf(v)]
    bad = put(features(kind), i, j, data.draw(st.sampled_from(values)))
    with pytest.raises(DataError, match=cell(bad, i, j)):
        fitted(kind).predict(bad)
