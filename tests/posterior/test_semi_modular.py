"""The pooled posterior: its weight, its test, and what an estimator makes of ``feedback=``."""

import pickle
import warnings
from functools import cache

import jax
import numpy as np
import pytest
import xarray

from nbmodels import NoisyBernoulliNB, NoisyGaussianNB, NoisyLogisticRegression, Solver
from nbmodels.errors import DataError, PosteriorWarning
from nbmodels.posterior.semi_modular import conflict, mixed, pooling

QUIET = Solver(progress=False)
FEW = {"draws": 40, "chains": 2, "warmup": 20, "progress": False}


def tree(draws):
    """Draws ``(chain, draw, 2, 2)`` of a noise matrix, and what belongs to them."""
    dims = ("chain", "draw", "observed_class", "true_class")
    posterior = xarray.Dataset({"noise_matrix": (dims, draws)})
    label = xarray.Dataset({"p": (("item", "true_class"), np.full((3, 2), draws.mean()))})
    out = xarray.DataTree.from_dict({"posterior": posterior, "label_posterior": label})
    about = {"method": "gibbs", "assumes": "nothing", "row_weights": "all one"}
    out.attrs.update({**about, "kind": "posterior", "warnings": ""})
    return out


def normal(mean, sd, seed=0, size=20_000):
    rng = np.random.default_rng(seed)
    return tree(mean + sd * rng.normal(size=(2, size // 2, 2, 2)))


@pytest.mark.parametrize(("shift", "expected"), [(1e-4, 1.0), (5.0, 0.0)])
def test_a_near_joint_posterior_counts_in_full_and_a_far_one_not_at_all(shift, expected):
    how = pooling(normal(0.5, 0.029, 0), normal(0.5 + shift, 0.01, 1))
    assert how.weight == pytest.approx(expected, abs=1e-3)
    assert how.distance == pytest.approx(2 * shift, abs=1e-3)


def test_the_weight_is_the_tail_of_the_cut_beyond_the_joint_mean():
    # |gap|^2 / sd^2 is chi-square of four degrees: 9.488 is its 95 % quantile
    at = 0.03 * np.sqrt(9.488 / 4)
    assert pooling(normal(0.5, 0.03, 0), normal(0.5 + at, 0.01, 1)).weight == pytest.approx(
        0.05, abs=0.006
    )


def test_it_rejects_at_its_level_where_the_joint_mean_is_a_draw_of_the_cut():
    rng = np.random.default_rng(0)
    rejected = [
        bool(conflict(pooling(normal(0.5, 0.03, i, 400), tree(at[None, None] + np.zeros((2, 2))))))
        for i, at in enumerate(0.5 + 0.03 * rng.normal(size=(400, 2, 2)))
    ]
    assert 0.02 < np.mean(rejected) < 0.09


def test_draws_come_from_either_as_often_as_the_weight_says():
    cut, joint = normal(0.5, 0.03, 0), normal(0.54, 0.01, 1)
    out = mixed(cut, joint, np.random.default_rng(0))
    taken = out["sample_stats"]["from_joint"].to_numpy()
    weight = out.attrs["feedback_weight"]
    assert taken.mean() == pytest.approx(weight, abs=0.02)
    both = [one["posterior"]["noise_matrix"].to_numpy() for one in (joint, cut)]
    expected = np.where(taken[..., None, None], *both)
    np.testing.assert_array_equal(out["posterior"]["noise_matrix"], expected)
    p = [one["label_posterior"]["p"].to_numpy() for one in (joint, cut)]
    np.testing.assert_allclose(out["label_posterior"]["p"], weight * p[0] + (1 - weight) * p[1])


def test_a_joint_posterior_far_from_the_cut_is_warned_of_and_recorded():
    with pytest.warns(PosteriorWarning, match="disagrees with the cut one"):
        out = mixed(normal(0.5, 0.03, 0), normal(0.9, 0.01, 1), np.random.default_rng(0))
    assert out.attrs["feedback_weight"] < 1e-3
    assert "disagrees" in out.attrs["warnings"]


# Estimators -------------------------------------------------------------------------------------


@cache
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    x = (rng.random((120, 8)) < np.where(y, 0.8, 0.2)[:, None]).astype(int)
    return x, np.where(rng.random(120) < 0.2, 1 - y, y)


@cache
def fitted(training, kind=NoisyBernoulliNB):
    with warnings.catch_warnings(action="ignore"):
        return kind(training=training, random_state=0, solver=QUIET).fit(*data())


def drawn(estimator, feedback):
    with warnings.catch_warnings(action="ignore"):
        return estimator.posterior(feedback=feedback, **FEW)


@pytest.mark.slow
@pytest.mark.parametrize("training", ["joint", "cross_fit", "auto"])
def test_every_posterior_can_be_had_of_every_training(training):
    out = {f: drawn(fitted(training), f) for f in ("cut", "joint", "mixed")}
    assert [out[f].attrs["feedback"] for f in out] == list(out)
    assert out["cut"].attrs["kind"].startswith("posterior given the features' scores")
    # of few labels it is averaged over two forms of the noise matrix
    assert out["joint"].attrs["kind"].startswith("posterior, averaged over 2 forms")
    assert 0 <= out["mixed"].attrs["feedback_weight"] <= 1
    assert set(out["mixed"]["posterior"].data_vars) == {"noise_matrix"}


@pytest.mark.slow
def test_the_default_is_that_of_the_training():
    own = drawn(fitted("joint"), None)
    np.testing.assert_array_equal(
        own["posterior"]["noise_matrix"],
        drawn(fitted("joint"), "joint")["posterior"]["noise_matrix"],
    )


@pytest.mark.slow
def test_fits_made_later_are_those_that_training_makes():
    made = fitted("cross_fit")
    later = made._by_feedback("joint")
    np.testing.assert_allclose(later.noise_matrix, fitted("joint").noise_matrix_, atol=1e-3)


@pytest.mark.slow
def test_a_fit_with_its_counterpart_survives_pickling():
    one = fitted("cross_fit")
    again = pickle.loads(pickle.dumps(one))
    with jax.enable_x64(one.fitted_.double):
        np.testing.assert_allclose(
            again._by_feedback("joint").noise_matrix, one._by_feedback("joint").noise_matrix
        )


@pytest.mark.slow
def test_real_features():
    assert drawn(fitted("joint", NoisyGaussianNB), "mixed").attrs["feedback"] == "mixed"


@pytest.mark.slow
def test_an_estimator_without_a_joint_model_says_so():
    with warnings.catch_warnings(action="ignore"):
        one = NoisyLogisticRegression(random_state=0, solver=QUIET).fit(*data())
    with pytest.raises(DataError, match=r"^feedback: NoisyLogisticRegression is fitted in one way"):
        one.posterior(feedback="mixed")


def test_an_unknown_feedback_is_named():
    with pytest.raises(
        DataError, match=r"^feedback: expected one of 'cut', 'joint', 'mixed', None"
    ):
        fitted("joint").posterior(feedback="both")
