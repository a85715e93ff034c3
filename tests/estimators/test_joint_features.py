"""Features beside votes in one model: joint to a power, cross-fitted, or without weight."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from nbmodels import (
    DawidSkene,
    IdentifiabilityWarning,
    Joint,
    JointNB,
    NoisyGaussianNB,
    NoisyMultinomialNB,
    VerdictWarning,
)
from nbmodels.channels import ExternalEvidence
from nbmodels.datasets import corrupt, uniform_noise


@pytest.mark.slow
def test_features_that_predict_no_votes_do_not_count():
    """Of 30 items they made the fit surely wrong; they are left out, and that is said."""
    rng = np.random.default_rng(5)
    true = rng.integers(3, size=30)
    task, worker = np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30)
    wrong = (true[task] + rng.integers(1, 3, 120)) % 3
    label = np.where(rng.random(120) < 0.75, true[task], wrong)
    votes = pd.DataFrame({"task": task, "worker": worker, "label": label})
    useless = rng.normal(size=(30, 6))
    model = JointNB({"x": NoisyGaussianNB(), "crowd": DawidSkene()}, random_state=0)
    with pytest.warns(IdentifiabilityWarning, match="x: its data do not surely predict") as said:
        model.fit({"x": useless, "crowd": votes})
    assert sum("x: its data" in str(one.message) for one in said) == 1
    alone = JointNB({"crowd": DawidSkene()}, random_state=0)
    alone.fit({"crowd": votes}, items=np.arange(30))
    np.testing.assert_allclose(model.label_posterior_, alone.label_posterior_, atol=1e-3)
    apart = rng.normal(3.0 * np.eye(3)[true])
    with warnings.catch_warnings(action="ignore", category=VerdictWarning):
        model.fit({"x": apart, "crowd": votes})
    assert model.fit_.model["x"].weight == 1


def with_votes(seed, n=300):
    """Columns of four kinds, votes of three of eight annotators, noisy labels, true classes."""
    rng = np.random.default_rng(seed)
    true = rng.integers(3, size=n)
    centre = rng.normal(0, 1.2, (3, 4))
    plain = centre[true] + rng.normal(size=(n, 4))
    tables = {
        "right": plain,
        "copies": np.repeat(plain[:, :2], 6, axis=1) + 0.1 * rng.normal(size=(n, 12)),
        "skewed": np.exp(1.5 * plain),
    }
    task = np.repeat(np.arange(n), 3)
    worker = np.concatenate([rng.choice(8, 3, replace=False) for _ in range(n)]).astype(str)
    wrong = (true[task] + rng.integers(1, 3, 3 * n)) % 3
    label = np.where(rng.random(3 * n) < 0.75, true[task], wrong)
    votes = pd.DataFrame({"task": task, "worker": worker, "label": label})
    return tables, votes, corrupt(true, uniform_noise(3, 0.25), rng), true


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "labelled"), [("copies", True), ("skewed", False)])
def test_features_that_are_not_of_their_model_do_not_outweigh_the_votes(kind, labelled):
    """At full power the classes drift to what the columns show: 23 to 38 right labels in 100."""
    tables, votes, given, true = with_votes(3)
    y = given if labelled else None
    right = {}
    for name, source in (
        ("selected", NoisyGaussianNB()),
        ("at full power", NoisyGaussianNB(training=Joint(weight=1.0))),
    ):
        model = JointNB({"x": source, "crowd": DawidSkene()}, random_state=0)
        with warnings.catch_warnings(action="ignore"):  # of the fit at full power
            model.fit({"x": tables[kind], "crowd": votes}, y)
        right[name] = (model.label_posterior_.argmax(1) == true).mean()
        assert ("x_training" in model.chosen_) == (name == "selected")
        assert model.chosen_.get("x_weight") != 1
    alone = JointNB({"crowd": DawidSkene()}, random_state=0)
    alone.fit({"crowd": votes}, y, items=np.arange(len(true)))
    floor = (alone.label_posterior_.argmax(1) == true).mean()
    assert right["at full power"] < floor - 0.1
    assert right["selected"] > floor


def test_features_of_their_model_are_fitted_jointly():
    tables, votes, given, _ = with_votes(2)
    model = JointNB({"x": NoisyGaussianNB(), "crowd": DawidSkene()}, random_state=0)
    model.fit({"x": tables["right"], "crowd": votes}, given)
    assert (model.chosen_["x_training"], model.chosen_["x_weight"]) == ("joint", 1)


def test_the_power_of_a_joint_source_is_selected_if_asked():
    tables, votes, given, _ = with_votes(3)
    source = NoisyGaussianNB(training=Joint(weight="auto"))
    model = JointNB({"x": source, "crowd": DawidSkene()}, random_state=0)
    with warnings.catch_warnings(action="ignore", category=VerdictWarning):
        model.fit({"x": tables["copies"], "crowd": votes}, given)
    assert 0 < model.chosen_["x_weight"] == model.fit_.model["x"].weight < 1
    assert "x_training" not in model.chosen_


def cross_fitted_table():
    tables, votes, given, true = with_votes(4, n=600)
    source, x, n = NoisyGaussianNB(training="cross_fit"), tables["right"], 200
    model = JointNB({"x": source, "crowd": DawidSkene()}, random_state=0)
    model.fit({"x": x[:n], "crowd": votes[votes["task"] < n]}, given[:n])
    return model, {"x": x[n:]}, true[n:]


def test_a_table_is_cross_fitted_if_asked():
    """It predicts new items by the features alone."""
    model, new, true = cross_fitted_table()
    assert model.chosen_["x_training"] == "cross_fit"
    assert isinstance(model.fit_.model["x"], ExternalEvidence)
    assert (model.predict_proba(new).argmax(1) == true).mean() > 0.6
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))


@pytest.mark.slow
def test_the_posterior_beside_a_cross_fitted_table_is_drawn():
    model, _, _ = cross_fitted_table()
    draws = model.posterior(draws=100, chains=1, random_state=0)
    assert np.isfinite(draws["posterior"]["noise_matrix"]).all()


@pytest.mark.slow
def test_features_of_labels_alone_need_not_agree_with_them():
    """Of weak features before strong ones, the strong ones had no weight, and 76 % were right."""
    rng = np.random.default_rng(1)
    true = rng.choice(3, 500, p=[0.5, 0.3, 0.2])
    weak = rng.normal(size=(500, 3))
    weak[:, 0] += 1.2 * true
    topics = 0.3 * rng.dirichlet(np.full(80, 0.3), 3) + 0.7 * rng.dirichlet(np.full(80, 0.3))
    words = np.stack([rng.multinomial(20, topics[k]) for k in true])
    y = corrupt(true, uniform_noise(3, 0.3), rng)
    sources = {"weak": NoisyGaussianNB(), "text": NoisyMultinomialNB()}
    model = JointNB(sources, random_state=0).fit({"weak": weak, "text": words}, y)
    assert model.chosen_.get("text_weight", 1.0) > 0
    alone = JointNB({"text": NoisyMultinomialNB()}, random_state=0).fit({"text": words}, y)
    right, least = (np.mean(one.label_posterior_.argmax(1) == true) for one in (model, alone))
    assert right > least - 0.02


@pytest.mark.slow
def test_a_table_that_is_given_twice_is_warned_of():
    rng = np.random.default_rng(2)
    true = rng.integers(3, size=200)
    x = rng.normal(2.0 * np.eye(3)[true])
    y = corrupt(true, uniform_noise(3, 0.2), rng)
    model = JointNB({"one": NoisyGaussianNB(), "again": NoisyGaussianNB()}, random_state=0)
    with pytest.warns(VerdictWarning, match="sources 'one' and 'again' share 3"):
        model.fit({"one": x, "again": x}, y)
    assert "counts twice" in model.verdict().sentence
