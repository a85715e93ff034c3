"""Settings of a fit and draws of its posterior, by the quickest estimator."""

import contextlib
import io

import numpy as np
import pandas as pd
import pytest
from planted import NAMES, K, N, draws, features, fitted, given_labels, make, normalised, same_fit

from nbmodels import (
    NotConvergedWarning,
)
from nbmodels.fitting.progress import Progress


def test_data_frames_keep_names_and_index():
    index = pd.Index([f"r{i}" for i in range(N)])
    x = pd.DataFrame(features("bernoulli"), index, [f"f{j}" for j in range(6)])
    e = make("bernoulli").fit(x, pd.Series(given_labels(), index))
    same_fit(e, fitted("bernoulli"))
    assert list(e.feature_names_in_) == list(x.columns)
    assert list(e.corrected_labels()["row"]) == list(index)


@pytest.mark.slow
def test_restarts():
    x, y = features("bernoulli"), given_labels()

    def restarted(seed):
        return make("bernoulli", n_restarts=3, random_state=seed, max_iter=2000).fit(x, y)

    a, b, c = restarted(0), restarted(0), restarted(np.random.RandomState(1))
    assert a.fit_.restarts == b.fit_.restarts
    np.testing.assert_array_equal(a.label_posterior_, b.label_posterior_)
    assert len(a.fit_.restarts) == 4
    np.testing.assert_allclose(a.fit_.restarts[0], fitted("bernoulli").objective_, 1e-12)
    np.testing.assert_allclose(a.objective_, max(a.fit_.restarts), 1e-12)
    assert a.objective_ >= fitted("bernoulli").objective_ - 1e-9
    # three starts of their own, whatever they end at
    assert len(set(a.fit_.restarts)) > 1
    assert a.fit_.restarts[1:] != c.fit_.restarts[1:]


@pytest.mark.parametrize("progress", [True, False, None])
def test_progress(progress):
    with contextlib.redirect_stderr(io.StringIO()) as shown:
        make("bernoulli", progress=progress).fit(features("bernoulli"), given_labels())
    # a fit this short shows a bar only where one is asked for
    assert ("fitting" in shown.getvalue()) == (progress is True)


def test_an_interrupted_fit_keeps_its_best_point(monkeypatch):
    whole = fitted("bernoulli")

    @contextlib.contextmanager
    def interrupt(self, quantity):
        def report(n_iter, objective):
            raise KeyboardInterrupt

        yield report

    monkeypatch.setattr(Progress, "iterations", interrupt)
    e = make("bernoulli", n_restarts=2, on_interrupt="keep")
    with pytest.warns(NotConvergedWarning, match="interrupted"):
        e.fit(features("bernoulli"), given_labels())
    assert not e.converged_
    assert len(e.fit_.restarts) == 3  # they run side by side
    assert 0 < e.n_iter_ < whole.n_iter_
    np.testing.assert_allclose(e.objective_, e.objective_trace_.max(), 1e-12)
    assert e.objective_trace_[0] < e.objective_ < whole.objective_
    normalised(e.predict_proba(features("bernoulli")), 1, (N, K))


def test_too_few_steps_are_reported():
    with pytest.warns(NotConvergedWarning, match="limit was reached"):
        e = make("bernoulli", max_iter=3).fit(features("bernoulli"), given_labels())
    assert not e.converged_
    assert e.n_iter_ == len(e.objective_trace_) == 3


# a fifth of the labels is wrong, and some stay
@pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")
@pytest.mark.parametrize(
    "parameters", [{"accelerate": False}, {"weight": 0.5}, {"noise_alpha": 0.0}]
)
def test_other_settings_reach_a_fixed_point(parameters):
    e = make("bernoulli", max_iter=20000, **parameters).fit(features("bernoulli"), given_labels())
    assert e.converged_
    if parameters == {"accelerate": False}:
        np.testing.assert_allclose(e.objective_, fitted("bernoulli").objective_, 1e-9)
    else:
        assert np.abs(e.noise_matrix_ - fitted("bernoulli").noise_matrix_).max() > 1e-4


def check_tree(e, tree, n_draws, path):
    posterior = tree["posterior"]
    assert dict(posterior.sizes) == {
        "chain": 4,
        "draw": n_draws,
        "true_class": K,
        "observed_class": K,
        "features_feature": 3,
    }
    assert posterior["noise_matrix"].dims == ("chain", "draw", "observed_class", "true_class")
    assert posterior["class_prior"].dims == ("chain", "draw", "true_class")
    assert posterior["features_probs"].dims == ("chain", "draw", "true_class", "features_feature")
    assert list(posterior["true_class"].to_numpy()) == list(NAMES)
    assert list(posterior["observed_class"].to_numpy()) == list(NAMES)
    np.testing.assert_allclose(posterior["noise_matrix"].sum("observed_class"), 1, 1e-9)
    tree.to_netcdf(path, engine="h5netcdf")
    import xarray

    again = xarray.open_datatree(path, engine="h5netcdf")
    assert set(again.children) == set(tree.children)
    for name in posterior.data_vars:
        np.testing.assert_array_equal(again["posterior"][name], posterior[name])
    assert list(again["posterior"]["true_class"].to_numpy()) == list(NAMES)
    again.close()


@pytest.mark.slow
def test_gibbs_draws(tmp_path):
    e, tree = draws("gibbs")
    check_tree(e, tree, 1000, tmp_path / "draws.nc")
    label = tree["label_posterior"]["p"]
    assert label.dims == ("item", "true_class")
    normalised(label.to_numpy(), 1, (40, K))
    assert np.abs(label.to_numpy() - e.label_posterior_).mean() < 0.25
    apple = tree["posterior"]["noise_matrix"].sel(observed_class="apple", true_class="apple")
    assert 0.4 < float(apple.mean()) < 1


@pytest.mark.slow
def test_nuts_draws_agree_with_gibbs(tmp_path):
    import arviz_stats

    e, tree = draws("nuts")
    check_tree(e, tree, 800, tmp_path / "draws.nc")
    assert not tree["sample_stats"]["diverging"].any()
    other = draws("gibbs")[1]
    for name in ("class_prior", "noise_matrix", "features_probs"):
        error = [arviz_stats.mcse(t, var_names=[name])[name].to_numpy() for t in (tree, other)]
        means = [t["posterior"][name].mean(("chain", "draw")).to_numpy() for t in (tree, other)]
        z = (means[0] - means[1]) / np.hypot(*error)
        assert np.abs(z).max() < 4.5, name


@pytest.mark.slow
def test_draws_follow_the_seed():
    e = draws("gibbs")[0]
    runs = [
        e.posterior(draws=20, warmup=5, chains=1, random_state=s, progress=False) for s in (1, 1, 2)
    ]
    a, b, c = (r["posterior"]["noise_matrix"].to_numpy() for r in runs)
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
