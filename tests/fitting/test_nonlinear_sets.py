"""Nonlinear least squares from label sets."""

import numpy as np
import pytest

from nbmodels.fitting import nonlinear_sets
from nbmodels.fitting.nonlinear_sets import NonlinearSets

K, N = 3, 240


def rings(seed=0):
    """Items of three rings, and sets of the class and each other one with 40 %."""
    rng = np.random.default_rng(seed)
    true, angle = rng.integers(K, size=N), rng.uniform(0, 2 * np.pi, N)
    radius = 1.0 + 1.5 * true + 0.2 * rng.normal(size=N)
    x = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return x, (rng.random((N, K)) < 0.4) | np.eye(K, dtype=bool)[true], true


def even(possible):
    return possible / possible.sum(1, keepdims=True)


def test_rings_are_learned_from_sets():
    x, possible, true = rings()
    learner = NonlinearSets.of(x, possible, np.ones(N), None)
    fold = np.arange(N) % 5
    scores = learner.out_of_fold(even(possible), np.ones(N), fold, {})
    assert learner.by_em
    assert np.mean(scores.argmax(1) == true) > 0.9
    classifier = learner.classifier(lambda points, missing: points, even(possible), np.ones(N), {})
    assert np.mean(classifier.classifier.of_points(x).argmax(1) == true) > 0.9


def test_scores_of_a_fold_do_not_see_its_sets():
    x, possible, _ = rings()
    learner = NonlinearSets.of(x, possible, np.ones(N), None)
    fold = np.arange(N) % 5
    before = learner.out_of_fold(even(possible), np.ones(N), fold, {})
    own = learner.sample.possible
    own[(fold == 2)[learner.taken]] = True
    possible[learner.taken] = own
    after = learner.out_of_fold(even(possible), np.ones(N), fold, {})
    np.testing.assert_allclose(after[fold == 2], before[fold == 2], rtol=1e-9)
    assert abs(after - before)[fold != 2].max() > 1e-3


def test_rows_of_no_weight_are_not_learned_from():
    x, possible, _ = rings()
    weights = (np.arange(N) % 3 > 0).astype(float)
    fold = np.arange(N) % 5
    learner = NonlinearSets.of(x, possible, weights, None)
    before = learner.out_of_fold(even(possible), weights, fold, {})
    possible[weights == 0] = np.eye(K, dtype=bool)[0]
    again = NonlinearSets.of(x, possible, weights, None)
    np.testing.assert_array_equal(again.out_of_fold(even(possible), weights, fold, {}), before)


def test_em_asks_for_predictions_without_the_item(monkeypatch):
    """The first iteration, by fits that leave one item out each."""
    monkeypatch.setattr(nonlinear_sets, "_ITERATIONS", 1)
    rng = np.random.default_rng(4)
    design = rng.normal(size=(30, 4))
    possible = (rng.random((30, K)) < 0.5) | np.eye(K, dtype=bool)[rng.integers(K, size=30)]
    weights = rng.uniform(0.5, 2, 30)
    found = nonlinear_sets._learned(design, even(possible), possible, weights)
    target = np.empty((30, K))
    for i in range(30):
        others = np.arange(30) != i
        table = nonlinear_sets._learned(
            design[others], even(possible)[others], possible[others], weights[others]
        ).even
        target[i] = possible[i] * np.maximum(design[i] @ table, nonlinear_sets._LEAST)
    target /= target.sum(1, keepdims=True)
    root = np.sqrt(weights)[:, None]
    padded = np.vstack([root * design, np.eye(4)])
    expected = np.linalg.lstsq(padded, np.vstack([root * target, np.zeros((4, K))]))[0]
    np.testing.assert_allclose(found.by_em, expected, rtol=1e-8)


def test_more_rows_than_are_learned_from_are_scored(monkeypatch):
    x, possible, true = rings()
    monkeypatch.setattr(nonlinear_sets, "_ROWS", 120)
    learner = NonlinearSets.of(x, possible, np.ones(N), None)
    assert len(learner.taken) == 120
    scores = learner.out_of_fold(even(possible), np.ones(N), np.arange(N) % 5, {})
    others = np.setdiff1d(np.arange(N), learner.taken)
    assert np.mean(scores.argmax(1) == true) > 0.8
    assert np.mean(scores[others].argmax(1) == true[others]) > 0.8


def test_sets_of_several_classes_show_which_columns_are_informative():
    """Parts of an item in several classes vary less than labels do."""
    rng = np.random.default_rng(5)
    x, _, true = rings()
    x = np.column_stack([x, rng.normal(size=(N, 12))])
    possible = np.arange(K) != ((true + rng.integers(1, K, N)) % K)[:, None]  # one is excluded
    sample = nonlinear_sets._Sample.of(x, possible, np.ones(N))
    found = sample.informative(np.arange(N))
    assert {0, 1} <= set(found)
    assert len(found) <= 4
    sure = nonlinear_sets._Sample.of(x, np.eye(K, dtype=bool)[true], np.ones(N))
    expected = sure.screening.informative(np.arange(N), true, K, np.ones(N))
    np.testing.assert_array_equal(sure.informative(np.arange(N)), expected)


@pytest.mark.parametrize("classes", [[0], [0, 2]])
def test_sets_that_are_all_the_same_show_nothing(classes):
    x, _, _ = rings()
    possible = np.tile(np.isin(np.arange(K), classes), (N, 1))
    sample = nonlinear_sets._Sample.of(x, possible, np.ones(N))
    np.testing.assert_array_equal(sample.informative(np.arange(N)), [0, 1])
