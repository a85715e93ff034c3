"""Votes that depend on each other, sub-types, and the report of workers."""

import numpy as np
import pandas as pd
import pytest

from nbmodels import DataError, DawidSkene, Solver, VerdictWarning
from nbmodels.fitting.vote_dependence import HIDDEN


def crowd(n=400, rates=(0.1, 0.2, 0.3, 0.3, 0.4), k=3, seed=0, hard=0.0, copied=None):
    """Votes of all workers on all items; on hard items they follow one misleading class.

    Args:
        hard: share of items with a class that misleads each worker with probability 0.7.
        copied: pair (first, second); the second copies the first's vote four times in five.
    """
    rng = np.random.default_rng(seed)
    y, w = rng.integers(0, k, n), len(rates)
    wrong = rng.random((n, w)) < np.asarray(rates)
    votes = np.where(wrong, (y[:, None] + rng.integers(1, k, (n, w))) % k, y[:, None])
    misled = (rng.random(n) < hard)[:, None] & (rng.random((n, w)) < 0.7)
    votes = np.where(misled, ((y + 1) % k)[:, None], votes)
    if copied is not None:
        copies = rng.random(n) < 0.8
        votes[copies, copied[1]] = votes[copies, copied[0]]
    task, worker = np.divmod(np.arange(n * w), w)
    return pd.DataFrame({"task": task, "worker": worker, "label": votes.ravel()}), y


def loss(model, y):
    return -np.log(np.maximum(model.label_posterior_[np.arange(len(y)), y], 1e-12)).mean()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_dependent_votes_are_tempered_and_classes_stay():
    table, y = crowd(rates=(0.1,) * 7, hard=0.3, seed=1)
    found, independent = DawidSkene().fit(table), DawidSkene(dependence=0.0).fit(table)
    assert found.fitted_.vote_dependence.visible > 0.1
    np.testing.assert_array_equal(found.predict(), independent.predict())
    assert loss(found, y) < loss(independent, y)
    assert "not independent" in str(found.verdict().table()["sentence"].tolist())
    assert found.verdict().ok
    assert not independent.verdict().ok
    assert "independent votes" in independent.corrected_labels()["failed_checks"][0]


def test_independent_votes_show_no_dependence():
    table, _ = crowd(800, seed=2)
    found = DawidSkene().fit(table).fitted_.vote_dependence
    assert found.visible < 0.1  # from where on the verdict warns
    assert found.visible <= found.correlation < 1 - (1 - HIDDEN) * (1 - found.visible)
    assert DawidSkene(dependence=0.0).fit(table).verdict().ok


def test_one_vote_on_a_task_is_not_tempered():
    table, _ = crowd(200)
    new = pd.DataFrame({"task": ["new"], "worker": [0], "label": [1]})
    models = [DawidSkene(dependence=d).fit(table) for d in (0.0, "auto")]
    first, second = (model.predict_proba(new) for model in models)
    np.testing.assert_allclose(first, second, atol=1e-12)
    both = [model.predict_proba(table) for model in models]
    assert both[1].max(1).mean() < both[0].max(1).mean()
    np.testing.assert_allclose(both[1], models[1].label_posterior_, atol=1e-8)


