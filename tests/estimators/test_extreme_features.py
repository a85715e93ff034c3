"""Unusual but legitimate features, weights and settings: what is read out is finite."""

import warnings

import numpy as np
import pytest
from extremes import D, K, N, every_kind, features, labels, make, plain, single_families, sound
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from marks import slow_among
from scipy import sparse

from nbmodels import (
    IdentifiabilityWarning,
)

# no model is right about such data, and the verdict may say so
pytestmark = pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")


@pytest.mark.slow
@every_kind
def test_a_constant_column(kind):
    x = features(kind)
    if kind == "mixed":
        x = x.assign(size=7.5)
    else:
        x[:, 1] = {"bernoulli": 1, "multinomial": 3, "categorical": "v"}.get(kind, 1e6 + 0.1)
    e = sound(make(kind).fit(x, labels()), x)
    if kind in ("diag", "full"):
        np.testing.assert_allclose(e.theta_[:, 1], 1e6 + 0.1, 1e-9)
        without = make(kind).fit(np.delete(x, 1, 1), labels())
        np.testing.assert_allclose(e.label_posterior_, without.label_posterior_, 1e-6, 1e-9)
        np.testing.assert_allclose(e.theta_[:, [0, 2]], without.theta_, 1e-9)
    if kind == "diag":
        assert not e.var_[:, 1].any()
    if kind == "full":
        assert not e.covariance_[:, 1].any()
        np.testing.assert_allclose(e.covariance_[:, 2, 0], without.covariance_[:, 1, 0], 1e-9)
    if kind == "bernoulli":
        assert (e.feature_log_prob_[:, 1] > np.log(0.7)).all()


@pytest.mark.parametrize("kind", ["diag", pytest.param("full", marks=pytest.mark.slow)])
def test_columns_of_very_different_size(kind):
    x = features(kind)
    e = sound(
        make(kind).fit(x * [1e6, 1e-6, 1] + [1e9, 0, 5], labels()), x * [1e6, 1e-6, 1] + [1e9, 0, 5]
    )
    np.testing.assert_allclose(e.label_posterior_, plain(kind).label_posterior_, 1e-5, 1e-7)
    wide = x * [1e140, 1e-140, 1]
    sound(make(kind).fit(wide, labels()), wide)


@pytest.mark.slow
@single_families
def test_rows_that_are_all_the_same(kind):
    x = features(kind)
    same = x.iloc[np.full(N, 3)].reset_index(drop=True) if kind == "mixed" else x[np.full(N, 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        e = sound(make(kind).fit(same, labels()), same)
    # rows differ by their label only
    p = e.label_posterior_
    for k in range(K):
        assert np.ptp(p[labels() == k], axis=0).max() < 1e-9
    assert np.ptp(e.predict_proba(same), axis=0).max() < 1e-12


@pytest.mark.parametrize("huge", [1e6, 1e12])
def test_a_huge_count(huge):
    x = features("multinomial").astype(float)
    x[7, 1] = huge
    with warnings.catch_warnings():
        # whatever class the row has is not labelled as itself
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        e = sound(make("multinomial").fit(x, labels()), x, scale=huge)
    assert e.feature_log_prob_[e.label_posterior_[7].argmax(), 1] > np.log(0.99)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_rows_of_zeros(layout):
    x = features("multinomial")
    x[[3, 8, 9]] = 0
    e = sound(make("multinomial").fit(layout(x), labels()), layout(x))
    np.testing.assert_allclose(e.predict_proba(layout(x))[3], e.class_prior_, 1e-9)


def test_nothing_but_zeros_in_sparse_x():
    x = sparse.csr_array((N, D))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        sound(make("bernoulli").fit(x, labels()), x)


def test_counts_that_are_not_whole():
    x = features("multinomial") * 0.37
    sound(make("multinomial").fit(x, labels()), x)


def test_the_empty_string_is_a_category():
    x = features("categorical")
    x[x == "u"] = ""
    e = sound(make("categorical").fit(x, labels()), x)
    assert all("" in c for c in e.categories_)
    np.testing.assert_allclose(
        e.label_posterior_, plain("categorical").label_posterior_, 1e-9, 1e-12
    )


@pytest.mark.parametrize(
    "values", [[True, False, True], [1, 2, 3], [-0.5, 1e300, 1e-300], ["ß", "", "a\n\0"]]
)
def test_categories_of_any_type(values):
    x = np.array(
        [dict(zip("uvw", values, strict=True))[v] for v in features("categorical").ravel()], object
    )
    x = x.reshape(N, D)
    e = sound(make("categorical").fit(x, labels()), x)
    assert {type(v) for c in e.categories_ for v in c} == {type(values[0])}


@every_kind
def test_arrays_that_must_not_be_written_to(kind):
    x, y, w = features(kind), labels(), np.ones(N)
    trusted = np.full(N, -1)
    for array in (y, w, trusted) if kind == "mixed" else (x, y, w, trusted):
        array.setflags(write=False)
    before = x.copy()
    e = sound(make(kind).fit(x, y, w), x)
    assert np.array_equal(np.asarray(before), np.asarray(x))
    np.testing.assert_array_equal(e.label_posterior_, plain(kind).label_posterior_)


@pytest.mark.parametrize("kind", ["bernoulli", "multinomial", "diag"])
def test_layouts_and_types_in_memory(kind):
    x = features(kind)
    if kind == "diag":
        x = x.astype(np.float32).astype(float)
    expected = make(kind).fit(x, labels())
    backwards = np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]
    wide = np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3]
    for other in (x.astype(np.float32), np.asfortranarray(x), backwards, wide, x.astype(">f8")):
        e = make(kind).fit(other, labels())
        np.testing.assert_array_equal(e.label_posterior_, expected.label_posterior_)
    if kind in ("bernoulli", "multinomial"):
        for kept in (np.int8, np.uint64, np.float16):
            e = make(kind).fit(x.astype(kept), labels())
            np.testing.assert_array_equal(e.label_posterior_, expected.label_posterior_)
    if kind == "bernoulli":
        e = make(kind).fit(x.astype(bool), labels())
        np.testing.assert_array_equal(e.label_posterior_, expected.label_posterior_)


