"""A warning where no column varies, or labels are few, and nothing is known of the noise."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nbmodels import IdentifiabilityWarning, NoisyGaussianNB
from nbmodels.data.features import Block
from nbmodels.fitting.little_known import little_known

NOT_USED = SimpleNamespace(drawn=(None, None), interrupted=False)
CODES, ONES = np.arange(40) % 2, np.ones(40)


def messages(x, codes=CODES, weights=ONES, fitted=NOT_USED):
    return [one.message for one in little_known(fitted, x, codes, weights)]


def cells(*columns, missing=None):
    x = np.column_stack(columns)
    return Block(x, missing, tuple("abc"[: x.shape[1]]))


def test_columns_that_do_not_vary_are_named_as_the_reason():
    varying, constant = np.arange(40.0), np.full(40, 2.0)
    told = [
        "X: no column has more than one value: nothing is known of the noise but its prior, and "
        "no given label is changed"
    ]
    assert messages(cells(constant, constant)) == told
    assert messages(cells(constant, varying)) == []
    assert messages(pd.DataFrame({"a": constant, "b": ["x"] * 39 + [None]})) == told
    assert messages(pd.DataFrame({"a": constant, "b": [[1], [2]] * 20})) == []
    for one, expected in ((constant, told), (varying, [])):
        x = sparse.csr_array(np.column_stack([one, constant]))
        assert messages(Block(x, None, ("a", "b"))) == expected
    # of the rows that count, known cells alone
    weights = np.where(np.arange(40) < 30, 1.0, 0.0)
    steps = np.where(np.arange(40) < 30, 0.0, 1.0)
    assert messages(cells(steps), weights=weights) == told
    assert messages(cells(steps), weights=ONES) == []
    assert messages(cells(steps, missing=steps[:, None] > 0)) == told


def test_few_labels_are_named_as_the_reason():
    x = cells(np.arange(40.0))
    few = np.where(np.arange(40) < 3, CODES, -1)
    (said,) = messages(x, few)
    assert said.startswith("y: 3 labels are too few to learn from: nothing is known of the noise")
    learned = SimpleNamespace(drawn=None, interrupted=False)
    assert messages(x, few, fitted=learned) == []


@pytest.mark.parametrize("rows", [150, 3])
def test_fits_warn_and_the_verdict_begins_with_it(rows):
    x = np.random.default_rng(0).normal(size=(rows, 4)) if rows == 3 else np.ones((rows, 4))
    y = np.array(["ant", "bee", "ant"])[np.arange(rows) % 3]
    with pytest.warns(IdentifiabilityWarning, match="nothing is known of the noise"):
        model = NoisyGaussianNB(random_state=0).fit(x, y)
    assert model.verdict().sentence.startswith("X: no column" if rows == 150 else "y: 3 labels")
