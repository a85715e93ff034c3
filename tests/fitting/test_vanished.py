"""Classes that a fit has dissolved, and rare ones that keep few of their labels and are right."""

import numpy as np
import pytest

from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.fitting.identifiability import vanished


def labelled(shares, rate, n=4000, seed=0):
    """True classes and given labels, a one in each row."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(len(shares), n, p=shares)
    given = corrupt(truth, uniform_noise(len(shares), rate), rng)
    return np.eye(len(shares))[truth], np.eye(len(shares))[given]


@pytest.mark.parametrize("rate", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("shares", [[0.68, 0.3, 0.02], [0.97, 0.03]], ids=["three", "two"])
def test_a_rare_class_is_left_as_many_items_as_even_errors_leave_it(shares, rate):
    truth, given = labelled(shares, rate)
    assert rate == 0.1 or truth[:, -1].sum() < 0.2 * given[:, -1].sum()
    assert not len(vanished(given, truth))
    # and where classes are not certain
    blurred = 0.9 * truth + 0.1 * np.array(shares)
    assert not len(vanished(given, blurred / blurred.sum(1, keepdims=True)))


def test_a_dissolved_class_is_found():
    truth, given = labelled([0.5, 0.3, 0.2], 0.2)
    gone = truth.copy()
    gone[truth[:, 2] == 1] = [0.97, 0, 0.03]
    assert vanished(given, gone).tolist() == [2]
    # of two classes, too, where a smaller share would be explained by more errors
    truth, given = labelled([0.7, 0.3], 0.2)
    gone = np.where(truth[:, [1]] == 1, [0.95, 0.05], truth)
    assert vanished(given, gone).tolist() == [1]


def test_items_that_are_labelled_otherwise_do_not_keep_a_class_alive():
    truth, given = labelled([0.7, 0.3], 0.2)
    other = np.tile([1.0, 0.0], (len(truth), 1))
    other[:100] = [0, 1]  # a cluster that has nothing to do with the labels
    assert vanished(given, other).tolist() == [1]


def test_rows_without_a_label_and_without_weight_have_no_say():
    truth, given = labelled([0.5, 0.3, 0.2], 0.1)
    gone = np.where(truth[:, [2]] == 1, [1.0, 0, 0], truth)
    given[2000:] = 0
    kept = np.where(np.arange(4000)[:, None] < 2000, gone, truth)
    assert vanished(given, kept).tolist() == [2]
    weights = 1.0 * (np.arange(4000) >= 1000)
    assert not len(vanished(given, np.where(weights[:, None] > 0, truth, gone), weights))
