"""Several annotators: Dawid and Skene's equations, pooling, real crowds, and bad input."""

import warnings

import numpy as np
import pandas as pd
import pytest
from marks import slow
from paths import SHARED

from nbmodels import (
    DataError,
    DawidSkene,
    IdentifiabilityWarning,
    NbmodelsWarning,
    NoisyGaussianNB,
    NotConvergedWarning,
    Priors,
    Solver,
)
from nbmodels.estimators.annotators_training import VotesTraining

CROWD = SHARED / "crowd"


def crowd(n=300, rates=(0.1, 0.2, 0.3, 0.4), per_task=3, k=3, seed=0):
    """Votes of workers who are wrong at a given rate, and the true classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    task = np.repeat(np.arange(n), per_task)
    worker = np.concatenate([rng.permutation(len(rates))[:per_task] for _ in range(n)])
    wrong = rng.random(len(task)) < np.asarray(rates)[worker]
    label = np.where(wrong, (y[task] + rng.integers(1, k, len(task))) % k, y[task])
    names = np.array(["x", "y", "z", "w"])[:k]
    table = pd.DataFrame({"task": task, "worker": worker, "label": names[label]})
    return table, names[y]


def best_guess(table, rates=(0.1, 0.2, 0.3, 0.4), k=3):
    """What somebody would say who knows how often each worker is wrong."""
    rate = np.asarray(rates)[table["worker"]]
    weight = np.log((1 - rate) / (rate / (k - 1)))
    score = table.assign(weight=weight).pivot_table("weight", "task", "label", "sum", 0.0)
    return score.columns.to_numpy()[score.to_numpy().argmax(1)]


def test_the_fixed_point_solves_the_papers_equations():
    """Dawid and Skene 1979, (2.3)-(2.5), as plain loops over the votes."""
    table, _ = crowd(60)
    e = DawidSkene(solver=Solver(method="ml", max_iter=3000, tol=1e-12)).fit(table)
    code = {name: j for j, name in enumerate(e.classes_)}
    n, k = 60, 3
    t = e.label_posterior_
    pi, p = np.zeros((4, k, k)), t.mean(0)
    for row in table.itertuples():
        pi[row.worker, :, code[row.label]] += t[row.task]
    pi /= pi.sum(2, keepdims=True)
    again = np.tile(p, (n, 1))
    for row in table.itertuples():
        again[row.task] *= pi[row.worker, :, code[row.label]]
    likelihood = np.log(again.sum(1)).sum()
    np.testing.assert_allclose(again / again.sum(1, keepdims=True), t, atol=1e-5)
    np.testing.assert_allclose(e.worker_noise_matrix_, pi.swapaxes(1, 2), atol=1e-5)
    np.testing.assert_allclose(e.class_prior_, p, atol=1e-6)
    np.testing.assert_allclose(e.objective_, likelihood, 1e-8)


PADDED = {
    "default": {},
    "free": {"pooling": "none"},
    "ML": {"solver": "ml"},
    "shared": {"pooling": "shared"},
    "variational": {"solver": "vb"},
    "sub-types": {"subtypes": 2},
}


@pytest.mark.parametrize(("name", "room"), [("default", 7), *(slow(name, 32) for name in PADDED)])
@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
def test_padded_workers_change_nothing(name, room, monkeypatch):
    """A fit is compiled for more workers than there are, and what it finds is that of its own."""
    table, _ = crowd(120, seed=3)
    fits = {}
    for size in (None, room):
        monkeypatch.setattr(VotesTraining, "_room", size)
        fits[size] = DawidSkene(random_state=0, **PADDED[name]).fit(table)
    plain = fits[None]
    assert plain.fit_.model["votes"].n_annotators is None
    one = fits[room]
    assert one.fit_.params["votes"].concentration.shape[:2] == (4, 3)
    assert one.fitted_.data.parts["votes"].shape[1] == 12
    for read in (
        lambda e: e.label_posterior_,
        lambda e: e.worker_noise_matrix_,
        lambda e: e.noise_matrix_,
        lambda e: e.fitted_.noise_matrix,
        lambda e: e.objective_,
        lambda e: e.fit_.trace,
    ):
        np.testing.assert_allclose(read(one), read(plain), 1e-5, 1e-7)


@pytest.mark.parametrize("method", ["ml", "map", "vb"])
def test_workers_and_classes_are_recovered(method):
    table, y = crowd(800)
    e = DawidSkene(solver=method).fit(table)
    assert (e.predict() == y).mean() > (best_guess(table) == y).mean() - 0.03
    accuracy = e.worker_accuracy_.set_index("worker")["accuracy"]
    np.testing.assert_allclose(accuracy, [0.9, 0.8, 0.7, 0.6], atol=0.05)
    np.testing.assert_allclose(e.worker_noise_matrix_.sum(1), 1)
    found = e.corrected_labels()
    assert (found["suggested"] == y).mean() > (found["given"] == y).mean() - 0.01
    assert (found["votes"] == 3).all()


@pytest.mark.slow
def test_pooling_shrinks_workers_with_few_votes():
    """Many workers of a few votes each, all alike: what one says little of, all say together."""
    rng = np.random.default_rng(1)
    table, y = crowd(500, rates=(0.25,) * 250, per_task=3, seed=1)
    plain, pooled = (DawidSkene(pooling=how).fit(table) for how in (False, True))
    truth = np.full((3, 3), 0.125) + np.eye(3) * 0.625
    error = [np.abs(e.worker_noise_matrix_ - truth).mean() for e in (plain, pooled)]
    assert error[1] < error[0] / 2
    np.testing.assert_allclose(pooled.noise_matrix_, truth, atol=0.06)
    # a worker never seen before is an ordinary one
    task = rng.permutation(500)[:40]
    new = pd.DataFrame({"task": task, "worker": "new", "label": y[task]})
    p = pooled.predict_proba(new).max(1)
    assert (np.abs(p - 0.75) < 0.15).all()


def test_pooling_tells_workers_apart_where_they_differ():
    table, _ = crowd(800, rates=(0.02, 0.5, 0.02, 0.5))
    e = DawidSkene(pooling=True, solver="vb").fit(table)
    accuracy = e.worker_accuracy_["accuracy"]
    np.testing.assert_allclose(accuracy, [0.98, 0.5, 0.98, 0.5], atol=0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.IdentifiabilityWarning")  # of votes alone
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_trusted_tasks_show_who_is_right():
    """One good worker of three is outvoted by two who guess, unless some tasks are checked."""
    gains = []
    for seed in range(4):
        table, y = crowd(200, rates=(0.65, 0.65, 0.2), seed=seed)
        trusted = {i: y[i] for i in range(0, 200, 2)}
        e, alone = DawidSkene().fit(table, trusted=trusted), DawidSkene().fit(table)
        assert (e.predict()[list(trusted)] == list(trusted.values())).all()
        unknown = np.setdiff1d(np.arange(200), list(trusted))
        gains.append(
            np.mean((e.predict() == y)[unknown]) - np.mean((alone.predict() == y)[unknown])
        )
    assert min(gains) >= 0
    assert np.mean(gains) > 0.05


def test_the_order_of_votes_and_the_type_of_ids_do_not_matter():
    table, _ = crowd(80)
    e = DawidSkene().fit(table)
    shuffled = table.sample(frac=1, random_state=0)
    named = shuffled.assign(worker="w" + shuffled["worker"].astype(str))
    other = DawidSkene().fit(named)
    np.testing.assert_allclose(other.label_posterior_, e.label_posterior_, atol=1e-9)
    assert list(other.workers_) == ["w0", "w1", "w2", "w3"]


def test_of_repeated_votes_the_last_counts():
    table, _ = crowd(80)
    other = table.assign(label=table["label"].map({"x": "y", "y": "z", "z": "x"}))
    with pytest.warns(NbmodelsWarning, match="are again of the same worker on the same task"):
        twice = DawidSkene().fit(pd.concat([other, table]))
    once = DawidSkene().fit(table)
    np.testing.assert_array_equal(twice.label_posterior_, once.label_posterior_)


def test_a_thousand_votes_on_a_task_do_not_underflow():
    rng = np.random.default_rng(0)
    label = np.where(rng.random((2, 1200)) < 0.6, [[0], [1]], rng.integers(0, 3, (2, 1200)))
    table = {
        "task": np.repeat([0, 1], 1200),
        "worker": np.tile(np.arange(1200), 2),
        "label": label.ravel(),
    }
    e = DawidSkene().fit(table)
    assert list(e.predict()) == [0, 1]
    assert np.isfinite(e.objective_)


def test_a_task_that_nobody_contradicts_keeps_its_class():
    table, y = crowd(100, rates=(0.0, 0.0, 0.0))
    assert (DawidSkene().fit(table).predict() == y).all()


def _real(name):
    path = CROWD / f"{name}_labels.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    votes = pd.read_csv(path).drop_duplicates(["task", "worker"], keep="last")
    return votes, pd.read_csv(CROWD / f"{name}_truth.csv").set_index("task")["true_label"]


@pytest.mark.slow
def test_real_crowds_are_read_no_worse_than_by_crowd_kit():
    """The paper's model set by set; the defaults on average, and nowhere below the majority.

    On web_search the defaults are 1.5 points below Dawid and Skene's model, whose likelihood alone
    decides there: no prior draws a worker's rows together.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own dependencies
        from crowdkit.aggregation import DawidSkene as Peer
        from crowdkit.aggregation import MajorityVote
    found = []
    for name in ("dogs", "faces", "entailment", "weather_amt", "web_search"):
        votes, truth = _real(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = Peer(n_iter=1000, tol=1e-6).fit_predict(votes)
            majority = MajorityVote().fit_predict(votes)
        models = [DawidSkene().fit(votes)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentifiabilityWarning)  # a rare class
            models.append(DawidSkene(solver="ml").fit(votes))
        ours = [pd.Series(model.predict(), model.tasks_) for model in models]
        inside = truth[truth.index.isin(ours[0].index)]
        answers = (*ours, theirs, majority)
        found.append([(one.loc[inside.index] == inside).mean() for one in answers])
    default, published, theirs, majority = np.transpose(found)
    assert (published > theirs - 0.005).all()
    assert default.mean() > theirs.mean()
    assert (default > majority).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dogs", "sentiment_amt"])
def test_probabilities_of_real_crowds_beat_shares_of_votes(name):
    """Log-loss of the defaults against smoothed shares, and confidence against accuracy."""
    votes, truth = _real(name)
    model = DawidSkene().fit(votes)
    tasks, classes = pd.Index(model.tasks_), pd.Index(model.classes_)
    at, y = tasks.get_indexer(truth.index), classes.get_indexer(truth)
    shares = np.zeros(model.label_posterior_.shape)
    np.add.at(shares, (tasks.get_indexer(votes["task"]), classes.get_indexer(votes["label"])), 1)
    k = len(classes)
    shares = (shares + 1 / k) / (shares.sum(1, keepdims=True) + 1)
    losses = [-np.log(p[at, y]).mean() for p in (model.label_posterior_, shares)]
    assert losses[0] < losses[1]
    sure = model.label_posterior_[at].max(1).mean()
    assert abs(sure - (model.label_posterior_[at].argmax(1) == y).mean()) < 0.05


BAD = {
    "columns": (
        pd.DataFrame({"a": [1], "b": [2]}),
        {},
        "expected columns task, worker, label; no column is the task, the table has 'a', 'b'",
    ),
    "three columns": (
        pd.DataFrame({"hit": [1, 2], "worker": [1, 2], "label": ["x", "y"]}),
        {},
        "no column is the task, the table has 'hit', 'worker', 'label'; columns are found by name",
    ),
    "array": (np.array([[1, 1, 0], [1, 2, 1]]), {}, "no column is the task, the table has 0, 1, 2"),
    "a column an annotator": (
        pd.DataFrame({"ann1": ["x", "y"], "ann2": ["x", None]}),
        {},
        r"made long by votes\.rename_axis\('task'\)",
    ),
    "array with a column an annotator": (
        np.array([[1, 1], [0, 1]]),
        {},
        r"made long by pd\.DataFrame\(votes\)\.rename_axis",
    ),
    "two candidates": (
        pd.DataFrame({"item": [1], "unit": [1], "worker": [1], "label": ["x"]}),
        {},
        r"\['item', 'unit'\] could each be the task",
    ),
    "typing error": (
        pd.concat([crowd(20)[0], pd.DataFrame({"task": [0], "worker": [9], "label": ["xx"]})]),
        {},
        "votes: row 60 has the label 'xx', which occurs once in 61 votes",
    ),
    "correlation": (crowd(20)[0], {"dependence": 1.5}, "dependence: expected a finite number"),
    "empty": (pd.DataFrame({"task": [], "worker": [], "label": []}), {}, "the table has no rows"),
    "null": (
        pd.DataFrame({"task": [1, 2], "worker": ["a", None], "label": ["x", "y"]}),
        {},
        "votes: row 1 has no worker",
    ),
    "one class": (
        pd.DataFrame({"task": [1, 2], "worker": ["a", "b"], "label": ["x", "x"]}),
        {},
        "^votes: at least two classes",
    ),
    "one class declared": (
        pd.DataFrame({"task": [1, 2], "worker": ["a", "b"], "label": ["x", "x"]}),
        {"classes": ["x"]},
        "^classes: at least two classes",
    ),
    "mixed": (
        pd.DataFrame({"task": [1, 2], "worker": ["a", "b"], "label": ["x", 1]}),
        {},
        "^votes: labels of mixed types",
    ),
    "continuous": (
        pd.DataFrame({"task": [1, 2], "worker": ["a", "b"], "label": [0.3, 0.7]}),
        {},
        "^votes: Unknown label type: continuous, .* such as 0.3; .* make them strings",
    ),
    "outside": (
        pd.DataFrame({"task": [1, 2], "worker": ["a", "b"], "label": ["x", "q"]}),
        {"classes": ["x", "y"]},
        "votes: row 1 has the label 'q'",
    ),
    "text": ("votes.csv", {}, "votes: expected a table"),
    "pooling": (crowd(20)[0], {"pooling": True, "solver": "ml"}, "pooling: method 'ml'"),
    "alpha": (crowd(20)[0], {"priors": Priors(noise_alpha=-1)}, "noise_alpha: expected"),
}


def test_usual_names_of_columns_are_found_in_any_order():
    table, _ = crowd(60)
    expected = DawidSkene(dependence=0).fit(table)
    renamed = table.rename(columns={"task": "Item_ID", "worker": "performer", "label": "answers"})
    found = DawidSkene(dependence=0).fit(renamed[["performer", "Item_ID", "answers"]])
    np.testing.assert_array_equal(found.label_posterior_, expected.label_posterior_)
    assert list(found.workers_) == [0, 1, 2, 3]


def test_a_rare_class_may_be_declared():
    table, _ = crowd(20)
    rare = pd.concat([table, pd.DataFrame({"task": [0], "worker": [9], "label": ["xx"]})])
    assert list(DawidSkene(classes=["x", "y", "z", "xx"]).fit(rare).classes_)[-1] == "xx"


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case):
    votes, options, words = BAD[case]
    with pytest.raises(DataError, match=words):
        DawidSkene(**options).fit(votes)


