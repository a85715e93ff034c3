"""Labelling functions: votes that abstain, their power, and what is read."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from marks import slow
from numpyro import handlers
from scipy import optimize, sparse

from nbmodels import DataError, DawidSkene, IdentifiabilityWarning, Solver
from nbmodels.channels import LabellingFunctions
from nbmodels.channels.labelling_functions import evidence_rates
from nbmodels.class_priors import Proportions
from nbmodels.core import model as m
from nbmodels.core import numpyro_program as program
from nbmodels.data.labelling_functions import read_outputs
from nbmodels.diagnostics.annotators import _ranking_score


def functions(n=1500, w=30, seed=0):
    """Outputs of functions that name one class each, -1 where they abstain."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    named = np.arange(w) % 2
    rate = np.where(y[:, None] == named, 0.15, 0.04)
    return np.where(rng.random((n, w)) < rate, named, -1), y


def test_abstentions_of_labelling_functions_count():
    outputs, y = functions()
    model = DawidSkene.weak_supervision().fit(outputs)
    # somebody who knows the rates: 0.15 on items of the class that is named, else 0.04
    votes = np.stack([(outputs == c).sum(1) for c in (0, 1)], 1)
    voted, silent = np.log(0.15 / 0.04), np.log(0.85 / 0.96)
    odds = (votes[:, 1] - votes[:, 0]) * (voted - silent) + np.log(0.3 / 0.7)
    assert (model.predict() == y).mean() > ((odds > 0) == y).mean() - 0.03
    assert abs(model.class_prior_[1] - y.mean()) < 0.08
    silent = (outputs < 0).all(1)
    assert silent.any()
    assert len(model.label_posterior_) == len(y)
    assert model.worker_noise_matrix_.shape == (30, 3, 2)
    report = model.worker_report().set_index("worker")
    # a vote for the rare class is right with probability 0.62, one for the other with 0.90
    right = report["accuracy"].groupby(report.index % 2).mean()
    assert right[0] > right[1] + 0.1
    assert (report["spammer_score"] < 1).all()


def test_items_without_votes_have_no_majority():
    outputs = functions(200, 8)[0]
    outputs[0] = -1
    silent = (outputs < 0).all(1)
    model = DawidSkene.weak_supervision(dependence=0, random_state=0).fit(outputs)
    table = model.corrected_labels()
    np.testing.assert_array_equal(table["votes"] == 0, silent)
    for column in ("given", "p_wrong", "rank"):
        np.testing.assert_array_equal(table[column].isna(), silent)
    assert set(table["given"][~silent]) == {0, 1}
    assert table["suggested"].notna().all()


def test_the_spammer_score_counts_abstentions_as_outcomes():
    of_half = np.stack([np.eye(2) / 2, [[0.2, 0.2], [0.3, 0.3]]])  # right, and at random
    matrices = np.concatenate([of_half, [[[0.5, 0.5]], [[0.5, 0.5]]]], 1)
    one_class = [[[0.6, 0.0], [0.0, 0.0], [0.4, 1.0]]]
    score = 1 - _ranking_score(np.concatenate([matrices, one_class]))
    np.testing.assert_allclose(score, [0.75, 1, 0.64])


