"""Variational EM: users' proportions integrated over, all other parameters at their modes."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import dirichlet

from nbmodels.channels import FixedTransition, Transition
from nbmodels.class_priors import FixedProportions, Proportions
from nbmodels.core import model as models
from nbmodels.core.model import Data
from nbmodels.emissions import Users
from nbmodels.fitting import em
from nbmodels.fitting.iterations import Posteriors, Responsibilities, iteration

K, ALPHA, WEIGHT = 2, 0.4, 0.8
EDGES = np.array(
    [[1, 1, 0, 0], [1, 0, 0, 1], [2, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 2], [0, 1, 1, 0]]
)
LABELS = np.array([0, 0, 1, 1, 1, 0])


def small(prior, channel):
    users = Users.of(EDGES.shape[1], K, ALPHA)
    users = replace(users, weight=WEIGHT, integrated=True)
    parts = {"class_prior": None, "labels": Transition.pack(LABELS, K), "users": Users.pack(EDGES)}
    model = {"class_prior": prior, "labels": channel, "users": users}
    return model, Data(parts, jnp.ones(len(LABELS)))


def fitted(model, data, rule="map", **options):
    key = jax.random.key(0)
    return em.fit(model, data, rule=rule, key=key, tol=1e-12, **options)


def log_density(found):
    """Log-posterior density of shares and noise, classes summed and users integrated out."""
    shares = np.exp(np.asarray(found.point_of("class_prior"), float))
    noise = np.asarray(found.transitions["labels"], float)

    def joint(y):
        counts = WEIGHT * EDGES.T @ np.eye(K)[y] + ALPHA
        users = (gammaln(counts).sum(1) - gammaln(counts.sum(1))).sum()
        users -= len(counts) * (K * gammaln(ALPHA) - gammaln(K * ALPHA))
        return users + np.log(shares[y] * noise[y, LABELS]).sum()

    classes = map(np.array, itertools.product(range(K), repeat=len(LABELS)))
    of_shares = np.asarray(found.model["class_prior"].prior.concentration, float)
    of_noise = np.asarray(found.model["labels"].prior.concentration, float)
    priors = [dirichlet.logpdf(shares / shares.sum(), of_shares)]
    priors += [dirichlet.logpdf(p / p.sum(), a) for p, a in zip(noise, of_noise, strict=True)]
    return logsumexp([joint(y) for y in classes]) + sum(priors)


@pytest.mark.parametrize("accelerate", [False, True])
def test_the_objective_climbs_and_bounds_the_log_density(accelerate):
    model, data = small(Proportions.of(K), Transition.of(K))
    found = fitted(model, data, accelerate=accelerate)
    assert np.all(np.diff(found.trace) > -1e-10)
    objective = jax.jit(models.objective, static_argnames="rule")
    at_end = objective(em.with_arrays(found.model), found.params, data, rule="map")
    assert found.objective == pytest.approx(float(at_end), rel=1e-10)
    exact = log_density(found)
    assert exact - 1.5 < found.objective < exact


def test_where_all_else_is_known_it_is_variational_bayes():
    known = FixedTransition(prior=jnp.array([[0.8, 0.2], [0.3, 0.7]]))
    model, data = small(FixedProportions(prior=jnp.array([0.4, 0.6])), known)
    one, other = (fitted(model, data, rule) for rule in ("map", "vb"))
    np.testing.assert_allclose(one.resp, other.resp, atol=1e-6)
    assert one.objective == pytest.approx(other.objective, rel=1e-9)
    np.testing.assert_allclose(one.point_of("users"), other.point_of("users"), atol=1e-5)


def test_plain_steps_carry_responsibilities():
    model, data = small(Proportions.of(K), Transition.of(K))
    assert iteration([model], [data], "map", True) == Responsibilities("map", ("users",))
    modes = {**model, "users": replace(model["users"], integrated=False)}
    assert iteration([modes], [data], "map", True) == Posteriors("map")
    one, other = (fitted(model, data, accelerate=fast) for fast in (False, True))
    np.testing.assert_allclose(one.resp, other.resp, atol=1e-4)
