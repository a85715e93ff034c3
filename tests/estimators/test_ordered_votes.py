"""Votes on an ordered scale: what graders are, whose order it is, and what is refused."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from nbmodels import DataError, DawidSkene, JointNB, NbmodelsWarning, NoisyGaussianNB
from nbmodels.data.annotations import Votes
from nbmodels.estimators.ordered_votes import used_grades

THRESHOLDS = np.array([-1.3, -0.4, 0.4, 1.3])


def graders(seed=0, n=300, w=8, per=4, ends=0, spread=0.7):
    """Votes by graders of severities of their own, true grades from 1, and these severities.

    Args:
        ends: number of graders who use the ends of the scale alone.
        spread: standard deviation of the severities, in units of the scores.
    """
    rng = np.random.default_rng(seed)
    z, severity, size = rng.normal(size=n), rng.normal(0, spread, w), rng.uniform(0.2, 0.5, w)
    task = np.repeat(np.arange(n), per)
    worker = np.concatenate([rng.permutation(w)[:per] for _ in range(n)])
    seen = z[task] - severity[worker] + size[worker] * rng.normal(size=len(task))
    label = np.where(worker < ends, 4 * (seen > 0), np.digitize(seen, THRESHOLDS)) + 1
    table = pd.DataFrame({"task": task, "worker": worker, "label": label})
    return table, np.digitize(z, THRESHOLDS) + 1, severity - severity.mean()


def ordered(**more):
    return DawidSkene(ordered=True, random_state=0, **more)


def loss(model, y):
    p = model.label_posterior_[np.arange(len(y)), y - 1]
    return -np.log(np.maximum(p, 1e-12)).mean()


@pytest.fixture(scope="module")
def fitted():
    table, y, severity = graders()
    return ordered().fit(table), table, y, severity


@pytest.mark.slow
@pytest.mark.parametrize("ends", [0, 2])
@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")  # of free matrices
def test_grades_are_better_than_those_of_free_matrices(ends):
    right, losses = [], []
    for seed in range(100, 102):
        table, y, _ = graders(seed, ends=ends)
        both = ordered().fit(table), DawidSkene(random_state=0).fit(table)
        right.append([(one.predict() == y).mean() for one in both])
        losses.append([loss(one, y) for one in both])
    mine, free = np.mean(right, 0)
    assert mine > free + 0.05
    mine, free = np.mean(losses, 0)
    assert mine < free - 0.1


def test_severities_are_recovered(fitted):
    model, _, y, severity = fitted
    assert abs(model.label_posterior_.max(1).mean() - (model.predict() == y).mean()) < 0.08
    report = model.worker_report().set_index("worker").loc[np.arange(8)]
    # in grades, which are 0.87 units of the scores wide on average
    found = report["severity"] - report["severity"].mean()
    np.testing.assert_allclose(found, severity / 0.87, rtol=0.15, atol=0.2)
    assert (report["range"].between(0.7, 1.4)).all()
    assert model.verdict().ok
    assert model.converged_


def test_graders_who_use_the_ends_alone_have_a_small_range():
    table, _, _ = graders(seed=1, ends=2)
    model = ordered().fit(table)
    report = model.worker_report().set_index("worker")
    assert report.loc[[0, 1], "range"].max() < 0.4
    assert report.loc[np.arange(2, 8), "range"].min() > 0.6


def test_a_scale_read_backwards_is_the_same_scale(fitted):
    model, table, _, _ = fitted
    turned = ordered(classes=[5, 4, 3, 2, 1]).fit(table)
    np.testing.assert_allclose(turned.label_posterior_[:, ::-1], model.label_posterior_, atol=0.01)
    one, other = (e.worker_report().set_index("worker").sort_index() for e in (model, turned))
    np.testing.assert_allclose(one["severity"], -other["severity"], atol=0.02)
    np.testing.assert_allclose(one["scale"], other["scale"], rtol=0.05)


def test_the_order_matters(fitted):
    model, table, y, _ = fitted
    mixed = ordered(classes=[3, 1, 5, 2, 4]).fit(table)
    assert (mixed.predict() == y).mean() < (model.predict() == y).mean() - 0.1


def test_the_order_is_that_of_numbers_or_of_a_categorical(fitted):
    model, table, _, _ = fitted
    text = table.assign(label=(5 * table["label"]).astype(str))
    found = ordered().fit(text)  # "5" before "10"
    assert found.classes_.tolist() == ["5", "10", "15", "20", "25"]
    np.testing.assert_allclose(found.label_posterior_, model.label_posterior_, atol=1e-6)
    names = np.array(["bad", "poor", "fair", "good", "best"])
    kind = pd.CategoricalDtype(["worst", *names], ordered=True)
    by_kind = table.assign(label=pd.Series(names[table["label"] - 1]).astype(kind))
    found = ordered().fit(by_kind)
    assert found.classes_.tolist() == names.tolist()  # nobody named the first category
    np.testing.assert_allclose(found.label_posterior_, model.label_posterior_, atol=1e-6)
    plain = by_kind.assign(label=by_kind["label"].astype(str))
    with pytest.raises(DataError, match="ordered: the labels are no numbers"):
        ordered().fit(plain)
    found = ordered(classes=names).fit(plain)
    np.testing.assert_allclose(found.label_posterior_, model.label_posterior_, atol=1e-6)


def test_new_votes_and_unknown_workers(fitted):
    model, table, _, severity = fitted
    again = ordered(dependence=0.0).fit(table)
    np.testing.assert_allclose(again.predict_proba(table), again.label_posterior_, atol=1e-3)
    strict, lenient = (int(i) for i in (severity.argmax(), severity.argmin()))
    new = pd.DataFrame({"task": [0, 1, 2], "worker": [strict, 99, lenient], "label": [3, 3, 3]})
    grade = model.predict_proba(new) @ np.arange(1, 6)
    assert grade[0] > grade[1] > grade[2]
    np.testing.assert_allclose(model.predict_proba(new).sum(1), 1)
    # nothing is known of the other: their votes are not those of somebody in particular
    unknown = model.noise_matrix_
    np.testing.assert_allclose(unknown.sum(0), 1)
    np.testing.assert_allclose(unknown, unknown[::-1, ::-1], atol=0.1)


@pytest.mark.slow
def test_checked_tasks_show_the_severity_of_all():
    table, y, _ = graders(seed=2, spread=0.0)
    strict = table.assign(label=np.maximum(table["label"] - 1, 1))  # all of them by a grade
    with pytest.warns(NbmodelsWarning, match="nobody uses the grades at an end of the scale, 5"):
        alone = ordered(classes=[1, 2, 3, 4, 5]).fit(strict)
    helped = ordered(classes=[1, 2, 3, 4, 5])
    helped.fit(strict, trusted={i: y[i] for i in range(100)})
    rest = np.arange(300) >= 100
    assert (helped.predict() == y)[rest].mean() > (alone.predict() == y)[rest].mean() + 0.2
    assert helped.worker_report()["severity"].mean() > 0.4


def test_it_is_saved_and_loaded(fitted):
    model, _, _, _ = fitted
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.label_posterior_, model.label_posterior_)
    pd.testing.assert_frame_equal(again.worker_report(), model.worker_report())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "own"}, "pooling: ordered"),
        ({"subtypes": 2}, "subtypes: ordered"),
        ({"abstain": -1}, "abstain: ordered"),
        ({"solver": "ml"}, "ordered: is fitted by"),
        ({"solver": "vb"}, "ordered: is fitted by"),
        ({"ordered": "yes"}, "ordered: expected"),
    ],
)
def test_settings_that_do_not_go_with_it_are_refused(settings, message):
    table, _, _ = graders(n=30)
    with pytest.raises(DataError, match=message):
        DawidSkene(**{"ordered": True, **settings}).fit(table)


def test_it_is_no_source_of_several():
    table, y, _ = graders(n=200)
    model = JointNB({"x": NoisyGaussianNB(), "crowd": ordered()})
    with pytest.raises(DataError, match="ordered: not for one source"):
        model.fit({"x": np.random.default_rng(0).normal(size=(200, 2)), "crowd": table}, y)


@pytest.mark.slow
def test_two_grades_and_few_votes_are_fitted():
    table, _, _ = graders(n=12, w=3, per=2)
    two = table.assign(label=(table["label"] > 3).astype(int))
    for one in (table, two):
        with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
            model = ordered().fit(one)
        assert np.isfinite(model.label_posterior_).all()
        np.testing.assert_allclose(model.label_posterior_.sum(1), 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
def test_draws_are_by_class_and_cover_what_is_true():
    inside, grades, sure = [], [], []
    for seed in range(3):
        table, y, severity = graders(seed=20 + seed, n=150, w=6, per=3)
        tree = ordered().fit(table).posterior(draws=400, random_state=0)
        draws = tree["posterior"]
        assert draws["class_prior"].sizes["true_class"] == 5
        np.testing.assert_allclose(draws["class_prior"].sum("true_class"), 1)
        rates = draws["votes_transitions"]
        assert rates.dims[-2:] == ("true_class", "observed_class")
        np.testing.assert_allclose(rates.sum("observed_class"), 1)
        assert rates["observed_class"].to_numpy().tolist() == [1, 2, 3, 4, 5]
        found = draws["votes_severity"]
        found = (found - found.mean("votes_annotator")).stack(all=("chain", "draw")).to_numpy()
        low, high = np.quantile(found, [0.05, 0.95], axis=1)
        inside += [*((low < severity / 0.87) & (severity / 0.87 < high))]
        p = tree["label_posterior"]["p"].to_numpy()
        grades += [*(p.argmax(1) + 1 == y)]
        sure += [*p.max(1)]
    assert 0.75 < np.mean(inside) <= 1.0
    assert abs(np.mean(grades) - np.mean(sure)) < 0.06


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
def test_gibbs_is_nuts():
    """The same posterior by NumPyro's sampler on the program, scores summed out."""
    table, _, _ = graders(seed=5, n=60, w=3, per=3)
    model = ordered().fit(table.assign(label=np.clip(table["label"], 2, 4)))
    gibbs = model.posterior(draws=1000, thin=3, random_state=1)["posterior"]
    nuts = model.posterior("nuts", draws=300, chains=1, random_state=1)["posterior"]
    for name, error in (("votes_severity", 0.08), ("votes_scale", 0.05), ("class_prior", 0.02)):
        ours, theirs = (draws[name].stack(all=("chain", "draw")) for draws in (gibbs, nuts))
        np.testing.assert_allclose(ours.mean("all"), theirs.mean("all"), atol=error)
        np.testing.assert_allclose(ours.std("all"), theirs.std("all"), rtol=0.3, atol=error / 2)


