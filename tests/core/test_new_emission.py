"""An emission in one file: written, registered, and used by everything that the library has.

Numbers of failed attempts before a success, geometric given the class. Nothing else in the library
knows of them.
"""

import dataclasses
import io
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nbmodels as nb
from inference.pytree import register_dataclass
from nbmodels.channels import Transition
from nbmodels.class_priors import Proportions
from nbmodels.core import model as m
from nbmodels.core.component import LogLikelihood
from nbmodels.core.families import Dirichlet, beta
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.numpyro_program import log_density
from nbmodels.core.registry import FAMILIES, family, family_names, register_family
from nbmodels.core.residuals import Residuals, chosen
from nbmodels.core.roles import Emission, FeatureColumns
from nbmodels.data.features import refuse
from nbmodels.diagnostics.check import check_model
from nbmodels.emissions import BernoulliColumns
from nbmodels.emissions.columns import floats, observed, padded

# The extension, all of it ------------------------------------------------------------------------


class Attempts(NamedTuple):
    """``(N, d)`` failures, zero where missing, and ones where a cell is observed."""

    x: Any
    seen: Any


@register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Geometric(Emission):
    """``x_ij ~ Geometric(p_j[y_i])``, ``p ~ Beta``; prior of shape ``(2, d, K)``."""

    prior: Dirichlet

    @staticmethod
    def pack(x, missing=None):
        hidden = np.zeros(np.shape(x), bool) if missing is None else np.asarray(missing, bool)
        dtype = jnp.zeros(()).dtype
        return Attempts(
            jnp.asarray(np.where(hidden, 0, x), dtype), jnp.asarray(~hidden).astype(dtype)
        )

    def log_likelihood(self, likelihood_params, data):
        table = data.x @ likelihood_params[0] + data.seen @ likelihood_params[1]
        return LogLikelihood(table, jnp.zeros((1,)))

    def stats(self, likelihood_params, resp, data, key=None):
        return jnp.stack([data.x.T @ resp, data.seen.T @ resp])

    def relabel(self, q, order):
        return dataclasses.replace(q, concentration=q.concentration[:, :, order])

    def values(self, likelihood_params):
        return {"success": jnp.exp(likelihood_params[1]).T}

    def sites(self, name):
        failures, successes = jnp.swapaxes(self.prior.concentration, 1, 2)
        prior = dist.Beta(successes, failures).to_event(2)
        return {"success": numpyro.sample(f"{name}_success", prior)}

    def likelihood(self, name, values, y, data):
        site = dist.GeometricProbs(values["success"][y]).mask(data.seen > 0)
        numpyro.sample(name, site.to_event(1), obs=data.x)

    def simulate(self, key, values, y):
        return jax.random.geometric(key, values["success"][y]) - 1

    def dims(self):
        return {"success": ["true_class", "feature"]}

    def residuals(self, likelihood_params, data, rows, most):
        x = np.where(np.asarray(data.seen)[rows] > 0, np.asarray(data.x)[rows], np.nan)
        columns = chosen(np.nanvar(x, 0), most)
        p = np.exp(np.asarray(likelihood_params[1], float))[columns].T

        def of_class(k):
            return (x[:, columns] - (1 - p[k]) / p[k]) / (np.sqrt(1 - p[k]) / p[k])

        return Residuals(columns, of_class, np.nan_to_num(x), products=lambda k: 0.0)


@dataclasses.dataclass(frozen=True)
class GeometricColumns(FeatureColumns):
    """Columns of failures, whole numbers from 0."""

    settings: ClassVar[tuple[str, ...]] = ("alpha",)

    n_features: int
    alpha: float

    @classmethod
    def fit(cls, block, weights, *, alpha=1.0):
        return cls(len(block.names), alpha)

    def component(self, n_classes):
        pseudo = jnp.full((self.n_features, n_classes), 1.0 + self.alpha)
        return Geometric(prior=beta(pseudo, pseudo))

    def pack(self, component, block, length):
        x = floats(block)
        refuse(block, observed(block, (x < 0) | (x % 1 != 0)), "a whole number, 0 or more")
        return component.pack(*padded(block, length))


# What the library makes of it --------------------------------------------------------------------

K, N, D = 3, 300, 6
NAMES = np.array(["ant", "bee", "cat"])
COLUMNS = list("abcdef")
SUCCESS = np.array(
    [
        [0.8, 0.3, 0.5, 0.2, 0.9, 0.3],
        [0.3, 0.7, 0.2, 0.5, 0.4, 0.8],
        [0.2, 0.2, 0.8, 0.8, 0.5, 0.4],
    ]
)


@pytest.fixture(scope="module", autouse=True)
def _registered():
    register_family("toy", GeometricColumns)
    yield
    del FAMILIES["toy"]


