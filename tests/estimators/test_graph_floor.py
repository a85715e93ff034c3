"""CollaborativeClassifier on its defaults is never worse than the plain answers."""

import warnings

import numpy as np
import pytest
from graph_worlds import WORLDS, given_labels, plain_answers
from sklearn.metrics import roc_auc_score

from nbmodels import CollaborativeClassifier, IdentifiabilityWarning, NbmodelsWarning, Solver
from nbmodels.channels import HierarchicalTransition, SymmetricTransition, Transition

pytestmark = pytest.mark.slow


def fitted(name, rate, kind="uniform", seed=0, state=0):
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


@pytest.mark.parametrize("name", ["weak edges", "mute"])
@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_labels_stay_where_edges_are_hardly_heard(name, rate):
    for seed in range(3):
        world, given, e = fitted(name, rate, seed=seed)
        error = np.mean(e.label_posterior_.argmax(1) != world.classes)
        assert error <= np.mean(given != world.classes) + 0.01


def test_edges_that_say_nothing_leave_the_prior():
    _, given, e = fitted("mute", 0.2)
    assert e.weight_ == 0
    assert (e.label_posterior_.argmax(1) == given).all()
    # new items: the neighbours' votes, not one class
    world, _, _ = fitted("mute", 0.2)
    assert len(np.unique(e.predict_proba(world.edges.T).argmax(1))) == 3
    draws = e.posterior(draws=300, warmup=20, chains=2, progress=False)["posterior"]
    right = draws["noise_matrix"].values[..., 0, 0].ravel()
    low, high = np.quantile(right, [0.05, 0.95])
    assert high - low > 0.5  # as wide as Beta(3, 2)


def test_the_answer_does_not_hang_on_the_folds():
    for name, rate in (("pairs, 33 % differ", 0.1), ("few users, 600 items", 0.3)):
        errors = []
        for state in range(10):
            world, _, e = fitted(name, rate, state=state)
            errors.append(np.mean(e.label_posterior_.argmax(1) != world.classes))
        assert np.std(errors) <= 0.005


def test_draws_are_averaged_over_forms_that_may_be_right():
    _, _, e = fitted("few users, 600 items", 0.3, seed=951)
    targets = e.fitted_.posterior_targets
    kinds = [type(one.fit.model["labels"]) for one in targets]
    assert set(kinds) == {SymmetricTransition, Transition, HierarchicalTransition}
    probabilities = np.array([one.probability for one in targets])
    assert probabilities.sum() == pytest.approx(1)
    assert probabilities[kinds.index(HierarchicalTransition)] == 0.5
    assert probabilities.min() > 0.05
    drawn = e.posterior(progress=False)
    assert "averaged over 3 forms" in drawn.attrs["kind"]
    component = drawn["sample_stats"]["component"].to_numpy()
    np.testing.assert_allclose(
        np.bincount(component.ravel()) / component.size, probabilities, atol=0.06
    )
    # under one error rate the diagonal is one number, under a matrix it is not
    matrices = np.moveaxis(drawn["posterior"]["noise_matrix"].to_numpy(), (2, 3), (0, 1))
    spread = np.ptp(np.einsum("kk...->k...", matrices), axis=0)
    np.testing.assert_array_equal(spread < 1e-9, component == kinds.index(SymmetricTransition))


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
    assert kinds["auto"] == [SymmetricTransition, HierarchicalTransition]
    assert kinds["symmetric"] == [SymmetricTransition]
    assert kinds["full"] == [Transition]
