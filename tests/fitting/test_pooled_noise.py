"""noise='pooled': a full matrix, drawn to one error rate as far as the classes are alike."""

import jax.numpy as jnp
import numpy as np
import pytest

from nbmodels import JointNB, NoisyBernoulliNB, NoisyLogisticRegression
from nbmodels.channels import PooledTransition
from nbmodels.core.families import Dirichlet
from nbmodels.datasets import corrupt, flip_noise, uniform_noise
from nbmodels.errors import DataError


def world(k, n, noise, seed=0, d=60):
    """Binary features that tell most classes apart, classes, and noisy labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    x = (rng.random((n, d)) < (rng.random((k, d)) < 0.5)[y] * 0.5 + 0.25).astype(int)
    return x, y, corrupt(y, noise, rng)


def error(e, noise):
    return np.abs(e.noise_matrix_ - noise).sum(0).mean()


def fits(x, y, estimator=NoisyBernoulliNB, **more):
    return {
        noise: getattr(estimator, "published", estimator)(noise=noise, random_state=0, **more).fit(
            x, y
        )
        for noise in ("full", "pooled", "symmetric")
    }


@pytest.mark.slow
@pytest.mark.parametrize("training", ["joint", "cross_fit"])
@pytest.mark.filterwarnings("ignore::nbmodels.IdentifiabilityWarning")
@pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")
def test_few_labels_of_many_classes_give_about_one_error_rate(training):
    k = 12
    noise = uniform_noise(k, 0.3)
    found = fits(*world(k, 600, noise)[::2], training=training)
    off = {
        name: np.abs(e.noise_matrix_ - found["symmetric"].noise_matrix_).max()
        for name, e in found.items()
    }
    assert off["pooled"] < off["full"] / 3
    assert error(found["pooled"], noise) < error(found["full"], noise) / 2
    strength = found["pooled"].fit_.model["labels"].prior.concentration.sum(1)
    assert strength.min() > 100


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")  # on one error rate
@pytest.mark.parametrize("training", ["joint", "cross_fit"])
def test_confusions_of_pairs_stay_what_they_are(training):
    k = 6
    noise = flip_noise(k, {(j, (j + 1) % k): 0.3 for j in range(k)})
    found = fits(*world(k, 1200, noise)[::2], training=training)
    assert error(found["pooled"], noise) < error(found["full"], noise) + 0.02
    assert error(found["pooled"], noise) < error(found["symmetric"], noise) / 3


def test_the_prior_is_one_number_right_and_one_wrong():
    rng = np.random.default_rng(0)
    k, right, wrong = 40, 30.0, 0.5
    truth = np.full((k, k), wrong)
    np.fill_diagonal(truth, right)
    counts = np.array([rng.multinomial(400, rng.dirichlet(row)) for row in truth])
    one = PooledTransition.of(k)
    for rule, extra in (("vb", 0.0), ("map", 1.0)):
        q = Dirichlet(one.prior.concentration + jnp.asarray(counts))
        learned = np.asarray(one.pooled(q, rule).prior.concentration) - extra
        assert len(np.unique(learned)) == 2
        # forty rows know the logarithms to about 0.15
        assert abs(np.log(learned[0, 0] / right)) < 0.5
        assert abs(np.log(learned[0, 1] / wrong)) < 0.3
        order = np.roll(np.arange(k), 1)
        renamed = one.pooled(Dirichlet(q.concentration[order][:, order]), rule)
        np.testing.assert_allclose(renamed.prior.concentration - extra, learned, rtol=1e-4)


def test_rows_alike_are_pooled_wholly():
    counts = np.full((5, 5), 10.0)
    np.fill_diagonal(counts, 160.0)
    one = PooledTransition.of(5)
    prior = one.pooled(Dirichlet(one.prior.concentration + jnp.asarray(counts)), "vb").prior
    np.testing.assert_allclose(prior.mean, counts / counts.sum(1), atol=0.01)
    assert prior.concentration.sum(1).min() > 100  # a row has 200 labels of its own


@pytest.mark.slow
def test_other_estimators():
    noise = uniform_noise(4, 0.3)
    x, _, noisy = world(4, 400, noise)
    plain = NoisyLogisticRegression(noise="pooled", random_state=0).fit(x, noisy)
    source = {"x": NoisyBernoulliNB.published()}
    joint = JointNB(source, noise="pooled", random_state=0, solver="map").fit({"x": x}, noisy)
    alone = NoisyBernoulliNB.published(noise="pooled", random_state=0).fit(x, noisy)
    assert error(alone, noise) < 0.25
    assert error(plain, noise) < 0.25
    assert len(np.unique(plain.fit_.model["labels"].prior.concentration)) == 2
    np.testing.assert_allclose(joint.noise_matrix_, alone.noise_matrix_, atol=1e-4)


def test_maximum_likelihood_has_no_prior():
    with pytest.raises(DataError, match="noise: method 'ml'"):
        NoisyBernoulliNB(noise="pooled", solver="ml").fit([[0], [1]], [0, 1])
