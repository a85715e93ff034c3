"""What votes do not show: accuracies of workers who vote alone, and classes that are confused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from nbmodels import DawidSkene, PosteriorWarning, VerdictWarning
from nbmodels.channels import OneCoinAnnotators
from nbmodels.class_priors import FixedProportions, Proportions
from nbmodels.core.model import PRIOR, Data
from nbmodels.diagnostics.checks.base import run
from nbmodels.diagnostics.checks.remedies import AUTO_POOLING, OWN_POOLING
from nbmodels.diagnostics.checks.votes import CHECKS
from nbmodels.fitting.scores import Candidate, with_score_prior
from nbmodels.fitting.vote_dependence import VoteDependence, VoteTable
from nbmodels.fitting.vote_shares import (
    alike,
    expected_shares,
    held_fast,
    held_near,
    least_kept,
    mean_accuracy,
    shown_share,
)
from nbmodels.posterior.sampling import about_mode


def cast(y, matrices, rng, per):
    """Table of votes of ``per`` random workers a task; ``(W, true, observed)`` matrices."""
    n, w = len(y), len(matrices)
    size = np.broadcast_to(per, n)
    draws = rng.random((w, n, 1))
    chosen = rng.random((n, w)).argsort(1).argsort(1) < size[:, None]
    upto = matrices[:, y].cumsum(2)[:, :, :-1]
    labels = (draws > upto).sum(2).T
    task, worker = np.nonzero(chosen)
    return pd.DataFrame({"task": task, "worker": worker, "label": labels[chosen]})


def one_rate(right, k):
    right = np.asarray(right, float)[:, None, None]
    return np.where(np.eye(k, dtype=bool), right, (1 - right) / (k - 1))


def given(model):
    return model.corrected_labels()["given"].to_numpy()


@pytest.mark.parametrize("solver", ["map", "vb"])
@pytest.mark.parametrize("share_of_one", [1.0, 0.9])
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_tasks_with_one_vote_keep_it(share_of_one, solver):
    rng = np.random.default_rng(1)
    y, right = rng.choice(3, 600, p=[0.5, 0.3, 0.2]), rng.uniform(0.5, 0.95, 10)
    per = np.where(rng.random(600) < share_of_one, 1, 3)
    model = DawidSkene(solver=solver, random_state=0).fit(cast(y, one_rate(right, 3), rng, per))
    alone = per == 1
    np.testing.assert_array_equal(model.predict()[alone], given(model)[alone])
    assert (model.predict() == y).mean() >= (given(model) == y).mean() - 0.01
    report = model.worker_report()
    truth = right[report["worker"]]
    assert ((report["low"] <= truth) & (truth <= report["high"])).mean() >= 0.8
    assert [f.name for f in model.verdict().bad] == ["accuracies"]


def test_one_vote_a_task_is_said_not_to_show_accuracies():
    rng = np.random.default_rng(2)
    table = cast(rng.integers(0, 2, 200), one_rate([0.8] * 5, 2), rng, 1)
    with pytest.warns(VerdictWarning, match="100 % of the votes .* all are taken to be alike"):
        model = DawidSkene().fit(table)
    remedies = model.verdict().bad[0].remedies
    assert not any("pooling" in one for one in remedies)  # the right one is set
    # smoothed shares of one vote of two classes
    np.testing.assert_allclose(model.label_posterior_.max(1), 0.75, atol=0.01)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised")
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_draws_of_workers_taken_for_alike_do_not_know_their_accuracy():
    """With the accuracy held for known, 12 of 30 intervals held the share of a class."""
    held, right = [], []
    for seed in range(5):
        rng = np.random.default_rng([seed, 3])
        y = rng.choice(3, 400, p=[0.5, 0.3, 0.2])
        matrices = one_rate(1 - rng.uniform(0.1, 0.35, 10), 3)
        once, twice = cast(y, matrices, rng, 1), cast(y, matrices, rng, 2)
        two = rng.random(400) < 0.12
        table = pd.concat([once[~two[once["task"]]], twice[two[twice["task"]]]])
        model = DawidSkene(classes=[0, 1, 2], random_state=0).fit(table)
        assert model.fitted_.vote_dependence.pooling == "alike"
        draws = model.posterior(keep="parameters").posterior
        low, high = np.quantile(draws["class_prior"].to_numpy().reshape(-1, 3), [0.05, 0.95], 0)
        share = np.bincount(y) / 400
        held.append((low <= share) & (share <= high))
        rates = np.einsum("dkk->d", draws["votes_noise_matrix"].to_numpy().reshape(-1, 3, 3)) / 3
        low, high = np.quantile(rates, [0.05, 0.95])
        right.append(low <= (table["label"] == y[table["task"]]).mean() <= high)
    assert np.mean(held) > 0.7
    assert np.mean(right) > 0.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_draws_of_a_group_are_said_to_be_too_narrow():
    rng = np.random.default_rng(2)
    per = np.where(np.arange(300) < 60, 2, 1)
    table = cast(rng.integers(0, 3, 300), one_rate([0.85] * 5, 3), rng, per)
    model = DawidSkene(random_state=0).fit(table)
    found = model.fitted_.vote_dependence
    group = replace(found, uneven=3.0)
    model.fitted_ = replace(model.fitted_, vote_dependence=group)
    with pytest.warns(PosteriorWarning, match="too narrow"):
        tree = model.posterior()
    assert "too narrow" in tree.attrs["warnings"]


@pytest.mark.parametrize(
    ("pooling", "left"),
    [
        ("none", {OWN_POOLING, AUTO_POOLING}),
        ("own", {AUTO_POOLING}),
        ("alike", set()),
    ],
)
def test_remedies_do_not_name_what_is_set(pooling, left):
    at = VoteDependence(0.5, 0.0, 0.0, 1.0, 1.0, unsupported=0.3, pooling=pooling, shown=0.1)
    found = list(run(CHECKS, at))
    assert [f.name for f in found if f.bad] == ["supported classes", "accuracies"]
    assert {r for f in found for r in f.remedies if "pooling" in r} == left


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["map", "vb"])
def test_of_two_confused_classes_none_takes_the_other(solver):
    rng = np.random.default_rng(1007)
    y, w = rng.integers(0, 5, 600), 15
    matrices = np.tile(np.eye(5) * 0.96 + 0.01, (w, 1, 1))
    for one, mistaken in zip(matrices, rng.uniform(0.2, 0.55, w), strict=True):
        one[:2, :2] = [[0.97 - mistaken, mistaken], [mistaken, 0.97 - mistaken]]
    matrices /= matrices.sum(2, keepdims=True)
    model = DawidSkene(solver=solver, random_state=0).fit(cast(y, matrices, rng, 5))
    assert model.class_prior_[:2].min() > 0.1  # of 0.2
    assert (model.predict() == y).mean() >= (given(model) == y).mean() - 0.01


@pytest.mark.slow
def test_known_shares_and_trusted_tasks_are_not_held_near_the_votes():
    rng = np.random.default_rng(4)
    y = (rng.random(300) < 0.1).astype(int)
    to_one = np.tile([[0.55, 0.45], [0.05, 0.95]], (6, 1, 1))
    table = cast(y, to_one, rng, 6)
    known = DawidSkene(class_prior=[0.9, 0.1]).fit(table)
    np.testing.assert_allclose(known.class_prior_, [0.9, 0.1])
    trusted = DawidSkene().fit(table, trusted=dict(enumerate(y[:150].tolist())))
    assert trusted.class_prior_[1] < 0.2


def test_accuracy_is_seen_in_how_often_pairs_agree():
    rng = np.random.default_rng(5)
    table = cast(rng.choice(3, 3000, p=[0.7, 0.2, 0.1]), one_rate([0.8] * 6, 3), rng, 3)
    votes = VoteTable(*(table[c].to_numpy() for c in ("task", "worker", "label")), 3000)
    assert mean_accuracy(votes, 3) == pytest.approx(0.8, abs=0.02)
    assert shown_share(votes, 6, np.zeros(3000, bool)) == 1.0
    # a class may be as rare as votes less errors say, but not far rarer
    assert held_fast(np.array([0.7, 0.2, 0.1]), votes) is None
    held, drawn = held_fast(np.array([0.88, 0.02, 0.1]), votes)
    np.testing.assert_allclose(held / held.sum(), [0.7, 0.2, 0.1], atol=0.03)
    np.testing.assert_allclose(drawn / drawn.sum(), held / held.sum())


def test_draws_are_held_no_more_surely_than_counts_show_the_shares():
    """Counts of annotators who differ do not show a share as many items of known class would."""
    items = {}
    for kind, rates in (("alike", [0.75] * 10), ("unlike", [0.55, 0.95] * 5)):
        rng = np.random.default_rng(0)
        table = cast(rng.choice(2, 1000, p=[0.9, 0.1]), one_rate(rates, 2), rng, 3)
        votes = VoteTable(*(table[c].to_numpy() for c in ("task", "worker", "label")), 1000)
        held, drawn = held_fast(np.array([0.999, 0.001]), votes)
        assert held.sum() == pytest.approx(1000)
        items[kind] = drawn.sum()
        # as sure as the spread of annotators' shares of labels makes the mean of them
        spread = expected_shares(votes, 2).variance
        true = held[1] / held.sum()
        assert true * (1 - true) / (items[kind] + 1) == pytest.approx(spread, rel=0.01)
    assert items["unlike"] < 0.3 * items["alike"] < 300


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_a_class_that_loses_its_tasks_beside_features_is_seen(share):
    rng = np.random.default_rng(5)
    table = cast(rng.choice(3, 900, p=[0.6, 0.2, 0.2]), one_rate([0.8] * 6, 3), rng, 3)
    votes = VoteTable(*(table[c].to_numpy() for c in ("task", "worker", "label")), 900)
    kept = least_kept(np.array([0.8 - share, 0.2, share]), votes)
    assert kept == pytest.approx(share / 0.2, rel=0.2)
    at = VoteDependence(0.0, 0.0, 0.0, 1.0, 1.0, unsupported=np.nan, kept=kept, alone=False)
    (found,) = (one for one in run(CHECKS, at) if one.name == "classes kept")
    assert found.bad == (share == 0.02)


@pytest.mark.parametrize(("n", "held"), [(60, 60), (200, 100), (400, 25), (2000, 1)])
def test_few_items_are_held_near_their_votes(n, held):
    rng = np.random.default_rng(7)
    table = cast(rng.choice(3, n, p=[0.7, 0.2, 0.1]), one_rate([0.8] * 6, 3), rng, 3)
    votes = VoteTable(*(table[c].to_numpy() for c in ("task", "worker", "label")), n)
    found, drawn = held_near(votes, 3)
    assert not drawn.any()
    assert found.sum() == pytest.approx(held)
    seen = np.bincount(votes.label) / len(votes.label)
    assert seen.min() > found[2] / held > 0.05  # between those of the votes, and fewer
    np.testing.assert_array_equal(held_near(votes, 4).fits[3], 0)  # nobody names it


def spam(rng, n, p=(1 / 3, 1 / 3, 1 / 3)):
    """Votes of which half are by four workers, who name one class nearly always; the classes."""
    y, matrices = rng.choice(3, n, p=p), one_rate([0.75] * 8, 3)
    matrices[:4] *= 0.1
    matrices[range(4), :, [0, 1, 2, 0]] += 0.9
    return cast(y, matrices, rng, 3), y


def codes(table, n):
    return VoteTable(*(table[c].to_numpy() for c in ("task", "worker", "label")), n)


def test_workers_who_each_name_one_class_do_not_show_the_shares():
    rng = np.random.default_rng(8)
    table, _ = spam(rng, 600)
    votes = codes(table, 600)
    seen, true, *_ = expected_shares(votes, 3)
    assert seen[0] > 0.36  # two of the four name it
    even = (1 - mean_accuracy(votes, 3)) / 2
    less = (seen - even) / (1 - 3 * even)
    assert true[0] - seen[0] < (less[0] - seen[0]) / 2
    # the same accuracy, with errors that are even: what is common to the workers is of the classes
    y = rng.choice(3, 600, p=[0.6, 0.3, 0.1])
    poor = codes(cast(y, one_rate([0.5] * 8, 3), rng, 3), 600)
    assert mean_accuracy(poor, 3) < 0.6
    true = expected_shares(poor, 3).true
    np.testing.assert_allclose(true, [0.6, 0.3, 0.1], atol=0.05)


def test_one_worker_shows_no_more_than_shares_of_votes():
    votes = VoteTable(np.arange(90), np.zeros(90, int), np.repeat([0, 1, 2], [60, 20, 10]), 90)
    seen, true, n, _ = expected_shares(votes, 3)
    np.testing.assert_array_equal(seen, true)
    np.testing.assert_allclose(seen, [60 / 90, 20 / 90, 10 / 90])
    assert n == 90


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_in_small_crowds_spammers_are_seldom_taken_for_the_truth():
    """Without what holds shares and accuracies 55 % are right, and of the majority's 65 %."""
    right, majority = [], []
    for seed in range(6):
        table, y = spam(np.random.default_rng(seed), 120)
        model = DawidSkene(random_state=0).fit(table)
        right.append((model.predict() == y).mean())
        majority.append((given(model) == y).mean())
    assert np.mean(right) > np.mean(majority)


