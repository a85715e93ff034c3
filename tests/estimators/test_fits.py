"""What a fit reports, of every estimator: shapes, read-outs, the noise that was planted."""

import inspect
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from planted import (
    NAMES,
    ON,
    PRIOR,
    RHO,
    SYMBOLS,
    WORDS,
    K,
    N,
    every_kind,
    features,
    fitted,
    given_labels,
    make,
    normalised,
    same_fit,
    truth,
)
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import nbmodels


@pytest.mark.slow
@every_kind
def test_shapes_and_sums(kind):
    e, x = fitted(kind), features(kind)
    np.testing.assert_array_equal(e.classes_, NAMES)
    assert e.n_features_in_ == x.shape[1]
    normalised(e.class_prior_, 0, (K,))
    normalised(e.noise_matrix_, 0, (K, K))
    normalised(e.inverse_noise_matrix_, 0, (K, K))
    normalised(e.label_posterior_, 1, (N, K))
    normalised(e.predict_proba(x), 1, (N, K))
    np.testing.assert_array_equal(e.class_log_prior_, np.log(e.class_prior_))
    np.testing.assert_allclose(e.predict_log_proba(x), np.log(e.predict_proba(x)), 1e-12)
    np.testing.assert_array_equal(e.predict(x), NAMES[e.predict_proba(x).argmax(1)])


@pytest.mark.slow
@every_kind
def test_noise_reads_observed_then_true(kind):
    """Bayes' rule by the definitions, class by class, and item by item."""
    e = fitted(kind)
    for true in range(K):
        for observed in range(K):
            joint = e.class_prior_[true] * e.noise_matrix_[observed, true]
            log_likelihood = sum(e.class_prior_[t] * e.noise_matrix_[observed, t] for t in range(K))
            np.testing.assert_allclose(
                e.inverse_noise_matrix_[true, observed], joint / log_likelihood, 1e-12
            )
    both = e.predict_proba(features(kind)) * e.noise_matrix_[truth()[1]]
    np.testing.assert_allclose(e.label_posterior_, both / both.sum(1, keepdims=True), 1e-9, 1e-13)


@every_kind
def test_the_iteration_is_reported(kind):
    e = fitted(kind)
    trace = e.objective_trace_
    assert e.converged_
    assert e.fit_.status.ok
    assert trace.shape == (e.n_iter_,)
    assert e.n_iter_ > 3
    assert (np.diff(trace) >= -1e-12 * np.abs(trace[1:])).all()
    np.testing.assert_allclose(e.objective_, trace[-1], 1e-13)


@every_kind
def test_planted_noise_is_found(kind):
    e = fitted(kind)
    y, observed = truth()
    assert np.abs(e.noise_matrix_ - RHO).max() < 0.08
    assert np.abs(e.class_prior_ - PRIOR).max() < 0.04
    corrected = e.corrected_labels()["suggested"].to_numpy()
    assert (observed == y).mean() < 0.76
    assert (corrected == NAMES[y]).mean() > 0.88


