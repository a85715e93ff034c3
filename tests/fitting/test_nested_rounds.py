"""Self-training rounds nested by fold, where trainings are dear."""

import numpy as np
import pytest

from inference.arrays import on_device
from nbmodels.core.model import Data
from nbmodels.fitting.classifier_scores import ClassifierScores

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