def test_labels_stay_where_votes_agree_by_chance():
    """Half of the labels were changed, 49 % were right, and of the majority's 66 %."""
    rng = np.random.default_rng(514)
    y = rng.integers(0, 2, 200)
    table = cast(y, one_rate([0.6, 0.6, 0.55], 2), rng, 3)
    with pytest.warns(VerdictWarning, match="by chance.*, and all are taken to be alike"):
        model = DawidSkene(random_state=0).fit(table)
    np.testing.assert_array_equal(model.predict(), given(model))
    assert model.label_posterior_.max() < 0.9


def test_two_who_know_are_found_among_many_who_guess():
    """Of all pairs votes agree by chance; a class behind them is likelier by many nats."""
    right, majority = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 150)
        table = cast(y, one_rate([0.95, 0.9, *[0.5] * 6], 2), rng, 5)
        model = DawidSkene(random_state=0).fit(table)
        right.append((model.predict() == y).mean())
        majority.append((given(model) == y).mean())
    assert np.mean(right) > np.mean(majority) + 0.1


@pytest.mark.parametrize("times", [1, 3, 100])
def test_accuracies_are_drawn_to_the_crowds_the_more_the_fewer_votes(times):
    right = times * np.array([90.0, 60.0])[:, None, None]
    counts = np.where(np.eye(2), right, times * 100 - right)  # 400 votes, 1200, 40 000
    channel = OneCoinAnnotators.of(2, 2)
    _, begun = channel.for_draws(channel.update(counts, "map"))
    mean, size = np.asarray(begun.crowd)
    assert np.exp(size) == pytest.approx(3 if times == 100 else 15, rel=1e-4)
    assert expit(mean) == pytest.approx(0.75, abs=1e-3)