# The warning beside free matrices -----------------------------------------------------------------


def warned(table, **more):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DawidSkene(random_state=0, **more).fit(table)
    return [str(one.message) for one in caught if "grades of an ordered scale" in str(one.message)]


def test_votes_that_are_grades_are_warned_of():
    table, _, _ = graders(seed=3)
    (message,) = warned(table)
    assert "ordered=True" in message
    figures = [float(one) for one in re.findall(r"-\d+\.\d+", message)]
    assert figures[0] > figures[1]  # under graders, and under free matrices
    names = np.array(["a", "b", "c", "d", "e"])[table["label"] - 1]
    kind = pd.CategoricalDtype(["a", "b", "c", "d", "e"], ordered=True)
    assert warned(table.assign(label=pd.Series(names).astype(kind)))
    assert not warned(table.assign(label=names))  # whose order nobody has said
    assert not warned(table, dependence=0.0, solver="ml")


def test_the_place_on_the_scale_counts_and_not_that_of_the_name():
    table, _, _ = graders(seed=3)
    names = np.array(["c", "a", "e", "b", "d"])
    kind = pd.CategoricalDtype(names, ordered=True)
    assert warned(table.assign(label=pd.Series(names[table["label"] - 1]).astype(kind)))
    shuffled = np.array([2, 5, 1, 4, 3])[table["label"] - 1]
    assert not warned(table.assign(label=shuffled))


