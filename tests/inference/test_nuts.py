"""NUTS on NumPyro programs: where chains begin."""

import jax
import numpy as np
import pytest

from inference.nuts import nuts
from nbmodels.papers import zeng2022


@pytest.mark.slow
def test_chains_begin_at_arrays_of_numpy():
    """The program indexes its sites by the label that is summed out, a tracer."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (20, 3)), np.arange(20) % 2
    start = {"pi": np.full(2, 0.5), "p": np.full((3, 2), 0.5)}
    sizes = {"draws": 2, "warmup": 2, "chains": 1}
    samples, _ = nuts(lambda: zeng2022.binary(X, y, 2), jax.random.key(0), start=start, **sizes)
    assert samples["rho"].shape == (1, 2, 2, 2)
    assert np.isfinite(samples["p"]).all()
