"""Ids and labels of any kind become codes, whole numbers by a table and others by hashing."""

import numpy as np
import pandas as pd
import pytest

from nbmodels.data.validation import positions, sorted_unique


def drawn(kind, rng):
    values = rng.integers(0 if kind[0] == "u" else -90, 90, 400)
    if kind == "str":
        return values.astype(str).astype(object)
    values = values.astype(kind)
    if kind == "int8":
        values[:2] = -128, 127  # their difference is no int8
    return values


KINDS = ["int8", "uint8", "int16", "int64", "uint64", "float64", "bool", "str"]


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_codes_are_those_of_pandas(kind, far):
    rng = np.random.default_rng(0)
    values = drawn(kind, rng)
    if far and kind in ("int64", "uint64"):
        values[0] = 2**62  # a table of all between would not fit
    names = sorted_unique(values)
    np.testing.assert_array_equal(names, np.unique(values))
    assert names.dtype == values.dtype
    known = rng.permutation(names)[: len(names) * 3 // 4]
    found = positions(known, values)
    np.testing.assert_array_equal(found, pd.Index(known).get_indexer(pd.Index(values)))
    assert (found >= 0).any()
    assert (found < 0).any() == (len(known) < len(names))


def test_ids_of_other_types_are_compared_by_value():
    known, values = np.array([-7, 3, 250]), np.array([3, 250, 9], np.uint8)
    np.testing.assert_array_equal(positions(known, values), [1, 2, -1])
    np.testing.assert_array_equal(positions(known.astype(float), values), [1, 2, -1])
