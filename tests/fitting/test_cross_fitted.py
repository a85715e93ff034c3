"""A cut keeps what the channel believes from the features; worlds where naive Bayes is wrong."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from marks import slow
from scipy import sparse
from settings import configured
from sklearn.metrics import roc_auc_score
from worlds import clusters

from nbmodels import (
    CrossFit,
    JointNB,
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyMixedNB,
    NoisyMultinomialNB,
)
from nbmodels.class_priors import Calibration
from nbmodels.errors import DataError, VerdictWarning
from nbmodels.posterior import plots

N, K, D = 1200, 4, 40


@pytest.fixture(scope="module")
def world():
    return clusters(0)


def cut(x, y, estimator=NoisyBernoulliNB, **more):
    fit = {name: more.pop(name) for name in ("trusted", "votes", "sample_weight") if name in more}
    plain = {"training": CrossFit(rounds=0, size_power=0.0), "random_state": 0}
    return configured(estimator.published, **plain | more).fit(x, y, **fit)


def found(e, y, noisy):
    """Share of suggestions that are right, AUC for finding wrong labels, error of the diagonal."""
    resp = e.label_posterior_
    transition = np.zeros((K, K))
    np.add.at(transition, (y, noisy), 1)
    truth = np.diag(transition) / transition.sum(1)
    auc = roc_auc_score(noisy != y, 1 - resp[np.arange(len(y)), noisy])
    return np.mean(resp.argmax(1) == y), auc, np.abs(np.diag(e.noise_matrix_) - truth).mean()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, slow(1), slow(2)])
def test_it_holds_where_a_joint_fit_follows_clusters(seed):
    x, y, noisy = clusters(seed)
    given = np.mean(noisy == y)
    joint = NoisyBernoulliNB.published(random_state=0)
    with pytest.warns(VerdictWarning, match="instead of the labels"):
        joint.fit(x, noisy)
    right, auc, gap = found(cut(x, noisy), y, noisy)
    worse, joint_auc, joint_gap = found(joint, y, noisy)
    assert worse < given < right
    assert auc > 0.9 > joint_auc
    assert gap < 0.06 < joint_gap


@pytest.mark.slow
def test_it_agrees_with_a_joint_fit_where_naive_bayes_holds():
    x, y, noisy = clusters(0, groups=1)
    right, auc, gap = found(cut(x, noisy), y, noisy)
    joint = found(NoisyBernoulliNB.published(random_state=0).fit(x, noisy), y, noisy)
    assert right > joint[0] - 0.01
    assert auc > joint[1] - 0.01
    assert gap < 0.02


@pytest.mark.slow
def test_rounds_let_belief_back(world):
    x, _, noisy = world
    none, some = (
        cut(x, noisy),
        NoisyBernoulliNB.published(random_state=0, training=CrossFit(rounds=2, size_power=0.0)).fit(
            x, noisy
        ),
    )
    zero = NoisyBernoulliNB.published(
        random_state=0, training=CrossFit(rounds=0, size_power=0.0)
    ).fit(x, noisy)
    np.testing.assert_array_equal(none.label_posterior_, zero.label_posterior_)
    assert np.abs(none.label_posterior_ - some.label_posterior_).max() > 0.1


def test_a_label_does_not_come_back_to_its_item_by_way_of_others(world, monkeypatch):
    """Later rounds learn from responsibilities, which hold the labels that they were found with."""
    x, _, noisy = world
    monkeypatch.setattr(
        "nbmodels.fitting.cross_fitted.draw_folds", lambda guess, *_: np.arange(len(guess)) % 5
    )
    turned = noisy.copy()
    turned[::5] = np.roll(turned[::5], 1)
    fits = [
        NoisyBernoulliNB.published(random_state=0, training=CrossFit(rounds=2, size_power=0.0)).fit(
            x, y
        )
        for y in (noisy, turned)
    ]
    one, two = (np.asarray(e.fitted_.data.parts["class_prior"])[:N] for e in fits)
    np.testing.assert_array_equal(one[::5], two[::5])
    assert np.abs(one - two).max() > 0.1


@pytest.mark.parametrize("log_slope", [-2.0, 0.0, 1.0])
def test_a_step_of_the_calibration_climbs_where_scores_separate_the_classes(log_slope):
    """At 1 the plain Newton step falls."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 200)
    resp = jnp.asarray(np.eye(2)[y])
    scores = Calibration.pack(np.where(resp > 0, 3.0, -3.0) + rng.normal(0, 0.3, (200, 2)))
    model = Calibration.of(2)

    def expected(at):
        gap = at - model.prior.mean
        likelihood = jnp.sum(resp * model.log_probs(at, scores))
        return likelihood - 0.5 * gap @ model.prior.precision @ gap

    before = jnp.array([log_slope, 0.0, 0.0])
    after = model.update(model.stats(before, resp, scores), "map").mean
    assert expected(after) > expected(before)


def test_new_items_are_predicted_by_features_learned_from_all(world):
    x, y, noisy = world
    train, test = np.arange(900), np.arange(900, N)
    e = cut(x[train], noisy[train])
    proba = e.predict_proba(x[test])
    np.testing.assert_allclose(proba.sum(1), 1)
    assert np.mean(e.predict(x[test]) == y[test]) > 0.7
    logs = e.feature_log_prob_
    share = x[train][noisy[train] == 1].mean(0)
    assert np.corrcoef(np.exp(logs[1]), share)[0, 1] > 0.99