@single_families
def test_rows_of_weight_zero_do_not_exist(kind):
    x, y = features(kind), labels()
    weights = np.where(np.arange(N) % 4 == 1, 0.0, 1.0)
    a = sound(make(kind).fit(x, y, weights), x)
    off = weights == 0
    other = x.copy()
    if kind == "mixed":
        other.loc[off, ["count", "size"]] = 900
    else:
        garbage = 0 if kind == "bernoulli" else "new" if kind == "categorical" else 900
        other[off] = garbage
    b = sound(make(kind).fit(other, np.where(off, 2, y), weights), x)
    np.testing.assert_allclose(a.noise_matrix_, b.noise_matrix_, 1e-7)
    np.testing.assert_allclose(a.label_posterior_[~off], b.label_posterior_[~off], 1e-6, 1e-9)
    np.testing.assert_allclose(a.objective_, b.objective_, 1e-9)
    assert np.abs(a.noise_matrix_ - plain(kind).noise_matrix_).max() > 1e-4


@pytest.mark.parametrize("kind", ["bernoulli", "multinomial", "diag"])
@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.filterwarnings("ignore:sample_weight. weights sum to")
def test_weights_of_any_size(kind, scale):
    x = features(kind)
    e = sound(make(kind).fit(x, labels(), np.full(N, scale)), x, scale=100 * scale)
    if scale < 1:
        # nothing but the prior is left
        np.testing.assert_allclose(e.class_prior_, 1 / K, 1e-6)
        np.testing.assert_allclose(np.diag(e.noise_matrix_), 2 / 3, 1e-6)


@pytest.mark.parametrize("kind", ["bernoulli", "diag"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"noise_alpha": 0.0, "noise_diagonal": 0.0, "class_alpha": 0.0},
        {"noise_alpha": 1e9},
        {"noise_diagonal": 1e9},
        {"class_alpha": 1e9},
        {"weight": 0.0},
        {"weight": 50.0},
        {"tol": 0.0},
        {"max_iter": 2000, "tol": 1e3},
    ],
    ids=str,
)
def test_extreme_settings(kind, parameters):
    x = features(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        e = sound(make(kind, **parameters).fit(x, labels()), x, scale=1e9)
    if parameters == {"noise_diagonal": 1e9}:
        np.testing.assert_allclose(e.noise_matrix_, np.eye(K), atol=1e-7)
    if parameters == {"class_alpha": 1e9}:
        np.testing.assert_allclose(e.class_prior_, 1 / K, 1e-6)
    if parameters == {"weight": 0.0}:
        np.testing.assert_allclose(e.predict_proba(x), np.tile(e.class_prior_, (N, 1)), 1e-9)


@pytest.mark.parametrize("kind", ["bernoulli", "multinomial"])
def test_no_smoothing(kind):
    """Zero probabilities neither poison the rows that meet them nor the next step."""
    x = features(kind)
    x[:, 0] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        e = make(kind, alpha=0.0, noise_alpha=0.0, class_alpha=0.0).fit(x, labels())
    met = features(kind)
    met[:, 0] = 1
    normal = e.predict_proba(met)
    assert np.isfinite(normal).all()
    np.testing.assert_allclose(normal.sum(1), 1, 1e-9)


TABLES = {
    "bernoulli": hnp.arrays(int, (N, D), elements=st.integers(0, 1)),
    "multinomial": hnp.arrays(
        float, (N, D), elements=st.just(0.0) | st.floats(0, 1e6) | st.integers(0, 9).map(float)
    ),
    "diag": hnp.arrays(
        float,
        (N, D),
        elements=st.sampled_from([0.0, 1.0, -1.0, 1e6]) | st.floats(-1e9, 1e9, width=32),
    ),
}
GIVEN = st.lists(st.integers(-1, K - 1), min_size=N, max_size=N)
WEIGHTS = st.lists(st.sampled_from([0.0, 1.0, 1e-9, 0.3, 7.0, 1e6]), min_size=N, max_size=N)


@pytest.mark.parametrize("kind", slow_among(TABLES, ("diag", "multinomial")))
@settings(max_examples=40)
@given(data=st.data())
def test_random_extremes(kind, data):
    x = data.draw(TABLES[kind])
    y = np.array(data.draw(GIVEN))
    weights = np.array(data.draw(WEIGHTS))
    weights[data.draw(st.integers(0, N - 1))] = 1.0
    power = data.draw(st.sampled_from([1.0, 0.3]))
    e = make(kind, classes=list(range(K)), missing_label=-1, weight=power, random_state=0)
    with warnings.catch_warnings():
        # what labels and cells mean is not this test's business, nor how long a plateau is
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        warnings.filterwarnings("ignore", "X: row .* interquartile ranges away")
        warnings.filterwarnings("ignore", "sample_weight: ")
        warnings.filterwarnings("ignore", "classes: no label names")
        scale = weights @ np.abs(x).sum(1) if kind == "multinomial" else 0.0
        sound(e.fit(x, y, weights), x, scale=10 * scale)
