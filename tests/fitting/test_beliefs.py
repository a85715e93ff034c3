"""What other sources know of the items, of which a share may be void."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from nbmodels.channels import FixedTransition
from nbmodels.class_priors import FixedProportions
from nbmodels.core import model as models
from nbmodels.core.families import Dirichlet
from nbmodels.core.model import Data
from nbmodels.fitting import em
from nbmodels.fitting.beliefs import BELIEFS, ContaminatedBeliefs, contaminated

N, K = 800, 3
SHARES = np.array([0.5, 0.3, 0.2])
NOISE = 0.1 + 0.7 * np.eye(K)


def drawn(void, seed=0):
    """Labels, and beliefs of which a share is drawn for items of no class in particular."""
    rng = np.random.default_rng(seed)
    y = rng.choice(K, N, p=SHARES)
    labels = np.array([rng.choice(K, p=NOISE[c]) for c in y])
    about = np.where(rng.random(N) < void, rng.choice(K, N, p=SHARES), y)
    said = np.array([rng.choice(K, p=NOISE[c]) for c in about])
    logs = np.log(NOISE[:, said].T)
    return y, labels, logs - logsumexp(logs + np.log(SHARES), axis=1, keepdims=True)


def fitted(labels, logs, rule="map"):
    model = {
        "class_prior": FixedProportions(prior=jnp.asarray(SHARES)),
        "labels": FixedTransition(prior=jnp.asarray(NOISE)),
        BELIEFS: ContaminatedBeliefs(prior=Dirichlet(jnp.array([4.0, 1.0]))),
    }
    packed = jnp.asarray(np.stack([logs, np.full_like(logs, 1 / K)], 1))
    parts = {"class_prior": None, "labels": FixedTransition.pack(labels, K), BELIEFS: packed}
    data = Data(parts, jnp.ones(N))
    return em.fit(model, data, rule=rule, key=jax.random.key(0), tol=1e-10), data


@pytest.mark.parametrize("void", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("rule", ["map", "vb"])
def test_the_share_that_is_void_is_found(void, rule):
    _, labels, logs = drawn(void)
    found, _ = fitted(labels, logs, rule)
    assert abs(np.exp(found.point_of(BELIEFS))[1] - void) < 0.09
    assert np.all(np.diff(found.trace) > -1e-9)


def test_the_likelihood_is_that_of_a_mixture():
    _, labels, logs = drawn(0.3)
    found, data = fitted(labels, logs)
    holds, void = np.exp(np.asarray(found.point_of(BELIEFS), float))
    table = SHARES * NOISE[:, labels].T * (holds * np.exp(logs) + void)
    np.testing.assert_allclose(found.log_likelihood, np.log(table.sum(1)), rtol=1e-5)
    np.testing.assert_allclose(found.resp, table / table.sum(1, keepdims=True), atol=1e-5)
    at_end = models.objective(em.with_arrays(found.model), found.params, data, "map")
    assert found.objective == pytest.approx(float(at_end), rel=1e-9)


def test_other_sources_are_left_as_they_are():
    assert contaminated({"labels": 1}) == {"labels": 1}
