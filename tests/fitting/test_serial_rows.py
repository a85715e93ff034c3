"""Rows that are like those before them are warned of, sorted ones are not."""

import re
import warnings

import numpy as np
import pytest

from nbmodels import NbmodelsWarning, NoisyGaussianNB, NoisyLogisticRegression

ALIKE = "rows that follow each other are alike"


def warned(X, y, estimator=NoisyGaussianNB, **fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator(random_state=0).fit(X, y, **fit)
    ours = [w for w in caught if issubclass(w.category, NbmodelsWarning)]
    return any(re.search(ALIKE, str(w.message)) for w in ours)


def sites(seed, shift):
    """Rows of twelve sites, three of which call most others the first class."""
    rng = np.random.default_rng(seed)
    site, y = np.repeat(np.arange(12), 40), rng.integers(0, 3, 480)
    x = 2 * np.eye(3, 5)[y] + rng.normal(size=(480, 5)) + shift * rng.normal(size=(12, 5))[site]
    wrong = (site < 3) & (y > 0) & (rng.random(480) < 0.6)
    return x, np.where(wrong, 0, y), site


@pytest.mark.parametrize("estimator", [NoisyGaussianNB, NoisyLogisticRegression])
def test_rows_of_sites_are_warned_of(estimator):
    x, y, site = sites(0, 1.0)
    assert warned(x, y, estimator)
    assert not warned(x, y, estimator, groups=site)


def test_rows_without_an_order_are_not():
    x, y, _ = sites(1, 0.0)
    assert not warned(x, y)
    x, y, _ = sites(0, 1.0)
    mixed = np.random.default_rng(0).permutation(len(y))
    assert not warned(x[mixed], y[mixed])


@pytest.mark.parametrize("apart", [0.7, 3.0])
def test_rows_sorted_by_their_class_are_not(apart):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 100)
    x = rng.normal(size=(300, 4)) + apart * rng.normal(size=(3, 4))[y]
    given = np.where(rng.random(300) < 0.25, rng.integers(0, 3, 300), y)
    assert not warned(x, given)


def test_rows_sorted_by_a_column_are_not():
    rng = np.random.default_rng(0)
    first = np.sort(rng.normal(size=300))
    x = np.column_stack([first, rng.normal(size=(300, 3))])
    assert not warned(x, (x[:, 1] + rng.normal(size=300) > 0).astype(int))
