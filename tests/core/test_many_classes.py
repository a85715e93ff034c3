"""Sums for many classes are taken in another order than those for few, and are the same."""

import jax
import jax.numpy as jnp
import numpy as np

from inference.blocks import MANY_CLASSES, rows_of_block
from nbmodels.channels import Transition
from nbmodels.channels.transition import count_labels, pack_labels
from nbmodels.class_priors import Calibration
from nbmodels.core import model as models
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR, Data
from nbmodels.emissions import DiagonalGaussian


def test_labels_are_counted_as_by_a_product_with_indicators():
    k, rng = MANY_CLASSES, np.random.default_rng(0)
    resp = rng.dirichlet(np.ones(k), 300)
    labels = pack_labels(rng.integers(-1, k, 300), k)  # some missing
    wanted = resp.T @ np.asarray(jax.nn.one_hot(labels, k))
    np.testing.assert_allclose(count_labels(resp, labels, k), wanted, rtol=1e-5, atol=1e-6)


def test_distances_are_the_same_block_by_block():
    k, rng = MANY_CLASSES, np.random.default_rng(0)
    x = rng.normal(size=(2_048, 3))
    assert rows_of_block(len(x), k) < len(x)
    emission = DiagonalGaussian.of(3, k)

    @jax.jit
    def begin(resp, data):
        return emission.likelihood_params(emission.start(resp, data, "map"), "map")

    @jax.jit
    def table(data):
        return emission.log_likelihood(read, data).table

    read = begin(np.eye(k)[rng.integers(k, size=len(x))], emission.pack(x))
    whole, odd = table(emission.pack(x)), table(emission.pack(x[:999]))  # one block
    np.testing.assert_allclose(whole[:999], odd, rtol=1e-5, atol=1e-5)


def test_responsibilities_are_the_same_block_by_block():
    k, rng = MANY_CLASSES, np.random.default_rng(0)
    labels, scores = rng.integers(-1, k, 2_048), rng.normal(0, 3, (2_048, k))
    model = {PRIOR: Calibration.of(k), "labels": Transition.of(k)}

    @jax.jit
    def posterior(data):
        read = models.likelihood_params(model, {n: c.prior for n, c in model.items()}, "vb")
        return models.posterior(model, read, data)

    def found(rows):
        parts = {PRIOR: Calibration.pack(scores[rows]), "labels": pack_labels(labels[rows], k)}
        powers = {"labels": jnp.full(len(labels[rows]), 0.5)}
        return posterior(Data(parts, jnp.ones(len(labels[rows])), powers))

    whole, odd = found(slice(None)), found(slice(999))
    np.testing.assert_allclose(whole.resp[:999], odd.resp, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(whole.log_likelihood[:999], odd.log_likelihood, rtol=1e-5)


def test_a_step_is_an_expectation_and_a_maximisation():
    """Rows that count differently, or not at all, block by block."""
    k, rng = MANY_CLASSES, np.random.default_rng(0)
    labels, scores = rng.integers(-1, k, 2_048), rng.normal(0, 3, (2_048, k))
    model = {PRIOR: Calibration.of(k), "labels": Transition.of(k)}
    parts = {PRIOR: Calibration.pack(scores), "labels": pack_labels(labels, k)}
    data = Data(parts, jnp.asarray(rng.integers(0, 3, 2_048), float))

    @jax.jit
    def begun(data):
        return models.start(model, models.initial_responsibilities(model, data), data, "map")

    @jax.jit
    def one_by_one(begin, data):
        read = models.likelihood_params(model, begin, "map")
        resp, _ = models.posterior(model, read, data)
        objective = models.objective(model, begin, data, "map")
        return models.update(model, models.stats(model, read, resp, data), "map"), objective

    begin = begun(data)
    found, value = jax.jit(models.step("map"))(begin, (model, data))
    wanted, objective = one_by_one(begin, data)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), found, wanted)
    whole = value.value + models.constant(model, data, "map").value
    np.testing.assert_allclose(whole, objective, rtol=1e-6)


def test_few_classes_are_one_block():
    assert rows_of_block(4_096, MANY_CLASSES - 1) == 4_096
    assert rows_of_block(4_095, MANY_CLASSES) == 4_095, "odd numbers of rows have no blocks"


def test_many_scores_are_centred_where_they_are():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(8_192, 130)).astype(np.float32)
    with computing(False):
        there, host = Calibration.pack(jnp.asarray(scores)), Calibration.pack(scores)
    assert there.dtype == host.dtype == np.float32
    np.testing.assert_allclose(there, host, atol=1e-6)
