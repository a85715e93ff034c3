"""Draws of weighted rows: by a method that takes the weights."""

import numpy as np
import pytest

from nbmodels import DataError, NoisyGaussianNB
from nbmodels.datasets import corrupt, uniform_noise

K = 2


def fitted(weights):
    rng = np.random.default_rng(0)
    true = rng.integers(K, size=60)
    given = corrupt(true, uniform_noise(K, 0.2), rng)
    x = rng.normal(3.0 * true[:, None], size=(60, 2))
    fit = NoisyGaussianNB(training="joint", random_state=0).fit
    return fit(x, given, sample_weight=weights)


@pytest.mark.filterwarnings("ignore::nbmodels.PosteriorWarning")
@pytest.mark.parametrize(("weight", "method"), [(1.0, "gibbs"), (2.0, "nuts")])
def test_the_default_takes_the_weights(weight, method):
    draws = fitted(np.full(60, weight)).posterior(draws=20, warmup=20, chains=1)
    assert draws.attrs["method"] == method


def test_many_weighted_rows_are_refused(monkeypatch):
    monkeypatch.setattr("nbmodels.estimators.draws._MOST_BY_NUTS", 50)
    model = fitted(np.full(60, 2.0))
    with pytest.raises(DataError, match=r"^sample_weight: row 0 weighs 2.0; .* use method='nuts'"):
        model.posterior()
