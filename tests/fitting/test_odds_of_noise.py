"""Few rows: the shape of classes tells of noise, and changes on little evidence are stated."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from marks import slow

from nbmodels import NoisyGaussianNB, NoisyLogisticRegression
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.errors import NbmodelsWarning
from nbmodels.fitting.noise_by_shape import NoiseByShape
from nbmodels.fitting.options import FEW_ROWS
from nbmodels.fitting.reference_floor import _odds_of_noise, _with_little_evidence

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


def test_odds_of_noise_follow_its_level_and_the_shape_of_the_classes():
    x, true = devices(3)
    model = fitted(x, true, NoisyGaussianNB).fitted_

    def odds(share, n=100, by_shape=None, log_factor=0.0, weight=1.0):
        right = np.resize(true, n)
        probs = np.where(np.eye(K)[right] > 0, 1 - share, share / (K - 1))
        shape = NoiseByShape(share if by_shape is None else by_shape, log_factor)
        near = replace(model.separable, by_shape=shape)
        data = replace(model.data, weights=np.full(n, weight))
        made = replace(model, averaged=probs, separable=near, data=data)
        return _odds_of_noise(made, right)

    assert [odds(s) for s in (0.07, 0.14, 0.2, 0.4)] == pytest.approx([0.48, 1.92, 3, 3])
    assert odds(0.07, 400) == pytest.approx(1.92)  # of more rows chance finds a lower level
    assert odds(0.07, weight=4.0) == pytest.approx(1.92)  # a row of weight 4 is four rows
    assert odds(0.04, by_shape=0.1) == pytest.approx(0.48)  # the mean of both
    assert odds(0.14, by_shape=np.nan) == pytest.approx(0.64)  # the shape does not tell
    assert odds(0.45, by_shape=np.nan) == 3  # nor could it
    assert odds(0.05, FEW_ROWS + 1) == odds(0.05, FEW_ROWS + 1, log_factor=5) == 1
    assert 0 < odds(0.0) < 1e-9  # noise that is proved keeps its probability
    # the root of the Bayes factor counts, within bounds
    assert odds(0.2, log_factor=np.log(4)) == pytest.approx(6)
    assert odds(0.2, log_factor=-np.log(4)) == pytest.approx(1.5)
    assert 3 < odds(0.2, log_factor=6) == odds(0.2, log_factor=50)
    assert 0.1 < odds(0.2, log_factor=-50) == odds(0.2, log_factor=-6)


def test_changes_on_little_evidence_are_stated():
    x, true = devices(3, 150)
    given = corrupt(true, uniform_noise(K, 0.25), np.random.default_rng(1))
    e = fitted(x, given)
    codes = np.searchsorted(e.classes_, given)

    def said(probability, log_factor=6.0):
        near = replace(e.fitted_.separable, by_shape=NoiseByShape(0.2, log_factor))
        found = replace(e.fitted_, noisy=probability, separable=near, cautions=())
        changed = np.count_nonzero(found.label_posterior.argmax(1) != codes)
        return changed, _with_little_evidence(found, codes).cautions

    changed, (one,) = said(0.65)
    assert one.finding == "little evidence of noise"
    assert f"{changed} right labels" in one.message
    assert not said(0.8)[1]
    # stated whatever held-out labels have it where the shape leaves a tenth to right labels
    changed, (one,) = said(0.95, log_factor=-1.0)
    assert changed > 0.1 * len(codes) * (1 + np.exp(-0.5))
    assert one.finding == "little evidence of noise"
    assert f"{changed} right labels" in one.message
    assert "shape of the classes" in one.message
