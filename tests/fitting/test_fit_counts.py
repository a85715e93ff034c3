"""How many fits an estimator's fit takes, and that none is made twice."""

import warnings
from collections import Counter

import numpy as np
import pytest

from nbmodels import NoisyBernoulliNB, NoisyLogisticRegression
from nbmodels.fitting import selection
from nbmodels.fitting.batched import counted_fits


def table(n=240):
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=n)
    x = (rng.random((n, 8)) < rng.uniform(0.1, 0.9, (3, 8))[true]).astype(float)
    return x, np.where(rng.random(n) < 0.2, rng.integers(3, size=n), true)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [NoisyBernoulliNB, NoisyLogisticRegression])
def test_no_setting_is_fitted_twice(cls, monkeypatch):
    tried, plain = Counter(), selection._Run.tried

    def counting(self, settings, rounds, candidate):
        tried[*sorted(settings.items()), rounds] += 1
        return plain(self, settings, rounds, candidate)

    monkeypatch.setattr(selection._Run, "tried", counting)
    with warnings.catch_warnings(action="ignore"), counted_fits() as count:
        fitted = cls(random_state=0).fit(*table()).fitted_
    # where a test of self-training follows on the selection, its rounds begin at one fit again
    assert sum(tried.values()) - len(tried) <= (cls is NoisyLogisticRegression)
    folds = 5
    # what is beside the trials, labels without features, the joint model and the reference among
    # them: nine fits a trial at the most
    assert len(tried) * (1 + folds) <= fitted.n_fits <= 15 * len(tried)
    # checks of the fitted model make a few of their own
    assert fitted.n_fits <= count.n
