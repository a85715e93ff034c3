"""Draws of a hierarchical and of a full noise matrix, where labels are few."""

import warnings

import numpy as np
import pytest
from marks import slow

from nbmodels import (
    IdentifiabilityWarning,
    Joint,
    NoisyBernoulliNB,
    NoisyGaussianNB,
    PosteriorWarning,
)
from nbmodels.channels import HierarchicalTransition, PooledTransition, Transition
from nbmodels.datasets import corrupt, flip_noise
from nbmodels.fitting.noise_forms import with_full_form


def to_the_next(n, k=3, seed=0):
    """Binary columns, and labels of which a quarter move to the next class."""
    rng = np.random.default_rng(seed)
    true = rng.integers(k, size=n)
    x = (rng.random((n, 20)) < rng.beta(1, 1, (k, 20))[true]).astype(int)
    rho = flip_noise(k, {(j, (j + 1) % k): 0.25 for j in range(k)})
    return x, corrupt(true, rho, rng), rho


def forms(fitted):
    return [type(one.fit.model["labels"]) for one in fitted.posterior_targets]


def test_few_labels_have_draws_of_both():
    x, y, _ = to_the_next(150)
    fitted = NoisyBernoulliNB(random_state=0).fit(x, y).fitted_
    found = with_full_form(fitted)
    assert set(forms(fitted)) == {PooledTransition}
    assert forms(found).count(Transition) == forms(found).count(PooledTransition)
    assert sum(one.probability for one in found.posterior_targets) == pytest.approx(1)
    whole = sum(
        one.probability
        for one in found.posterior_targets
        if type(one.fit.model["labels"]) is Transition
    )
    assert whole == pytest.approx(0.5)
    assert found.noise_matrix is not None
    np.testing.assert_array_equal(found.noise_matrix, fitted.noise_matrix)


def test_pseudo_labels_are_those_of_the_hierarchical_prior():
    channel = PooledTransition.of(3, 4, 1.5, 3.0)
    expected = Transition.of(3, 4, 1.5, 3.0)
    np.testing.assert_allclose(channel.full.prior.concentration, expected.prior.concentration)
    moved = channel.pooled(channel.prior, "map")  # a prior that was learned is not taken over
    np.testing.assert_allclose(moved.full.prior.concentration, expected.prior.concentration)


def test_few_labels_of_one_class_are_few():
    """Of a tenth of 900 labels, for two cells, the other class's row would take the half."""
    rng = np.random.default_rng(0)
    for each, averaged in ((10, True), (2, False)):
        true = (np.arange(900) % each == 0).astype(int)
        x = rng.normal(4.0 * true[:, None], size=(900, 2))
        y = corrupt(true, flip_noise(2, {(0, 1): 0.1, (1, 0): 0.3}), rng)
        fitted = NoisyGaussianNB(training=Joint(), random_state=0).fit(x, y).fitted_
        assert forms(with_full_form(fitted)).count(Transition) == averaged


@pytest.mark.slow
def test_many_labels_a_cell_stay_as_they_are():
    x, y, _ = to_the_next(1200)
    fitted = NoisyBernoulliNB(random_state=0).fit(x, y).fitted_
    assert with_full_form(fitted) is fitted


@pytest.mark.parametrize(
    "parameters",
    [
        {"noise": "full"},
        slow({"noise": "symmetric"}),
        slow({"noise": to_the_next(1)[2]}),
        slow({"solver": "vb"}),
    ],
    ids=["full", "symmetric", "known", "vb"],
)
def test_others_stay_as_they_are(parameters):
    x, y, _ = to_the_next(150)
    fitted = NoisyBernoulliNB(random_state=0, **parameters).fit(x, y).fitted_
    assert with_full_form(fitted) is fitted


def test_draws_of_the_prior_stay_as_they_are():
    _, y, _ = to_the_next(150)
    rng = np.random.default_rng(0)
    with pytest.warns(IdentifiabilityWarning, match="better than chance"):
        noise = NoisyGaussianNB(random_state=0).fit(rng.normal(size=(150, 3)), y).fitted_
    assert noise.drawn is not None  # of the prior
    assert with_full_form(noise) is noise


class Asked(Exception):
    """Draws would begin, with the other models that are given."""


@pytest.mark.parametrize("noise", ["auto", "pooled"])
def test_draws_are_asked_for_of_both_forms_where_none_is_given(noise, monkeypatch):
    def asked(fit, data, key, *, alternatives, **_):
        raise Asked(*(type(one.model["labels"]) for one in (fit, *(a.fit for a in alternatives))))

    monkeypatch.setattr("nbmodels.posterior.sampling.sample", asked)
    x, y, _ = to_the_next(150)
    model = NoisyBernoulliNB(noise=noise, random_state=0).fit(x, y)
    with pytest.raises(Asked) as found:
        model.posterior(draws=20, chains=1)
    assert HierarchicalTransition in found.value.args
    assert (Transition in found.value.args) == (noise == "auto")


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["auto", "pooled"])
def test_a_form_that_is_given_is_drawn_alone(noise):
    x, y, _ = to_the_next(100)
    model = NoisyBernoulliNB(noise=noise, random_state=0).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosteriorWarning)  # few draws
        drawn = model.posterior(draws=20, chains=1, progress=False)
    assert ("forms of the model" in drawn.attrs["kind"]) == (noise == "auto")


@pytest.mark.slow
def test_rates_of_zero_are_held():
    """Under the hierarchical prior alone two thirds of these cells were."""
    held, kinds = [], set()
    for seed in range(2):
        x, y, rho = to_the_next(100, seed=10 + seed)
        model = NoisyBernoulliNB(random_state=0).fit(x, y)
        drawn = model.posterior(draws=150, chains=2, progress=False)
        low = drawn["posterior"]["noise_matrix"].quantile(0.05, ("chain", "draw"))
        held.extend(low.to_numpy()[rho == 0] < 0.01)
        kinds.add(drawn.attrs["kind"])
    assert all("forms of the model" in kind for kind in kinds)
    assert np.mean(held) >= 0.75
    assert HierarchicalTransition not in map(type, model.fitted_.fit.model.values())
