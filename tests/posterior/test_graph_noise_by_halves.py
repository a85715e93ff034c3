"""Draws of a noise matrix by the votes of two halves of the users."""

import jax
import numpy as np
import pytest
import xarray

from nbmodels import Data, fit
from nbmodels.channels import Annotators, Transition
from nbmodels.class_priors import Proportions
from nbmodels.core.families import Dirichlet
from nbmodels.fitting.split_users import Halves, NoiseByHalves, pseudo_votes
from nbmodels.posterior import noise_by_halves, sample
from nbmodels.posterior.noise_by_halves import draws_by_halves, pooled_with_halves

K = 3
PRIOR = np.full((K, K), 0.5) + 1.5 * np.eye(K)
CYCLIC = 0.7 * np.eye(K) + 0.3 * np.roll(np.eye(K), 1, 1)
UNEVEN = np.array([[0.95, 0.025, 0.025], [0.1, 0.8, 0.1], [0.175, 0.175, 0.65]])


def drawn(rng, classes, matrix):
    return (rng.random(len(classes))[:, None] > matrix[classes].cumsum(1)).sum(1)


def halves(noise, n=1200, seed=0, right=0.75, missing=0.1):
    rng = np.random.default_rng(seed)
    y = rng.choice(K, n, p=[0.4, 0.35, 0.25])
    errors = right * np.eye(K) + (1 - right) / (K - 1) * (1 - np.eye(K))
    votes = np.stack([drawn(rng, y, errors) for _ in range(2)])
    votes[rng.random(votes.shape) < missing] = K
    return Halves(votes[None], drawn(rng, y, noise), np.ones(n))


@pytest.mark.parametrize("noise", [CYCLIC, UNEVEN])
def test_intervals_hold_a_matrix_of_any_form(noise):
    inside = []
    for seed in range(6):
        about = NoiseByHalves(halves(noise, seed=seed), PRIOR)
        found = draws_by_halves(about, np.random.default_rng(seed))
        np.testing.assert_allclose(found.sum(2), 1)
        low, high = np.quantile(found, [0.05, 0.95], axis=0)
        inside.append((low - 0.01 <= noise) & (noise <= high))
        assert np.abs(found.mean(0) - noise).max() < 0.12
        assert (high - low).max() < 0.3
    assert np.mean(inside) > 0.8


@pytest.mark.slow
def test_draws_are_those_of_the_components():
    """The same model as a class prior, labels, and an annotator who votes twice."""
    about = halves(CYCLIC, n=600, seed=4)
    counts = (np.eye(K + 1)[about.votes[0, 0]] + np.eye(K + 1)[about.votes[0, 1]])[:, :K]
    model = {
        "class_prior": Proportions(prior=Dirichlet(np.ones(K))),
        "labels": Transition(prior=Dirichlet(PRIOR)),
        "votes": Annotators.sharing(1, np.full((K, K), pseudo_votes(K))),
    }
    parts = {
        "class_prior": None,
        "labels": Transition.pack(about.codes, K),
        "votes": Annotators.pack(counts[:, None]),
    }
    data = Data(parts, np.ones(600))
    fitted = fit(model, data, key=jax.random.key(0), rule="vb")
    tree = sample(fitted, data, jax.random.key(1), draws=1500, warmup=300, chains=2)
    expected = np.swapaxes(tree["posterior"]["noise_matrix"].to_numpy().reshape(-1, K, K), 1, 2)
    parts = [draws_by_halves(NoiseByHalves(about, PRIOR), np.random.default_rng(s)) for s in (0, 1)]
    found = np.concatenate(parts)
    np.testing.assert_allclose(found.mean(0), expected.mean(0), atol=0.015)
    np.testing.assert_allclose(found.std(0), expected.std(0), atol=0.012)


def test_items_without_a_label_and_items_that_weigh_nothing():
    one = halves(UNEVEN)
    codes = np.where(np.arange(1200) < 300, -1, one.codes)
    weights = (np.arange(1200) >= 300).astype(float)
    parts = [
        one._replace(codes=codes),  # their votes still count
        one._replace(weights=weights),
        Halves(one.votes[..., 300:], one.codes[300:], weights[300:]),
    ]
    found = [
        draws_by_halves(NoiseByHalves(part, PRIOR), np.random.default_rng(0)).mean(0)
        for part in parts
    ]
    np.testing.assert_allclose(found[1], found[2], atol=0.04)
    np.testing.assert_allclose(found[0], found[1], atol=0.08)
    assert np.diag(found[0]).min() > 0.5


def test_of_many_items_some_are_counted(monkeypatch):
    one = halves(CYCLIC, n=3000)
    whole = draws_by_halves(NoiseByHalves(one, PRIOR), np.random.default_rng(0))
    monkeypatch.setattr(noise_by_halves, "_MOST_ITEMS", 300)
    some = draws_by_halves(NoiseByHalves(one, PRIOR), np.random.default_rng(0))
    assert (some.std(0) > 1.5 * whole.std(0)).mean() > 0.6


def tree(draws=400):
    shape = (2, draws, K, K)
    matrices = np.broadcast_to(np.eye(K), shape).copy()
    dims = ("chain", "draw", "observed_class", "true_class")
    posterior = {"noise_matrix": (dims, matrices), "bias": (dims[:2], np.ones(shape[:2]))}
    component = {"component": (dims[:2], np.zeros(shape[:2], int))}
    groups = {"posterior": xarray.Dataset(posterior), "sample_stats": xarray.Dataset(component)}
    out = xarray.DataTree.from_dict(groups)
    out.attrs["kind"] = "posterior"
    return out


def test_some_draws_of_the_matrix_are_by_halves_and_nothing_else_changes():
    own = tree()
    out = pooled_with_halves(own, NoiseByHalves(halves(CYCLIC), PRIOR), np.random.default_rng(0))
    component = out["sample_stats"]["component"].to_numpy()
    assert component.mean() == pytest.approx(0.15, abs=0.04)
    found = out["posterior"]["noise_matrix"].to_numpy()
    assert (found[component == 0] == np.eye(K)).all()
    # [observed, true], as in the tree
    np.testing.assert_allclose(found[component == 1].mean(0), CYCLIC.T, atol=0.1)
    np.testing.assert_allclose(found.sum(2), 1)
    assert (out["posterior"]["bias"] == 1).all()
    assert "15% of the draws of the noise matrix by halves" in out.attrs["kind"]
    # what was given stays as it was
    assert (own["posterior"]["noise_matrix"].to_numpy() == np.eye(K)).all()
    assert own.attrs["kind"] == "posterior"
    assert pooled_with_halves(own, None, np.random.default_rng(0)) is own
