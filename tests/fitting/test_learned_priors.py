"""Priors of a noise matrix's rows, learned between fits."""

import numpy as np
import pytest

from inference.arrays import on_device, random_key
from nbmodels.channels import PooledTransition
from nbmodels.class_priors import Calibration
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR, Data
from nbmodels.fitting.empirical_bayes import fit_with_learned_priors
from nbmodels.fitting.options import FitOptions

K, N = 30, 3_000


def world():
    """Scores that tell classes apart, and labels of which a fifth are drawn anew: one rate."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, N)
    labels = np.where(rng.random(N) < 0.2, rng.integers(0, K, N), y)
    scores = rng.normal(0, 1, (N, K))
    scores[np.arange(N), y] += 5
    return scores, labels


def learned(*, double=True, roughly=False, start=None, prior=None):
    scores, labels = world()
    with computing(double):
        channel = PooledTransition.of(K) if prior is None else prior
        model = {PRIOR: Calibration.of(K), "labels": channel}
        parts = {PRIOR: Calibration.pack(scores), "labels": PooledTransition.pack(labels, K)}
        options = FitOptions(random_key(0), 0)
        about = model, Data(parts, on_device(np.ones(N), float)), ["labels"], options
        return fit_with_learned_priors(*about, roughly=roughly, start=start)


def strength(fitted):
    return np.asarray(fitted.model["labels"].prior.concentration)[0, :2]


@pytest.mark.slow
def test_they_do_not_hang_on_the_precision():
    """One error rate draws the rows more strongly than the hundred labels of each do."""
    single, double = learned(double=False), learned()
    assert strength(double)[0] > 4 * N / K
    np.testing.assert_allclose(strength(single), strength(double), rtol=0.02)
    assert np.asarray(single.model["labels"].prior.concentration).dtype == np.float32


def test_a_rough_first_fit_ends_at_the_same_prior():
    plain, rough = learned(), learned(roughly=True)
    np.testing.assert_allclose(strength(rough), strength(plain), rtol=0.02)
    assert np.abs(rough.resp - plain.resp).sum(1).mean() < 5e-4


def test_a_rough_fit_is_never_the_last(monkeypatch):
    """Where the prior is the right one from the start, another fit has the whole tolerance."""
    plain, tols = learned(), []
    fit = FitOptions.fit
    monkeypatch.setattr(
        FitOptions, "fit", lambda self, *a, **more: tols.append(self.tol) or fit(self, *a, **more)
    )
    again = learned(roughly=True, start=plain.params, prior=plain.model["labels"])
    assert tols == [1e-3, 1e-6]
    assert again.objective == pytest.approx(plain.objective, abs=0.01)
