"""The papers' baselines do what they are compared for, on problems where they can."""

import jax
import numpy as np
import pytest
from baselines import NAL, NLNN, ranked_features, ranked_labels

from nbmodels.datasets import corrupt, flip_noise
from nbmodels.papers import maystre2021

K = 3


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, 900)
    x = rng.normal(np.eye(K)[y] * 4, 1.0)
    rho = flip_noise(K, {(0, 1): 0.3, (1, 2): 0.2}, 0.05)
    return x, y, corrupt(y, rho, rng), rho


@pytest.mark.slow
@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("network", [NLNN, NAL])
def test_networks_learn_the_channel(network, blobs):
    x, y, given, rho = blobs
    names = np.array(["a", "b", "c"])
    e = network(random_state=0).fit(x, names[given])
    assert (e.predict(x) == names[y]).mean() > 0.95
    # nearer to the truth than a channel that is never wrong
    assert np.abs(e.noise_matrix_ - rho).mean() < 0.75 * np.abs(np.eye(K) - rho).mean()
    np.testing.assert_allclose(e.noise_matrix_.sum(0), 1, 1e-5)
    np.testing.assert_allclose(e.predict_proba(x).sum(1), 1)
    again = network(random_state=0).fit(x, names[given])
    np.testing.assert_array_equal(e.predict_proba(x), again.predict_proba(x))


@pytest.mark.slow
def test_ranked_labels_mend_some():
    drawn = maystre2021.simulate(np.random.default_rng(0), M=3000, N=300, K=3, alpha=0.2)
    key = jax.random.key(0)
    x = ranked_features(drawn.edges, key, dim=8, steps=500)
    assert x.shape == (300, 8)
    # items of one class lie closer together than others
    near = x @ x.T
    same = drawn.v[:, None] == drawn.v
    assert near[same].mean() > near[~same].mean() + 0.5 * near.std()
    mended = ranked_labels(drawn.edges, drawn.v_hat, key, dim=8, steps=500)
    assert (mended == drawn.v).mean() > (drawn.v_hat == drawn.v).mean() + 0.03
