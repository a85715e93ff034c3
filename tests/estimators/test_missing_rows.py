"""New rows of which nothing is known: one of them is no reason to refuse a batch."""

import numpy as np
import pytest

from nbmodels import (
    AutoNoisyClassifier,
    NoisyBernoulliNB,
    NoisyGaussianNB,
    NoisyMixedNB,
    Solver,
)

QUIET = Solver(progress=False)


@pytest.mark.parametrize(
    "make", [NoisyGaussianNB, NoisyBernoulliNB, NoisyMixedNB, AutoNoisyClassifier]
)
def test_a_row_of_nothing_but_missing_cells_is_of_the_frequent_classes(make):
    rng = np.random.default_rng(0)
    true = (rng.random(300) < 0.3).astype(int)
    x = rng.normal(size=(300, 4)) + 3 * true[:, None]
    if make is NoisyBernoulliNB:
        x = (x > 1.5).astype(float)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[np.isnan(x).all(1), 0] = 0.0
    model = make(missing_values=np.nan, random_state=0, solver=QUIET).fit(x, true)
    new = x[:3].copy()
    new[1] = np.nan
    probs = model.predict_proba(new)
    np.testing.assert_allclose(probs[1], model.class_prior_, atol=0.1)
    np.testing.assert_allclose(probs[[0, 2]], model.predict_proba(x[[0, 2]]), atol=1e-6)