@pytest.mark.parametrize("seed", range(3))
def test_numbers_without_an_order_are_not_warned_of(seed):
    rng = np.random.default_rng(seed)
    y, task = rng.integers(1, 6, 200), np.repeat(np.arange(200), 4)
    worker = np.concatenate([rng.permutation(8)[:4] for _ in range(200)])
    right = rng.random(800) < rng.uniform(0.5, 0.8, 8)[worker]
    label = np.where(right, y[task], rng.integers(1, 6, 800))
    assert not warned(pd.DataFrame({"task": task, "worker": worker, "label": label}))


def test_grades_at_an_end_that_nobody_uses_are_no_classes(fitted):
    """Under thresholds that all move together, they would take the tasks of those beside them."""
    model, table, *_ = fitted
    with pytest.warns(NbmodelsWarning, match=r"nobody uses .*, 0, 6, 7; votes"):
        wide = ordered(classes=range(8)).fit(table)
    assert list(wide.classes_) == [1, 2, 3, 4, 5]
    np.testing.assert_allclose(wide.label_posterior_, model.label_posterior_, atol=1e-6)


def test_grades_between_used_ones_and_checked_ones_stay():
    votes = Votes.read(pd.DataFrame({"task": [0, 1], "worker": 0, "label": [2, 4]}))
    names = [1, 2, 3, 4, 5]
    kept, (caution,) = used_grades(names, votes, None)
    assert list(kept) == [2, 3, 4]
    assert ", 1, 5;" in caution.message
    assert list(used_grades(names, votes, np.array([5, None], object))[0]) == [2, 3, 4, 5]
    assert used_grades([2, 3, 4], votes, None) == ([2, 3, 4], ())
