"""CollaborativeClassifier on its defaults is never worse than the plain answers."""

import warnings
from functools import cache

import numpy as np
import pytest
from floor_worlds import WORLDS as FLOOR
from floor_worlds import Setting, draw
from graph_worlds import (
    WORLDS,
    given_labels,
    held,
    mixed_users,
    noise_matrix,
    plain_answers,
    weak_edges,
)
from scipy import sparse
from sklearn.metrics import roc_auc_score

from nbmodels import (
    CollaborativeClassifier,
    IdentifiabilityWarning,
    NbmodelsWarning,
    PosteriorWarning,
    Solver,
)
from nbmodels.channels import HierarchicalTransition, SymmetricTransition, Transition

# they compute for longer than they compile
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("optimised")]


@cache
def fitted(name, rate, kind, seed=0, state=0):
    """A world, labels with noise, and a fit, which several tests read."""
    rng = np.random.default_rng(seed)
    world = WORLDS[name](rng)
    given = given_labels(rng, world, rate, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        e = CollaborativeClassifier(random_state=state, classes=range(world.n_classes))
        return world, given, e.fit(world.edges.T, given)


@pytest.mark.parametrize(
    ("name", "rate", "kind", "most"),
    [
        ("few users, 600 items", 0.3, "uniform", 0.08),
        ("few users, 600 items", 0.3, "pair", 0.06),
        ("pairs, 20 % differ", 0.3, "uniform", 0.05),
        ("pairs, 33 % differ", 0.1, "uniform", 0.07),
        ("popular users", 0.3, "uniform", 0.12),
        ("isolated items", 0.2, "uniform", 0.14),
        ("two communities a class", 0.2, "uniform", 0.06),
        ("uneven classes", 0.3, "uniform", 0.09),
        ("rare class", 0.3, "pair", 0.05),
        ("ten classes, 40 users", 0.3, "pair", 0.02),
    ],
)
def test_labels_are_corrected_where_a_plain_vote_does_it(name, rate, kind, most):
    world, given, e = fitted(name, rate, kind)
    wrong = given != world.classes
    probs = e.label_posterior_
    error = np.mean(probs.argmax(1) != world.classes)
    assert error <= most
    doubt = 1 - probs[np.arange(len(given)), given]
    for best, score in plain_answers(world, given).values():
        assert error <= np.mean(best != world.classes) + 0.005
        assert roc_auc_score(wrong, doubt) >= roc_auc_score(wrong, score) - 0.005
    # the noise was learned from predictions that had not seen the label
    assert abs(np.diag(e.noise_matrix_).mean() - (1 - rate)) < 0.06
    assert e.verdict().ok
    # new items with users
    new, touched = e.predict_proba(world.edges.T).argmax(1), np.diff(world.edges.indptr) > 0
    assert np.mean((new != world.classes)[touched]) < 0.2


@pytest.mark.parametrize(
    ("name", "rate", "kind", "seed", "gain"),
    [
        ("isolated items", 0.4, "uniform", 0, 0.17),
        ("mixed neighbours", 0.2, "community", 0, 0.05),
    ],
)
def test_labels_are_corrected_where_halves_of_the_users_tell_the_noise(
    name, rate, kind, seed, gain
):
    """Scores alone changed too few: they hardly tell how many are wrong."""
    world, given, e = fitted(name, rate, kind, seed=seed)
    error = np.mean(e.label_posterior_.argmax(1) != world.classes)
    wrong = np.mean(given != world.classes)
    assert error <= wrong - gain
    assert abs(e.fitted_.share_wrong - wrong) < 0.08


def test_labels_stay_where_scores_and_halves_of_the_users_contradict_each_other():
    """By scores alone 38 % of the labels are wrong, and 17 points of right ones were lost."""
    rng = np.random.default_rng([5001, 976, 0])
    world = WORLDS["weak edges"](rng)
    given = given_labels(rng, world, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        e = CollaborativeClassifier(random_state=0, classes=range(3)).fit(world.edges.T, given)
    error = np.mean(e.label_posterior_.argmax(1) != world.classes)
    assert error <= np.mean(given != world.classes) + 0.01


def test_a_full_matrix_is_taken_where_one_error_rate_loses_a_class():
    """A rare class of whose labels less than half are right: with one rate no label was changed."""
    rng = np.random.default_rng([3100, 992, 4])
    world = WORLDS["rare class"](rng)
    given = given_labels(rng, world, 0.4)
    e = CollaborativeClassifier(random_state=0, classes=range(3)).fit(world.edges.T, given)
    assert np.mean(given != world.classes) > 0.35
    assert np.mean(e.label_posterior_.argmax(1) != world.classes) < 0.06


def test_a_full_matrix_is_taken_where_a_class_of_few_labels_has_most_of_them_wrong():
    """Of ten classes with 45 labels each, 40 % wrong, one has more wrong labels than right ones."""
    task = draw(FLOOR["graph, tastes"], Setting(600, 10, False, "pair", 0.4), 31)
    e = CollaborativeClassifier(random_state=0, classes=range(10), missing_label=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        e.fit(sparse.csr_array(task.x.T), task.given)
    assert np.diag(e.noise_matrix_).min() < 0.5
    labelled = task.given >= 0
    right = (e.label_posterior_.argmax(1) == task.true)[labelled]
    assert np.mean(task.given[labelled] == task.true[labelled]) < 0.65
    assert right.mean() > 0.95


def test_errors_of_a_community_are_warned_of():
    """Neighbours there are wrong together, so that they confirm each other's labels."""
    rng = np.random.default_rng(0)
    world = WORLDS["mixed neighbours"](rng)
    given = given_labels(rng, world, 0.2, "community")
    e = CollaborativeClassifier(random_state=0, classes=range(3))
    with pytest.warns(IdentifiabilityWarning, match="halves of the users"):
        e.fit(world.edges.T, given)


def test_a_form_that_held_out_labels_leave_possible_is_warned_of():
    """Classes alike in pairs: halves of users side with a full matrix, 40 % would be wrong."""
    rng = np.random.default_rng([3200, 1300, 0])
    world = WORLDS["alike classes"](rng)
    given = given_labels(rng, world, 0.1)
    with pytest.warns(IdentifiabilityWarning, match="hardly identified"):
        CollaborativeClassifier(random_state=0, classes=range(4)).fit(world.edges.T, given)


@pytest.mark.parametrize(
    ("seed", "name", "kind", "rate", "match"),
    [
        # 41 % of the labels became wrong, of 32
        ([3000, 1348, 2], "bots, 2 classes", "pair", 0.3, "nearly the same items"),
        # 12 %, of 10
        ([3014, 1232, 0], "sparse items", "uniform", 0.1, "hardly likelier"),
    ],
)
def test_labels_that_become_worse_are_warned_of(seed, name, kind, rate, match):
    rng = np.random.default_rng(seed)
    world = WORLDS[name](rng)
    given = given_labels(rng, world, rate, kind)
    e = CollaborativeClassifier(random_state=0, classes=range(world.n_classes))
    with pytest.warns(IdentifiabilityWarning, match=match):
        e.fit(world.edges.T, given)


@pytest.mark.parametrize("name", ["weak edges", "mute"])
@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_labels_stay_where_edges_are_hardly_heard(name, rate):
    for seed in range(2):
        world, given, e = fitted(name, rate, "uniform", seed=seed)
        error = np.mean(e.label_posterior_.argmax(1) != world.classes)
        assert error <= np.mean(given != world.classes) + 0.01


def test_edges_that_say_nothing_leave_the_prior():
    world, given, e = fitted("mute", 0.2, "uniform")
    assert e.weight_ == 0
    assert (e.label_posterior_.argmax(1) == given).all()
    # new items: the neighbours' votes, not one class
    assert len(np.unique(e.predict_proba(world.edges.T).argmax(1))) == 3
    draws = e.posterior(draws=300, warmup=20, chains=2, progress=False)["posterior"]
    right = draws["noise_matrix"].values[..., 0, 0].ravel()
    low, high = np.quantile(right, [0.05, 0.95])
    assert high - low > 0.6  # as wide as Beta(2, 1)
    assert low < 0.3
    assert high > 0.95


def test_the_answer_does_not_hang_on_the_folds():
    for name, rate in (("pairs, 33 % differ", 0.1), ("few users, 600 items", 0.3)):
        errors = []
        for state in range(4):
            world, _, e = fitted(name, rate, "uniform", state=state)
            errors.append(np.mean(e.label_posterior_.argmax(1) != world.classes))
        assert np.std(errors) <= 0.005


def test_draws_are_of_a_full_matrix_and_of_a_hierarchical_one_and_by_halves_of_the_users():
    _, _, e = fitted("few users, 600 items", 0.3, "uniform", seed=951)
    targets = e.fitted_.posterior_targets
    kinds = [type(one.fit.model["labels"]) for one in targets]
    assert kinds == [Transition, HierarchicalTransition]
    assert [one.probability for one in targets] == [0.5, 0.5]
    drawn = e.posterior(progress=False)
    assert "averaged over 2 forms" in drawn.attrs["kind"]
    assert "by halves of the users" in drawn.attrs["kind"]
    component = drawn["sample_stats"]["component"].to_numpy()
    shares = np.bincount(component.ravel()) / component.size
    np.testing.assert_allclose(shares, [0.425, 0.425, 0.15], atol=0.06)


def test_intervals_under_weak_edges_hold_rates_that_differ():
    rng = np.random.default_rng([11, 77])
    world = mixed_users(rng, n=300, own=0.6)
    given = given_labels(rng, world, 0.2, "uneven")
    e = CollaborativeClassifier(random_state=0, classes=range(3)).fit(world.edges.T, given)
    assert e.weight_ > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosteriorWarning)  # of chains that mix slowly
        drawn = e.posterior(progress=False, keep="parameters")
    draws = drawn["posterior"]["noise_matrix"].to_numpy()
    # draws of one error rate and a hierarchical matrix held a third of them
    assert min(held(draws, noise_matrix(3, 0.2, "uneven"))) > 0.8


def test_forty_items_are_corrected_by_clear_users():
    rng = np.random.default_rng([0, 77])
    world = mixed_users(rng, 40, 3, own=0.85, size=4, degree=5)
    given = given_labels(rng, world, 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        e = CollaborativeClassifier(random_state=0, classes=range(3)).fit(world.edges.T, given)
    assert np.mean(given != world.classes) == 0.3
    assert np.mean(e.label_posterior_.argmax(1) != world.classes) <= 0.1


def test_weak_edges_do_not_move_the_shares_of_the_classes():
    rng = np.random.default_rng([0, 77])
    world = weak_edges(rng, n=300, k=5, alpha=1.5)
    given = given_labels(rng, world, 0.3, "pair")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        e = CollaborativeClassifier(random_state=0, classes=range(5)).fit(world.edges.T, given)
    error = np.mean(e.label_posterior_.argmax(1) != world.classes)
    assert error <= np.mean(given != world.classes) + 0.01


def test_the_hierarchical_matrix_is_drawn_where_the_form_is_chosen_and_only_there():
    world = WORLDS["ten classes, 40 users"](np.random.default_rng(3))
    rng = np.random.default_rng(4)
    few = rng.permutation(len(world.classes))[:400]  # less than five labels a cell
    given = np.full(len(world.classes), -1)
    given[few] = given_labels(rng, world, 0.1)[few]
    kinds = {}
    for noise in ("auto", "symmetric", "full"):
        e = CollaborativeClassifier(
            classes=range(10),
            noise=noise,
            missing_label=-1,
            random_state=0,
            solver=Solver(method="vb", progress=False),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NbmodelsWarning)  # a full matrix has too few labels
            e.fit(world.edges.T, given)
        assert e.weight_ > 0
        kinds[noise] = [type(one.fit.model["labels"]) for one in e.fitted_.posterior_targets]
        assert e.fitted_.by_halves is None
    assert kinds["auto"] == [SymmetricTransition, HierarchicalTransition]
    assert kinds["symmetric"] == [SymmetricTransition]
    assert kinds["full"] == [Transition]