def one_sided(n_functions, k, seed, n=1000):
    """Functions that name one class each, in at most half of its items, right in 70 to 90 %."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    outputs = np.full((n, n_functions), -1)
    for j in range(n_functions):
        share, right = rng.uniform(0.1, 0.6 / k), rng.uniform(0.7, 0.9)
        rate = np.where(y == j % k, k * share * right, share * (1 - right) * k / (k - 1))
        outputs[rng.random(n) < rate, j] = j % k
    return outputs, y


def counted(outputs, k):
    """The class that most functions name, and a random one of several."""
    votes = np.stack([(outputs == c).sum(1) for c in range(k)], 1)
    return np.argmax(votes + 0.1 * np.random.default_rng(0).random(votes.shape), 1)


@pytest.mark.parametrize(("n_functions", "k"), [slow(6, 2), (6, 3), slow(10, 4)])
def test_few_functions_that_name_one_class_are_no_worse_than_counting(n_functions, k):
    """Free rates would make a class of the items that are often voted on."""
    outputs, y = one_sided(n_functions, k, seed=n_functions * k)
    voted = (outputs >= 0).any(1)
    model = DawidSkene.weak_supervision().fit(outputs)
    right = (model.predict() == y)[voted].mean()
    assert right > (counted(outputs, k) == y)[voted].mean() - 0.01
    assert abs(model.label_posterior_.max(1)[voted].mean() - right) < 0.05


def test_rates_of_one_weight_of_evidence():
    """Their likelihood is largest, each label is voted for as often as it is, one ratio for all."""
    rng = np.random.default_rng(0)
    items = np.array([500.0, 300.0, 200.0])
    rates = rng.dirichlet([2, 2, 2, 8], size=(2, 3)).swapaxes(1, 2)
    counts = rates * items
    found = np.asarray(evidence_rates(jnp.asarray(counts)))
    np.testing.assert_allclose(found.sum(1), 1)
    np.testing.assert_allclose(found[:, :3] @ items, counts[:, :3].sum(2), atol=0.01)
    ratios = found[:, range(3), range(3)] / found[:, range(3), [1, 2, 0]]
    np.testing.assert_allclose(ratios, ratios[:, :1] * np.ones(3))
    shares, by_label = items / items.sum(), counts[:, :3].sum(2)
    hits = counts[:, range(3), range(3)]

    def loss(weight, w):
        odds = np.exp(weight) * shares
        right = odds / (odds + 1 - shares)
        fit = hits[w] @ np.log(right) + (by_label[w] - hits[w]) @ np.log(1 - right)
        return (weight - np.log(4)) ** 2 / 2 - fit

    best = [optimize.minimize_scalar(loss, bounds=(-4, 8), args=(w,)).x for w in range(2)]
    np.testing.assert_allclose(np.log(ratios[:, 0]), best, atol=1e-3)


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_outputs_may_be_sparse_or_a_frame():
    outputs, _ = functions(300)
    expected = DawidSkene.weak_supervision().fit(outputs).label_posterior_
    row, column = np.nonzero(outputs >= 0)
    stored = sparse.coo_array((outputs[row, column], (row, column)), outputs.shape).tocsr()
    frame = pd.DataFrame(outputs).astype(float).replace(-1, np.nan)
    names = np.where(outputs < 0, None, np.array(["ham", "spam"], object)[outputs])
    for same, abstain in ((stored, -1), (frame, -1), (frame, None), (names, None)):
        found = DawidSkene.weak_supervision(abstain).fit(same).label_posterior_
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_functions_of_new_outputs_are_those_of_the_fit():
    outputs = functions(300, 4)[0] + 1
    frame = pd.DataFrame(outputs, columns=list("abcd"))
    model = DawidSkene.weak_supervision(0, dependence=0, random_state=0).fit(frame)
    expected = model.label_posterior_
    assert np.ptp(expected[:, 0]) > 0.1
    for same in (frame, frame[list("dbca")], outputs, sparse.csr_array(outputs)):
        np.testing.assert_allclose(model.predict_proba(same), expected, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(pd.DataFrame(outputs)), expected, atol=1e-9)
    with pytest.raises(DataError, match=r"^votes: column 'x' is no labelling function of the fit"):
        model.predict_proba(frame.rename(columns={"b": "x"}))
    for other in (outputs[:, :3], np.hstack([outputs, outputs]), frame[["a", "b"]]):
        with pytest.raises(DataError, match=r"^votes: has .* columns, and the fit 4 labelling fu"):
            model.predict_proba(other)


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (np.full((4, 3), -1), "every function abstains"),
        (np.zeros(4), "a row an item and a column a labelling function"),
        (pd.DataFrame({"task": [1], "worker": [1], "label": [1]}), "a table with a row a vote"),
        (pd.DataFrame(np.eye(3, dtype=int), columns=list("aba")), "several columns are named 'a'"),
    ],
)
def test_bad_outputs_are_refused(outputs, words):
    with pytest.raises(DataError, match=words):
        DawidSkene.weak_supervision().fit(outputs)


def test_items_of_a_frame_are_named_by_its_index():
    outputs = pd.DataFrame(functions(40)[0], index=[f"mail {i}" for i in range(40)])
    assert read_outputs(outputs, -1).tasks.tolist() == outputs.index.tolist()
    again = outputs.set_axis(["mail"] * 40, axis=0)
    assert read_outputs(again, -1).tasks.tolist() == [*range(40)]
    crowd = DawidSkene.weak_supervision(dependence=0, random_state=0)
    crowd.fit(outputs, trusted={"mail 7": 0})
    assert crowd.corrected_labels().set_index("row").loc["mail 7", "suggested"] == 0
    # functions abstain from all of a small batch
    silent = crowd.predict_proba(np.full((2, 30), -1))
    assert silent.shape == (2, 2)
    np.testing.assert_allclose(silent.sum(1), 1)


def test_the_word_for_an_abstention_is_no_class():
    outputs = np.array(["ham", "spam", "ABSTAIN"])[functions(40)[0]]
    with pytest.raises(DataError, match=r"^votes: abstain=-1 .*'ABSTAIN', .* abstain='ABSTAIN'"):
        DawidSkene.weak_supervision().fit(outputs)


@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
def test_the_usual_abstention_is_no_class():
    outputs, _ = functions(300)
    crowd = DawidSkene.weak_supervision(abstain=9)
    with pytest.raises(DataError, match=r"^votes: abstain=9 does not occur, and -1, .* abstain=-1"):
        crowd.fit(outputs)
    crowd.set_params(classes=np.unique(outputs)).fit(outputs)
    crowd.set_params(classes=None).fit(np.where(outputs == 0, 9, outputs))  # 9 occurs
    crowd.fit(np.where(outputs > 0, 1, -1))  # the other of two classes


@pytest.mark.slow
def test_the_two_descriptions_of_labelling_functions_agree():
    """Density of the NumPyro program and of the fast core, and the point where EM ends."""
    functions_ = LabellingFunctions.of(4, 2)
    model = {m.PRIOR: Proportions.of(2), "votes": functions_}
    parts, _, _ = m.simulate(model, jax.random.key(0), 40)
    data = m.Data(
        {m.PRIOR: None, "votes": LabellingFunctions.pack(np.asarray(parts["votes"]))}, jnp.ones(40)
    )
    resp = m.initial_responsibilities(model, data)
    q = m.start(model, resp, data, "map")
    for _ in range(3):
        q, _ = m.step("map")(q, (model, data))
    read = m.likelihood_params(model, q, "map")
    values = m.values(model, read)
    ours = m.objective(model, q, data, "map")
    np.testing.assert_allclose(program.log_density(model, data, values), ours, rtol=1e-8)
    counts = functions_.stats(read["votes"], resp, data.parts["votes"])
    np.testing.assert_allclose(counts.sum(1), np.tile(resp.sum(0), (4, 1)), rtol=1e-9)
    with handlers.seed(rng_seed=0):
        assert functions_.sites("votes")["transitions"].shape == (4, 2, 3)


@pytest.mark.slow
def test_many_labelling_functions_take_memory_by_their_votes():
    """3,000 functions on 50,000 items: a dense table of outputs by class would take 2.4 GB."""
    rng = np.random.default_rng(0)
    n, w, votes = 50_000, 3_000, 400_000
    y = rng.integers(0, 2, n)
    row, column = rng.integers(0, n, votes), rng.integers(0, w, votes)
    label = np.where(rng.random(votes) < 0.75, y[row], 1 - y[row])
    _, first = np.unique(row * w + column, return_index=True)
    outputs = sparse.coo_array((label[first], (row[first], column[first])), (n, w))
    model = DawidSkene.weak_supervision(solver=Solver(max_iter=50)).fit(outputs)
    assert (model.predict() == y).mean() > 0.9


def graded(seed, k, spread, n=1000, w=10):
    """Functions with severities of their own on an ordered scale, each on two items in five."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, k, n)
    seen = true[:, None] + rng.normal(0, 0.4, w) + rng.normal(0, spread, (n, w))
    votes = np.clip(np.round(seen), 0, k - 1).astype(int)
    return np.where(rng.random((n, w)) < 0.4, votes, -1), true


