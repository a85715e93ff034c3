"""NUTS and SVI on the components' NumPyro program: sites, initial values, gradients."""

import warnings
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import zoo
from jax.scipy.special import logsumexp
from numpyro import distributions as dist
from simulation import nuts_of_all

from inference.pytree import register_dataclass
from nbmodels import JointNB, NoisyBernoulliNB, NoisyGaussianNB
from nbmodels.channels import FixedTransition, SymmetricTransition, Transition
from nbmodels.class_priors import Calibration, Logistic, Proportions
from nbmodels.core.component import Given
from nbmodels.core.model import Data
from nbmodels.core.numpyro_program import item_table
from nbmodels.emissions import Bernoulli
from nbmodels.errors import DataError, PosteriorWarning
from nbmodels.fitting.em import fit
from nbmodels.posterior.sampling import sample
from nbmodels.posterior.sites import by_component, interior, parameter_sites

K = zoo.K


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Toy(Given):
    """Sites of any names, with the supports of probabilities."""

    def sites(self, name):
        bias = numpyro.sample(f"{name}_bias", dist.Beta(jnp.ones(K), 1.0).to_event(1))
        shares = numpyro.sample(f"{name}_b_shares", dist.Dirichlet(jnp.ones((2, K))).to_event(1))
        return {"bias": bias, "b_shares": shares}


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Shares(Given):
    """One site that is called as one of a toy's, if the component's name is one's with ``_b``."""

    def sites(self, name):
        return {"shares": numpyro.sample(f"{name}_shares", dist.Dirichlet(jnp.ones(K)))}


def test_sites_belong_to_the_component_that_samples_them():
    model = {"a": Bernoulli.of(2, K), "a_b": Bernoulli.of(3, K), "a_b_c": Transition.of(K)}
    sites = parameter_sites(model)
    assert by_component(model, sites, {site: site for site in sites}) == {
        "a": {"probs": "a_probs"},
        "a_b": {"probs": "a_b_probs"},
        "a_b_c": {"transition": "a_b_c_transition"},
    }


def test_two_components_with_one_site_are_refused():
    with pytest.raises(DataError, match="'a' and 'a_b' both have a NumPyro site 'a_b_shares'"):
        parameter_sites({"a": Toy(prior=None), "a_b": Shares(prior=None)})


def test_initial_values_are_in_the_interior_of_the_support_whatever_the_name():
    sites = parameter_sites({"a": Toy(prior=None), "probs": Bernoulli.of(2, K)})
    boundary = {
        "a_bias": jnp.array([0.0, 1.0, 0.5]),
        "a_b_shares": jnp.array([[0.0, 0.0, 1.0], [0.2, 0.3, 0.5]]),
        # its rows sum to one, but it is no simplex
        "probs_probs": jnp.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]]),
    }
    inside = interior(sites, boundary)
    for name, site in sites.items():
        value = inside[name]
        assert ((value > 0) & (value < 1)).all(), name
        assert site.support(value).all(), name
        np.testing.assert_allclose(value, boundary[name], atol=2.1e-4)


def quiet(draw, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosteriorWarning)
        return draw(*args, progress=False, **options)


# so few rows are not what the checks are for
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
@pytest.mark.parametrize(
    ("method", "options"),
    [
        pytest.param("nuts", {"warmup": 5}, marks=pytest.mark.slow),
        pytest.param("svi", {"steps": 20, "guide": "mean field"}, marks=pytest.mark.slow),
    ],
)
def test_sources_whose_names_begin_alike(method, options):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    x = (rng.random((120, 2)) < 0.2 + 0.6 * y[:, None]).astype(int)
    e = JointNB({"a": NoisyBernoulliNB(), "a_b": NoisyBernoulliNB()})
    e.fit({"a": x, "a_b": 1 - x}, y)
    tree = quiet(e.posterior, method, draws=5, chains=1, **options)["posterior"]
    assert tree["a_probs"].shape == tree["a_b_probs"].shape == (1, 5, 2, 2)