def test_without_pairs_a_vote_is_right_as_smoothed_shares_say():
    label = np.repeat([0, 1], [80, 20])
    votes = VoteTable(np.arange(100), np.arange(100) % 7, label, 100)
    assert shown_share(votes, 7, np.zeros(100, bool)) == 0.0
    matrix, shares = alike(votes, 2)
    resp = matrix * shares / (matrix * shares).sum(1, keepdims=True)
    np.testing.assert_allclose(resp, [[0.75, 0.25], [0.25, 0.75]])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_a_class_that_workers_skip_is_said_to_have_other_shares():
    rng = np.random.default_rng(6)
    y = rng.integers(0, 3, 600)
    table = cast(y, one_rate(rng.uniform(0.65, 0.9, 20), 3), rng, np.where(y == 2, 1, 5))
    skipped = DawidSkene().fit(table)
    assert [f.name for f in skipped.verdict().bad] == ["votes by class"]
    assert skipped.class_prior_[2] > 0.2  # of 0.33
    per = np.where(rng.random(600) < 0.4, 1, 5)
    table = cast(y, one_rate(rng.uniform(0.65, 0.9, 20), 3), rng, per)
    assert DawidSkene().fit(table).verdict().ok


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_what_holds_the_shares_is_no_part_of_draws():
    rng = np.random.default_rng(3)
    table = cast(rng.integers(0, 3, 60), one_rate([0.8] * 5, 3), rng, 3)
    fitted = DawidSkene(random_state=0).fit(table).fit_
    held, drawn = (one.model[PRIOR].prior for one in (fitted, about_mode(fitted)))
    assert np.sum(held.concentration) == pytest.approx(60 + 6)
    np.testing.assert_array_equal(drawn.concentration, 2)
    known = DawidSkene(class_prior=[0.4, 0.3, 0.3]).fit(table).fit_.model[PRIOR]
    assert isinstance(known, FixedProportions)


def test_calibrated_scores_are_held_at_the_same_shares():
    """Whether scores hold the shares or say nothing of them, and whatever their slope."""
    shares = Proportions.of(2).with_items(np.array([30.0, 10.0]), np.zeros(2))
    labels = Candidate({PRIOR: shares}, Data({PRIOR: None}, np.ones(50)))
    for scores in (np.zeros(2), np.log([32, 12])):
        component, data, _ = with_score_prior(labels, np.tile(scores, (50, 1)))
        prior = component[PRIOR].prior
        for slope in (0.0, 2.0):
            at = prior.mean.at[0].set(slope)
            probs = np.exp(component[PRIOR].log_probs(at, data.parts[PRIOR]))
            np.testing.assert_allclose(probs, np.tile([32 / 44, 12 / 44], (50, 1)), atol=1e-9)
        np.testing.assert_allclose(np.diag(prior.precision)[1:], [31, 11])