def test_trusted_tasks_are_not_tempered():
    table, y = crowd(100)
    model = DawidSkene().fit(table, trusted={0: int(y[0]), 1: int(y[1])})
    np.testing.assert_allclose(model.label_posterior_[[0, 1], y[:2]], 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_class_does_not_become_the_disputed_tasks(seed):
    """Workers guess on a fifth of the tasks, whose classes are as often one as another."""
    rng = np.random.default_rng(seed)
    n, w, k = 500, 6, 3
    y = rng.choice(k, n, p=[0.55, 0.4, 0.05])
    guessed = (rng.random(n) < 0.2)[:, None] | (rng.random((n, w)) < 0.1)
    votes = np.where(guessed, rng.integers(0, k, (n, w)), y[:, None])
    task, worker = np.divmod(np.arange(n * w), w)
    table = pd.DataFrame({"task": task, "worker": worker, "label": votes.ravel()})
    model = DawidSkene().fit(table)
    given = model.corrected_labels()["given"]
    assert (model.predict() == y).mean() >= (given == y).mean() - 0.01
    assert model.fitted_.vote_dependence.unsupported < 0.01


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")  # of free matrices, which overfit
def test_a_shared_prior_predicts_held_out_votes_no_worse():
    from nbmodels.fitting.vote_dependence import annotator_model, held_out_score

    for seed, rates in enumerate([(0.25,) * 8, (0.05, 0.6, 0.05, 0.6), (0.1, 0.2, 0.3, 0.4)]):
        table, _ = crowd(150, rates, seed=seed)
        models = [DawidSkene(pooling=p, dependence=0.0).fit(table) for p in ("shared", "none")]
        first, second = (held_out_score(annotator_model(e.fit_), e._votes) for e in models)
        assert first >= second - 1e-9


# The report ---------------------------------------------------------------------------------------


def test_report_of_workers():
    rates = (0.1, 0.15, 0.2, 0.2, 0.25, 0.3, 0.35, 0.667)
    table, _ = crowd(400, rates, copied=(4, 5), seed=3)
    found = DawidSkene().fit(table).worker_report().set_index("worker").sort_index()
    assert found.columns.tolist() == [
        "votes", "accuracy", "low", "high", "spammer_score", "copies",
        "copies_from", "copied_share",
    ]  # fmt: skip
    assert found["copies"].tolist() == [(), (), (), (), (5,), (4,), (), ()]
    assert (found["low"] < found["accuracy"]).all()
    assert (found["accuracy"] < found["high"]).all()
    assert found["spammer_score"].idxmax() == 7
    assert found["spammer_score"][7] > 0.9
    assert found["spammer_score"][0] < 0.5


@pytest.mark.parametrize("pooling", ["own", "shared", "none"])
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_votes_that_are_all_right_leave_their_number_open(pooling):
    """The mode of an accuracy is one however few they are."""
    table, _ = crowd(60, (0.0, 0.0, 0.0))
    found = DawidSkene(pooling=pooling).fit(table).worker_report()
    assert (found["low"] <= found["accuracy"]).all()
    assert (found["accuracy"] <= found["high"]).all()
    assert found["low"].between(0.9, 0.98).all()


def test_intervals_of_few_workers_are_of_draws():
    """About the mode the best one's interval holds its accuracy in a third of such crowds."""
    inside = 0
    for seed in range(4):
        table, _ = crowd(200, (0.1, 0.3, 0.5), seed=seed)
        model = DawidSkene(random_state=0).fit(table)
        best = model.worker_report().set_index("worker").sort_index().iloc[0]
        inside += best["low"] < 0.9 < best["high"]
    assert inside >= 3
    right = drawn_accuracies(model)
    model.posterior = None  # of one fit draws are made once
    best = model.worker_report().set_index("worker").sort_index().iloc[0]
    np.testing.assert_allclose(best[["low", "high"]].astype(float), right, atol=1e-6)


def drawn_accuracies(model):
    posterior = model.posterior(random_state=0)["posterior"]
    right = posterior["votes_transitions"].values.diagonal(axis1=-2, axis2=-1)[..., 0, :]
    return np.quantile((right * posterior["class_prior"].values).sum(-1), [0.05, 0.95])


def test_a_level_is_no_percentage():
    model = DawidSkene().fit(crowd(60, (0.1, 0.2, 0.3))[0])
    with pytest.raises(DataError, match=r"^level: expected a probability between 0 and 1, got 95"):
        model.worker_report(level=95)


@pytest.mark.slow
def test_workers_who_do_not_copy_are_not_said_to():
    for seed in range(3):
        table, _ = crowd(300, rates=(0.2, 0.3, 0.3, 0.4, 0.4, 0.4), seed=seed, hard=0.2)
        report = DawidSkene().fit(table).worker_report()
        assert all(pair == () for pair in report["copies"])


@pytest.mark.slow
def test_intervals_of_accuracy_hold_the_truth():
    inside, rates = [], np.array([0.1, 0.2, 0.25, 0.3, 0.4, 0.45])
    for seed in range(20):
        table, _ = crowd(250, rates, seed=100 + seed)
        found = DawidSkene().fit(table).worker_report(0.9).set_index("worker").sort_index()
        inside.append((found["low"] <= 1 - rates) & (1 - rates <= found["high"]))
    assert 0.84 <= np.mean(inside) <= 0.97  # 120 intervals: two standard errors are 0.055


# Sub-types ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_subtypes_of_classes():
    """Class 0 has two kinds of items, of which workers mistake one together."""
    rng = np.random.default_rng(0)
    n, w = 600, 8
    kind = rng.integers(0, 3, n)  # 0 and 1 are of class 0
    right = np.array([0.95, 0.6, 0.9])[kind]
    y = (kind == 2).astype(int)
    votes = np.where(rng.random((n, w)) < right[:, None], y[:, None], 1 - y[:, None])
    task, worker = np.divmod(np.arange(n * w), w)
    table = pd.DataFrame(
        {"task": task, "worker": worker, "label": np.array(["a", "b"])[votes.ravel()]}
    )
    model = DawidSkene(subtypes=2, random_state=0).fit(table, trusted={0: "ab"[y[0]]})
    assert model.classes_.tolist() == ["a", "b"]
    assert model.label_posterior_.shape == (n, 2)
    np.testing.assert_allclose(model.label_posterior_.sum(1), 1)
    np.testing.assert_allclose(model.noise_matrix_.sum(0), 1)
    np.testing.assert_allclose(model.worker_noise_matrix_.sum(1), 1)
    assert model.label_posterior_[0, y[0]] == pytest.approx(1)
    assert (model.predict() == np.array(["a", "b"])[y]).mean() > 0.85
    np.testing.assert_allclose(
        model.predict_proba(table)[1:], model.label_posterior_[1:], atol=1e-6
    )
    one = DawidSkene(solver=Solver(method="ml")).fit(table)
    two = DawidSkene(subtypes=2, solver=Solver(method="ml", n_restarts=3)).fit(table)
    assert two.objective_ > one.objective_ + 10  # a mixture that the votes ask for


@pytest.mark.slow
def test_one_worker_who_votes_on_every_task_is_not_the_truth():
    """Beside workers with ten votes each, whose matrices of their own would be chance."""
    rng = np.random.default_rng(0)
    n, w, k = 500, 100, 4
    true, right = rng.integers(0, k, n), np.r_[0.7, rng.uniform(0.6, 0.95, w)]
    votes = [
        (i, j, true[i] if rng.random() < right[j] else (true[i] + rng.integers(1, k)) % k)
        for i in range(n)
        for j in [0, *(1 + rng.choice(w, 2, replace=False))]
    ]
    votes = pd.DataFrame(votes, columns=["task", "worker", "label"])
    majority = pd.crosstab(votes["task"], votes["label"]).to_numpy().argmax(1)
    model = DawidSkene().fit(votes)
    assert np.mean(model.predict() == true) > np.mean(majority == true)  # it was 13 points less
    report = model.worker_report().iloc[0]
    assert report["worker"] == 0
    assert report["low"] < 0.75  # of 0.7; it was 0.92


def test_half_of_the_annotators_copy_one():
    """Who is right less often than the others, and whom the votes would take for the truth."""
    rng = np.random.default_rng(0)
    n, k = 400, 3
    true = rng.integers(0, k, n)

    def own(right):
        return np.where(rng.random(n) < right, true, (true + rng.integers(1, k, n)) % k)

    first = own(0.65)
    copies = [np.where(rng.random(n) < 0.9, first, rng.integers(0, k, n)) for _ in range(3)]
    table = np.stack([first, *copies, *(own(0.75) for _ in range(4))], 1)
    task, worker = np.divmod(np.arange(table.size), table.shape[1])
    votes = pd.DataFrame({"task": task, "worker": worker, "label": table.ravel()})
    with pytest.warns(VerdictWarning, match="copy from each other"):
        model = DawidSkene().fit(votes)
    assert np.mean(model.predict() == true) > 0.85  # of the majority 0.72, and it was 0.64
    assert model.worker_report().set_index("worker").loc[0, "copies"] == (1, 2, 3)


@pytest.mark.slow
def test_accuracy_counts_votes_on_guessed_tasks():
    rng = np.random.default_rng(6)
    n, w, k = 600, 12, 3
    y = rng.integers(0, k, n)
    chance = (rng.random(n) < 0.3)[:, None] | (rng.random((n, w)) < 0.1)
    labels = np.where(chance, rng.integers(0, k, (n, w)), y[:, None])
    table = pd.DataFrame({"task": np.repeat(np.arange(n), w), "label": labels.ravel()})
    model = DawidSkene().fit(table.assign(worker=np.tile(np.arange(w), n)))
    right = (labels == y[:, None]).mean(0)
    assert model.worker_accuracy_["accuracy"].mean() == pytest.approx(right.mean(), abs=0.02)
    report = model.worker_report().set_index("worker").sort_index()
    assert ((report["low"] <= right) & (right <= report["high"])).mean() > 0.8
    sentence = model.verdict().sentence
    assert sentence.startswith("Taken into account: votes on a task are not independent given its")
    assert "All other checks of this fit passed (agreement of votes, own votes, " in sentence


@pytest.mark.parametrize(
    "known", [{"class_prior": [0.3, 0.3, 0.4]}, {"abstain": -1}, {"ids": object}, {"ids": str}]
)
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_few_workers_are_reported_whatever_is_known(known):
    table, _ = crowd(80, (0.1, 0.2, 0.3))
    if "abstain" in known:
        votes = table.pivot_table(index="task", columns="worker", values="label").fillna(-1)
        model = DawidSkene(random_state=0, **known).fit(votes.astype(int))
    else:
        ids = known.get("ids", int)
        model = DawidSkene(random_state=0, class_prior=known.get("class_prior"))
        model.fit(table.assign(worker=table["worker"].astype(ids)))
    found = model.worker_report()
    assert (found["low"] < found["accuracy"]).all()
    assert (found["accuracy"] < found["high"]).all()
    assert found.index.tolist() == [0, 1, 2]