@every_kind
def test_corrected_labels(kind):
    e = fitted(kind)
    frame = e.corrected_labels()
    columns = ["row", "given", "suggested", "p_suggested", "p_wrong", "rank"]
    assert list(frame.columns) == columns
    np.testing.assert_array_equal(frame["row"], np.arange(N))
    np.testing.assert_array_equal(frame["given"], given_labels())
    np.testing.assert_array_equal(frame["suggested"], NAMES[e.label_posterior_.argmax(1)])
    right = e.label_posterior_[np.arange(N), truth()[1]]
    np.testing.assert_allclose(frame["p_wrong"], 1 - right, 1e-12)
    ranked = frame.sort_values("rank")
    np.testing.assert_array_equal(ranked["rank"], np.arange(1, N + 1))
    assert (np.diff(ranked["p_wrong"]) <= 0).all()
    # the likeliest errors are errors
    wrong = (truth()[0] != truth()[1])[ranked.index[: N // 10]]
    assert wrong.mean() > 0.9


def test_read_outs_by_their_names():
    e = fitted("bernoulli")
    assert e.feature_log_prob_.shape == (K, 6)
    assert np.abs(np.exp(e.feature_log_prob_) - ON).max() < 0.12
    e = fitted("multinomial")
    normalised(np.exp(e.feature_log_prob_), 1, (K, 6))
    assert np.abs(np.exp(e.feature_log_prob_) - WORDS).max() < 0.05
    e = fitted("categorical")
    assert [list(c) for c in e.categories_] == [["u", "v", "w"]] * 4
    for table in e.feature_log_prob_:
        normalised(np.exp(table), 1, (K, 3))
        assert np.abs(np.exp(table) - SYMBOLS).max() < 0.12


@every_kind
def test_pickle_clone_and_parameters(kind):
    e, x = fitted(kind), features(kind)
    again = pickle.loads(pickle.dumps(e))
    np.testing.assert_array_equal(again.predict_proba(x), e.predict_proba(x))
    np.testing.assert_array_equal(again.noise_matrix_, e.noise_matrix_)
    pd.testing.assert_frame_equal(again.corrected_labels(), e.corrected_labels())
    fresh = clone(e)
    assert fresh.get_params() == e.get_params()
    assert not hasattr(fresh, "noise_matrix_")
    assert fresh.set_params(training__weight=0.3).get_params()["training__weight"] == 0.3
    assert {"noise", "solver__n_restarts", "classes"} <= set(
        fresh.set_params(solver__n_restarts=1).get_params()
    )


def test_joblib(tmp_path):
    joblib.dump(fitted("mixed"), tmp_path / "model")
    again = joblib.load(tmp_path / "model")
    x = features("mixed")
    np.testing.assert_array_equal(again.predict(x), fitted("mixed").predict(x))


# smoothing by 10,000 pseudo-items is wrong on purpose
@pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")
def test_pipeline_and_grid_search():
    x, y = features("bernoulli"), given_labels()
    steps = make_pipeline(FunctionTransformer(), make("bernoulli"))
    np.testing.assert_array_equal(steps.fit(x, y).predict(x), fitted("bernoulli").predict(x))
    grid = {"noisybernoullinb__alpha": [1.0, 1e4]}
    search = GridSearchCV(steps, grid, cv=2, error_score="raise").fit(x, y)
    assert search.best_params_ == {"noisybernoullinb__alpha": 1.0}
    best = search.best_estimator_[-1]
    same_fit(best, fitted("bernoulli"))


# names, not intervals, for which so few draws would be too few
@pytest.mark.filterwarnings("ignore:the draws depend on each other")
@pytest.mark.slow
@every_kind
def test_draws_of_every_estimator_have_names(kind, tmp_path):
    e = fitted(kind)
    tree = e.posterior(draws=150, warmup=50, chains=1, random_state=0, progress=False)
    tree.to_netcdf(tmp_path / "draws.nc", engine="h5netcdf")
    posterior = tree["posterior"]
    np.testing.assert_allclose(
        posterior["noise_matrix"].mean(("chain", "draw")), e.noise_matrix_, atol=0.05
    )
    if kind in ("diag", "full", "tied"):
        # in the units of the data
        mean = posterior["features_mu"].mean(("chain", "draw")).to_numpy()
        assert (np.abs(mean - e.theta_) / [1, 65, 0.008] < 0.2).all()
    if kind == "mixed":
        assert list(posterior["gaussian_feature"].to_numpy()) == ["size", "weight"]


ESTIMATORS = [
    e
    for e in (getattr(nbmodels, name) for name in nbmodels.__all__)
    if inspect.isclass(e) and issubclass(e, BaseEstimator) and e is not nbmodels.JointNB
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_signature_has_the_defaults(estimator):
    """scikit-learn reads them there, and so do people."""
    defaults = {n: p.default for n, p in inspect.signature(estimator).parameters.items()}
    assert estimator().get_params(deep=False) == defaults