@pytest.fixture(scope="module")
def world():
    """Failures, true classes, and labels of which a fifth is wrong."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, N)
    labels = np.where(rng.random(N) < 0.2, (y + rng.integers(1, K, N)) % K, y)
    return rng.geometric(SUCCESS[y]) - 1, y, labels


@pytest.fixture(scope="module")
def fitted(world):
    x, _, labels = world
    toy = Geometric(prior=beta(jnp.full((D, K), 2.0), jnp.full((D, K), 2.0)))
    model = {m.PRIOR: Proportions.of(K), "labels": Transition.of(K), "toy": toy}
    parts = {m.PRIOR: None, "labels": Transition.pack(labels, K), "toy": toy.pack(x)}
    data = nb.Data(parts, jnp.ones(N))
    return nb.fit(model, data, rule="map", key=jax.random.key(0)), data


def test_it_is_registered():
    assert family("toy") is GeometricColumns
    assert family_names()[:4] == ("bernoulli", "multinomial", "categorical", "gaussian")
    assert "toy" in family_names()
    register_family("toy", GeometricColumns)
    with pytest.raises(ValueError, match="'toy' is registered already"):
        register_family("toy", BernoulliColumns)
    with pytest.raises(nb.DataError, match=r"family: expected one of .*'toy'.*, got 'poisson'"):
        family("poisson")


@pytest.mark.slow
def test_it_is_fitted(world, fitted):
    fit, data = fitted
    assert fit.status.ok
    assert np.mean(fit.resp.argmax(1) == world[1]) > 0.9
    found = fit.model["toy"].values(fit.point["toy"])["success"]
    np.testing.assert_allclose(found, SUCCESS, atol=0.1)
    # both descriptions agree, and EM has reached the top of the program's density
    model = jax.tree.map(jnp.asarray, fit.model)
    theirs = log_density(model, data, m.values(model, fit.point))
    np.testing.assert_allclose(theirs, fit.objective, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gibbs", "nuts"])
def test_it_is_sampled_plotted_and_saved(fitted, method, tmp_path):
    import xarray
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from nbmodels.posterior import plots, sample

    fit, data = fitted
    draws, warmup, chains = {"gibbs": (800, 100, 2), "nuts": (100, 100, 1)}[method]
    tree = sample(
        fit,
        data,
        jax.random.key(1),
        method=method,
        draws=draws,
        warmup=warmup,
        chains=chains,
        names=NAMES,
        features={"toy": COLUMNS},
        progress=False,
    )
    found = tree["posterior"]["toy_success"]
    assert found.dims == ("chain", "draw", "true_class", "toy_feature")
    np.testing.assert_allclose(found.mean(("chain", "draw")), SUCCESS, atol=0.1)
    for figure, _ in (
        plots.noise_matrix(tree),
        plots.prior_and_posterior(tree),
        plots.chains(tree, "trace", name="toy_success"),
    ):
        FigureCanvasAgg(figure).print_png(io.BytesIO())
    tree.to_netcdf(tmp_path / "draws.nc")
    with xarray.open_datatree(tmp_path / "draws.nc") as again:
        np.testing.assert_array_equal(again["posterior"]["toy_success"], found)


def test_it_is_checked(world, fitted):
    fit, data = fitted
    verdict = check_model(fit, data, NAMES, {"toy": COLUMNS})
    assert verdict.ok, verdict.sentence
    assert any("toy" in f.sentence or "feature" in f.sentence for f in verdict.findings)
    # attempts that come in pairs are not independent given the class
    x = world[0]
    twice = np.concatenate([x, x], 1)
    toy = Geometric(prior=beta(jnp.full((2 * D, K), 2.0), jnp.full((2 * D, K), 2.0)))
    model = {**fit.model, "toy": toy}
    both = nb.Data({**data.parts, "toy": toy.pack(twice)}, data.weights)
    worse = nb.fit(model, both, rule="map", key=jax.random.key(0))
    assert not check_model(worse, both, NAMES, {"toy": COLUMNS + list("ghijkl")}).ok


def table(x, rng):
    """The failures with a column of noise and a hole."""
    out = np.concatenate([x, rng.normal(size=(len(x), 1))], 1)
    out[3, 1] = np.nan
    return out


@pytest.mark.slow
def test_it_is_a_family_of_mixed_columns(world):
    x, y, labels = world
    X = table(x, np.random.default_rng(1))
    e = nb.NoisyMixedNB(
        families={"toy": range(D)}, missing_values=np.nan, alpha=1.0, training="joint"
    )
    e.fit(X, NAMES[labels])
    assert list(e.families_.values()) == ["toy"] * D + ["gaussian"]
    assert np.mean(e.predict(X) == NAMES[y]) > 0.8
    assert e.verdict().findings
    draws = e.posterior(draws=100, warmup=50, chains=2, progress=False)["posterior"]
    assert list(draws["toy_feature"].values) == [str(j) for j in range(D)]
    with pytest.raises(nb.DataError, match=r"row 0, column '6' is .*; expected a whole number"):
        nb.NoisyMixedNB(families={"toy": [D]}, missing_values=np.nan).fit(X, labels)
    with pytest.raises(nb.DataError, match=r"families: expected 'auto' or a mapping from .*'toy'"):
        nb.NoisyMixedNB(families={"poisson": [0]}).fit(X, labels)


@pytest.mark.slow
def test_it_is_a_source_among_others(world):
    x, y, labels = world
    rng = np.random.default_rng(2)
    numbers = 0.5 * y[:, None] + rng.normal(size=(N, 2))
    sources = {
        "attempts": nb.NoisyMixedNB(families={"toy": range(D)}),
        "size": nb.NoisyGaussianNB(),
    }
    joint = nb.JointNB(sources).fit({"attempts": x, "size": numbers}, NAMES[labels])
    assert np.mean(joint.predict({"attempts": x}) == NAMES[y]) > 0.8
    both = joint.predict({"attempts": x, "size": numbers})
    assert np.mean(both == NAMES[y]) > 0.85
