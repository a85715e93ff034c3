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


def stats(prior, *args):
    """Compiled anew each time: the sizes of blocks are constants of the program."""
    return jax.jit(lambda *args: prior.stats(*args))(*args)


def test_the_step_follows_the_gradient():
    data, resp, at = map(jnp.asarray, drawn())
    prior = Calibration.of(K)
    curvature, natural = stats(prior, at, resp, data)

    def expected(at):
        return jnp.sum(resp * prior.log_probs(at, data))

    np.testing.assert_allclose(natural - curvature @ at, jax.jit(jax.grad(expected))(at), atol=1e-8)
    assert np.linalg.eigvalsh(curvature).min() > 0


@pytest.mark.parametrize("rows", [N, 12])
def test_sums_by_blocks_are_those_of_all_rows(rows, monkeypatch):
    data, resp, at = (jnp.asarray(x) for x in drawn())
    data, resp = data[:rows], resp[:rows]
    whole = stats(Calibration.of(K), at, resp, data)
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
    for one, other in zip(stats(Calibration.of(K), at, resp, data), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-10)
    assert max(sizes) < rows


def test_the_gain_of_a_small_step_is_no_rounding_error():
    """In single precision, where a difference of two sums is half a per cent off."""
    data, resp, at = drawn()
    step = np.r_[1e-5, np.full(K, 0.0)]
    gain = jax.jit(calibration._gain)
    exact = gain(*map(jnp.asarray, (at, step, resp, data)))
    single = (jnp.asarray(x.astype(np.float32)) for x in (at, step, resp, data))
    assert abs(float(exact)) > 0
    np.testing.assert_allclose(float(gain(*single)), float(exact), rtol=1e-4)


@pytest.fixture
def strided(monkeypatch):
    """Every fourth of 4,096 rows shows pairs of six classes."""
    monkeypatch.setattr(calibration, "MANY_CLASSES", 2)
    monkeypatch.setattr(calibration, "_PAIRED_ROWS", 1_024)
    assert calibration._stride(4_096, 6) == 4
    rng = np.random.default_rng(1)
    true = rng.integers(6, size=4_096)
    scores = 2.0 * np.eye(6)[true] + rng.normal(size=(4_096, 6)) * [1, 1, 1, 2, 2, 2]
    noisy = np.where(rng.random(4_096) < 0.2, rng.integers(6, size=4_096), true)
    return Calibration.pack(scores), jnp.asarray(0.9 * np.eye(6)[noisy] + 0.1 / 6)


def test_pairs_of_some_rows_keep_gradient_and_diagonal(strided, monkeypatch):
    data, resp = strided
    at, prior = jnp.asarray(np.r_[0.1, np.linspace(-0.5, 0.5, 6)]), Calibration.of(6)
    curvature, natural = stats(prior, at, resp, data)
    monkeypatch.setattr(calibration, "MANY_CLASSES", 100)
    whole, exact = stats(prior, at, resp, data)
    np.testing.assert_allclose(natural - curvature @ at, exact - whole @ at, atol=1e-7)
    np.testing.assert_allclose(np.diag(curvature), np.diag(whole), rtol=1e-12)
    assert np.linalg.eigvalsh(curvature).min() > 0
    gap = np.abs(curvature - whole) / np.sqrt(np.outer(np.diag(whole), np.diag(whole)))
    assert 0 < gap.max() < 0.1, "another curvature, and nearly the same"


def test_pairs_of_some_rows_lead_to_the_same_place(strided, monkeypatch):
    data, resp = strided
    prior = Calibration.of(6)

    def rest():
        @jax.jit
        def step(q):
            return prior.update(prior.stats(q.mean, resp, data), "map")

        q = prior.prior
        for _ in range(30):
            q = step(q)
        # the prior alone says something of a constant
        return np.asarray(q.mean) - np.r_[0, np.full(6, q.mean[1:].mean())]

    found = rest()
    monkeypatch.setattr(calibration, "MANY_CLASSES", 100)
    np.testing.assert_allclose(found, rest(), atol=1e-5)


def test_a_class_that_no_row_of_some_shows_keeps_a_curvature(strided):
    data, resp = strided
    resp = resp.at[::4, 5].set(0)
    at = jnp.asarray(np.r_[0.1, np.zeros(5), -800.0])  # its predictions are zero
    curvature, _ = stats(Calibration.of(6), at, resp, data)
    assert np.isfinite(curvature).all()
    assert curvature[6, 6] > 0
