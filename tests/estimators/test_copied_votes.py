"""Annotators and functions that copy from each other: found, named, and counted for less."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from marks import slow

from nbmodels import DawidSkene, Joint, JointNB, NoisyGaussianNB, VerdictWarning
from nbmodels.channels import LabellingFunctions
from nbmodels.class_priors import Proportions
from nbmodels.core import model as m
from nbmodels.core import numpyro_program as program
from nbmodels.datasets import corrupt, flip_noise
from nbmodels.fitting import copied_votes, vote_pairs
from nbmodels.fitting.copied_votes import MOST_UNEVEN, find_copies, uneven_pairs
from nbmodels.fitting.copies import no_copies
from nbmodels.fitting.vote_dependence import VoteTable


def world(rates, copies=(), part=0.9, n=400, k=3, seed=0):
    """``(N, W)`` votes of workers with these error rates, of whom ``copies`` repeat the first."""
    rng = np.random.default_rng(seed)
    y, w = rng.integers(0, k, n), len(rates)
    wrong = rng.random((n, w)) < np.asarray(rates)
    votes = np.where(wrong, (y[:, None] + rng.integers(1, k, (n, w))) % k, y[:, None])
    for copy in copies[1:]:
        same = rng.random(n) < part
        votes[same, copy] = votes[same, copies[0]]
    return votes, y


def coded(votes):
    row, worker = np.nonzero(votes >= 0)
    return VoteTable(row, worker, votes[row, worker], len(votes))


def frame(votes):
    row, worker = np.nonzero(votes >= 0)
    return pd.DataFrame({"task": row, "worker": worker, "label": votes[row, worker]})


def majority(votes, y, k=3):
    counts = np.stack([(votes == c).sum(1) for c in range(k)], 1)
    best = counts == counts.max(1, keepdims=True)
    return (best[np.arange(len(y)), y] / best.sum(1)).mean()


@pytest.mark.parametrize("seed", range(5))
def test_copies_are_found(seed):
    votes, _ = world((0.15, 0.2, 0.2, 0.25, 0.4, 0.4, 0.4), (4, 5, 6), seed=seed)
    found = find_copies(coded(votes), 7, 3, abstains=False)
    assert found.partners(4).tolist() == [5, 6]
    assert [len(found.partners(w)) for w in range(4)] == [0, 0, 0, 0]
    assert 0.5 < found.copied[4] < 1
    np.testing.assert_allclose(found.powers()[:4], 1)
    assert found.weights(coded(votes)).sum() < 0.75 * votes.size


@pytest.mark.parametrize("seed", range(3))
def test_the_report_names_whom_copies_are_from(seed):
    rates = (0.15, 0.2, 0.25, 0.25, 0.3, 0.35, 0.3)
    votes, _ = world(rates, (2, 4, 5), part=0.6, seed=seed)
    report = DawidSkene().fit(frame(votes)).worker_report().set_index("worker").sort_index()
    assert report["copies_from"].tolist() == [None, None, None, None, 2, 2, None]
    np.testing.assert_allclose(report["copied_share"][[4, 5]], 0.6, atol=0.12)
    assert report["copied_share"][[0, 1, 2, 3, 6]].isna().all()


def test_accuracy_counts_copies_too():
    """Few votes of such copiers are their own: it had been 0.6 for 0.8."""
    votes, y = world((0.15, 0.2, 0.2, 0.25, 0.3, 0.4, 0.4), (2, 5, 6), part=0.9)
    report = DawidSkene().fit(frame(votes)).worker_report().set_index("worker").sort_index()
    right = (votes == y[:, None]).mean(0)
    np.testing.assert_allclose(report["accuracy"][[5, 6]], right[[5, 6]], atol=0.05)


def test_of_two_who_agree_too_often_none_is_named_the_source():
    votes, _ = world((0.15, 0.2, 0.2, 0.25, 0.3, 0.35), (4, 5), part=0.7)
    report = DawidSkene().fit(frame(votes)).worker_report().set_index("worker").sort_index()
    assert report["copies"].tolist() == [(), (), (), (), (5,), (4,)]
    assert report[["copies_from", "copied_share"]].isna().all(axis=None)


@pytest.mark.parametrize("rates", [(0.3,) * 6, (0.1,) * 6, slow((2 / 3,) * 6 + (0.15,) * 4)])
def test_independent_annotators_are_not_said_to_copy(rates):
    for seed in range(5):
        votes, _ = world(rates, seed=seed)
        assert not find_copies(coded(votes), len(rates), 3, abstains=False).found


@pytest.mark.parametrize("few", [True, False])
def test_pairs_are_counted_as_one_by_one(few, monkeypatch):
    rng = np.random.default_rng(0)
    votes = np.where(rng.random((60, 9)) < 0.5, -1, rng.integers(0, 3, (60, 9)))
    if not few:
        monkeypatch.setattr(vote_pairs, "_FEW_PAIRS", 0)
    table = coded(votes)
    pairs = vote_pairs.annotator_pairs(table, 9)
    matrices = rng.dirichlet(np.ones(3), (9, 3)).swapaxes(1, 2)
    by_class = vote_pairs.agreement_by_class(matrices, pairs)
    logs = rng.normal(size=(len(table.row), 3))
    whole, apart = table.summed(logs), np.arange(9)
    some = np.arange(0, len(pairs), 2)
    args = table, pairs.those(some), by_class[some], apart, whole, logs
    expected = dict(zip(some, vote_pairs.expected_agreement(*args), strict=True))
    at = {cell: i for i, cell in enumerate(zip(table.row, table.worker, strict=True))}
    for i, (a, b) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        both = np.flatnonzero((votes[:, [a, b]] >= 0).all(1))
        assert pairs.shared[i] == len(both)
        assert pairs.agreed[i] == (votes[both, a] == votes[both, b]).sum()
        np.testing.assert_allclose(by_class[i], (matrices[a] * matrices[b]).sum(0))
        if i in expected:
            left = np.stack([whole[n] - logs[at[n, a]] - logs[at[n, b]] for n in both])
            left = np.exp(left) / np.exp(left).sum(1, keepdims=True)
            np.testing.assert_allclose(expected[i], (left @ by_class[i]).sum())


@pytest.mark.parametrize("copies", [(), (4, 5, 6)])
def test_pairs_that_are_passed_over_would_not_be_found(copies, monkeypatch):
    rates = (0.15, 0.2, 0.2, 0.25, 0.4, 0.4, 0.4, *(0.3,) * 20)
    table = coded(world(rates, copies, n=300)[0])
    # by a tenth of the pairs the usual agreement is nearly the same
    monkeypatch.setattr(copied_votes, "_MOST_EXPECTED", 10_000)
    fewer = find_copies(table, len(rates), 3, abstains=False)
    monkeypatch.setattr(copied_votes, "_MOST_EXPECTED", 10**9)
    monkeypatch.setattr(copied_votes, "_possible", lambda pairs, *_: np.ones(len(pairs), bool))
    whole = find_copies(table, len(rates), 3, abstains=False)
    assert len(fewer.pairs) == len(whole.pairs)
    np.testing.assert_array_equal(fewer.cluster, whole.cluster)
    np.testing.assert_allclose(fewer.copied, whole.copied, atol=0.02)
    assert whole.found == (len(copies) > 0)


def test_copies_do_not_become_the_truth():
    ours, counted = [], []
    for seed in range(3):
        votes, y = world((0.15, 0.2, 0.2, 0.35, 0.35), (3, 4), n=300, seed=seed)
        model = DawidSkene().fit(frame(votes))
        ours.append((model.predict() == y).mean())
        counted.append(majority(votes, y))
        report = model.worker_report().set_index("worker")["copies"]
        assert report[3] == (4,)
        assert "copy from each other" in " ".join(model.verdict().table()["sentence"])
        np.testing.assert_allclose(
            model.predict_proba(frame(votes)), model.label_posterior_, atol=1e-8
        )
    assert np.mean(ours) > np.mean(counted)


@pytest.mark.slow
def test_copied_functions():
    votes, y = world((0.2, 0.3, 0.3, 0.45, 0.4, 0.4), n=600)
    rng = np.random.default_rng(1)
    votes = np.where(rng.random(votes.shape) < 0.5, -1, votes)
    votes[:, 4:] = votes[:, [3]]
    with pytest.warns(VerdictWarning, match="50 % of the annotators copy"):
        model = DawidSkene.weak_supervision().fit(votes)
    assert (model.predict() == y).mean() > majority(votes, y) + 0.02
    np.testing.assert_allclose(model.predict_proba(votes), model.label_posterior_, atol=1e-8)
    # three functions that are one count as one: without two of them the answer is the same
    one = DawidSkene.weak_supervision().fit(votes[:, :4])
    assert (model.predict() == one.predict()).mean() > 0.95


@pytest.mark.slow
def test_powers_of_functions_are_those_of_the_program():
    functions = LabellingFunctions.of(4, 2)
    model = {m.PRIOR: Proportions.of(2), "votes": functions}
    parts, _, _ = m.simulate(model, jax.random.key(0), 30)
    packed = LabellingFunctions.pack(np.asarray(parts["votes"]))
    data = m.Data({m.PRIOR: None, "votes": packed}, jnp.ones(30))
    power = jnp.asarray([1.0, 0.3, 0.5, 0.5])
    powered = {**model, "votes": LabellingFunctions(prior=functions.prior, power=power)}
    q = m.start(powered, m.initial_responsibilities(powered, data), data, "map")
    values = m.values(powered, m.likelihood_params(powered, q, "map"))
    ours = m.objective(powered, q, data, "map")
    np.testing.assert_allclose(program.log_density(powered, data, values), ours, rtol=1e-8)
    assert abs(float(m.objective(model, q, data, "map") - ours)) > 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_votes_beside_features_are_tempered_by_what_they_show():
    rng = np.random.default_rng(0)
    votes, y = world((0.2,) * 8, n=500)
    lured = (rng.random(500) < 0.35)[:, None] & (rng.random(votes.shape) < 0.6)
    votes = np.where(lured, ((y + 1) % 3)[:, None], votes)
    X = {"crowd": frame(votes), "size": np.eye(3)[y] * 1.5 + rng.normal(size=(500, 3))}
    excess, loss = [], []
    for dependence in (0, "auto"):
        sources = {
            "crowd": DawidSkene(dependence=dependence),
            "size": NoisyGaussianNB(training="joint"),
        }
        model = JointNB(sources, random_state=0).fit(X)
        p = model.label_posterior_
        excess.append(p.max(1).mean() - (p.argmax(1) == y).mean())
        loss.append(-np.log(np.maximum(p[np.arange(500), y], 1e-12)).mean())
        np.testing.assert_allclose(model.predict_proba(X), p, atol=1e-4)
    assert excess[1] < excess[0]
    assert loss[1] < loss[0]


@pytest.mark.slow
def test_copies_do_not_lead_a_table_astray():
    rng = np.random.default_rng(1)
    votes, y = world((0.25, 0.25, 0.25, 0.5, 0.5, 0.5), (3, 4, 5), n=300)
    x = np.eye(3)[y] * 2 + rng.normal(size=(300, 3))
    model = NoisyGaussianNB(random_state=0).fit(x, votes=frame(votes))
    right = (model.label_posterior_.argmax(1) == y).mean()
    assert right > majority(votes, y) + 0.1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_votes_copied_in_part_do_not_lead_a_joint_model_astray():
    rates = (0.4, 0.25, 0.3, 0.2, 0.35, 0.28, 0.24, 0.33, 0.2, 0.3)
    votes, y = world(rates, range(6), part=0.75, seed=2)
    x = np.eye(3)[y] + np.random.default_rng(2).normal(size=(400, 3))
    sources = {"x": NoisyGaussianNB(), "votes": DawidSkene()}
    joint = JointNB(sources, random_state=0).fit({"x": x, "votes": frame(votes)})
    alone = DawidSkene(random_state=0).fit(frame(votes))
    right = (joint.label_posterior_.argmax(1) == y).mean()
    assert right > (alone.predict() == y).mean() > 0.85  # they were 0.60 and 0.67


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_votes_on_rows_of_a_table_count_as_in_a_joint_model():
    rng = np.random.default_rng(2)
    votes, y = world((0.2, 0.3, 0.4, 0.4, 0.4), (2, 3, 4), n=600)
    lured = (rng.random(600) < 0.35)[:, None] & (rng.random(votes.shape) < 0.5)
    votes = np.where(lured, ((y + 1) % 3)[:, None], votes)
    x = np.eye(3)[y] * 2 + rng.normal(size=(600, 3))
    table = NoisyGaussianNB(training="joint", random_state=0).fit(x, votes=frame(votes))
    # of the same power, which a joint model selects otherwise
    sources = {"crowd": DawidSkene(), "x": NoisyGaussianNB(training=Joint(weight=1.0))}
    both = JointNB(sources, solver="map", random_state=0).fit({"crowd": frame(votes), "x": x})
    np.testing.assert_allclose(table.label_posterior_, both.label_posterior_, atol=1e-3)
    plain = JointNB(
        {**sources, "crowd": DawidSkene(dependence=0)}, solver="map", random_state=0
    ).fit({"crowd": frame(votes), "x": x})
    assert np.abs(plain.label_posterior_ - both.label_posterior_).max() > 0.1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("part", [0.4, 0.55])
def test_a_group_that_copies_in_part_does_not_outvote_the_others(part, seed):
    rates = (0.4, 0.25, 0.3, 0.2, 0.35, 0.28, 0.24, 0.33, 0.2, 0.3)
    votes, y = world(rates, range(4), part=part, seed=seed)
    found = find_copies(coded(votes), 10, 3, abstains=False)
    assert all(w in found.partners(0) for w in (1, 2, 3))
    assert uneven_pairs(coded(votes), found, 3).unevenness < MOST_UNEVEN
    model = DawidSkene(random_state=0).fit(frame(votes))
    assert (model.predict() == y).mean() >= majority(votes, y)


@pytest.mark.parametrize(
    "rates", [(0.1,) * 3 + (0.4,) * 6, (0.15,) * 6 + (2 / 3,) * 9, (0.25,) * 7]
)
def test_the_few_who_are_right_do_not_copy(rates):
    for seed in range(4):
        votes, _ = world(rates, seed=seed)
        assert not find_copies(coded(votes), len(rates), 3, abstains=False).found


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_a_group_of_which_nobody_can_say_who_is_right_is_told():
    """Two camps who copy within."""
    votes, _ = world((0.3,) * 10, range(5), part=0.6, seed=1)
    same = np.random.default_rng(1).random((400, 4)) < 0.6
    votes[:, 6:] = np.where(same, votes[:, [5]], votes[:, 6:])
    model = DawidSkene(random_state=0).fit(frame(votes))
    dependence = model.fitted_.vote_dependence
    assert dependence.copying > 0 or dependence.uneven > MOST_UNEVEN


@pytest.mark.parametrize("rates", [(0.3,) * 8, (0.1,) * 8, (2 / 3,) * 6 + (0.15,) * 4])
def test_independent_annotators_agree_evenly(rates):
    for seed in range(5):
        votes, _ = world(rates, seed=seed)
        assert uneven_pairs(coded(votes), no_copies(len(rates)), 3).unevenness < MOST_UNEVEN
    assert uneven_pairs(coded(votes[:, :2]), no_copies(2), 3).unevenness == 0.0


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
@pytest.mark.parametrize("seed", range(3))
def test_a_majority_who_copy_two_votes_of_five_are_found(seed):
    """Five of ten copy from a source that is as good as all others."""
    rates = np.random.default_rng(seed).uniform(0.2, 0.4, 10)
    votes, y = world(rates, range(6), part=0.4, seed=seed)
    found = find_copies(coded(votes), 10, 3, abstains=False)
    assert found.sources.source.tolist() == [-1, *[0] * 5, *[-1] * 4]
    np.testing.assert_allclose(found.sources.part[1:6], 0.4, atol=0.15)
    model = DawidSkene(random_state=0).fit(frame(votes))
    assert (model.predict() == y).mean() > majority(votes, y) + 0.03


def test_votes_that_agree_with_their_source_count_for_less():
    votes, _ = world((0.3,) * 8, (0, 1, 2, 3), part=0.5)
    table = coded(votes)
    found = find_copies(table, 8, 3, abstains=False)
    weights = found.weights(table).reshape(-1, 8)
    same = votes[:, 1:4] == votes[:, [0]]
    assert (weights[:, 1:4][same] < 0.8).all()
    np.testing.assert_array_equal(weights[:, 1:4][~same], 1.0)
    np.testing.assert_array_equal(weights[:, [0, 4, 5, 6, 7]], 1.0)
    # other codes, of whom one is new and one source is missing
    known = np.array([3, -1, 1, 0])
    other = np.stack([votes[:, 3], votes[:, 5], votes[:, 1], votes[:, 0]], 1)
    again = found.extended(known).weights(coded(other)).reshape(-1, 4)
    assert (again[:, [0, 2]][same[:, [2, 0]]] < 0.8).all()
    np.testing.assert_array_equal(again[:, [1, 3]], 1.0)
    assert (found.extended(known[:3]).weights(coded(other[:, :3])) == 1).all()
    order = np.arange(7, -1, -1)
    turned = found.extended(order).weights(coded(votes[:, order])).reshape(-1, 8)
    np.testing.assert_allclose(turned[:, order], weights)


def test_a_source_that_votes_on_some_items_only():
    votes, _ = world((0.3,) * 8, (0, 1, 2, 3), part=0.7, n=800)
    votes[400:, 0] = -1
    found = find_copies(coded(votes), 8, 3, abstains=False)
    assert found.sources.source.tolist() == [-1, 0, 0, 0, *[-1] * 4]
    weights = found.weights(coded(votes))
    assert (weights[coded(votes).row >= 400] == 1).all()


@pytest.mark.slow
def test_dependence_by_difficult_items_is_no_copying():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        votes, y = world(rng.uniform(0.1, 0.4, 9), seed=seed)
        lured = (rng.random(400) < 0.3)[:, None] & (rng.random(votes.shape) < 0.6)
        votes = np.where(lured, ((y + 1) % 3)[:, None], votes)
        assert not find_copies(coded(votes), 9, 3, abstains=False).found
        skill, ease = rng.uniform(0.5, 2.5, 9), np.exp(rng.normal(size=400))
        right = rng.random((400, 9)) < 1 / (1 + np.exp(-skill * ease[:, None]))
        votes = np.where(right, y[:, None], (y[:, None] + rng.integers(1, 3, right.shape)) % 3)
        assert not find_copies(coded(votes), 9, 3, abstains=False).found


@pytest.mark.parametrize("model", ["joint", slow("table")])
def test_labels_of_another_origin_show_who_copies(model):
    """Half of the annotators copy one who does not vote; votes alone take them for the truth."""
    rng = np.random.default_rng(1)
    n = 300
    y = rng.integers(3, size=n)
    lead = np.where(rng.random(n) < 0.65, y, rng.integers(3, size=n))
    task = np.repeat(np.arange(n), 3)
    worker = np.concatenate([rng.choice(8, 3, replace=False) for _ in range(n)])
    own = np.where(rng.random(3 * n) < 0.65, y[task], (y[task] + rng.integers(1, 3, 3 * n)) % 3)
    copied = (worker < 4) & (rng.random(3 * n) < 0.95)
    label = np.where(copied, lead[task], own)
    votes = pd.DataFrame({"task": task, "worker": worker, "label": label})
    given = corrupt(y, flip_noise(3, {(0, 1): 0.4, (1, 2): 0.3}), rng)
    assert not DawidSkene(random_state=0).fit(votes)._copies.found
    if model == "joint":
        found = JointNB({"crowd": DawidSkene()}, random_state=0).fit({"crowd": votes}, given)
        copies = found._learned["crowd"].encode.copies
    else:
        features = rng.normal(size=(n, 2))  # which say nothing
        with warnings.catch_warnings(action="ignore"):  # of them
            found = NoisyGaussianNB(random_state=0).fit(features, given, votes=votes)
        copies = found._label_data.votes.sum(1) < 3  # some votes count for less
    assert np.any(copies.found if model == "joint" else copies)
    right = (found.label_posterior_.argmax(1) == y).mean()
    plain = (DawidSkene(random_state=0).fit(votes).label_posterior_.argmax(1) == y).mean()
    assert right > max(plain, (given == y).mean()) + 0.05
