"""Simulation-based calibration, reduced: ``benchmarks/sbc.py`` has every model."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from calibration import calibrated, ranks
from simulation import data_sets, gibbs_of_all, nuts_of_all
from zoo import K, pack

from nbmodels.channels import Annotators, NeighbourVotes, Transition
from nbmodels.class_priors import Calibration, Proportions, ScaledLogistic
from nbmodels.emissions import Bernoulli, DiagonalGaussian

pytestmark = pytest.mark.usefixtures("optimised")


def test_ranks_of_right_and_wrong_draws():
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(2000, 1))
    truth = centre + rng.normal(size=(2000, 1))
    right = centre[:, None] + rng.normal(size=(2000, 99, 1))
    good = calibrated(ranks(truth, right)[:, 0], 99)
    assert good.p_value > 0.01
    assert good.nominal == pytest.approx(0.9)
    assert abs(good.coverage - 0.9) < 0.03
    narrow = calibrated(ranks(truth, centre[:, None] + 0.7 * (right - centre[:, None]))[:, 0], 99)
    assert narrow.p_value < 1e-6
    assert narrow.coverage < 0.8
    with pytest.raises(ValueError, match="no multiple of 20 bins"):
        calibrated(np.zeros(3, int), 100)


def noisy():
    return Transition.of(K, alpha=1.0, diagonal=20.0)


MODELS = {
    "binary": lambda: {
        "class_prior": Proportions.of(K, 4.0),
        "x": Bernoulli.of(3, K),
        "labels": noisy(),
    },
    "real": lambda: {
        "class_prior": Proportions.of(K, 4.0),
        "x": DiagonalGaussian.of(2, K, kappa=2.0, shape=3.0, rate=3.0),
        "labels": noisy(),
    },
    "annotators": lambda: {
        "class_prior": Proportions.of(K, 4.0),
        "votes": Annotators.of(3, K, diagonal=20.0),
    },
    # triples that share no label: the likelihood is no composite one
    "neighbours": lambda: {
        "class_prior": Proportions.of(K, 4.0),
        "near": NeighbourVotes.of(K, diagonal=20.0),
    },
    "calibration": lambda: {
        "class_prior": Calibration.of(K, log_slope_sd=0.5, bias_sd=1.0),
        "labels": noisy(),
    },
    "regression": lambda: {
        "class_prior": ScaledLogistic.of(2, K, df=4.0, intercept_sd=1.0),
        "labels": noisy(),
    },
}


def packed(component, x):
    return pack(component, np.asarray(x), np.zeros(x.shape, bool))


def checked(model, draw, n_sets, n_items, **how):
    first, second = jax.random.split(jax.random.key(1))
    data, values = data_sets(model, first, n_sets, n_items, packed)
    names, truth, found = draw(model, data, values, second, **how)
    rank = ranks(truth, found)
    each = {n: calibrated(rank[:, q], found.shape[1]) for q, n in enumerate(names)}
    assert min(c.p_value for c in each.values()) * len(each) > 0.01, each
    spread = 3.5 * (0.09 / n_sets) ** 0.5
    assert all(abs(c.coverage - 0.9) < spread for c in each.values()), each


@pytest.mark.slow
@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("name", MODELS)
def test_gibbs_is_calibrated(name):
    checked(MODELS[name](), gibbs_of_all, 300, 30, warmup=200, thin=8)


@pytest.mark.slow
def test_nuts_is_calibrated():
    model = {"class_prior": Proportions.of(K, 4.0), "x": Bernoulli.of(2, K), "labels": noisy()}
    checked(model, nuts_of_all, 100, 20)


@pytest.mark.slow
def test_nuts_on_a_set_knows_nothing_of_the_first(key):
    """Where a chain begins, the density is that of its own set."""
    model = {"class_prior": Proportions.of(K, 4.0), "x": Bernoulli.of(6, K), "labels": noisy()}
    data, values = data_sets(model, key, 2, 60, packed)
    found = []
    for cell in (0, 1):
        parts = jax.tree.map(lambda leaf, cell=cell: leaf.at[0].set(cell), data.parts)
        own = replace(data, parts=parts)
        found.append(nuts_of_all(model, own, values, key, draws=20, warmup=20, thin=1)[2])
    assert np.abs(found[0][0] - found[1][0]).max() > 0.1
    np.testing.assert_allclose(found[0][1], found[1][1])
