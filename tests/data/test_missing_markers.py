"""Numbers that may mark missing cells are warned of, whoever reads the table."""

import warnings

import numpy as np
import pandas as pd
import pytest
from marks import slow

from nbmodels import NoisyGaussianNB, NoisyLogisticRegression, NoisyMixedNB
from nbmodels.cli.wording import worded
from nbmodels.data import validation
from nbmodels.data.features import Block
from nbmodels.data.missing_markers import missing_markers
from nbmodels.errors import NbmodelsWarning

CELLS = np.random.default_rng(0).normal(size=300).round(2)


def messages(cells, missing=None, weights=None):
    block = Block(np.asarray(cells)[:, None], missing, ("x",))
    weights = np.ones(len(cells)) if weights is None else weights
    return [one.message for one in missing_markers(block, weights)]


@pytest.mark.parametrize(
    ("added", "sentence"),
    [
        ([999.0] * 9, "column 'x' has 999 in 9 cells, far from all other values"),
        ([-99.0] * 9, "-99 in 9 cells, far"),
        ([999.0] * 2, ""),  # outliers
        ([990.0, 991.0, 992.0, 993.0, 994.0, 995.0], ""),
        ([3.5] * 40, ""),
        ([], ""),
    ],
)
def test_numbers_that_mark_missing_cells(added, sentence):
    found = messages(np.append(CELLS, added))
    assert [sentence in one for one in found] == [True] * bool(sentence)


def test_other_columns_are_none():
    # codes and shares have ends that are far off, too
    assert not messages(np.resize([0, 1, 2, 99], 300))
    assert not messages(np.full(300, 7.0))
    assert not messages(np.where(CELLS > 0, np.exp(3 * CELLS), 0.0))  # half are none
    marked = np.append(CELLS, [999.0] * 9)
    assert not messages(marked, (marked == 999)[:, None])
    assert not messages(marked, weights=marked != 999)


def test_columns_of_numbers_are_looked_at_as_columns_of_anything(monkeypatch):
    monkeypatch.setattr(validation, "_BLOCK_CELLS", 400)  # blocks of rows
    x = np.tile(np.append(CELLS, [999.0] * 9)[:, None], 4) * [1, 1, -1, 1]
    x[:, 1] = np.sort(x[:, 1]).clip(max=3)
    x[:, 3] = np.resize([0, 1, 2, 99], len(x))
    assert np.unique(x[:, 1], return_counts=True)[1][-1] > 0.01 * len(x)  # often, and not far
    found = [
        missing_markers(Block(one, None, tuple("abcd")), np.ones(309))
        for one in (x, x.astype(object))
    ]
    assert found[0] == found[1]
    assert "'a' has 999 in 9 cells; column 'c' has -999 in 9 cells, far" in found[0][0].message


def test_of_many_columns_some_are_named():
    marked = np.append(CELLS, [999.0] * 9)[:, None]
    block = Block(np.tile(marked, 5).astype(object), None, tuple("abcde"))
    (caution,) = missing_markers(block, np.ones(309))
    assert "'c' has 999 in 9 cells; and 2 more columns have one, far" in caution.message
    assert "leave them empty" in worded(caution.message)
    assert "missing_values" not in worded(caution.message)


@pytest.mark.parametrize(
    "estimator", [slow(NoisyGaussianNB), slow(NoisyLogisticRegression), NoisyMixedNB]
)
def test_a_fit_warns_of_them_once(estimator):
    rng = np.random.default_rng(1)
    y = np.arange(90) % 2
    x = pd.DataFrame({"size": np.where(rng.random(90) < 0.1, -999, y + rng.normal(size=90))})
    with warnings.catch_warnings(record=True, action="always") as caught:
        estimator(noise="symmetric", random_state=0).fit(x, y)
    found = [w for w in caught if "'size' has -999" in str(w.message)]
    assert len(found) == 1
    assert issubclass(found[0].category, NbmodelsWarning)
