"""Posterior draws where groups of rows share errors."""

import numpy as np
import pytest
import xarray

from nbmodels import NoisyGaussianNB
from nbmodels.fitting.design_effect import DesignEffects
from nbmodels.posterior.grouped_rows import for_groups, spread


def tree(rates):
    dims = ("chain", "draw", "observed_class", "true_class")
    drawn = xarray.Dataset({"noise_matrix": (dims, np.swapaxes(rates, -1, -2))})
    return xarray.DataTree.from_dict({"posterior": drawn})


def rates(size, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.dirichlet(size * np.array(p), (2, 4000)) for p in ([0.9, 0.1], [0, 1])], 2)


def test_means_stay_and_variances_are_multiplied():
    before = np.random.default_rng(0).dirichlet([60.0, 30.0, 10.0], (2, 20_000))
    after = spread(before, 4.0, np.random.default_rng(1))
    np.testing.assert_allclose(after.sum(-1), 1)
    np.testing.assert_allclose(after.mean((0, 1)), before.mean((0, 1)), atol=0.005)
    np.testing.assert_allclose(after.var((0, 1)), 4 * before.var((0, 1)), rtol=0.1)


def test_few_labels_are_drawn_no_wider_than_a_few_pseudo_labels():
    before = np.random.default_rng(0).dirichlet([3.0, 2.0], (2, 20_000))
    after = spread(before, 100.0, np.random.default_rng(1))
    prior = 0.6 * 0.4 / 4  # of three pseudo-labels
    assert after[..., 0].var() < before[..., 0].var() + prior


def test_a_rate_without_spread_keeps_its_value_and_independent_rows_their_draws():
    draws = tree(rates(100.0))
    out = for_groups(draws, DesignEffects(3.0, 1.0), np.random.default_rng(0))
    assert "variances times 3.0" in out.attrs["correction"]
    of_one = out["posterior"]["noise_matrix"].to_numpy()[..., 1, 1]
    np.testing.assert_allclose(of_one, 1, atol=1e-6)
    assert for_groups(draws, DesignEffects(1.0, 1.0), np.random.default_rng(0)) is draws
    assert for_groups(draws, None, np.random.default_rng(0)) is draws


def test_class_shares_among_the_items_vary_as_errors_do():
    shares = np.random.default_rng(0).dirichlet([60.0, 40.0], (2, 4000))
    draws = tree(rates(100.0))
    variable = xarray.DataArray(shares, dims=("chain", "draw", "true_class"))
    draws["posterior"]["class_shares"] = variable
    out = for_groups(draws, DesignEffects(3.0, 6.0), np.random.default_rng(0))
    ratio = out["posterior"]["class_shares"].to_numpy().var((0, 1)) / shares.var((0, 1))
    np.testing.assert_allclose(ratio, 3, rtol=0.1)
    assert "3.0 (noise matrix) and 3.0 (class shares)" in out.attrs["correction"]


def visits(seed, patients=100, n=6):
    """A patient's visits are of one class and share a wrong label."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(patients), n)
    true = rng.integers(0, 2, patients)
    given = np.where(rng.random(patients) < 0.2, 1 - true, true)
    x = 2.5 * true[who, None] + rng.normal(size=(len(who), 4))
    return x, given[who], who


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")  # two are doubtful by chance
def test_intervals_of_groups_that_share_errors_hold_the_rate():
    """With each label as news it is about half of them."""
    held = []
    for seed in range(5):
        x, given, who = visits(seed)
        model = NoisyGaussianNB(random_state=0).fit(x, given, groups=who)
        effects = model.fitted_.design_effects
        assert effects.noise > 4
        drawn = model.posterior(draws=300, chains=2, keep="parameters")
        drawn = drawn["posterior"]["noise_matrix"]
        low, high = drawn.quantile([0.05, 0.95], ("chain", "draw")).to_numpy()
        held.append([low[k, k] <= 0.8 <= high[k, k] for k in (0, 1)])
    assert np.mean(held) >= 0.8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
def test_each_kind_of_feedback_knows_the_groups():
    x, given, who = visits(0)
    model = NoisyGaussianNB(random_state=0).fit(x, given, groups=who)
    for feedback in (None, "cut", "joint", "mixed"):
        tree = model.posterior(draws=200, chains=2, feedback=feedback, keep="parameters")
        assert "design effects of rows in groups" in tree.attrs["correction"]
