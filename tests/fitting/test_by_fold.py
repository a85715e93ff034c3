"""Scores by fold are those of passes over all rows, fold by fold."""

import jax
import numpy as np
import pytest
from scipy import sparse
from zoo import EMISSIONS, K, build

from inference.arrays import on_device
from inference.products import ByFold, Sparse
from nbmodels.core.model import Data
from nbmodels.emissions import Bernoulli, DiagonalGaussian, Multinomial
from nbmodels.fitting import scores
from nbmodels.fitting.by_fold import (
    folded_features,
    other_folds,
    scored_by_fold,
    summed_by_fold,
)
from nbmodels.fitting.scores import (
    Candidate,
    EmissionScores,
    out_of_fold_log_likelihood,
    stratified_folds,
)

N, FOLDS = 40, 4


def resp_of(case):
    return 0.9 * jax.nn.one_hot(case.y, K) + 0.1 / K


def both_ways(emissions, data, resp, fold):
    slow = out_of_fold_log_likelihood(emissions, data, resp, fold, n_folds=FOLDS)
    parts = {name: data.parts[name] for name in emissions}
    features = folded_features(parts, np.asarray(data.weights), fold)
    assert features is not None
    about = emissions, features, data.weights, data.powers
    counted = on_device(other_folds(FOLDS))
    return slow, scored_by_fold(*about, summed_by_fold(*about, resp), counted), features


@pytest.mark.slow
@pytest.mark.parametrize("name", EMISSIONS)
def test_they_are_those_of_all_passes(name):
    case = build(name, n_items=N, row_weights=True)
    fold = stratified_folds(np.asarray(case.y), FOLDS, np.random.default_rng(0))
    parts = {name: case.data.parts[name]}
    if folded_features(parts, np.asarray(case.data.weights), fold) is None:
        pytest.skip("rows cannot be told from other numbers")
    if case.model[name].has_latent:
        pytest.skip("latent variables are by parameters of all items; see test_heavy_tails.py")
    slow, fast, _ = both_ways({name: case.model[name]}, case.data, resp_of(case), fold)
    np.testing.assert_allclose(fast, slow, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("family", [Bernoulli, Multinomial])
def test_sparse_rows_are_passed_over_once_for_all_folds(family):
    rng = np.random.default_rng(0)
    x = sparse.csr_array(rng.poisson(0.4, (N, 30)).clip(0, 1).astype(float))
    y, fold = rng.integers(0, K, N), np.arange(N) % FOLDS
    data = Data({"x": family.pack(x)}, np.ones(N), {"x": rng.uniform(0.5, 2, N)})
    slow, fast, features = both_ways({"x": family.of(30, K)}, data, np.eye(K)[y], fold)
    np.testing.assert_allclose(fast, slow, rtol=1e-5, atol=1e-5)
    assert isinstance(features.parts["x"].x, ByFold)
    assert isinstance(features.parts["x"].x.blocks, Sparse)


def test_padding_is_spread_over_the_folds():
    weights = np.r_[np.ones(40), np.zeros(24)]
    fold = np.r_[np.arange(40) % FOLDS, np.zeros(24, int)]
    features = folded_features({"x": np.zeros((64, 3))}, weights, fold)
    assert features.rows.shape == (FOLDS, 16)
    assert np.sort(np.asarray(features.place)).tolist() == list(range(64))


def test_scores_of_one_fold_are_those_of_all():
    rng = np.random.default_rng(0)
    x, y, fold = rng.integers(0, 2, (N, 6)), rng.integers(0, K, N), np.arange(N) % FOLDS
    model, data = {"x": Bernoulli.of(6, K)}, Data({"x": Bernoulli.pack(x)}, np.ones(N))
    source = EmissionScores(lambda _: Candidate(model, data), ("x",), fold, "map")
    resp = np.eye(K)[y]
    one, every = source.scores({}, resp, [2]), source.scores({}, resp)
    np.testing.assert_array_equal(one[fold == 2], every[fold == 2])
    assert (np.asarray(one)[fold != 2] == 0).all(), "other folds are not computed"


def test_scores_of_sequences_are_made_of_one_set_of_sums(monkeypatch):
    """Each as if the responsibilities of its fold were zeros."""
    rng = np.random.default_rng(0)
    x, y, fold = rng.integers(0, 2, (N, 6)), rng.integers(0, K, N), np.arange(N) % FOLDS
    model, data = {"x": Bernoulli.of(6, K)}, Data({"x": Bernoulli.pack(x)}, np.ones(N))
    resp = np.eye(K)[y]

    def nested(source):
        return [np.asarray(source.nested_scores({}, resp, k, own=False)) for k in range(FOLDS)]

    about = lambda _: Candidate(model, data), ("x",), fold, "map"
    plain = nested(EmissionScores(*about))
    monkeypatch.setattr(scores, "_MANY_ROWS", 1)
    summed, once = scores.summed_by_fold, []
    monkeypatch.setattr(scores, "summed_by_fold", lambda *a: once.append(1) or summed(*a))
    np.testing.assert_allclose(nested(EmissionScores(*about)), plain, rtol=1e-5, atol=1e-5)
    assert len(once) == 1


def test_a_sequence_scores_its_own_fold_alone(monkeypatch):
    rng = np.random.default_rng(0)
    x, y, fold = rng.normal(size=(N, 3)), rng.integers(0, K, N), np.arange(N) % FOLDS
    model, data = (
        {"x": DiagonalGaussian.of(3, K)},
        Data({"x": DiagonalGaussian.pack(x)}, np.ones(N)),
    )
    monkeypatch.setattr(scores, "_MANY_ROWS", 1)
    source = EmissionScores(lambda _: Candidate(model, data), ("x",), fold, "map")
    assert not source.all_at_once({})
    about = {}, np.eye(K)[y], 2
    every, whole = source.nested_scores(*about, own=True), scores.scored_by_fold
    monkeypatch.setattr(scores, "scored_by_fold", None)  # other folds are not computed
    np.testing.assert_allclose(source.fold_scores(*about), every[fold == 2], rtol=1e-6)
    monkeypatch.setattr(scores, "scored_by_fold", whole)


def test_padding_of_a_fold_has_scores_of_zeros(monkeypatch):
    """Rows without weight are spread over the folds, and stand in the first."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(N, 3)), rng.integers(0, K, N)
    used = np.arange(N) < N - 7
    fold = np.where(used, np.arange(N) % FOLDS, 0)
    data = Data({"x": DiagonalGaussian.pack(x)}, used.astype(float))
    monkeypatch.setattr(scores, "_MANY_ROWS", 1)
    about = lambda _: Candidate({"x": DiagonalGaussian.of(3, K)}, data), ("x",), fold, "map"
    source, resp = EmissionScores(*about), np.eye(K)[y] * used[:, None]
    for k in range(FOLDS):
        here = fold == k
        own = source.fold_scores({}, resp, k)
        every = np.asarray(source.nested_scores({}, resp, k, own=True))[here]
        np.testing.assert_allclose(own[used[here]], every[used[here]], rtol=1e-6)
        assert len(own) == here.sum()
        assert np.isfinite(own).all()
