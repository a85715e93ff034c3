"""The nonlinear classifier of features beside votes, checked labels and other sources."""

import numpy as np
import pandas as pd
import pytest
from marks import slow
from sklearn.linear_model import LogisticRegression

from nbmodels import (
    CollaborativeClassifier,
    DawidSkene,
    JointNB,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
    VerdictWarning,
)
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.fitting.reference import nonlinear_predictions
from nbmodels.fitting.reference_beside import KnownClasses

QUIET = pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")


def rings(rng, n=300):
    """A class within another one, which no linear function of the columns tells apart."""
    true = rng.integers(2, size=n)
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1 + 1.5 * true + 0.25 * rng.normal(size=n)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1), true


def votes_on(true, rng):
    """Two of six workers an item, of whom seven in ten are right."""
    task = np.repeat(np.arange(len(true)), 2)
    worker = np.concatenate([rng.choice(6, 2, replace=False) for _ in true])
    label = corrupt(true[task], uniform_noise(true.max() + 1, 0.3), rng)
    return pd.DataFrame({"task": task, "worker": worker, "label": label})


def labels_of(true, rng, wrong=0.25):
    return corrupt(true, uniform_noise(true.max() + 1, wrong), rng)


def likes_of(true, rng):
    """Items that users have, more often those of one class."""
    favourite = rng.integers(2, size=60)
    has = rng.random((len(true), 60)) < np.where(true[:, None] == favourite, 0.12, 0.04)
    item, user = np.nonzero(has)
    return pd.DataFrame({"item": item, "user": user})


def right(model, true):
    return np.mean(model.label_posterior_.argmax(1) == true)


def test_certain_classes_are_learned_as_labels_are():
    x, true = rings(np.random.default_rng(0))
    codes = np.where(np.arange(len(true)) % 7 == 0, -1, true)
    known = np.eye(2)[true]
    labels, soft = (nonlinear_predictions(x, codes, 2, known=p) for p in (None, known))
    np.testing.assert_array_equal(soft.logs, labels.logs)
    np.testing.assert_array_equal(soft.held_out, labels.held_out)


def test_what_is_known_of_an_item_has_no_part_in_its_own_prediction():
    rng = np.random.default_rng(0)
    x, true = rings(rng)
    known = 0.5 + 0.4 * (2 * np.eye(2)[true] - 1)
    other = known.copy()
    other[3] = 0.5 + 0.05 * (2 * np.eye(2)[true[3]] - 1)
    first, second = (nonlinear_predictions(x, true, 2, known=p) for p in (known, other))

    def margin(found, row):  # without the slope, which is one number of all items
        return (found.logs[row, 1] - found.logs[row, 0]) / found.slope

    np.testing.assert_allclose(margin(second, 3), margin(first, 3), atol=1e-12)
    elsewhere = np.flatnonzero(first.fold != first.fold[3])
    assert not np.allclose(margin(second, elsewhere), margin(first, elsewhere), atol=1e-6)


@QUIET
def test_what_is_known_beside_the_features_is_that_of_votes_and_labels_alone():
    rng = np.random.default_rng(1)
    x, true = rings(rng)
    x[:, 0] += 3 * true  # informative features, of whose scores nothing may be left
    votes = votes_on(true, rng)
    votes = votes[votes["task"] > 0]
    model = NoisyLogisticRegression(random_state=0, rounds=0).fit(x, votes=votes)
    known = KnownClasses.of(model.fitted_)
    assert known.codes[0] == -1  # nobody voted
    np.testing.assert_allclose(known.probs.sum(1), 1)
    pairs = votes.groupby("task")[["worker", "label"]].agg(lambda v: tuple(v))
    alike = {}
    for row, key in zip(pairs.index, map(tuple, pairs.to_numpy()), strict=True):
        alike.setdefault(key, []).append(known.probs[row])
    several = [rows for rows in alike.values() if len(rows) > 1]
    assert several
    for rows in several:  # the same votes, other features
        np.testing.assert_allclose(rows, rows[:1] * len(rows), atol=1e-6)


def joint(x, table=None, votes=None, y=None, likes=None):
    sources, data = {"x": table or NoisyLogisticRegression()}, {"x": x}
    if votes is not None:
        sources["crowd"], data["crowd"] = DawidSkene(), votes
    if likes is not None:
        sources["users"], data["users"] = CollaborativeClassifier(), likes
    model = JointNB(sources, classes=[0, 1], random_state=0)
    return model.fit(data, y, items=np.arange(len(x)))


