"""Few rows: noise of a low level needs more evidence, and changes on little evidence are stated."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from marks import slow

from nbmodels import NoisyGaussianNB, NoisyLogisticRegression
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.errors import NbmodelsWarning
from nbmodels.fitting.options import FEW_ROWS
from nbmodels.fitting.reference_floor import _odds_of_noise

K = 3


def devices(seed, n=100):
    """Overlapping classes measured by two devices, each with an offset and a scale of its own."""
    rng = np.random.default_rng(seed)
    true, centres = rng.integers(K, size=n), rng.normal(0, 1.2, (K, 5))
    device = rng.integers(2, size=n)[:, None]
    x = (centres[true] + rng.normal(size=(n, 5))) * np.where(device, 1, 3)
    return x + device * np.array([4, 0, -2, 0, 1]), true


def fitted(x, y, maker=NoisyLogisticRegression):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        return maker(random_state=0).fit(x, y)


@pytest.mark.parametrize("seed", [3, slow(0), slow(7)])
def test_right_labels_of_small_overlapping_tables_stay(seed):
    """Five to eight in a hundred were changed: of few rows noise was taken for twice as likely."""
    x, true = devices(seed)
    assert np.mean(fitted(x, true).corrected_labels()["suggested"] == true) > 0.98


def test_wrong_labels_of_such_tables_are_corrected():
    x, true = devices(3, 150)
    given = corrupt(true, uniform_noise(K, 0.25), np.random.default_rng(1))
    suggested = fitted(x, given).corrected_labels()["suggested"]
    assert np.mean(suggested == true) > np.mean(given == true) + 0.05


def test_odds_of_noise_rise_with_its_level():
    x, true = devices(3)
    model = fitted(x, true, NoisyGaussianNB).fitted_

    def odds(share, n=100, by_shape=None):
        right = np.resize(true, n)
        probs = np.where(np.eye(K)[right] > 0, 1 - share, share / (K - 1))
        near = replace(model.separable, by_shape=share if by_shape is None else by_shape)
        return _odds_of_noise(replace(model, averaged=probs, separable=near), right)

    assert [odds(s) for s in (0.07, 0.14, 0.2, 0.4)] == pytest.approx([0.32, 1.28, 2, 2])
    assert odds(0.07, 400) == pytest.approx(1.28)  # of more rows chance finds a lower level
    assert odds(0.04, by_shape=0.1) == pytest.approx(0.32)  # the mean of both
    assert odds(0.14, by_shape=np.nan) == pytest.approx(0.64)  # the shape does not tell
    assert odds(0.45, by_shape=np.nan) == 2  # nor could it
    assert odds(0.05, FEW_ROWS + 1) == 1
    assert 0 < odds(0.0) < 1e-9  # noise that is proved keeps its probability


def test_changes_on_little_evidence_are_stated():
    x, true = devices(2)
    e = fitted(x, true, NoisyGaussianNB)
    changed = np.count_nonzero(e.corrected_labels()["suggested"] != true)
    (said,) = (f for f in e.verdict().findings if f.name == "little evidence of noise")
    assert said.accounted
    assert f"{changed} right labels" in said.sentence
