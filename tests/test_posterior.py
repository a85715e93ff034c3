"""Draws of the posterior: what they hold, by every method, and what is said about them."""

import warnings
from functools import cache

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
import zoo
from scipy.special import logsumexp
from zoo import build

from nbmodels import fit as fitting
from nbmodels import model as m
from nbmodels.errors import PosteriorWarning
from nbmodels.posterior import sample
from nbmodels.program import item_table, log_density

NAMES = ["ant", "bee", "cow"]


@cache
def case(*names, n_items=150, seed=1, rule="map", **how):
    made = build(*names, n_items=n_items, seed=seed, **how)
    fitted = fitting.fit(made.model, made.data, rule=rule, key=jax.random.key(0))
    return made, fitted


@cache
def drawn(method, **options):
    made, fitted = case("bernoulli", "transition")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosteriorWarning)
        return sample(
            fitted,
            made.data,
            jax.random.key(2),
            method=method,
            names=NAMES,
            progress=False,
            **options,
        )


def check_groups(tree, n_items, path):
    assert set(tree.children) == {
        "posterior",
        "prior",
        "log_likelihood",
        "posterior_predictive",
        "observed_data",
        "sample_stats",
        "label_posterior",
    }
    assert tree["posterior"]["transition_noise_matrix"].dims[2:] == ("observed_class", "true_class")
    assert list(tree["prior"]["class_prior"]["true_class"].to_numpy()) == NAMES
    assert tree["log_likelihood"]["items"].sizes["item"] == n_items
    for name in ("transition", "bernoulli"):
        again, seen = tree["posterior_predictive"][name], tree["observed_data"][name]
        assert again.dims[2:] == seen.dims
        assert again.shape[2:] == seen.shape
    tree.to_netcdf(path, engine="h5netcdf")
    back = xarray.open_datatree(path, engine="h5netcdf")
    assert back.attrs["method"] == tree.attrs["method"]
    for group in tree.children:
        xarray.testing.assert_equal(back[group].to_dataset(), tree[group].to_dataset())
    back.close()


def test_groups_of_gibbs(tmp_path):
    tree = drawn("gibbs", draws=100, warmup=20, chains=2)
    check_groups(tree, 150, tmp_path / "draws.nc")
    assert tree.attrs["kind"] == "posterior"
    np.testing.assert_allclose(
        tree["sample_stats"]["lp"], tree["log_likelihood"]["items"].sum("item")
    )
    assert arviz_stats.loo(tree).elpd < 0


def test_log_likelihoods_are_of_the_draw_beside_them():
    made, _ = case("bernoulli", "transition")
    tree = drawn("gibbs", draws=100, warmup=20, chains=2)
    here = tree["posterior"].isel(chain=1, draw=7)
    values = {
        "prior": {"probs": here["class_prior"].to_numpy()},
        "transition": {"transition": here["transition_noise_matrix"].to_numpy().T},
        "bernoulli": {"probs": here["bernoulli_probs"].to_numpy()},
    }
    table = item_table(made.model, made.data, jax.tree.map(jnp.asarray, values))
    np.testing.assert_allclose(
        tree["log_likelihood"]["items"].isel(chain=1, draw=7), logsumexp(table, 1)
    )


@pytest.mark.parametrize("method", ["vb"])
def test_groups_of_other_methods(method, tmp_path):
    tree = drawn(method, draws=100, chains=2)
    check_groups(tree, 150, tmp_path / "draws.nc")
    assert np.isfinite(tree.attrs["pareto_k"])


@pytest.mark.parametrize("name", [n for n in zoo.COMPONENTS if n not in zoo.GIVEN])
def test_log_density_is_that_of_the_program(name):
    one = zoo.COMPONENTS[name]()
    read = one.natural(one.prior, "draw", jax.random.key(0))
    values = one.values(read)
    at = m.PRIOR if name in zoo.PRIORS else name
    prior = one if name in zoo.PRIORS else zoo.PRIORS["known"]()
    model = {m.PRIOR: prior, at: one}
    nothing = m.Data({m.PRIOR: None}, jnp.zeros(0))
    everything = {n: (values if n == at else {}) for n in model}
    theirs = log_density(model, nothing, everything)
    np.testing.assert_allclose(one.log_density(values), theirs)
