"""Clear clusters of few rows: found where they are the classes, and nowhere else."""

import warnings

import numpy as np
import pytest
from marks import slow
from sklearn.datasets import load_wine

from nbmodels import NoisyGaussianNB, NoisyLogisticRegression
from nbmodels.datasets import corrupt, flip_noise, uniform_noise
from nbmodels.fitting.class_shapes import fit_classes
from nbmodels.fitting.noise_on_normal_classes import STATED
from nbmodels.fitting.normal_classes import normal_classes
from nbmodels.fitting.reference import nonlinear_predictions
from nbmodels.fitting.scores import stratified_folds
from nbmodels.fitting.shape_evidence import any_matrix, mostly_as

K = 3
ERRORS = {
    "uniform": uniform_noise(K, 0.4),
    "to the next": flip_noise(K, {(j, (j + 1) % K): 0.3 for j in range(K)}),
}


def clusters(rng, n=100, d=5, apart=4.0):
    """Normal classes, each a cluster of its own."""
    true = rng.permutation(np.arange(n) % K)
    return rng.normal(size=(n, d)) + apart * np.eye(K, d)[true], true


def found(x, given, n_classes=K):
    """Classes, begun at what a classifier of other rows' labels predicts, too."""
    starts = nonlinear_predictions(x, given, n_classes)
    about = [] if starts is None else [starts.classes]
    found = normal_classes(x, given, n_classes, np.ones(len(given)), about)
    return None if found is None else found.classes


def right(model, true):
    return np.mean(model.label_posterior_.argmax(1) == true)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("errors", list(ERRORS))
def test_they_are_the_classes_where_each_is_a_cluster(seed, errors):
    rng = np.random.default_rng(seed)
    x, true = clusters(rng)
    given = corrupt(true, ERRORS[errors], rng)
    classes = found(x, given)
    assert classes is not None
    assert np.mean(classes.found.resp.argmax(1) == true) > 0.95
    wanted = np.array([np.bincount(given[true == j], minlength=K) for j in range(K)])
    wanted = wanted / wanted.sum(1, keepdims=True)
    assert np.abs(classes.found.transition - wanted).max() < 0.1


@pytest.mark.parametrize("seed", range(4))
def test_right_labels_are_no_noise(seed):
    x, true = clusters(np.random.default_rng(seed))
    assert found(x, true) is None


def rings(rng, n=100):
    true = rng.integers(K, size=n)
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1 + 1.5 * true + 0.2 * rng.normal(size=n)
    return np.c_[radius * np.cos(angle), radius * np.sin(angle), rng.normal(size=(n, 2))], true


def two_clusters_a_class(rng, n=100):
    cluster = rng.permutation(np.arange(n) % (2 * K))
    x = rng.normal(size=(n, 4)) + 3 * rng.normal(size=(2 * K, 4))[cluster]
    return x, cluster % K


def across_clusters(rng, n=200):
    """Two groups of people, and two classes that both groups have, told by another column."""
    group, told = rng.integers(2, size=n), rng.normal(size=n)
    x = np.c_[4 * group + rng.normal(size=n), rng.normal(size=(n, 2)), told]
    return x, (told + 0.2 * rng.normal(size=n) > 0).astype(int)


def skewed(rng, n=100):
    true = rng.integers(K, size=n)
    return np.exp(rng.normal(size=(n, 4)) + rng.normal(size=(K, 4))[true]), true


