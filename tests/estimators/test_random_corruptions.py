"""Random corruptions of valid input are refused, by generated examples."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import (
    ANY,
    GOOD,
    D,
    N,
    cell,
    every_kind,
    features,
    fitted,
    forbid_fits,
    labels,
    make,
    put,
)

from nbmodels import (
    DataError,
)


@pytest.fixture(autouse=True)
def no_fit(monkeypatch):
    forbid_fits(monkeypatch)


#: What a random corruption may do to features, by kind: values that no cell may hold.
WRONG_CELLS = {
    "bernoulli": [np.nan, np.inf, -np.inf, None, 2, -1, 0.5, "?", ""],
    "multinomial": [np.nan, np.inf, -np.inf, None, -1, -0.5, "?", ""],
    "categorical": [np.nan, np.inf, -np.inf, None, pd.NA, 3, True],
    "gaussian": [np.nan, np.inf, -np.inf, None, "?", ""],
    "mixed": [np.nan, np.inf, -np.inf, None, pd.NA],
}
LAYOUTS = {
    "bernoulli": [np.asarray, pd.DataFrame, np.ndarray.tolist, np.asfortranarray],
    "multinomial": [np.asarray, pd.DataFrame, np.ndarray.tolist, np.asfortranarray],
    "categorical": [np.asarray, pd.DataFrame, np.ndarray.tolist],
    "gaussian": [np.asarray, pd.DataFrame, np.ndarray.tolist, np.asfortranarray],
    "mixed": [pd.DataFrame],
}
ROW, COLUMNS = st.integers(0, N - 1), st.integers(0, D - 1)
BAD_WEIGHTS = st.one_of(
    st.floats(max_value=0, exclude_max=True, allow_nan=False), st.sampled_from([np.nan, np.inf])
)


def corrupt_cell(draw, kind, x, y, options, parameters):
    i, j, value = draw(ROW), draw(COLUMNS), draw(st.sampled_from(WRONG_CELLS[kind]))
    bad = put(x, i, j, value)
    return draw(st.sampled_from(LAYOUTS[kind]))(bad), y, cell(bad, i, j)


def corrupt_label(draw, kind, x, y, options, parameters):
    i, value = draw(ROW), draw(st.sampled_from([None, np.nan, pd.NA, pd.NaT, "d", 0, 1.5, b"a"]))
    y[i] = value
    y = draw(st.sampled_from([np.asarray, list, tuple, pd.Series]))(y)
    if isinstance(value, str):
        parameters["classes"] = draw(st.permutations("abc"))
        return x, y, f"^y: row {i} has the label 'd'"
    if pd.isna(value):
        return x, y, f"^y: row {i} has no label"
    return x, y, "^y: labels of mixed types"


def corrupt_length(draw, kind, x, y, options, parameters):
    n = draw(st.integers(0, 3 * N).filter(lambda n: n != N))
    which = draw(st.sampled_from(["y", "sample_weight", "trusted"]))
    rows = "row" if n == 1 else "rows"
    options |= {"sample_weight": np.ones(n)} if which == "sample_weight" else {}
    options |= {"trusted": np.resize(y, n)} if which == "trusted" else {}
    return x, np.resize(y, n) if which == "y" else y, f"^{which}: has {n} {rows} where X has {N}"


def corrupt_weight(draw, kind, x, y, options, parameters):
    i = draw(ROW)
    weights = np.ones(N)
    weights[i] = draw(BAD_WEIGHTS)
    options["sample_weight"] = draw(st.sampled_from([np.asarray, list, pd.Series]))(weights)
    return x, y, f"^sample_weight: row {i} is "


def corrupt_trusted(draw, kind, x, y, options, parameters):
    i, value = draw(ROW), draw(st.sampled_from(["d", "", 0, "A"]))
    trusted = np.full(N, None, object)
    trusted[i] = value
    options["trusted"] = draw(st.sampled_from([trusted, list(trusted), {i: value}]))
    return x, y, f"^trusted: row {i} has the label {value!r}"


def corrupt_parameter(draw, kind, x, y, options, parameters):
    name = draw(st.sampled_from(ANY))
    odd = ["", "1", b"1", None, [], 1j, np.nan, np.ones(1)]
    negative = st.floats(max_value=0, exclude_max=True)
    parameters[name] = draw(negative | st.integers(max_value=-1) | st.sampled_from(odd))
    return x, y, f"^{name}: expected a finite number"


def corrupt_matrix(draw, kind, x, y, options, parameters):
    noise = GOOD.copy()
    change = draw(st.floats(-2, 2).filter(lambda v: abs(v) > 1e-5))
    noise[draw(COLUMNS), draw(COLUMNS)] += change
    parameters["noise"] = noise
    return x, y, "^noise: expected a 3 x 3 matrix"


def corrupt_prior(draw, kind, x, y, options, parameters):
    prior = np.array([0.5, 0.3, 0.2])
    prior[draw(COLUMNS)] += draw(st.floats(-2, 2).filter(lambda v: abs(v) > 1e-5))
    parameters["class_prior"] = prior
    return x, y, "^class_prior: expected 3 positive"


CORRUPTIONS = [
    corrupt_cell,
    corrupt_label,
    corrupt_length,
    corrupt_weight,
    corrupt_trusted,
    corrupt_parameter,
    corrupt_matrix,
    corrupt_prior,
]


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda f: f.__name__)
@settings(max_examples=25)
@given(data=st.data())
def test_a_random_corruption_is_refused(corrupt, kind, data):
    options, parameters = {}, {}
    x, y, match = corrupt(data.draw, kind, features(kind), labels(), options, parameters)
    estimator = make(kind, **parameters)
    with pytest.raises(DataError, match=match):
        estimator.fit(x, y, **options)


@pytest.mark.slow
@every_kind
@settings(max_examples=40)
@given(data=st.data())
def test_a_random_corruption_is_refused_at_predict(kind, data):
    i, j = data.draw(ROW), data.draw(COLUMNS)
    # a category of another type is one that training never saw, and is left out
    values = [v for v in WRONG_CELLS[kind] if kind != "categorical" or pd.isna(v) or np.isinf(v)]
    bad = put(features(kind), i, j, data.draw(st.sampled_from(values)))
    with pytest.raises(DataError, match=cell(bad, i, j)):
        fitted(kind).predict(bad)
