"""Self-training rounds nested by fold, where trainings are dear."""

from types import SimpleNamespace

import numpy as np
import pytest

from inference.arrays import on_device
from nbmodels.core.model import Data
from nbmodels.fitting.classifier_scores import ClassifierScores
from nbmodels.fitting.discriminative import _less_likely

K = 2


class Means:
    """Scores of items are the mean of those that are learned from, kept by what these are."""

    rounds, halves = 1, True

    def __init__(self):
        self.learned_from = set()

    def out_of_fold(self, resp, weights, fold, settings, folds=None):
        out = np.zeros_like(resp)
        for k in np.unique(fold) if folds is None else folds:
            rows = np.flatnonzero((weights > 0) & (fold != k) & resp.any(1))
            self.learned_from.add(tuple(rows))
            out[fold == k] = resp[rows].mean(0)
        return out


def scores_of(n_folds):
    fold = np.arange(10 * n_folds) % n_folds
    weights = np.ones(len(fold))
    about = Means(), {}, {}, Data({}, on_device(weights)), K, weights, fold
    return ClassifierScores(*about, open_rounds=True)


@pytest.mark.parametrize("n_folds", [5, 6, 8, 9])
def test_sequences_share_halves_and_see_no_item_of_their_fold(n_folds):
    source = scores_of(n_folds)
    fold = source.fold
    # an item's responsibilities name it, so that a mean shows who is in it
    resp = np.stack([2.0 ** (-fold - 1), 1 - 2.0 ** (-fold - 1)], 1)
    for k in range(n_folds):
        masked = resp * (fold != k)[:, None]
        found = source.nested_scores({}, masked, k, own=False)
        assert (found[fold == k] == 0).all()
        for j in set(range(n_folds)) - {k}:
            own, of_fold = found[fold == j], resp[fold == j][0]
            assert (own == own[0]).all()
            assert own[0].sum() == pytest.approx(1)  # learned from something
            assert own[0] != pytest.approx(of_fold)
    sizes = {len(rows) for rows in source.learner.learned_from}
    assert sizes == {10 * ((n_folds - 1) // 2)}
    assert len(source.learner.learned_from) == n_folds
    for rows in source.learner.learned_from:
        folds = {int(fold[i]) for i in rows}
        assert len(folds) == (n_folds - 1) // 2


@pytest.mark.parametrize("n_folds", [5, 6, 8, 9, 10])
def test_the_test_of_a_round_trains_no_more_than_there_are_folds(n_folds):
    source = scores_of(n_folds)
    resp = np.full((len(source.fold), K), 0.5)
    for k in source.tested:
        masked = resp * (source.fold != k)[:, None]
        source.nested_scores({}, masked, k, own=False)
    assert len(source.learner.learned_from) + len(source.tested) <= n_folds
    assert len(set(source.tested)) >= 2


@pytest.mark.parametrize(("gain", "fails"), [(-0.1, True), (-0.001, False), (0.1, False)])
def test_rounds_after_which_labels_are_surely_less_likely_are_not_taken(gain, fails):
    rng = np.random.default_rng(0)
    n = 100
    before = rng.normal(-0.6, 0.2, n)
    after = before + gain + rng.normal(0, 0.1, n)
    given = np.eye(K)[rng.integers(K, size=n)]
    # rows without a label, or of no weight, are not asked
    given[:10], after[:10] = 0, np.nan
    weights = np.r_[np.ones(90), np.zeros(10)]
    after[90:] = before[90:] - 100
    first = SimpleNamespace(scores=before, data=SimpleNamespace(weights=weights))
    assert _less_likely(after, first, given, None) == fails
