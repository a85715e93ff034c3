"""Settings of JAX that hold for one thread hold for those that it starts, too."""

import jax
import numpy as np

from inference import threads


def test_precision_and_device_are_the_callers(monkeypatch):
    monkeypatch.setattr(threads, "_n_cores", lambda: 2)
    device = jax.devices("cpu")[0]

    def settings(_):
        c = jax.config
        return c.jax_enable_x64, c.jax_default_device, c.jax_default_matmul_precision

    with jax.enable_x64(False), jax.default_device(device), jax.default_matmul_precision("highest"):
        found = list(threads.in_threads(settings, range(4), reads=np.ones(1), compiled=True))
    assert found == 4 * [(False, device, "highest")]
