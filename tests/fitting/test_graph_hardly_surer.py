"""A warning where labels are changed to classes that are hardly likelier."""

import numpy as np
import pytest

from nbmodels.errors import IdentifiabilityWarning
from nbmodels.fitting.cautious_labels import hardly_surer


def table(likeliest, changed=0.1, n=200):
    """Given labels of class 0, some of which are class 1 with a probability."""
    p = np.where(np.arange(n) < changed * n, likeliest, 0.05)
    return np.stack([1 - p, p], 1), np.zeros(n, int), np.ones(n)


def test_changes_that_are_hardly_surer_are_warned_of():
    (caution,) = hardly_surer(*table(0.6), 0.12)
    assert caution.category is IdentifiabilityWarning
    assert "10%" in caution.message
    assert "12%" in caution.message


@pytest.mark.parametrize(
    ("likeliest", "changed", "wrong"),
    [
        (0.9, 0.1, 0.12),  # sure
        (0.6, 0.02, 0.12),  # few
        (0.6, 0.1, 0.3),  # many labels are wrong, so that changes are an improvement
        (0.6, 0.0, 0.12),
    ],
)
def test_other_changes_are_not(likeliest, changed, wrong):
    assert hardly_surer(*table(likeliest, changed), wrong) == ()


def test_items_without_a_label_or_weight_do_not_count():
    probs, codes, weights = table(0.6)
    changed = np.arange(200) < 20
    assert hardly_surer(probs, np.where(changed, -1, codes), weights, 0.12) == ()
    assert hardly_surer(probs, codes, np.where(changed, 0.0, weights), 0.12) == ()
    assert hardly_surer(probs, np.full(200, -1), weights, 0.12) == ()
    assert hardly_surer(probs, codes, weights, 0.12)