@pytest.mark.slow
def test_calibration_of_draws_by_nuts_takes_names_that_begin_alike():
    model = {"class_prior": Proportions.of(K), "a": Bernoulli.of(1, K), "a_b": Transition.of(K)}
    x, labels = np.zeros((1, 6, 1), int), np.zeros((1, 6), int)
    data = Data(
        {
            "class_prior": None,
            "a": jax.tree.map(lambda leaf: leaf[None], Bernoulli.pack(x[0])),
            "a_b": Transition.pack(labels[0], K)[None],
        },
        jnp.ones((1, 6)),
    )
    values = {
        "class_prior": {"probs": jnp.full((1, K), 1 / K)},
        "a": {"probs": jnp.full((1, K, 1), 0.5)},
        "a_b": {"transition": jnp.full((1, K, K), 1 / K)},
    }
    found = nuts_of_all(model, data, values, jax.random.key(0), draws=2, warmup=2, thin=1)[2]
    assert np.isfinite(found).all()


def separated(n_items=40, gap=500.0):
    """Scores so far apart that probabilities under a steep slope underflow in double precision."""
    y = np.arange(n_items) % K
    scores = Calibration.pack(gap * np.eye(K)[y])
    labels = np.where(np.arange(n_items) % 7 == 0, (y + 1) % K, y)
    model = {"class_prior": Calibration.of(K), "labels": SymmetricTransition.of(K)}
    parts = {"class_prior": scores, "labels": SymmetricTransition.pack(labels, K)}
    return model, Data(parts, jnp.ones(n_items))


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["calibration", "logistic"])
def test_densities_have_gradients_where_class_probabilities_underflow(prior):
    if prior == "calibration":
        component, data = Calibration.of(K), Calibration.pack(jnp.eye(K))
        values = {"log_slope": jnp.asarray(9.0), "bias": jnp.zeros(K)}
    else:
        component, data = Logistic.of(2, K), Logistic.pack(jnp.eye(2))
        values = {"intercept": jnp.zeros(K), "coef": 2000.0 * jnp.eye(K, 2)}
    assert (component.probs(values, data) == 0).any()
    channel = FixedTransition(prior=jnp.full((K, K), 1 / K))
    parts = {"class_prior": data, "labels": jnp.arange(len(component.probs(values, data)))}
    items = Data(parts, jnp.ones(len(parts["labels"])))

    def density(v):
        model = {"class_prior": component, "labels": channel}
        return logsumexp(item_table(model, items, {"class_prior": v, "labels": {}}), 1).sum()

    # the channel says nothing, so that each item's density is that of a label by chance
    np.testing.assert_allclose(density(values), len(parts["labels"]) * np.log(1 / K))
    gradient = jax.grad(density)(values)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


@pytest.mark.slow
def test_svi_where_the_scores_separate_the_classes():
    model, data = separated()
    fitted = fit(model, data, key=jax.random.key(0))
    tree = quiet(
        sample, fitted, data, jax.random.key(1), method="svi", draws=50, chains=1, steps=300
    )
    assert np.isfinite(tree["posterior"]["noise_matrix"]).all()
    assert np.isfinite(tree["log_likelihood"]["labels"]).all()


@pytest.mark.slow
def test_svi_of_the_default_estimator_on_separated_classes():
    from sklearn.datasets import make_classification

    for seed in (0, 3):
        x, y = make_classification(
            300, 4, n_informative=3, n_redundant=1, n_classes=3, n_clusters_per_class=1,
            class_sep=3.0, random_state=seed,
        )  # fmt: skip
        rng = np.random.default_rng(seed)
        given = np.where(rng.random(300) < 0.2, rng.integers(0, 3, 300), y)
        e = NoisyGaussianNB(random_state=0).fit(x, given)
        tree = quiet(e.posterior, "svi", draws=50, chains=2, steps=300)
        assert np.isfinite(tree["posterior"]["noise_matrix"]).all()
