"""Classifiers as sources of a joint model, by their held-out probabilities."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from nbmodels import (
    DataError,
    DawidSkene,
    IdentifiabilityWarning,
    JointNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
)
from nbmodels.datasets import corrupt, uniform_noise

K = 3
NAMES = np.array(["ant", "bee", "cat"])


def crowd_beside(draw, n=200, seed=0):
    """Classes, features, and two votes an item of five workers of whom 7 in 10 are right."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    task = np.repeat(np.arange(n), 2)
    worker = np.concatenate([rng.choice(5, 2, replace=False) for _ in range(n)])
    label = corrupt(y[task], uniform_noise(K, 0.3), rng)
    votes = pd.DataFrame({"task": task, "worker": worker, "label": NAMES[label]})
    return y, draw(y, rng), votes


def along_a_factor(y, rng):
    """Columns that a common factor moves; naive Bayes takes its ends for classes."""
    centres = np.random.default_rng(1).normal(0, 0.8, (K, 6))
    return centres[y] + rng.normal(size=(len(y), 6)) + 2 * rng.normal(size=(len(y), 1))


def words_of(y, rng):
    told = [["ants dig", "an ant eats"], ["bees hum", "a bee flies"], ["cats purr", "a cat naps"]]
    return [" ".join(rng.choice([*told[c], "one more text", "of any class"], 2)) for c in y]


CLASSIFIERS = {
    "regression": (NoisyLogisticRegression(), along_a_factor),
    "texts": (NoisyLabelClassifier(make_pipeline(CountVectorizer(), MultinomialNB())), words_of),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_classifier_is_a_source_by_its_held_out_evidence(kind):
    estimator, draw = CLASSIFIERS[kind]
    y, x, votes = crowd_beside(draw)
    sources = {"x": estimator, "crowd": DawidSkene()}
    ids = np.arange(len(y))
    known = {"classes": NAMES, "random_state": 0}
    model = JointNB(sources, **known).fit({"x": x, "crowd": votes}, items=ids)
    alone = JointNB({"crowd": DawidSkene()}, **known).fit({"crowd": votes}, items=ids)
    right, before = (np.mean(m.label_posterior_.argmax(1) == y) for m in (model, alone))
    assert right > before + 0.04
    assert model.chosen_["x_training"] == "cross_fit"
    assert not hasattr(estimator, "classes_")  # fitted are clones
    new, again, _ = crowd_beside(draw, seed=9)
    own = clone(estimator).set_params(random_state=0).fit(x, votes=votes)
    found = (model.predict({"x": again}), own.predict(again))
    joint, reference = (np.mean(one == NAMES[new]) for one in found)
    assert joint > max(reference - 0.05, 0.5)


@pytest.mark.slow
def test_an_item_has_no_part_in_what_a_classifier_says_of_it():
    """One that knows its training rows by heart says nothing of others, and does not count."""
    _, x, votes = crowd_beside(lambda y, rng: rng.normal(size=(len(y), 3)))
    by_heart = NoisyLabelClassifier(KNeighborsClassifier(1), rounds=0)
    model = JointNB({"x": by_heart, "crowd": DawidSkene()}, classes=NAMES, random_state=0)
    with pytest.warns(IdentifiabilityWarning, match="x: its data do not surely predict labels"):
        model.fit({"x": x, "crowd": votes})
    assert model.fit_.model["x"].weight == 0


def test_weights_that_a_classifier_cannot_take_are_refused_by_name():
    model = JointNB({"x": NoisyLabelClassifier(KNeighborsClassifier(1))})
    with pytest.raises(DataError, match="x: sample_weight: KNeighbors"):
        model.fit({"x": np.eye(3)}, [0, 1, 2], sample_weight=[1, 2, 0.5])
