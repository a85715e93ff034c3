"""The order in which labels are to be checked."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from nbmodels import (
    NbmodelsWarning,
    NoisyBernoulliNB,
    NoisyGaussianNB,
    NoisyLogisticRegression,
)
from nbmodels.core.model import PRIOR
from nbmodels.fitting.suspects import suspicion

STREAMS = Path(__file__).parents[3] / "shared" / "data" / "live_streaming.csv"


def in_clusters(seed, n=300):
    """Three classes of two clusters each; a quarter of the labels are moved to the next class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    centres = rng.normal(0, 2.5, (3, 2, 4))
    x = centres[y, rng.integers(0, 2, n)] + rng.normal(size=(n, 4))
    given = np.where(rng.random(n) < 0.25, (y + 1) % 3, y)
    return x, y, given


def fitted(model, x, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)  # clusters are not what they suppose
        return model.fit(x, given)


def arguments(model, given):
    resp = model.label_posterior_
    p_wrong = np.maximum(1 - resp[np.arange(len(given)), given], 0)  # it may round below 0
    return p_wrong, resp.argmax(1) != given


def test_a_joint_fit_ranks_by_its_own_probabilities():
    x, _, given = in_clusters(0)
    model = fitted(NoisyGaussianNB(training="joint", random_state=0), x, given)
    p_wrong, changed = arguments(model, given)
    np.testing.assert_array_equal(suspicion(model.fitted_, p_wrong, changed), p_wrong)


@pytest.mark.slow
def test_neighbours_count_in_a_cross_fitted_one():
    gains = []
    for seed in range(4):
        x, y, given = in_clusters(seed)
        model = fitted(NoisyLogisticRegression(random_state=0), x, given)
        p_wrong, changed = arguments(model, given)
        order = suspicion(model.fitted_, p_wrong, changed)
        wrong = given != y
        gains.append(roc_auc_score(wrong, order) - roc_auc_score(wrong, p_wrong))
        # labels that another one is suggested for come first
        if changed.any():
            assert order[changed].min() > order[~changed].max()
        ranks = model.corrected_labels().sort_values("rank")["row"].to_numpy()
        np.testing.assert_array_equal(order[ranks], np.sort(order)[::-1])
    assert np.mean(gains) > 0.02


@pytest.mark.slow
def test_neighbours_that_predict_no_label_do_not_count():
    x, _, given = in_clusters(1)
    model = fitted(NoisyLogisticRegression(random_state=0), x, given)
    p_wrong, changed = arguments(model, given)
    found = model.fitted_
    shares = np.bincount(given) / len(given)
    mute = replace(found.separable, without_own=np.log(shares)[found.separable.codes])
    alone = replace(found, separable=mute, reference_held_out=np.log(shares)[given])
    order = suspicion(alone, p_wrong, np.zeros(len(given), bool))
    # the likelihood ratio of the scores counts as P(wrong)
    likelihoods = found.data.parts[PRIOR][: len(given)] - np.log(shares)
    own = likelihoods[np.arange(len(given)), given]
    likelihoods[np.arange(len(given)), given] = -np.inf
    two = rankdata(p_wrong) + rankdata(likelihoods.max(1) - own)
    np.testing.assert_allclose(order, two / 2 / len(given))
    order = suspicion(found, p_wrong, changed)
    assert (np.argsort(order) != np.argsort(p_wrong)).any()
    # a nonlinear classifier that predicts as much as the fit counts as either
    sure = replace(alone, reference_held_out=found.held_out_scores + 0.1)
    order = suspicion(sure, p_wrong, np.zeros(len(given), bool))
    third = rankdata(np.log(shares)[given] - found.held_out_scores)
    np.testing.assert_allclose(order, (two + third) / 3 / len(given))


@pytest.mark.slow
def test_rows_of_weight_zero_are_ranked_too():
    x, _, given = in_clusters(2, 120)
    weight = np.ones(120)
    weight[:10] = 0
    with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
        model = NoisyLogisticRegression(random_state=0).fit(x, given, sample_weight=weight)
    p_wrong, changed = arguments(model, given)
    assert np.isfinite(suspicion(model.fitted_, p_wrong, changed)).all()


@pytest.mark.slow
def test_rows_without_a_label_have_no_rank():
    x, _, given = in_clusters(2)
    shown = given.copy()
    shown[:20] = -1
    model = fitted(NoisyLogisticRegression(random_state=0, missing_label=-1), x, shown)
    frame = model.corrected_labels()
    assert frame["rank"].isna().sum() == 20
    assert sorted(frame["rank"].dropna()) == list(range(1, len(given) - 19))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")  # naive Bayes is a poor model of it
@pytest.mark.skipif(not STREAMS.exists(), reason="the shared data are not at hand")
def test_live_streaming():
    frame = pd.read_csv(STREAMS)
    x, given = frame.drop(columns=["label", "true_label"]), frame["label"].astype(str)
    wrong = (given != frame["true_label"].astype(str)).to_numpy()
    found = NoisyBernoulliNB(random_state=0).fit(x, given).corrected_labels()
    by_rank = roc_auc_score(wrong, -found["rank"].to_numpy(float))
    assert by_rank > roc_auc_score(wrong, found["p_wrong"]) + 0.01
