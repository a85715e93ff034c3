"""Draws of the posterior: what they hold, by every method, and what is reported about them."""

import warnings
from dataclasses import replace
from functools import cache

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import xarray
import zoo
from marks import slow, slow_among
from numpyro.handlers import seed
from numpyro.infer.util import log_density as log_density_of
from scipy.special import logsumexp
from zoo import build

from inference import gibbs as sampler
from nbmodels import NoisyGaussianNB
from nbmodels.core import model as m
from nbmodels.core.numpyro_program import item_table, log_density, marginal, prior_log_density
from nbmodels.errors import DataError, PosteriorWarning
from nbmodels.fitting import em as fitting
from nbmodels.posterior import alignment
from nbmodels.posterior import sandwich as correction
from nbmodels.posterior.convergence import convergence_checks
from nbmodels.posterior.draws import PosteriorDraws, shares_of_items
from nbmodels.posterior.sampling import about_mode, sample
from nbmodels.posterior.sandwich import open_faced_sandwich

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


@pytest.mark.slow
def test_groups_of_gibbs(tmp_path):
    tree = drawn("gibbs", draws=100, warmup=20, chains=2)
    check_groups(tree, 150, tmp_path / "draws.nc")
    assert tree.attrs["kind"] == "posterior"
    np.testing.assert_allclose(
        tree["sample_stats"]["lp"], tree["log_likelihood"]["items"].sum("item")
    )
    assert arviz_stats.loo(tree).elpd < 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gibbs", "nuts", "svi"])
def test_without_a_class_prior_draws_have_the_class_shares_of_the_items(method):
    made, fitted = case("transition", "bernoulli", prior="calibration")
    options = {"steps": 300} if method == "svi" else {"warmup": 100}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosteriorWarning)
        tree = sample(
            fitted,
            made.data,
            jax.random.key(2),
            method=method,
            draws=100,
            chains=2,
            names=NAMES,
            progress=False,
            **options,
        )
    shares = tree["posterior"]["class_shares"]
    assert shares.dims == ("chain", "draw", "true_class")
    assert "class_prior" not in tree["posterior"]
    counts = shares.to_numpy() * 150
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-3)
    np.testing.assert_allclose(counts.sum(-1), 150, rtol=1e-5)
    expected = tree["label_posterior"]["p"].mean("item")
    np.testing.assert_allclose(shares.mean(("chain", "draw")), expected, atol=0.02)
    assert float(shares.std(("chain", "draw")).min()) > 0.005


def test_class_shares_of_items_are_of_drawn_classes_by_the_rows_weights():
    resp = jnp.asarray([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.0, 1.0]])
    weights = jnp.asarray([1.0, 1.0, 2.0, 0.0])
    keys = jax.random.split(jax.random.key(0), 1000)
    drawn = jax.vmap(lambda key: shares_of_items({}, resp, weights, key))(keys)["class_shares"]
    assert set(np.unique(drawn)) == {0.25, 0.75}
    np.testing.assert_allclose(drawn.mean(0), 0.5, atol=0.03)
    assert shares_of_items({"probs": None}, resp, weights, keys[0]) == {}


@pytest.mark.slow
def test_log_likelihoods_are_of_the_draw_beside_them():
    made, _ = case("bernoulli", "transition")
    tree = drawn("gibbs", draws=100, warmup=20, chains=2)
    here = tree["posterior"].isel(chain=1, draw=7)
    values = {
        "class_prior": {"probs": here["class_prior"].to_numpy()},
        "transition": {"transition": here["transition_noise_matrix"].to_numpy().T},
        "bernoulli": {"probs": here["bernoulli_probs"].to_numpy()},
    }
    table = item_table(made.model, made.data, jax.tree.map(jnp.asarray, values))
    np.testing.assert_allclose(
        tree["log_likelihood"]["items"].isel(chain=1, draw=7), logsumexp(table, 1)
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["vb"])
def test_groups_of_other_methods(method, tmp_path):
    tree = drawn(method, draws=100, chains=2)
    check_groups(tree, 150, tmp_path / "draws.nc")
    assert np.isfinite(tree.attrs["pareto_k"])