def test_known_shares_of_the_classes_count_against_labels_that_contradict_them():
    x, _, noisy = clusters(1)
    shares = np.array([0.7, 0.1, 0.1, 0.1])
    with pytest.warns(VerdictWarning):  # they are not those of the data
        e = cut(x, noisy, class_prior=shares)
    nothing = cut(x, noisy)
    assert e.class_prior_[0] > nothing.class_prior_[0] + 0.05
    np.testing.assert_allclose(e.class_prior_.sum(), 1)


def test_rows_of_weight_zero_and_without_a_label(world):
    x, y, noisy = world
    weights = np.ones(N)
    weights[:100] = 0
    some = np.where(np.arange(N) % 5 == 0, -1, noisy)
    e = cut(x, some, missing_label=-1, sample_weight=weights)
    turned = np.where(np.arange(N) < 100, (some + 1) % K, some)
    other = cut(x, turned, missing_label=-1, sample_weight=weights, classes=np.arange(K))
    np.testing.assert_allclose(e.noise_matrix_, other.noise_matrix_, atol=0.05)
    unlabelled = some == -1
    assert np.mean(e.label_posterior_.argmax(1)[unlabelled] == y[unlabelled]) > 0.7


@pytest.mark.slow
def test_every_kind_of_evidence_about_labels(world):
    x, y, noisy = world
    trusted = np.where(np.arange(N) < 60, y.astype(float), np.nan)
    e = cut(x, noisy, trusted=trusted)
    np.testing.assert_array_equal(e.label_posterior_.argmax(1)[:60], y[:60])
    rng = np.random.default_rng(3)
    task = np.arange(N).repeat(3)
    named = np.where(rng.random(3 * N) < 0.3, rng.integers(0, K, 3 * N), y[task])
    votes = pd.DataFrame({"task": task, "worker": np.tile([0, 1, 2], N), "label": named})
    both = cut(x, None, votes=votes)
    majority = np.zeros((N, K))
    np.add.at(majority, (task, named), 1)
    assert np.mean(both.label_posterior_.argmax(1) == y) > np.mean(majority.argmax(1) == y)


# counts are not normal: held-out labels are likelier where classes do not overlap
@pytest.mark.filterwarnings("ignore:Do not use this fit:nbmodels.errors.VerdictWarning")
@pytest.mark.parametrize(
    ("estimator", "form"),
    [
        (NoisyMultinomialNB, sparse.csr_array),
        slow(NoisyCategoricalNB, np.asarray),
        (NoisyGaussianNB, lambda x: x + np.random.default_rng(0).normal(0, 0.5, x.shape)),
        slow(NoisyMixedNB, np.asarray),
    ],
)
def test_every_emission(world, estimator, form):
    x, y, noisy = world
    e = cut(form(x), noisy, estimator)
    assert e.converged_
    # 120 rows in 40 columns tell more classes than four from the labels alone
    assert np.mean(e.label_posterior_.argmax(1) == y) > np.mean(noisy == y)


@pytest.mark.slow
def test_draws_are_of_the_noise(world):
    x, _, noisy = world
    e = cut(x, noisy)
    tree = e.posterior(draws=400, thin=5, chains=2, random_state=0)
    assert tree.attrs["kind"] == "posterior given the features' scores"
    draws = tree["posterior"]
    assert "features_probs" not in draws
    mean = draws["noise_matrix"].mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(np.diag(mean), np.diag(e.noise_matrix_), atol=0.05)
    np.testing.assert_allclose(
        draws["class_prior_log_slope"].mean(), float(e.fit_.point["class_prior"][0]), atol=0.1
    )
    _, shares = plots.class_shares(tree)
    np.testing.assert_allclose(shares["mean"], e.label_posterior_.mean(0), atol=0.02)
    _, traces = plots.chains(tree)
    assert len(traces) == 800


@pytest.mark.parametrize("rounds", ["half", -1, 0.5, None, True])
def test_other_numbers_of_rounds_are_refused(world, rounds):
    x, _, noisy = world
    with pytest.raises(DataError, match="rounds: expected"):
        NoisyBernoulliNB(training=CrossFit(rounds=rounds)).fit(x, noisy)
    with pytest.raises(DataError, match="training: expected"):
        NoisyBernoulliNB(training="half").fit(x, noisy)


@pytest.mark.slow
def test_a_source_among_others_gives_what_it_says_alone(world):
    """With labels alone beside it, it changes the labels that it changes alone."""
    x, _, noisy = world
    source = NoisyBernoulliNB(training="cross_fit", random_state=0)
    joint = JointNB({"features": source}, random_state=0).fit({"features": x}, noisy)
    alone = source.fit(x, noisy)
    assert joint.chosen_["features_training"] == "cross_fit"
    same = joint.label_posterior_.argmax(1) == alone.label_posterior_.argmax(1)
    assert same.mean() > 0.98
    np.testing.assert_allclose(joint.noise_matrix_, alone.noise_matrix_, atol=0.05)
