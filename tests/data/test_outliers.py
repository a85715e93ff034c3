"""Values that are far out are cut off, and nothing else is."""

import numpy as np

from nbmodels import AutoNoisyClassifier
from nbmodels.data.outliers import Winsoriser
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
