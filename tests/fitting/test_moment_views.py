"""Spectral starts use the moment views of discrete emissions, whatever they are and are called."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zoo

from nbmodels.channels import Transition
from nbmodels.class_priors import Proportions
from nbmodels.core import model as m
from nbmodels.core.roles import Emission
from nbmodels.emissions import Bernoulli, Categorical, DiagonalGaussian, Multinomial
from nbmodels.errors import DataError
from nbmodels.fitting import init_spectral

K, N = 3, 2000
DISCRETE = {"bernoulli", "multinomial", "categorical"}


@pytest.mark.slow
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", zoo.EMISSIONS)
def test_means_are_read_back(name, missing):
    """Exact means of a view are the parameters that they come from."""
    case = zoo.build(name, n_items=400, missing=missing and name != "multinomial")
    emission = case.model[name]
    assert isinstance(emission, Emission)
    view = emission.moment_view(case.data.parts[name])
    assert (view is None) == (name not in DISCRETE)
    if view is None:
        return
    read = zoo.random_likelihood_params(case.model, jax.random.key(1))[name]
    probs = np.exp(read[1] if name == "bernoulli" else read)
    assert view.unit.shape == probs.shape[:1]
    assert len(view.scale) == view.matrix.shape[0] == 400
    weights = jnp.ones(400)
    if missing and name == "bernoulli":
        hidden = case.data.parts[name].missing
        probs_seen = probs * (1 - np.asarray(hidden.transpose_times(weights[:, None])) / 400)
    else:
        probs_seen = probs
    pooled = jnp.asarray(probs_seen.mean(1, keepdims=True))
    found = view.likelihood_params(jnp.asarray(probs_seen), pooled, weights)
    away = probs > 0.03 * probs.mean(1, keepdims=True)  # what is rarer is moved on purpose
    mine = np.exp(found[1] if name == "bernoulli" else found)
    np.testing.assert_allclose(np.where(away, mine, 0), np.where(away, probs, 0), rtol=0.05)


def test_names_of_emissions_do_not_matter():
    """Emissions named against the alphabet were given each other's means."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, N)
    coins = rng.uniform(0.1, 0.9, (K, 8))
    words = rng.dirichlet(np.full(12, 0.5), K)
    symbols = rng.dirichlet(np.ones(3), (K, 5))
    raw = {
        "bits": (rng.random((N, 8)) < coins[y]) * 1.0,
        "words": np.stack([rng.multinomial(40, words[k]) for k in y]) * 1.0,
        "symbols": np.stack([[rng.choice(3, p=p) for p in symbols[k]] for k in y]),
    }
    labels = np.where(rng.random(N) < 0.3, rng.integers(0, K, N), y)
    emissions = {
        "bits": Bernoulli.of(8, K),
        "words": Multinomial.of(12, K),
        "symbols": Categorical.of((3,) * 5, K),
    }

    def right(names):
        model = {m.PRIOR: Proportions.of(K), "labels": Transition.of(K)}
        parts = {m.PRIOR: None, "labels": Transition.pack(labels, K)}
        for of, name in names.items():
            model[name], parts[name] = emissions[of], emissions[of].pack(raw[of])
        data = m.Data(parts, jnp.ones(N))
        q = init_spectral.start(model, data, jax.random.key(0), "map", K)
        resp = m.posterior(model, m.likelihood_params(model, q, "map"), data).resp
        return np.mean(np.argmax(resp, 1) == y)

    assert right({"bits": "a", "words": "b", "symbols": "c"}) > 0.97
    assert right({"bits": "c", "words": "b", "symbols": "a"}) > 0.97
    assert right({"words": "z", "symbols": "bits", "bits": "y"}) > 0.97


def test_real_features_have_no_moments():
    rng = np.random.default_rng(0)
    real = DiagonalGaussian.of(3, K)
    model = {m.PRIOR: Proportions.of(K), "labels": Transition.of(K), "real": real}
    labels = Transition.pack(rng.integers(0, K, 30), K)
    parts = {m.PRIOR: None, "labels": labels, "real": real.pack(rng.normal(size=(30, 3)))}
    data = m.Data(parts, jnp.ones(30))
    with pytest.raises(DataError, match="init: 'moments' needs 2 groups of discrete features"):
        init_spectral.start(model, data, jax.random.key(0), "map", K)
