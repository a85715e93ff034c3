"""Several kinds of evidence in one model: each adds up, any may be left out, all may be fused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nbmodels import (
    CollaborativeClassifier,
    DataError,
    DawidSkene,
    IdentifiabilityWarning,
    JointNB,
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyMultinomialNB,
    PartialLabelNB,
    Solver,
)
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.errors import PosteriorWarning
from nbmodels.estimators.options import JointGraph
from nbmodels.papers import maystre2021

K = 3
NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def world():
    """Items with numbers, words, users, two annotators and a noisy label, and as many new ones."""
    rng = np.random.default_rng(0)
    n = 300
    drawn = maystre2021.simulate(rng, M=260, N=2 * n, K=K, S=4, alpha=0.4, delta=0.3)
    y = drawn.v
    numbers = rng.normal(np.eye(K)[y] * 1.2, 1.0)
    words = rng.poisson(0.3 + 0.8 * np.eye(K)[y].repeat(3, 1))
    votes = pd.concat(
        [
            pd.DataFrame(
                {
                    "task": rows,
                    "worker": name,
                    "label": NAMES[corrupt(y[rows], uniform_noise(K, rate), rng)],
                }
            )
            for name, rate in (("ann", 0.3), ("bob", 0.45))
            for rows in [np.sort(rng.choice(2 * n, int(1.2 * n), replace=False))]
        ]
    )
    item, user = drawn.edges.nonzero()
    pairs = pd.DataFrame({"user": user, "item": item})
    return {"n": n, "y": y, "numbers": numbers, "words": words, "votes": votes, "pairs": pairs}


def sources():
    return {
        "numbers": NoisyGaussianNB.published(),
        "words": NoisyMultinomialNB.published(),
        "users": CollaborativeClassifier(alpha=0.4, weight=1.0),
        "crowd": DawidSkene(),
    }


def data(world, rows, names=("numbers", "words", "users", "crowd")):
    """Evidence of some items, by their numbers."""
    inside = {"users": ("pairs", "item"), "crowd": ("votes", "task")}
    out = {}
    for name in names:
        if name in inside:
            table, column = inside[name]
            out[name] = world[table][world[table][column].isin(rows)]
        else:
            out[name] = world[name][rows]
    return out


@pytest.mark.slow
def test_fused_evidence_beats_each_source_alone(world):
    """On held-out truth: training items' classes, and new items'."""
    n, y = world["n"], NAMES[world["y"]]
    train, new = np.arange(n), np.arange(n, 2 * n)

    def accuracy(names):
        e = JointNB({k: v for k, v in sources().items() if k in names}, classes=NAMES)
        # a fifth of the classes is known; nothing else names them where there are no votes
        trusted = {i: y[i] for i in range(0, n, 5)}
        unknown = np.setdiff1d(train, list(trusted))
        e.fit(data(world, train, names), trusted=trusted, items=train)
        inner = e.classes_[e.label_posterior_.argmax(1)][unknown] == y[unknown]
        outer = e.predict(data(world, new, names), items=new) == y[new]
        return inner.mean(), outer.mean()

    alone = {name: accuracy([name]) for name in sources()}
    fused = accuracy(list(sources()))
    assert fused[0] > max(one[0] for one in alone.values()) + 0.02
    assert fused[1] > max(one[1] for one in alone.values()) + 0.02


@pytest.mark.slow
def test_one_table_is_the_estimator_of_a_table(world):
    rng = np.random.default_rng(1)
    y = NAMES[corrupt(world["y"], uniform_noise(K, 0.2), rng)]
    for name in ("numbers", "words"):
        alone = sources()[name].fit(world[name], y)
        joint = JointNB({name: sources()[name]}, noise="full").fit({name: world[name]}, y)
        np.testing.assert_allclose(joint.label_posterior_, alone.label_posterior_, atol=1e-6)
        np.testing.assert_allclose(joint.objective_, alone.objective_, 1e-9)
        fresh = joint.predict_proba({name: world[name][:5]})
        np.testing.assert_allclose(fresh, alone.predict_proba(world[name][:5]), atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:votes of two workers")
def test_votes_alone_are_dawid_skene(world):
    alone = DawidSkene(pooling="own", dependence=0).fit(world["votes"])
    joint = JointNB({"crowd": DawidSkene()})
    joint.fit({"crowd": world["votes"]}, items=alone.tasks_)
    np.testing.assert_allclose(joint.label_posterior_, alone.label_posterior_, atol=1e-9)
    assert set(joint.noise_matrices()) == {"crowd"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
@pytest.mark.filterwarnings("ignore:votes of two workers")
def test_votes_beside_features_help(world):
    n, y = world["n"], NAMES[world["y"]]
    x, votes = world["numbers"][:n], world["votes"][world["votes"]["task"] < n]
    e = NoisyGaussianNB.published().fit(x, votes=votes)
    tasks = DawidSkene().fit(votes)
    both = (e.classes_[e.label_posterior_.argmax(1)] == y[:n]).mean()
    known = tasks.tasks_
    voted = (tasks.predict() == y[known]).mean()
    assert both > voted
    assert e.noise_matrix_.shape == (K, K)
    # rows are named by the index of a frame
    named = pd.DataFrame(x, index=[f"r{i}" for i in range(n)])
    again = votes.assign(task=[f"r{i}" for i in votes["task"]])
    other = NoisyGaussianNB.published().fit(named, votes=again)
    np.testing.assert_allclose(other.label_posterior_, e.label_posterior_, atol=1e-9)


@pytest.mark.slow
def test_draws_are_in_the_units_of_the_data(world):
    """Features are standardised inside; what is drawn of them is not."""
    n = world["n"]
    rng = np.random.default_rng(3)
    y = NAMES[corrupt(world["y"][:n], uniform_noise(K, 0.2), rng)]
    numbers = pd.DataFrame(100 + 10 * world["numbers"][:n], columns=["a", "b", "c"])
    e = JointNB({"numbers": NoisyGaussianNB(), "crowd": DawidSkene()})
    votes = world["votes"][world["votes"]["task"] < n]
    e.fit({"numbers": numbers, "crowd": votes}, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosteriorWarning)  # few draws
        draws = e.posterior(draws=100, warmup=100, chains=2, progress=False)["posterior"]
    mean = draws["numbers_mu"].mean(("chain", "draw")).to_numpy()
    of_class = numbers.groupby(world["y"][:n]).mean().to_numpy()
    np.testing.assert_allclose(mean, of_class, atol=4)
    assert list(draws["numbers_feature"].values) == ["a", "b", "c"]
    # each annotator has a matrix, and bob's is the worse
    right = np.diagonal(draws["crowd_transitions"].mean(("chain", "draw")), axis1=1, axis2=2)
    assert right[0].mean() > right[1].mean() + 0.05


# where the votes have the right names, most of the labels are wrong, which is warned of, too
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Do not use this fit as it is. 6. % of the given labels")
def test_one_confused_channel_among_several_is_reported(world):
    """Labels with two classes exchanged, beside votes that are sound: one has other names."""
    n, y = world["n"], world["y"][: world["n"]]
    votes = world["votes"][world["votes"]["task"] < n]
    swapped = NAMES[np.array([1, 0, 2])[y]]
    e = JointNB({"numbers": NoisyGaussianNB(), "voters": DawidSkene()})
    evidence = {"numbers": world["numbers"][:n], "voters": votes}
    with pytest.warns(IdentifiabilityWarning, match="ant as bee, bee as ant"):
        e.fit(evidence, swapped)
    exchanged = [matrix[0, 1] for matrix in e.noise_matrices().values()]
    assert min(exchanged) < 0.25 < 0.5 < max(exchanged)  # a sixth of the votes are of that kind
    # names that checked rows show are to be read literally
    e.fit(evidence, swapped, trusted={i: NAMES[y[i]] for i in range(0, n, 2)})
    assert e.noise_matrices()["labels"][0, 1] > 0.7


@pytest.mark.slow
def test_possible_classes_and_missing_labels(world):
    n, y = world["n"], world["y"][: world["n"]]
    possible = [None if i % 2 else {NAMES[y[i]], NAMES[(y[i] + 1) % K]} for i in range(n)]
    given = np.where(np.arange(n) % 3, "?", NAMES[y])
    e = JointNB({"numbers": NoisyGaussianNB()}, classes=NAMES, missing_label="?")
    e.fit({"numbers": world["numbers"][:n]}, given, possible=possible)
    table = np.array([[s is None or c in s for c in NAMES] for s in possible])
    assert (e.label_posterior_[~table] == 0).all()
    again = JointNB({"numbers": NoisyGaussianNB()}, classes=NAMES, missing_label="?")
    again.fit({"numbers": world["numbers"][:n]}, given, possible=table)
    np.testing.assert_allclose(again.label_posterior_, e.label_posterior_)
    partial = PartialLabelNB(estimator="em", features="gaussian", classes=NAMES)
    partial.fit(world["numbers"][:n], table)
    assert (partial.label_posterior_[~table] == 0).all()


@pytest.mark.slow
def test_sparse_and_symbolic_sources(world):
    n = world["n"]
    rng = np.random.default_rng(2)
    y = NAMES[corrupt(world["y"][:n], uniform_noise(K, 0.1), rng)]
    flags = sparse.csr_array((world["words"][:n] > 0).astype(float))
    colours = pd.DataFrame({"colour": np.array(["red", "blue", "green"])[world["y"][:n]]})
    e = JointNB({"flags": NoisyBernoulliNB(), "colour": NoisyCategoricalNB()})
    e.fit({"flags": flags, "colour": colours}, y)
    assert (e.predict({"colour": colours}) == NAMES[world["y"][:n]]).mean() > 0.95


def test_a_joint_graph_without_given_labels_needs_its_settings(world):
    e = JointNB({"users": CollaborativeClassifier(training=JointGraph())}, classes=NAMES)
    known = dict(enumerate(NAMES[world["y"][:50]]))
    with pytest.raises(DataError, match="users: settings are selected by labels held out of y"):
        e.fit({"users": world["pairs"]}, trusted=known, items=np.arange(2 * world["n"]))


@pytest.mark.slow
def test_a_graph_learns_from_votes_alone(world):
    """What others know of the neighbours takes the place of given labels."""
    n = 2 * world["n"]
    evidence = {"crowd": world["votes"], "users": world["pairs"]}
    known = {"classes": NAMES, "random_state": 0}
    right = {}
    for names in (("crowd",), ("crowd", "users")):
        sources = {"crowd": DawidSkene(), "users": CollaborativeClassifier()}
        e = JointNB({name: sources[name] for name in names}, **known)
        e.fit({name: evidence[name] for name in names}, items=np.arange(n))
        right[len(names)] = np.mean(e.label_posterior_.argmax(1) == world["y"])
    assert right[2] > right[1] + 0.05
    new = e.predict({"users": world["pairs"]}, items=np.arange(n))
    assert np.mean(new == NAMES[world["y"]]) > 0.5


@pytest.mark.slow
def test_a_graph_is_heard_as_far_as_it_predicts_unseen_labels(world):
    """A graph that follows the classes is listened to; the same one shuffled is switched off."""
    rng = np.random.default_rng(2)
    n = 2 * world["n"]
    y = NAMES[corrupt(world["y"], uniform_noise(K, 0.3), rng)]
    # beside a graph errors have one rate here, so that the fits can be compared
    known = {"noise": "symmetric", "random_state": 0}
    alone = JointNB({"x": NoisyGaussianNB()}, **known).fit({"x": world["numbers"]}, y)
    shuffled = world["pairs"].assign(item=rng.permutation(world["pairs"]["item"]))
    weights, right, said = {}, {}, {}
    for name, pairs in (("informative", world["pairs"]), ("shuffled", shuffled)):
        both = {"x": NoisyGaussianNB(), "users": CollaborativeClassifier()}
        e = JointNB(both, **known)
        with warnings.catch_warnings(record=True, action="always") as caught:
            e.fit({"x": world["numbers"], "users": pairs}, y, items=np.arange(n))
        said[name] = [str(w.message) for w in caught]
        weights[name] = float(e.fit_.model["users"].weight)
        right[name] = np.mean(e.label_posterior_.argmax(1) == world["y"])
    assert weights == {"informative": 1, "shuffled": 0}
    assert said["informative"] == []
    assert any("users: its data do not surely predict" in one for one in said["shuffled"])
    without = np.mean(alone.label_posterior_.argmax(1) == world["y"])
    assert right["informative"] > without + 0.02
    assert abs(right["shuffled"] - without) < 0.005


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_the_own_vote_is_left_out_beside_other_sources(world):
    """Users of a single item say nothing, in a joint model too."""
    n = 2 * world["n"]
    lone = pd.DataFrame({"user": np.arange(n), "item": np.arange(n)})
    y = NAMES[corrupt(world["y"], uniform_noise(K, 0.3), np.random.default_rng(1))]
    x = {"x": world["numbers"]}
    known = {"class_prior": np.full(K, 1 / K), "noise": "full"}
    plain = JointNB({"x": NoisyGaussianNB()}, **known, solver=Solver(tol=1e-12)).fit(x, y)
    graph = CollaborativeClassifier(alpha=0.3, weight=1.0)
    e = JointNB({"x": NoisyGaussianNB(), "users": graph}, **known).fit(x | {"users": lone}, y)
    # collapsed updates stop where no responsibility moves by 1e-4, some way before the end
    np.testing.assert_allclose(e.label_posterior_, plain.label_posterior_, atol=1e-2)
    echo = JointNB(
        {"x": NoisyGaussianNB(), "users": graph.set_params(training__collapsed=False)}, **known
    )
    echo.fit(x | {"users": lone}, y)
    assert np.abs(echo.label_posterior_ - plain.label_posterior_).max() > 0.2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:votes of two workers")
def test_annotators_are_pooled_if_asked(world):
    votes = world["votes"]
    e = JointNB({"crowd": DawidSkene(pooling=True)}, classes=NAMES)
    e.fit({"crowd": votes}, items=np.unique(votes["task"]))
    alone = DawidSkene(pooling=True, dependence=0, classes=NAMES).fit(votes)
    np.testing.assert_allclose(e.label_posterior_, alone.label_posterior_, atol=1e-6)
    with pytest.raises(DataError, match="crowd: pooling: method 'ml' has no prior to learn"):
        e.set_params(solver="ml").fit({"crowd": votes}, items=np.unique(votes["task"]))


def drawn(rng, n, k, apart):
    """Classes of normal columns."""
    true = rng.integers(k, size=n)
    return rng.normal(0, apart, (k, 5))[true] + rng.normal(size=(n, 5)), true


@pytest.mark.slow
def test_many_classes_do_not_lower_the_rates_of_right_labels():
    """The pseudo-labels of a full matrix would: one of each class and two right ones."""
    x, true = drawn(np.random.default_rng(0), 600, 10, 3.0)
    given = corrupt(true, uniform_noise(10, 0.2), np.random.default_rng(1))
    found = JointNB({"x": NoisyGaussianNB()}, random_state=0).fit({"x": x}, given)
    right = np.mean([np.mean(given[true == c] == c) for c in range(10)])
    assert np.diagonal(found.noise_matrix_).mean() == pytest.approx(right, abs=0.02)


@pytest.mark.slow
def test_annotators_with_few_votes_are_drawn_to_their_own_accuracy():
    rng = np.random.default_rng(0)
    x, true = drawn(rng, 300, 5, 1.0)
    accuracy = rng.uniform(0.55, 0.9, 40)
    rows = [(i, w) for i in range(300) for w in rng.choice(40, 2, replace=False)]
    task, worker = np.array(rows).T
    wrong = (true[task] + rng.integers(1, 5, len(task))) % 5
    label = np.where(rng.random(len(task)) < accuracy[worker], true[task], wrong)
    votes = pd.DataFrame({"task": task, "worker": worker, "label": label})
    right = {}
    for pooling in ("auto", "none"):
        both = {"x": NoisyGaussianNB(), "crowd": DawidSkene(pooling=pooling)}
        model = JointNB(both, solver="vb")
        found = model.fit({"x": x, "crowd": votes}).label_posterior_
        right[pooling] = np.mean(found.argmax(1) == true)
    assert right["auto"] > right["none"] + 0.02


@pytest.mark.slow
def test_both_ends_of_the_noise_are_not_offered():
    """With labels, features and noise to be learned, no condition is named that is met."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    y = NAMES[corrupt(truth, uniform_noise(2, 0.1), rng)]
    X = rng.normal(3.0 * truth[:, None], size=(60, 2))
    model = JointNB({"numbers": NoisyGaussianNB()}, random_state=0).fit({"numbers": X}, y)
    with pytest.raises(AttributeError, match=r"JointNB has none: .* no points of one space"):
        _ = model.noise_range_


def test_votes_by_which_a_class_would_vanish():
    """Half of the annotators give one label to all; one class had 97 of 100 items of three."""
    rng = np.random.default_rng(9)
    n = 150
    true = rng.integers(3, size=n)
    task = np.repeat(np.arange(n), 3)
    worker = np.concatenate([rng.choice(8, 3, replace=False) for _ in range(n)])
    right = rng.random(3 * n) < 0.75
    label = np.where(right, true[task], (true[task] + rng.integers(1, 3, 3 * n)) % 3)
    label = np.where((worker < 4) & (rng.random(3 * n) < 0.9), worker % 3, label)
    votes = pd.DataFrame({"task": task, "worker": worker.astype(str), "label": label})
    alone = DawidSkene(pooling="own", random_state=0).fit(votes)
    model = JointNB({"crowd": DawidSkene()}, random_state=0)
    model.fit({"crowd": votes}, items=np.arange(n))
    np.testing.assert_allclose(model.class_prior_, alone.class_prior_, atol=0.02)
    assert model.class_prior_.min() > 0.1
