"""Predictions by the levels of informative columns."""

import numpy as np
import pytest
from marks import slow
from scipy.stats import rankdata

from nbmodels import NoisyGaussianNB
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.fitting import nonlinear_ways
from nbmodels.fitting.nonlinear_classifier import shares_below
from nbmodels.fitting.reference import nonlinear_predictions
from nbmodels.fitting.scores import stratified_folds
from nbmodels.fitting.screened_columns import ColumnLevels, screened_predictions

K = 3


def codes_of_places(rng, n=400):
    """Three columns of numbers that are codes: near ones are not alike."""
    true = rng.integers(K, size=n)
    steps = rng.dirichlet(np.full(12, 0.4), (3, K)).cumsum(2)[:, true]
    found = (rng.random((3, n, 1)) > steps[:, :, :-1]).sum(2)
    return np.stack([rng.permutation(12)[column] for column in found], 1).astype(float), true


def one_of_many(rng, n=400, d=150):
    """One column has the classes three standard deviations apart, the others say nothing."""
    true = rng.integers(K, size=n)
    x = rng.normal(size=(n, d))
    x[:, 17] += 3 * true
    return x, true


def predicted(x, codes, fold=None):
    shares = (rankdata(x, axis=0) - 0.5) / len(x)
    fold = stratified_folds(codes, 5, np.random.default_rng(0)) if fold is None else fold
    target = np.eye(K)[codes] * (fold >= 0)[:, None]
    return screened_predictions(shares, ColumnLevels.of(shares)[0], target, fold, np.ones(len(x)))


def test_thirty_values_are_codes_or_an_order_as_held_out_labels_have_it():
    """With levels for each, ages lost 13 of 100 classes; with quantiles, codes lost 8."""
    rng = np.random.default_rng(0)
    ages = np.round(7 * rng.normal(size=(200, 30)) + 40)
    old = np.digitize(np.cos(ages[:, 0] / 4) + np.sin(ages[:, 1] / 5), [-0.6, 0.6])
    tables = rng.normal(0, 1.5, (4, 25, K))
    parts = rng.integers(25, size=(600, 4))
    kind = sum(tables[j][parts[:, j]] for j in range(4)).argmax(1)
    for x, true, least, fine in ((ages, old, 0.65, False), (parts.astype(float), kind, 0.6, True)):
        coarse, values = ColumnLevels.of(shares_below(x))
        assert values.sizes[0] > 20 > coarse.sizes[0] == 8
        found = nonlinear_predictions(x, true, K)
        assert np.mean(found.classes == true) > least
        taken = found.learn.args[0]  # levels, or the number of a basis
        assert np.array_equal(values.sizes, getattr(taken, "sizes", ())) == fine


@pytest.mark.parametrize("world", [codes_of_places, one_of_many])
def test_the_reference_knows_codes_and_single_columns(world):
    """Kernels of all columns predicted 68 and 47 of 100 classes."""
    x, true = world(np.random.default_rng(0))
    given = corrupt(true, uniform_noise(K, 0.1), np.random.default_rng(1))
    assert np.mean(nonlinear_predictions(x, given, K).classes == true) > 0.8


@pytest.mark.slow
def test_few_rows_of_normal_classes_keep_their_kernel(monkeypatch):
    """The levels' smaller error was chance, and a fit lost 15 right labels in 100 by it."""
    tables = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        true = np.arange(60) % 2
        x = rng.normal(size=(60, 8)) + 0.8 * rng.normal(size=(2, 8))[true]
        tables.append((x, corrupt(true, uniform_noise(2, 0.2), rng)))
    own = nonlinear_ways._BETTER
    found = {}
    for margin in (np.inf, 0.0, own):
        monkeypatch.setattr(nonlinear_ways, "_BETTER", margin)
        found[margin] = [nonlinear_predictions(*one, 2).held_out for one in tables]
    changed = {
        margin: sum(not np.array_equal(*p) for p in zip(some, found[np.inf], strict=True))
        for margin, some in found.items()
    }
    assert changed[0.0] > 0
    assert changed[own] == 0


def test_labels_at_random_are_not_predicted():
    """Columns that were screened by all labels would predict the held-out ones, too."""
    rng = np.random.default_rng(0)
    x, codes = rng.normal(size=(200, 400)), rng.integers(K, size=200)
    found = predicted(x, codes)
    assert np.mean(found.argmax(1) == codes) < 0.45
    by_shares = np.square(np.eye(K)[codes] - np.bincount(codes) / 200).sum(1).mean()
    assert np.square(found - np.eye(K)[codes]).sum(1).mean() > by_shares


def test_columns_that_tell_nothing_leave_the_shares():
    codes = np.arange(90) % K
    fold = np.repeat(np.arange(5), 18)
    np.testing.assert_allclose(predicted(np.zeros((90, 4)), codes, fold), 1 / K)


def test_rows_without_a_label_are_predicted_by_all_others():
    x, true = codes_of_places(np.random.default_rng(0))
    fold = np.where(np.arange(400) < 100, -1, np.arange(400) % 5)
    found = predicted(x, true, fold)
    assert np.mean(found.argmax(1) == true) > 0.8
    assert np.mean((found.argmax(1) == true)[:100]) > 0.8


@pytest.mark.parametrize(("world", "seed"), [(codes_of_places, 0), slow(one_of_many, 1)])
def test_labels_are_corrected_where_columns_tell_one_by_one(world, seed):
    """Labels stayed or were lost, and predictions were poor."""
    rng = np.random.default_rng(seed)
    x, true = world(rng, n=600)
    y = corrupt(true, uniform_noise(K, 0.2), rng)
    model = NoisyGaussianNB(random_state=0).fit(x, y)
    assert model.chosen_["scores"] == model.chosen_["predictions"] == "nonlinear classifier"
    assert np.mean(model.predict(x) == true) > np.mean(y == true) + 0.05
    assert np.mean(model.corrected_labels()["suggested"] == true) > np.mean(y == true) + 0.08
