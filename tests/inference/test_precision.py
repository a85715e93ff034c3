"""Single precision gives the labels and posteriors of double precision, within 1e-4.

Under ``"vb"`` within 1e-3: a class's expected log-normaliser is rounded once and read by every word
of a document, 600 times here.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse

from nbmodels.channels import Transition
from nbmodels.class_priors import Proportions
from nbmodels.core import model as models
from nbmodels.core.model import Data
from nbmodels.emissions import Bernoulli, Multinomial, Users
from nbmodels.fitting.em import em, fit

N, D, K = 2000, 3000, 20
KEY = jax.random.key(0)


def documents(length, share=0.05):
    """Long ones of topics that share most words: thousands of nats, few items certain."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, N)
    topics = rng.dirichlet(np.full(D, 0.3), K)
    topics = share * topics + (1 - share) * rng.dirichlet(np.full(D, 0.5))
    counts = np.stack([rng.multinomial(length, topics[k]) for k in y])
    return counts, np.where(rng.random(N) < 0.3, rng.integers(0, K, N), y)


def encoded(emission, x, noisy, dtype):
    with jax.enable_x64(dtype == np.float64):
        model = {"class_prior": Proportions.of(K), "labels": Transition.of(K), "x": emission(K)}
        labels = jnp.asarray(noisy, jnp.int32)
        parts = {"class_prior": None, "labels": labels, "x": model["x"].pack(x)}
        return model, Data(parts, jnp.ones(N))


def posterior(params, model, data, rule, dtype):
    with jax.enable_x64(dtype == np.float64):
        floating = jnp.zeros(()).dtype
        cast = jax.tree.map(lambda p: jnp.asarray(np.asarray(p), floating), params)
        resp = jax.jit(
            lambda q: models.posterior(model, models.likelihood_params(model, q, rule), data).resp
        )(cast)
        assert resp.dtype == dtype
        return np.asarray(resp, float)


CASES = {
    "bernoulli": (
        partial(Bernoulli.of, D),
        lambda c: sparse.csr_array((c > 0).astype(float)),
        (600, 0.02),
    ),
    "multinomial": (partial(Multinomial.of, D), sparse.csr_array, (2000,)),
    "users": (partial(Users.of, D), sparse.csr_array, (600,)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rule"),
    [("bernoulli", "map"), ("bernoulli", "vb"), ("multinomial", "map"), ("users", "vb")],
)
def test_posteriors_agree_at_the_same_parameters(name, rule):
    emission, read, how = CASES[name]
    counts, noisy = documents(*how)
    x = read(counts)
    double = encoded(emission, x, noisy, np.float64)
    with jax.enable_x64(True):
        params = models.start(double[0], models.initial_responsibilities(*double), double[1], rule)
    wanted = posterior(params, *double, rule, np.float64)
    single = encoded(emission, x, noisy, np.float32)
    found = posterior(params, *single, rule, np.float32)
    assert np.sum(wanted.max(1) < 0.99) > 3  # not all are certain, whatever the rounding
    atol = 1e-4 if rule == "map" else 1e-3
    np.testing.assert_allclose(found, wanted, atol=atol)
    ranked = np.sort(wanted, 1)
    clear = ranked[:, -1] - ranked[:, -2] > 2 * atol
    np.testing.assert_array_equal(found.argmax(1)[clear], wanted.argmax(1)[clear])


@pytest.mark.slow
def test_whole_fits_agree():
    counts, noisy = documents(1000)
    x = sparse.csr_array(counts)
    found = {}
    for dtype in (np.float64, np.float32):
        model, data = encoded(partial(Multinomial.of, D), x, noisy, dtype)
        with jax.enable_x64(dtype == np.float64):
            found[dtype] = fit(model, data, key=KEY, tol=1e-7)
    double, single = found.values()
    assert single.resp.dtype == np.float32
    assert single.objective == pytest.approx(double.objective, rel=1e-6)
    assert np.mean(double.resp.argmax(1) == single.resp.argmax(1)) > 0.999
    assert np.quantile(np.abs(double.resp - single.resp).max(1), 0.99) < 1e-3


def test_products_of_em_are_not_rounded_further():
    """As GPUs do by default, where a product does not say otherwise."""
    counts, noisy = documents(50)
    model, data = encoded(partial(Bernoulli.of, D), (counts > 0).astype(float), noisy, np.float32)
    with jax.enable_x64(False):
        program = str(jax.make_jaxpr(em)(model, data))
    assert program.count("dot_general[") == program.count("Precision.HIGHEST, Precision.HIGHEST")
    assert "dot_general[" in program
