"""Estimators ranked by given labels that they have not seen."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

import nbmodels
from nbmodels import DataError, NoisyGaussianNB, PosteriorWarning, compare
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.diagnostics.comparison import compare_posteriors, pointwise, ranked
from nbmodels.fitting.scores import stratified_folds as folds_of

N, K = 600, 2


@pytest.fixture(scope="module")
def world():
    """Two correlated columns, whose difference tells the classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, N)
    x = rng.normal(size=(N, 2)) @ np.linalg.cholesky([[1, 0.8], [0.8, 1]]).T
    x[:, 0] += 1.2 * y
    return pd.DataFrame(x, columns=["a", "b"]), y, corrupt(y, uniform_noise(K, 0.2), rng)


def test_ranked_by_hand():
    scores = pd.DataFrame({"a": [-1.0, -2.0, -3.0], "b": [-1.0, -1.0, -2.5]})
    found = ranked(scores)
    assert list(found.index) == ["b", "a"]
    assert list(found["rank"]) == [1, 2]
    np.testing.assert_allclose(found["log_likelihood"], [-1.5, -2])
    np.testing.assert_allclose(found["difference"], [0, -0.5])
    error = np.std([0, -1, -0.5], ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(found["difference_error"], [0, error])
    np.testing.assert_allclose(found["standard_error"]["a"], 1 / np.sqrt(3))


@pytest.mark.slow
def test_a_label_is_predicted_through_the_noise(world):
    x, _, given = world
    one = NoisyGaussianNB.published(covariance="full", random_state=0)
    scores = pointwise({"one": one}, x, given, cv=2)
    assert list(scores.index) == list(range(N))
    # by hand, on the folds that were drawn
    fold = folds_of(given, 2, np.random.default_rng(0))
    e = clone(one).fit(x[fold == 0], given[fold == 0])
    p = e.predict_proba(x[fold == 1]) @ e.noise_matrix_.T
    expected = np.log(p[np.arange(len(p)), given[fold == 1]])
    np.testing.assert_allclose(scores["one"][fold == 1], expected, rtol=1e-6)


@pytest.mark.slow
def test_the_better_model_wins(world):
    x, _, given = world
    names = {
        "prior": DummyClassifier(strategy="prior"),
        "naive": GaussianNB(),
        "full": NoisyGaussianNB.published(covariance="full", random_state=0),
    }
    found = compare(names, x, given, cv=3)
    assert found.index[0] == "full"
    assert found["difference"]["prior"] < -3 * found["difference_error"]["prior"]
    np.testing.assert_allclose(found["log_likelihood"]["prior"], -np.log(2), atol=0.01)
    assert nbmodels.compare is compare


def test_names_of_a_list(world):
    x, _, given = world
    found = compare([GaussianNB(), GaussianNB(), GaussianNB(var_smoothing=1.0)], x, given)
    assert set(found.index) == {"GaussianNB()", "GaussianNB() #2", "GaussianNB(var_smoothing=1.0)"}
    same = found.loc[["GaussianNB()", "GaussianNB() #2"], "log_likelihood"]
    assert same.nunique() == 1


def test_missing_labels_are_not_scored(world):
    x, _, given = world
    some = np.where(np.arange(N) % 3 == 0, -1, given)
    scores = pointwise(
        {"one": NoisyGaussianNB.published(missing_label=-1, random_state=0)}, x, some, cv=2
    )
    assert list(scores.index) == list(np.flatnonzero(some != -1))
    assert np.isfinite(scores.to_numpy()).all()


@pytest.mark.parametrize(
    ("estimators", "options", "words"),
    [
        ([], {}, "estimators"),
        (3, {}, "estimators"),
        ([GaussianNB(), 3], {}, "estimators: '3' is not a classifier"),
        ({"one": "GaussianNB"}, {}, "estimators: 'one' is not a classifier.*no method fit"),
        ([LinearRegression()], {}, "estimators: 'LinearRegression.*no method predict_proba"),
        ({"naive": GaussianNB}, {}, r"estimators: 'naive' is not a classifier.*\(a class\)"),
        ([GaussianNB()], {"cv": 1}, "cv"),
        ([GaussianNB()], {"cv": 2.5}, "cv"),
        ([GaussianNB()], {"cv": 1000}, "cannot be left out"),
    ],
)
def test_bad_input_is_named(world, estimators, options, words):
    x, _, given = world
    with pytest.raises(DataError, match=words):
        compare(estimators, x, given, **options)
    with pytest.raises(DataError, match="y"):
        compare([GaussianNB()], x, given[:-1])


def test_posteriors_are_compared_by_arviz():
    import arviz_base

    rng = np.random.default_rng(0)

    def tree(loss, spread=0.05):
        return arviz_base.from_dict(
            {
                "posterior": {"theta": rng.normal(size=(2, 100))},
                "log_likelihood": {"y": -loss + spread * rng.normal(size=(2, 100, 40))},
            }
        )

    found = compare_posteriors({"worse": tree(2.0), "better": tree(1.0)})
    assert list(found.index) == ["better", "worse"]
    with pytest.warns(PosteriorWarning, match="Pareto"):
        compare_posteriors({"worse": tree(2.0, spread=3.0), "better": tree(1.0)})
    bare = arviz_base.from_dict({"posterior": {"theta": rng.normal(size=(2, 100))}})
    with pytest.raises(DataError, match="'bare' has no group log_likelihood"):
        compare_posteriors({"better": tree(1.0), "bare": bare})
    with pytest.raises(DataError, match="two or more"):
        compare_posteriors({"better": bare})