@pytest.mark.slow
def test_parameters_that_are_too_large_to_store_leave_the_rest():
    """The matrices of 300 annotators are not stored; the mean of them is."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 200)
    item = np.repeat(np.arange(200), 3)
    label = np.where(rng.random(600) < 0.7, y[item], rng.integers(0, 5, 600))
    votes = pd.DataFrame({"task": item, "worker": np.arange(600) % 300, "label": label})
    x = y[:, None] + rng.normal(size=(200, 2))
    model = NoisyGaussianNB.published().fit(x, label[::3], votes=votes)
    with warnings.catch_warnings(action="ignore"):  # few draws
        tree = model.posterior(draws=2, warmup=0, chains=1, progress=False)
    assert "votes_transitions" not in tree["posterior"]
    assumed = "errors that do not depend on each other or the features given the true class"
    assert tree.attrs["assumes"] == assumed
    assert tree["posterior"]["votes_noise_matrix"].shape == (1, 2, 5, 5)
    assert tree["log_likelihood"]["items"].shape == (1, 2, 200)
    assert tree["posterior_predictive"]["labels"].shape == (1, 2, 200)


@pytest.mark.slow
def test_a_minibatch_stands_for_all_items():
    """Its log-density is that of all items on average over batches, priors counted once."""
    made, fitted = case("bernoulli", "transition", n_items=40)
    values = m.values(fitted.model, m.likelihood_params(fitted.model, fitted.params, "map"))
    flat = {f"{n}_{site}": v for n, part in values.items() for site, v in part.items()}
    part = marginal(made.model, made.data, batch=10)

    def density(key):
        return log_density_of(seed(part, key), (), {}, flat)[0]

    found = np.asarray(jax.jit(jax.vmap(density))(jax.random.split(jax.random.key(0), 4000)))
    whole = log_density(made.model, made.data, values)
    assert found.std() > 1
    assert abs(found.mean() - whole) < 4 * found.std() / len(found) ** 0.5


@pytest.mark.slow
def test_svi_on_minibatches():
    whole = drawn("svi", draws=100, chains=2)["posterior"]
    part = drawn("svi", draws=100, chains=2, batch=50, steps=4000)["posterior"]
    for name in ("class_prior", "transition_noise_matrix"):
        means = [tree[name].mean(("chain", "draw")).to_numpy() for tree in (whole, part)]
        np.testing.assert_allclose(*means, atol=0.04)
        # batches that were not scaled up would leave a quarter of the items' news
        spreads = [float(tree[name].std(("chain", "draw")).mean()) for tree in (whole, part)]
        assert 0.75 < spreads[1] / spreads[0] < 1.33


SAMPLED = [n for n in zoo.COMPONENTS if n not in zoo.GIVEN]
MATRICES = ("full", "tied", "student_full", "student_tied")


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_among(SAMPLED, MATRICES))
def test_log_density_is_that_of_the_program(name):
    one = zoo.COMPONENTS[name]()
    read = one.likelihood_params(one.prior, "draw", jax.random.key(0))
    values = one.values(read)
    flat = {f"{name}_{site}": value for site, value in values.items()}
    theirs = log_density_of(lambda: one.sites(name), (), {}, flat)[0]
    np.testing.assert_allclose(prior_log_density(one, values), theirs)


@pytest.mark.slow
def test_every_way_agrees_on_means():
    """Slow: NUTS and SVI compile the program of a small model."""
    made, fitted = agreeing()
    found = {
        "gibbs": {"draws": 2000},
        "nuts": {"draws": 700, "chains": 2},
        "vb": {"draws": 1000},
        "svi": {"draws": 1000, "steps": 2000},
    }
    means, errors = {}, {}
    for method, options in found.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PosteriorWarning)
            tree = sample(
                fitted, made.data, jax.random.key(4), method=method, progress=False, **options
            )
        name = "transition_noise_matrix"
        means[method] = tree["posterior"][name].mean(("chain", "draw")).to_numpy()
        errors[method] = arviz_stats.mcse(tree, var_names=[name])[name].to_numpy()
    gap = (means["gibbs"] - means["nuts"]) / np.hypot(errors["gibbs"], errors["nuts"])
    assert np.abs(gap).max() < 3
    assert np.abs(means["gibbs"] - means["svi"]).max() < 0.05
    assert np.abs(means["gibbs"] - means["vb"]).max() < 0.1


@cache
def agreeing():
    """A model whose classes keep their names: many labels are right."""
    from nbmodels.channels import Transition

    made = build("gaussian", "transition", n_items=80, seed=3)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(80) < 0.85, made.y, rng.integers(3, size=80))
    model = {**made.model, "transition": Transition.of(3, diagonal=10.0)}
    parts = {**made.data.parts, "transition": Transition.pack(labels, 3)}
    made = made._replace(model=model, data=m.Data(parts, made.data.weights))
    return made, fitting.fit(made.model, made.data, key=jax.random.key(0))


@pytest.mark.slow
def test_linear_response_widens_towards_gibbs():
    made, fitted = agreeing()
    spread = {}
    for name, method, options in (
        ("gibbs", "gibbs", {}),
        ("plain", "vb", {"correct": False}),
        ("wide", "vb", {"correct": True}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PosteriorWarning)
            tree = sample(
                fitted, made.data, jax.random.key(5), method=method, progress=False, **options
            )
        rho = np.log(tree["posterior"]["transition_noise_matrix"])
        spread[name] = np.diag(rho.std(("chain", "draw")).to_numpy()).mean()
    assert "linear response" in tree.attrs["correction"]
    assert spread["plain"] < spread["wide"]
    assert abs(spread["wide"] - spread["gibbs"]) < abs(spread["plain"] - spread["gibbs"])


def counting(state, data, key):
    """A sweep that counts; what is stored and summed is the count."""
    return state + 1, {"n": state}, state


def test_chains_draw_warm_up_and_thin(key):
    zero = jnp.zeros(())
    out = sampler.sample(counting, [zero, zero + 100], None, key, draws=30, warmup=20, thin=2)
    assert not out.interrupted
    assert out.stored["n"].shape == (2, 30)
    # one chunk of 40 sweeps is thrown away, and every second sweep kept
    np.testing.assert_array_equal(out.stored["n"][0], 41 + 2 * np.arange(30))
    np.testing.assert_array_equal(out.stored["n"][1], 141 + 2 * np.arange(30))
    np.testing.assert_allclose(out.mean, [80, 180])


def test_ctrl_c_keeps_what_all_chains_have(key, monkeypatch):
    monkeypatch.setattr(sampler, "_TURN", 1)
    calls = []

    def report(n):
        calls.append(n)
        if len(calls) == 8:  # in the fourth round of two chains
            raise KeyboardInterrupt

    states = [jnp.zeros(()), jnp.zeros(())]
    out = sampler.sample(counting, states, None, key, draws=500, warmup=20, report=report)
    assert out.interrupted
    assert out.stored["n"].shape == (2, 40)
    with pytest.raises(KeyboardInterrupt):
        sampler.sample(counting, states, None, key, draws=500, warmup=500, report=report_at_once)


def report_at_once(n):
    raise KeyboardInterrupt


def some_draws(transitions):
    values = {
        "class_prior": {"probs": np.tile([0.5, 0.3, 0.2], (*transitions.shape[:2], 1))},
        "transition": {"transition": transitions},
    }
    resp = np.tile(np.eye(3)[[0, 1, 2, 2]], (transitions.shape[0], 1, 1))
    shares = np.tile([0.4, 0.35, 0.25], (*transitions.shape[:2], 1))
    return PosteriorDraws(values, {"transition": transitions}, None, resp, class_shares=shares)


RIGHT = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.0, 0.9]])
SWAPPED = RIGHT[[1, 0, 2]]


def test_a_chain_with_exchanged_names_is_renamed():
    model = {
        "class_prior": zoo.PRIORS["proportions"](),
        "transition": zoo.COMPONENTS["transition"](),
    }
    transitions = np.stack([np.tile(RIGHT, (50, 1, 1)), np.tile(SWAPPED, (50, 1, 1))])
    out = alignment.aligned(model, some_draws(transitions))
    np.testing.assert_allclose(out.transitions["transition"], np.broadcast_to(RIGHT, (2, 50, 3, 3)))
    np.testing.assert_allclose(out.values["class_prior"]["probs"][1, 0], [0.3, 0.5, 0.2])
    np.testing.assert_allclose(out.label_posterior[1], np.eye(3)[[1, 0, 2, 2]])
    np.testing.assert_allclose(out.class_shares[1, 0], [0.35, 0.4, 0.25])
    assert "renamed" in out.cautions[0].message
    # where names come from outside nothing is renamed, and both modes are reported
    known = {**model, "trusted": zoo.COMPONENTS["trusted"]()}
    left = alignment.aligned(known, some_draws(transitions), ["x", "y", "z"])
    np.testing.assert_array_equal(left.transitions["transition"], transitions)
    assert "more than one mode" in left.cautions[0].message


def test_two_modes_within_a_chain_are_reported():
    model = {
        "class_prior": zoo.PRIORS["proportions"](),
        "transition": zoo.COMPONENTS["transition"](),
    }
    one = np.concatenate([np.tile(RIGHT, (70, 1, 1)), np.tile(SWAPPED, (30, 1, 1))])
    out = alignment.aligned(model, some_draws(one[None]), ["x", "y", "z"])
    assert "in 30% of the draws" in out.cautions[0].message
    assert "y as x" in out.cautions[0].message
    calm = alignment.aligned(model, some_draws(np.tile(RIGHT, (1, 50, 1, 1))))
    assert calm.cautions == ()


def test_few_effective_draws_are_complained_of():
    import arviz_base

    rng = np.random.default_rng(0)
    walk = 0.5 + 0.3 * np.sin(np.arange(400) / 40 + rng.uniform(0, 6, (4, 1)))
    shares = np.stack([walk, 1 - walk], -1)
    tree = arviz_base.from_dict({"posterior": {"class_prior": shares}})
    assert any(
        "effective" in c.message or "not mixed" in c.message for c in convergence_checks(tree)
    )
    calm = arviz_base.from_dict({"posterior": {"class_prior": rng.dirichlet([3, 3], (4, 400))}})
    assert convergence_checks(calm) == []


def test_of_all_cells_the_worst_may_have_a_quarter_of_the_effective_draws():
    import arviz_base

    rng = np.random.default_rng(0)
    well = 0.2 * np.eye(3) + rng.uniform(0.2, 0.4, (4, 400, 3, 3))
    walk = 0.2 + rng.normal(size=(4, 400)).cumsum(1) / 400  # a few effective draws
    eighth = np.repeat(rng.uniform(0.2, 0.4, (4, 50)), 8, 1)  # 200 of 1,600

    def complains(cell, draws):
        matrix = well.copy()
        matrix[..., *cell] = draws
        dims = {"noise_matrix": ["observed_class", "true_class"]}
        tree = arviz_base.from_dict({"posterior": {"noise_matrix": matrix}}, dims=dims)
        found = [c.message for c in convergence_checks(tree)]
        return any("effective" in m or "not mixed" in m for m in found)

    assert complains((0, 1), walk)
    assert not complains((0, 1), eighth)
    assert complains((1, 1), eighth)


def test_stretching_gives_the_wanted_covariance():
    rng = np.random.default_rng(0)
    a, b = (np.cov(rng.normal(size=(9, 4)).T) for _ in range(2))
    matrix = correction.stretch(a, b)
    np.testing.assert_allclose(matrix @ b @ matrix.T, a, atol=1e-9)
    np.testing.assert_allclose(correction.stretch(b, b), np.eye(4), atol=1e-9)


def test_the_jackknife_is_the_variance_of_a_mean():
    """Of normal items with a wrong scale: the posterior says 1/n, the truth is 9/n."""
    rng = np.random.default_rng(1)
    x = 3 * rng.normal(size=400)
    theta = x.mean() + rng.normal(size=20_000) / 20
    variance = correction.jackknife(theta[:, None], -0.5 * (x - theta[:, None]) ** 2)
    np.testing.assert_allclose(variance[0, 0], x.var() / 400, rtol=0.05)


@pytest.mark.slow
def test_the_sandwich_leaves_means_and_is_recorded():
    tree = drawn("gibbs", draws=100, warmup=20, chains=2)
    out = open_faced_sandwich(tree)
    assert "sandwich" in out.attrs["correction"]
    assert "correction" not in tree.attrs
    rho = out["posterior"]["transition_noise_matrix"]
    np.testing.assert_allclose(rho.sum("observed_class"), 1)
    assert np.abs(rho.mean() - tree["posterior"]["transition_noise_matrix"].mean()) < 1e-9
    bare = tree.copy(deep=True)
    del bare["log_likelihood"]
    with pytest.raises(DataError, match="were not kept"):
        open_faced_sandwich(bare)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [slow("full"), "symmetric"])
def test_draws_are_centred_at_the_fit(noise):
    """Where features tell the class for sure, draws are of a Dirichlet with the mode for a mean."""
    k, rng = 8, np.random.default_rng(0)
    y = np.repeat(np.arange(k), 20)
    given = np.where(rng.random(len(y)) < 0.2, rng.integers(0, k, len(y)), y)
    e = NoisyGaussianNB.published(noise=noise, random_state=0)
    e.fit(50.0 * np.eye(k)[y] + rng.normal(size=(len(y), k)), given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosteriorWarning)
        tree = e.posterior(draws=1000, chains=2, warmup=20, progress=False)
    mean = tree["posterior"]["noise_matrix"].mean(("chain", "draw")).to_numpy()
    # of 21 labels of a class, one more for each other class would move the diagonal by 0.2
    np.testing.assert_allclose(mean, e.noise_matrix_, atol=0.015)
    variational = about_mode(replace(e.fit_, rule="vb")).model
    assert all(variational[name] is one for name, one in e.fit_.model.items())


@pytest.mark.slow
def test_powers_make_a_generalised_posterior():
    made, fitted = case("bernoulli", "transition", powers=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosteriorWarning)
        tree = sample(fitted, made.data, jax.random.key(0), draws=20, warmup=20, chains=1)
    assert tree.attrs["kind"].startswith("generalised posterior: ")
    assert "bernoulli to the power" in tree.attrs["kind"]