@pytest.mark.slow
@pytest.mark.parametrize(("k", "spread", "least"), [(3, 0.5, 0.85), (5, 0.7, 0.68)])
def test_no_class_is_lost_of_functions_that_name_all(k, spread, least):
    """The middle of a scale was emptied, and 71 and 58 % were right where most votes are 81, 67."""
    for seed in range(3):
        votes, true = graded(seed, k, spread)
        model = DawidSkene.weak_supervision(random_state=0).fit(votes)
        assert model.class_prior_.min() > 0.4 / k
        assert np.mean(model.predict_proba().argmax(1) == true[model.tasks_]) > least


@pytest.mark.slow
def test_independent_functions_that_name_all_classes_are_sure():
    """Expected were 23 % wrong of 2 %."""
    rng = np.random.default_rng(1)
    true = rng.integers(0, 3, 1000)
    wrong = (true[:, None] + rng.integers(1, 3, (1000, 10))) % 3
    votes = np.where(rng.random((1000, 10)) < 0.75, true[:, None], wrong)
    votes = np.where(rng.random((1000, 10)) < 0.9, votes, -1)
    probs = DawidSkene.weak_supervision(random_state=0).fit(votes).predict_proba()
    assert 1 - probs.max(1).mean() < 0.06


def test_maximum_likelihood_of_functions_learns_no_prior():
    votes, true = graded(0, 3, 0.5, n=300)
    model = DawidSkene.weak_supervision(solver="ml", random_state=0)
    with warnings.catch_warnings(action="ignore", category=IdentifiabilityWarning):
        model.fit(votes)
    assert np.mean(model.predict_proba().argmax(1) == true[model.tasks_]) > 0.6
