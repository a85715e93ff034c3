"""Classes whose names checked rows show, though most of their labels are another."""

import warnings

import numpy as np
import pytest

from nbmodels import NoisyGaussianNB, Solver
from nbmodels.channels import Transition, TrustedLabels
from nbmodels.core.model import Data
from nbmodels.errors import PosteriorWarning
from nbmodels.fitting.checked_rows import named_by_checks
from nbmodels.fitting.identifiability import confused_classes, diagnose

SWAPPED = np.array([[0.4, 0.6, 0.0], [0.0, 0.4, 0.6], [0.6, 0.0, 0.4]])  # [true, observed]


def test_named_classes_are_not_confused():
    assert confused_classes(SWAPPED) == ((0, 1), (1, 2), (2, 0))
    assert confused_classes(SWAPPED, np.array([True, True, False])) == ((2, 0),)
    assert list(diagnose(SWAPPED).order) == [2, 0, 1]
    known = diagnose(SWAPPED, np.ones(3, bool))
    assert list(known.order) == [0, 1, 2]
    assert known.confused == ()


def test_a_class_is_named_by_five_checks():
    checked = np.r_[np.repeat([0, 1], [5, 4]), np.full(20, -1)]
    data = Data({"trusted": TrustedLabels.pack(checked, 3)}, np.ones(29))
    assert list(named_by_checks({"trusted": TrustedLabels.of(3)}, data, 3)) == [True, False, False]
    assert not named_by_checks({"labels": Transition.of(3)}, Data({}, np.ones(29)), 3).any()


@pytest.mark.slow
def test_checks_show_the_classes_where_most_labels_are_wrong():
    """Six in ten labels are the next class: 30 checked rows left 0.30 to 0.45 right, silently."""
    right = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        true = rng.integers(3, size=300)
        x = rng.normal(1.3 * np.eye(3, 5)[true])
        given = np.where(rng.random(300) < 0.6, (true + 1) % 3, true)
        checked = rng.permutation(300)[:30]
        model = NoisyGaussianNB(random_state=0, solver=Solver(progress=False))
        model.fit(x, given, trusted={int(i): int(true[i]) for i in checked})
        right.append(np.delete(model.label_posterior_.argmax(1) == true, checked).mean())
    assert min(right) > 0.7
    with warnings.catch_warnings(action="ignore", category=PosteriorWarning):  # of few draws
        draws = model.posterior(draws=100, progress=False, keep="parameters")
    assert "mode in the classes' names" not in draws.attrs["warnings"]
    assert "diagonally dominant" not in draws.attrs["warnings"]


@pytest.mark.slow
def test_a_class_that_checks_alone_name_is_found():
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=300)
    x = rng.normal(2.5 * np.eye(3, 4)[true])
    given = np.where(true == 2, rng.integers(2, size=300), true)
    checked = np.r_[np.flatnonzero(true == 2)[:10], np.flatnonzero(true < 2)[:20]]
    model = NoisyGaussianNB(classes=[0, 1, 2], random_state=0, solver=Solver(progress=False))
    model.fit(x, given, trusted={int(i): int(true[i]) for i in checked})
    found = model.label_posterior_.argmax(1)
    assert np.delete(found == true, checked).mean() > 0.85  # labels stayed, 0.5 to 0.6
