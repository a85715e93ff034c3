"""Newton steps of the calibration: derivatives, sums by blocks of rows, and small steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from inference import blocks
from nbmodels.class_priors import Calibration, calibration

N, K = 96, 5


def drawn(dtype=float):
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 20, (N, K))
    resp = rng.dirichlet(np.ones(K), N) * (rng.random((N, 1)) < 0.8) * 2
    at = np.r_[-2.0, rng.normal(0, 0.5, K)]
    return Calibration.centred(scores).astype(dtype), resp.astype(dtype), at.astype(dtype)


def test_the_step_follows_the_gradient():
    data, resp, at = map(jnp.asarray, drawn())
    prior = Calibration.of(K)
    curvature, natural = prior.stats(at, resp, data)

    def expected(at):
        return jnp.sum(resp * prior.log_probs(at, data))

    np.testing.assert_allclose(natural - curvature @ at, jax.grad(expected)(at), atol=1e-8)
    assert np.linalg.eigvalsh(curvature).min() > 0


@pytest.mark.parametrize("rows", [N, 12])
def test_sums_by_blocks_are_those_of_all_rows(rows, monkeypatch):
    data, resp, at = (jnp.asarray(x) for x in drawn())
    data, resp = data[:rows], resp[:rows]
    whole = Calibration.of(K).stats(at, resp, data)
    sizes = []

    def spied(of, resp, data):
        def counted(resp, data):
            sizes.append(len(resp))
            return of(resp, data)

        return summed(counted, resp, data)

    summed = calibration._summed
    monkeypatch.setattr(calibration, "_summed", spied)
    monkeypatch.setattr(blocks, "MANY_CLASSES", 2)
    monkeypatch.setattr(blocks, "_LEAST", 2)
    monkeypatch.setattr(blocks, "_CELLS", 8 * K - 1)
    for one, other in zip(Calibration.of(K).stats(at, resp, data), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-10)
    assert max(sizes) < rows


def test_the_gain_of_a_small_step_is_no_rounding_error():
    """In single precision, where a difference of two sums is half a per cent off."""
    data, resp, at = drawn()
    step = np.r_[1e-5, np.full(K, 0.0)]
    exact = calibration._gain(*map(jnp.asarray, (at, step, resp, data)))
    single = (jnp.asarray(x.astype(np.float32)) for x in (at, step, resp, data))
    assert abs(float(exact)) > 0
    np.testing.assert_allclose(float(calibration._gain(*single)), float(exact), rtol=1e-4)
