"""Nearest rows of many."""

import numpy as np
import pytest

from nbmodels.fitting import nearest


def test_the_least_values_of_long_rows_are_those_of_a_whole_sort():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 2 * nearest._LONG))
    values[0] = -np.sort(-values[0])  # a sample of it bounds as well as any other
    values[1] = 0.0  # ties
    found = nearest._least(values, 40)
    least = np.take_along_axis(values, found, 1)
    np.testing.assert_array_equal(least, np.sort(values, axis=1)[:, :40])
    assert all(len(set(row)) == 40 for row in found)


@pytest.mark.parametrize("columns", [3, 30])
def test_nearest_of_few_are_those_of_scikit_learn(columns, monkeypatch):
    """Also far from the origin."""
    rng = np.random.default_rng(0)
    among, points = rng.normal(1e3, 1, (300, columns)), rng.normal(1e3, 1, (40, columns))
    few = nearest._nearest(among, points, 12)
    monkeypatch.setattr(nearest, "_FEW_PAIRS", 0)
    monkeypatch.setattr(nearest, "_nearest_of_few", None)
    np.testing.assert_array_equal(few, nearest._nearest(among, points, 12))