@pytest.mark.parametrize("estimator", [NoisyGaussianNB, NoisyLogisticRegression])
@pytest.mark.parametrize(
    "shape", [slow(rings), two_clusters_a_class, slow(across_clusters), skewed]
)
def test_right_labels_of_other_shapes_stay(shape, estimator):
    x, true = shape(np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(random_state=0).fit(x, true)
    assert "linear discriminant" not in model.chosen_.values()


def test_few_rows_a_column_or_few_values_are_not_looked_at():
    rng = np.random.default_rng(0)
    x, true = clusters(rng)
    given = corrupt(true, ERRORS["uniform"], rng)
    assert found(np.hstack([x, rng.normal(size=(100, 8))]), given) is None  # 13 columns of 100 rows
    assert found(np.round(x), given) is None
    few = np.r_[np.flatnonzero(given > 0), np.flatnonzero(given == 0)[:9]]
    assert found(x[few], given[few]) is None


def test_a_combination_of_columns_is_none_of_its_own():
    rng = np.random.default_rng(1)
    x, true = clusters(rng)
    given = corrupt(true, ERRORS["uniform"], rng)
    one, other = (found(at, given) for at in (x, np.hstack([x, x @ rng.normal(size=(5, 20))])))
    assert other.x.shape[1] == 5
    np.testing.assert_array_equal(one.found.resp.argmax(1), other.found.resp.argmax(1))


def test_a_row_s_own_label_does_not_reach_its_scores():
    rng = np.random.default_rng(2)
    x, true = clusters(rng, apart=3.0)
    given = corrupt(true, uniform_noise(K, 0.2), rng)
    classes = found(x, given)
    fold = stratified_folds(given, 5, np.random.default_rng(0))
    own = fold == 0
    turned = np.where(own, (given + 1) % K, given)
    about = (fold,)
    before = classes.without_own_labels(*about)
    after = classes._replace(codes=turned).without_own_labels(*about)
    np.testing.assert_array_equal(before[own], after[own])
    assert np.abs(before[~own] - after[~own]).max() > 1e-3  # theirs are of other labels


def test_a_hidden_label_says_nothing_of_its_row():
    rng = np.random.default_rng(3)
    x, true = clusters(rng, apart=1.0)
    hidden = np.where(np.arange(len(x)) < 20, -1, true)
    start = mostly_as(np.eye(K)[true])
    fit = fit_classes(x, hidden, np.ones(len(x)), start, any_matrix, K)
    by_features = np.exp(fit.parts.log_probabilities(x))
    np.testing.assert_allclose(fit.resp[:20], by_features[:20], atol=1e-9)
    assert np.abs(fit.resp[20:] - by_features[20:]).max() > 0.01


def wine(seed):
    """120 wines of which two labels in five are wrong, and all others."""
    x, true = load_wine(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(true))
    some, others = order[:120], order[120:]
    return x[some], true[some], corrupt(true[some], ERRORS["uniform"], rng), x[others], true[others]


@pytest.mark.parametrize("estimator", [NoisyGaussianNB, NoisyLogisticRegression])
@pytest.mark.parametrize("seed", [slow(0), slow(1), 2, slow(3)])
def test_labels_noise_and_new_rows_are_by_the_clusters(estimator, seed):
    x, true, given, new, true_new = wine(seed)
    model = estimator(random_state=0).fit(x, given)
    if seed == 2:  # of others a fit may have nearly these labels already
        assert model.chosen_["scores"] == model.chosen_["predictions"] == "linear discriminant"
        assert STATED in model.fitted_.cautions
        assert STATED.message[:60] in model.verdict().sentence
    assert right(model, true) > 0.9
    assert np.mean(model.predict(new) == true_new) > 0.85
    assert abs(np.diag(model.noise_matrix_).mean() - np.mean(given == true)) < 0.08


@slow
def test_draws_are_of_the_noise_on_the_clusters():
    x, true, given, *_ = wine(2)
    model = NoisyGaussianNB(random_state=0).fit(x, given)
    rates = model.posterior(draws=200).posterior["noise_matrix"].values.reshape(-1, K, K)
    low, high = np.quantile(np.diagonal(rates, axis1=1, axis2=2).mean(1), [0.05, 0.95])
    assert low < np.mean(given == true) < high < low + 0.3


@slow
def test_what_was_given_stays():
    x, _, given, *_ = wine(2)
    groups = np.arange(120) // 2
    for fit in (
        NoisyLogisticRegression(rounds=0).fit(x, given),
        NoisyLogisticRegression(class_prior=[0.3, 0.3, 0.4]).fit(x, given),
        NoisyLogisticRegression().fit(x, given, groups=groups),
    ):
        assert "linear discriminant" not in fit.chosen_.values()
