"""Values that are far out are cut off, and nothing else is."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import softmax

from nbmodels import (
    AutoNoisyClassifier,
    NbmodelsWarning,
    NoisyGaussianNB,
    NoisyLogisticRegression,
    NoisyMixedNB,
)
from nbmodels.data.features import Block
from nbmodels.data.outliers import Winsoriser, cells_far_out
from nbmodels.datasets import corrupt, uniform_noise

K = 3


def test_only_what_is_far_out_is_cut_off():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    wrong = x.copy()
    wrong[::50, 0] *= 1000
    wrong[1, 1] = np.nan
    found = Winsoriser().fit(x).transform(wrong)
    np.testing.assert_array_equal(found[1::50], wrong[1::50])
    assert np.abs(found[::50, 0]).max() < 6
    # most cells are zeros: none is far out
    counts = np.where(rng.random((500, 2)) < 0.8, 0, rng.poisson(50, (500, 2)))
    np.testing.assert_array_equal(Winsoriser().fit_transform(counts), counts)


@pytest.mark.slow
def test_gross_errors_in_cells_fool_no_candidate():
    """One cell in twenty is a hundred times too large: random splits would fall where no row is."""
    rng = np.random.default_rng(1)
    true = rng.integers(K, size=1000)
    x = 1.3 * rng.normal(size=(K, 6))[true] + rng.normal(size=(1000, 6))
    x = np.where(rng.random(x.shape) < 0.05, 100 * x, x)
    given = corrupt(true[:500], uniform_noise(K, 0.2), rng)
    model = AutoNoisyClassifier(emission=["logistic", "forest"], random_state=0).fit(x[:500], given)
    assert np.mean(model.predict(x[500:]) == true[500:]) > 0.8
    assert np.mean(model.corrected_labels()["suggested"] == true[:500]) > 0.9


def gross_errors(seed, n=1000):
    rng = np.random.default_rng(seed)
    true = rng.integers(K, size=n)
    x = 1.3 * rng.normal(size=(K, 6))[true] + rng.normal(size=(n, 6))
    return np.where(rng.random(x.shape) < 0.05, 100 * x, x), true, rng


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_regression_s_predictions_know_no_gross_errors(seed):
    """A column's scale was that of its errors: 66 to 83 % of the rows were predicted."""
    x, true, rng = gross_errors(seed)
    given = corrupt(true[:500], uniform_noise(K, 0.2), rng)
    model = NoisyLogisticRegression(random_state=0).fit(x[:500], given)
    assert model.chosen_["outliers"] == "cut off"
    assert np.mean(model.predict(x[500:]) == true[500:]) > 0.8
    # coefficients are of the columns between their fences
    inside = np.clip(x[500:], *model.fences_)
    logits = inside @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.predict_proba(x[500:]), softmax(logits, 1), atol=1e-5)


@pytest.mark.slow
def test_nothing_is_open_where_nothing_is_far_out():
    rng = np.random.default_rng(0)
    true = rng.integers(2, size=100)
    x = rng.normal(size=(100, 2)) + 3 * true[:, None]
    for columns, C in ((x, "auto"), (sparse.csr_array(100 * x**3), "auto"), (100 * x**3, 1.0)):
        model = NoisyLogisticRegression(C=C).fit(columns, true)
        assert "outliers" not in model.chosen_
        assert model.fences_ is None


def test_cells_that_set_the_scale_of_a_column_are_named():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    names = ("size", "weight", "age")
    assert not cells_far_out(Block(x, None, names), np.ones(400))
    x[7, 1], x[9, 1], x[3, 2] = 1e6, -1e5, np.nan
    (caution,) = cells_far_out(Block(x, None, names), np.ones(400))
    assert caution.message.startswith("X: row 7 has 1e+06 in column 'weight', whose median is")
    assert "over 100 interquartile ranges away (1 more cell like it): it sets" in caution.message
    # rows that do not count, and cells that are too many to be errors
    assert not cells_far_out(Block(x, None, names), np.where(np.abs(x[:, 1]) < 10, 1.0, 0.0))
    x[:20, 1] = 1e6
    assert not cells_far_out(Block(x, None, names), np.ones(400))


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_estimators_of_real_columns_warn_of_them():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    x = pd.DataFrame(rng.normal(4.0 * y[:, None], size=(80, 2)), columns=["size", "weight"])
    x.loc[5, "size"] = 1e7
    for model, table in [
        (NoisyGaussianNB.published(random_state=0), x),
        (
            NoisyMixedNB.published(random_state=0),
            x.assign(kind=np.array(["u", "v"])[rng.integers(0, 2, 80)]),
        ),
    ]:
        with pytest.warns(NbmodelsWarning, match=r"^X: row 5 has 1e\+07 in column 'size', whose "):
            model.fit(table, y)
