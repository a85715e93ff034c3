"""Logistic regression with coefficients of an unknown scale: derivatives, prior, moves."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from nbmodels.class_priors import ScaledLogistic
from nbmodels.core.families import MultivariateT

N, D, K = 60, 3, 3


def drawn():
    rng = np.random.default_rng(0)
    resp = rng.dirichlet(np.ones(K), N) * (rng.random((N, 1)) < 0.8) * 2
    return (jnp.asarray(a) for a in (rng.normal(size=(N, D)), resp, rng.normal(size=(1 + D) * K)))


def test_the_step_follows_the_gradient_and_the_curvature_is_that_of_the_model():
    data, resp, at = drawn()
    prior = ScaledLogistic.of(D, K)
    curvature, natural, weighted, weight = jax.jit(prior.stats)(at, resp, data, jax.random.key(0))

    def expected(at):
        return jnp.sum(resp * prior.log_probs(at, data))

    np.testing.assert_allclose(natural - curvature @ at, jax.jit(jax.grad(expected))(at), atol=1e-8)
    np.testing.assert_allclose(curvature, -jax.jit(jax.hessian(expected))(at), atol=1e-3)
    np.testing.assert_allclose(weighted / weight, at)


def test_the_prior_is_a_multivariate_t():
    mean, precision = jnp.arange(3.0), jnp.diag(jnp.array([1.0, 4.0, 0.5]))
    prior = MultivariateT(mean, precision, jnp.asarray(0.25))
    at = jnp.array([1.0, -1.0, 3.0])
    here = MultivariateT(at, precision, jnp.asarray(0.0))
    log_density = -(here.negative_log_prior(prior) + prior.log_normaliser())[0]
    exact = stats.multivariate_t(mean, np.linalg.inv(precision), df=4)
    np.testing.assert_allclose(log_density, exact.logpdf(at), rtol=1e-5)
    keys = jax.random.split(jax.random.key(0), 4000)
    draws = jax.jit(jax.vmap(lambda key: prior.likelihood_params("draw", key)))(keys)
    gap = (draws - mean) * jnp.sqrt(jnp.diag(precision))
    assert stats.kstest(gap.ravel()[::3], stats.t(4).cdf).pvalue > 0.01


def test_the_touching_normal_lies_below_and_has_the_same_slope():
    prior = ScaledLogistic.of(D, K).prior
    rng = np.random.default_rng(1)
    at, other = (jnp.asarray(rng.normal(size=(1 + D) * K)) for _ in range(2))

    def penalty(x):
        return MultivariateT(x, prior.precision, prior.tail).negative_log_prior(prior)[0]

    own = prior.precision_at(at)
    np.testing.assert_allclose(jax.grad(penalty)(at), own @ at, rtol=1e-5)
    assert penalty(other) - penalty(at) <= 0.5 * (other @ own @ other - at @ own @ at)