@QUIET
@pytest.mark.parametrize("known", ["votes", slow("y"), slow("votes y"), slow("likes y")])
def test_a_joint_model_predicts_by_the_classifier_that_knows_rings(known):
    rng = np.random.default_rng(2)
    x, true = rings(rng)
    all_known = {"votes": votes_on(true, rng), "y": labels_of(true, rng)}
    all_known["likes"] = likes_of(true, rng)
    model = joint(x, **{name: all_known[name] for name in known.split()})
    new, truth = rings(rng, 1000)
    assert model.chosen_["x_predictions"] == "nonlinear classifier"
    assert np.mean(model.predict({"x": new}) == truth) > 0.85
    if "votes" in known:
        assert right(model, true) > 0.9
    assert "predictions of a nonlinear classifier" in {f.name for f in model.verdict().findings}


@QUIET
@pytest.mark.parametrize("with_labels", [False, slow(True)])
def test_votes_beside_features_teach_the_classifier_that_knows_rings(with_labels):
    rng = np.random.default_rng(3)
    x, true = rings(rng)
    votes, y = votes_on(true, rng), labels_of(true, rng) if with_labels else None
    model = NoisyLogisticRegression(random_state=0).fit(x, y, votes=votes)
    new, truth = rings(rng, 1000)
    assert np.mean(model.predict(new) == truth) > 0.85
    assert right(model, true) > 0.9
    assert model.chosen_["scores"] == "nonlinear classifier"
    # votes of whose items the features are known are not warned of as if features said nothing
    assert model.fitted_.informative


@QUIET
def test_what_was_asked_for_stays():
    rng = np.random.default_rng(3)
    x, true = rings(rng)
    votes = votes_on(true, rng)
    model = NoisyLogisticRegression(rounds=0, random_state=0).fit(x, votes=votes)
    assert not {"scores", "predictions"} & set(model.chosen_)


def test_the_classifier_that_was_asked_for_predicts_and_is_warned_of():
    rng = np.random.default_rng(3)
    x, true = rings(rng)
    model = NoisyLabelClassifier(LogisticRegression(), random_state=0)
    with pytest.warns(VerdictWarning, match="new items are still predicted by this model"):
        model.fit(x, votes=votes_on(true, rng))
    assert "predictions" not in model.chosen_
    with pytest.warns(VerdictWarning, match="x: new items are still predicted by this model"):
        joint(x, NoisyLabelClassifier(LogisticRegression()), votes=votes_on(true, rng))


def that_a_line_tells_apart():
    rng = np.random.default_rng(4)
    true = rng.integers(2, size=300)
    x = 2 * true[:, None] + rng.normal(size=(300, 3))
    return x, votes_on(true, rng)


@QUIET
@pytest.mark.parametrize("table", [slow(NoisyGaussianNB), NoisyLogisticRegression])
def test_a_model_that_fits_stays_beside_votes(table):
    x, votes = that_a_line_tells_apart()
    own = table(random_state=0).fit(x, votes=votes)
    assert not {"scores", "predictions"} & set(own.chosen_)


@QUIET
@pytest.mark.slow
@pytest.mark.parametrize("table", [NoisyGaussianNB, NoisyLogisticRegression])
def test_a_model_that_fits_stays_in_a_joint_model(table):
    x, votes = that_a_line_tells_apart()
    beside = joint(x, table(), votes=votes)
    assert not {"x_scores", "x_predictions"} & set(beside.chosen_)


@pytest.mark.slow
@QUIET
def test_checked_rows_tell_which_classifier_is_better_where_nearly_all_are():
    rng = np.random.default_rng(1)
    x, true = rings(rng, 600)
    trusted = dict(enumerate(true[:570].tolist()))
    model = NoisyLogisticRegression(random_state=0).fit(x, labels_of(true, rng), trusted=trusted)
    new, truth = rings(rng, 1000)
    assert np.mean(model.predict(new) == truth) > 0.9
    assert np.mean(model.label_posterior_.argmax(1)[570:] == true[570:]) > 0.9


@QUIET
@pytest.mark.parametrize("spread", [slow(0.5), 1.3])
def test_right_labels_of_classes_that_overlap_stay_in_a_joint_model(spread):
    """Noise was learned beside features without the odds of any: of 200, 85 were changed."""
    rng = np.random.default_rng(12)
    true = rng.integers(3, size=200)
    x = spread * np.eye(3, 4)[true] + rng.normal(size=(200, 4))
    model = JointNB({"x": NoisyLogisticRegression()}, random_state=0).fit({"x": x}, true)
    assert right(model, true) > 0.98
    new = rng.integers(3, size=1000)
    found = model.predict({"x": spread * np.eye(3, 4)[new] + rng.normal(size=(1000, 4))})
    assert np.mean(found == new) > (0.38 if spread < 1 else 0.6)  # by chance a third