def test_bad_trusted_tasks():
    table, _ = crowd(20)
    with pytest.raises(DataError, match="there is no vote on task 99"):
        DawidSkene().fit(table, trusted={99: "x"})
    with pytest.raises(DataError, match="trusted: task 7 has the label 'q'"):
        DawidSkene().fit(table, trusted={7: "q"})
    named = table.assign(task="t" + table["task"].astype(str))
    with pytest.raises(DataError, match="trusted: task 't3' has the label 'q'"):
        DawidSkene().fit(named, trusted={"t3": "q"})


@pytest.mark.parametrize(("label", "words"), [(["x"] * 40, "at least two"), (None, "Unknown|Supp")])
def test_votes_beside_features_are_named_in_messages(label, words):
    label = np.random.default_rng(0).random(40) if label is None else label
    votes = pd.DataFrame({"task": range(40), "worker": "a", "label": label})
    with pytest.raises(DataError, match=f"^votes: .*({words})"):
        NoisyGaussianNB().fit(np.zeros((40, 1)), votes=votes)


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_workers_who_exchange_classes_are_reported():
    table, y = crowd(300, rates=(0.1, 0.1, 0.1))
    swapped = table.assign(label=table["label"].map({"x": "y", "y": "x", "z": "z"}))
    trusted = {i: y[i] for i in range(0, 300, 2)}
    with pytest.warns(IdentifiabilityWarning, match="x as y, y as x"):
        DawidSkene().fit(swapped, trusted=trusted)


def test_too_few_steps_are_reported():
    with pytest.warns(NotConvergedWarning):
        DawidSkene(solver=Solver(max_iter=1)).fit(crowd(50)[0])


def test_two_workers_do_not_show_how_often_each_is_right():
    table, truth = crowd(80, (0.1, 0.2), per_task=2)
    with pytest.warns(IdentifiabilityWarning, match="votes of two workers do not show"):
        DawidSkene().fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error", IdentifiabilityWarning)
        DawidSkene().fit(table, trusted=dict(enumerate(truth[:20])))
