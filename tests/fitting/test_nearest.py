"""Nearest rows of many."""

import numpy as np

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
