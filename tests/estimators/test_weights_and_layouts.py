"""Row weights, missing cells, sparse features, and both precisions."""

import jax
import numpy as np
import pytest
from planted import NAMES, N, features, fitted, given_labels, lose, make, same_fit, truth
from scipy import sparse

from nbmodels import NbmodelsWarning


@pytest.mark.parametrize(
    "kind",
    [
        "bernoulli",
        "diag",
        *(pytest.param(k, marks=pytest.mark.slow) for k in ("multinomial", "categorical", "full")),
    ],
)
@pytest.mark.filterwarnings("ignore:.*near copies")
def test_weights_are_repetitions(kind):
    x, y = features(kind)[:160], given_labels()[:160]
    weights = np.r_[np.zeros(20), np.full(60, 2.0), np.ones(60), np.full(20, 3.0)]
    whole = weights.astype(int)
    a = make(kind).fit(np.repeat(x, whole, 0), np.repeat(y, whole))
    padded = np.r_[x, x[:80]], np.r_[y, y[:80]]
    b = make(kind).fit(*padded, sample_weight=np.r_[weights, np.zeros(80)])
    assert whole.sum() == 240, "another length would compile again"
    np.testing.assert_allclose(a.noise_matrix_, b.noise_matrix_, 1e-5, 1e-8)
    np.testing.assert_allclose(a.objective_, b.objective_, 1e-10)
    rows = np.repeat(b.label_posterior_[:160], whole, 0)
    np.testing.assert_allclose(a.label_posterior_, rows, 1e-5, 1e-8)


@pytest.mark.filterwarnings("ignore::nbmodels.IdentifiabilityWarning")
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_a_class_without_weight_is_warned_of():
    y = given_labels()
    weights = (y != NAMES[-1]).astype(float)
    told = f"^sample_weight: all rows that are labelled '{NAMES[-1]}' have a weight of 0"
    with pytest.warns(NbmodelsWarning, match=told):
        make("bernoulli").fit(features("bernoulli"), y, weights)


def test_a_weight_for_all_is_a_weight_for_each():
    x, y = features("bernoulli"), given_labels()
    a = make("bernoulli").fit(x, y, sample_weight=2.0)
    b = make("bernoulli").fit(x, y, sample_weight=[2] * N)
    same_fit(a, b)
    assert np.abs(a.objective_ - fitted("bernoulli").objective_) > 100


@pytest.mark.parametrize(
    ("kind", "marker"),
    [
        ("bernoulli", -1),
        pytest.param("multinomial", -1, marks=pytest.mark.slow),
        pytest.param("categorical", "?", marks=pytest.mark.slow),
        pytest.param("full", -999.0, marks=pytest.mark.slow),
    ],
)
def test_missing_cells_by_any_marker(kind, marker):
    x, y = features(kind), given_labels()
    a = make(kind, missing_values=marker).fit(lose(x, marker), y)
    null = None if kind == "categorical" else np.nan
    b = make(kind, missing_values=np.nan).fit(lose(x, null), y)
    same_fit(a, b)
    assert (b.predict(lose(x, null)) == NAMES[truth()[0]]).mean() > 0.75
    # a filled-in value would have been another thing
    assert np.abs(a.objective_ - fitted(kind).objective_) > 10


@pytest.mark.parametrize("kind", ["bernoulli", pytest.param("multinomial", marks=pytest.mark.slow)])
def test_missing_cells_in_sparse_x(kind):
    """The marker stands in stored entries, whatever the family would say of its value."""
    x, y = features(kind), given_labels()
    dense = make(kind, missing_values=-1).fit(lose(x, -1), y)
    for layout, marker in ((sparse.csr_array, -1), (sparse.csc_matrix, np.nan)):
        e = make(kind, missing_values=marker).fit(layout(lose(x, marker)), y)
        same_fit(e, dense, 1e-5)
        np.testing.assert_allclose(
            e.predict_proba(layout(lose(x, marker))), dense.predict_proba(lose(x, -1)), 1e-4, 1e-6
        )


@pytest.mark.parametrize("kind", ["bernoulli", pytest.param("multinomial", marks=pytest.mark.slow)])
def test_sparse_x_is_dense_x(kind):
    x = features(kind)
    for layout in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        e = make(kind).fit(layout(x), given_labels())
        same_fit(e, fitted(kind), 1e-6)
        np.testing.assert_allclose(
            e.predict_proba(layout(x)), fitted(kind).predict_proba(x), 1e-5, 1e-8
        )


@pytest.mark.slow
def test_sparse_x_is_never_made_dense(within):
    """As a dense matrix it would fill 6 GiB, or 3 in single precision."""
    script = """
        import numpy as np
        from scipy import sparse
        from nbmodels import NoisyBernoulliNB, NoisyMultinomialNB, Solver

        n, d, each = 20_000, 40_000, 10
        rng = np.random.default_rng(0)
        y = np.arange(n) % 2
        columns = 2 * rng.integers(0, d // 2, (n, each)) + y[:, None]
        x = sparse.csr_array((np.ones(n * each), columns.ravel(), np.arange(n + 1) * each), (n, d))
        x.sum_duplicates()
        for estimator in (NoisyBernoulliNB, NoisyMultinomialNB):
            e = estimator.published(solver=Solver(max_iter=20)).fit(x.minimum(1.0).tocsr(), y)
            print((e.predict(x.minimum(1.0).tocsr()) == y).mean())
    """
    assert [float(share) > 0.9 for share in within(2 * 2**30, script).split()] == [True, True]


@pytest.mark.parametrize("kind", ["diag", pytest.param("bernoulli", marks=pytest.mark.slow)])
def test_single_precision_agrees_with_double(kind):
    e = make(kind, precision="single", tol=1e-9).fit(features(kind), given_labels())
    assert e.fit_.params["class_prior"].concentration.dtype == np.float32
    double = fitted(kind, precision="double")
    assert double.fit_.params["class_prior"].concentration.dtype == np.float64
    np.testing.assert_allclose(e.noise_matrix_, double.noise_matrix_, atol=2e-3)
    np.testing.assert_allclose(e.label_posterior_, double.label_posterior_, atol=5e-3)
    np.testing.assert_allclose(e.objective_, double.objective_, 1e-5)


@pytest.mark.parametrize("kind", ["bernoulli", pytest.param("full", marks=pytest.mark.slow)])
def test_double_precision_survives_where_jax_has_none(kind):
    """Users' JAX computes in single precision; read-outs of a double fit must not."""
    with jax.enable_x64(False):
        e = make(kind, precision="double").fit(features(kind), given_labels())
        proba = e.predict_proba(features(kind))
        np.testing.assert_allclose(e.noise_matrix_, fitted(kind).noise_matrix_, 1e-12)
        np.testing.assert_allclose(e.class_prior_, fitted(kind).class_prior_, 1e-12)
    np.testing.assert_allclose(proba, fitted(kind).predict_proba(features(kind)), 1e-9, 1e-12)
    name = "feature_log_prob_" if kind == "bernoulli" else "covariance_"
    np.testing.assert_allclose(getattr(e, name), getattr(fitted(kind), name), 1e-11)
