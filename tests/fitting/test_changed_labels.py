"""Other classifiers are asked about changes as the noise that was found lets them predict."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from marks import slow
from sklearn.datasets import load_breast_cancer, load_wine

from nbmodels import NoisyGaussianNB, NoisyLogisticRegression
from nbmodels.datasets import corrupt, flip_noise
from nbmodels.diagnostics.checks import LABEL_CHECKS, LabelEvidence
from nbmodels.errors import NbmodelsWarning
from nbmodels.fitting.changed_labels import least_favourable, true_classes
from nbmodels.fitting.reference import Reference


def reference(probs):
    """Predictions of a classifier that gives the first class these probabilities."""
    logs = np.log(np.column_stack([probs, 1 - np.asarray(probs)]))
    fold = np.zeros(len(probs), int)
    about = {"complete": True, "learn": None, "slope": 1.0}
    return Reference(logs.argmax(1), logs, np.zeros(len(probs)), fold, **about)


#: P(first label) and the labels of rows that stay: of either class, errors in one direction only.
ONE_WAY = np.repeat([0.6, 0.01], 100), np.repeat([0, 1, 1], [60, 40, 100])
#: Errors alike in both classes.
ALIKE = np.repeat([0.8, 0.2], 100), np.repeat([0, 1, 0, 1], [80, 20, 20, 80])


def asked(matrix, probs, nearby=None, others=ONE_WAY):
    """Predictions as given and as suggested of labels 1 that would all be changed to 0."""
    stay, labels = others
    n = len(probs)
    codes = np.append(np.ones(n, int), labels)
    suggested = np.append(np.zeros(n, int), labels)
    fitted = SimpleNamespace(noise_matrix=np.asarray(matrix), label_posterior=np.eye(2)[suggested])
    if nearby is not None:
        nearby = np.vstack([nearby, np.column_stack([stay, 1 - stay])])
    predicted = reference(np.append(probs, stay))
    about = fitted, codes, np.ones(len(codes), bool), predicted, nearby
    sides, whose = least_favourable(*about)
    return sides.given, sides.suggested, whose


PROBS = [0.3, 0.42, 0.48, 0.6]


def test_errors_with_a_direction_move_the_threshold():
    one_way = [[0.6, 0.0], [0.4, 1.0]]  # two fifths of the first class are called the second
    assert asked(np.eye(2), PROBS)[:2] == (3, 1)
    assert asked(one_way, PROBS)[:2] == (0, 4)  # the first class from a probability of 0.3 on
    assert asked([[0.9, 0.2], [0.1, 0.8]], PROBS)[:2] == (3, 1)


def test_a_direction_that_only_the_fit_sees_moves_nothing():
    assert asked([[0.6, 0.0], [0.4, 1.0]], PROBS, others=ALIKE)[:2] == (3, 1)


def test_errors_alike_in_all_classes_change_no_answer():
    assert asked([[0.7, 0.3], [0.3, 0.7]], PROBS) == asked(np.eye(2), PROBS)


def test_rows_without_a_prediction_have_no_class():
    stay, labels = ONE_WAY
    fitted = SimpleNamespace(noise_matrix=np.array([[0.6, 0.0], [0.4, 1.0]]))
    whole = reference(stay)
    known = np.arange(len(stay)) % 20 > 0  # of both classes
    some = whole._replace(
        classes=np.where(known, whole.classes, -1), logs=np.where(known[:, None], whole.logs, 0)
    )
    found, every = (true_classes(one, fitted, labels) for one in (some, whole))
    np.testing.assert_array_equal(found, np.where(known, every, -1))


def test_of_a_matrix_without_inverse_nothing_is_known():
    assert asked([[0.5, 0.5], [0.5, 0.5]], PROBS)[:2] == (3, 1)


def test_neighbours_are_asked_alike():
    shares = np.column_stack([PROBS, 1 - np.array(PROBS)])
    shares[0] = 0  # has none
    assert asked(np.eye(2), [0.6] * 4, shares) == (2, 1, "the labels of the nearest rows")
    assert asked([[0.6, 0.0], [0.4, 1.0]], [0.6] * 4, shares)[:2] == (0, 4)


@pytest.mark.parametrize(
    ("load", "rates", "estimator", "seed"),
    [
        (load_wine, {(1, 2): 0.4, (2, 0): 0.4}, NoisyGaussianNB, 0),
        slow(load_breast_cancer, {(0, 1): 0.4}, NoisyLogisticRegression, 0),
    ],
)
def test_a_class_that_is_often_called_another_one_is_found(load, rates, estimator, seed):
    """All labels stayed, 25 and 16 % of them wrong, though predictions were right in 94 %."""
    x, y = load(return_X_y=True)
    given = corrupt(y, flip_noise(y.max() + 1, rates), np.random.default_rng(seed))
    with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
        e = estimator(random_state=0).fit(x, given)
    assert np.mean(given == y) < 0.87
    assert np.mean(e.corrected_labels()["suggested"] == y) > 0.93


def test_the_verdict_asks_as_the_choice_of_changes_does():
    """Predictions of given labels side with errors that have a direction."""
    stay, labels = ONE_WAY
    predicted = reference(np.append(np.repeat(0.42, 40), stay))
    codes = np.append(np.ones(40, int), labels)
    suggested = np.append(np.zeros(40, int), labels)
    matrix = np.array([[0.6, 0.0], [0.4, 1.0]])
    (check,) = [one for one in LABEL_CHECKS if one.name == "changed labels"]

    def verdict(noise, own=predicted.classes):
        fitted = SimpleNamespace(noise_matrix=noise)
        corrected = true_classes(predicted, fitted, codes)
        resp, weights = np.eye(2)[suggested], np.ones(len(codes))
        logs = np.log(np.maximum(resp, 1e-9))
        return check.run(
            LabelEvidence(logs, resp, weights, codes, noise.T, own, False, own, corrected)
        )

    assert verdict(np.eye(2)).bad
    assert not verdict(matrix).bad
