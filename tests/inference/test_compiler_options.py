"""Programs of small arguments are compiled without optimisations, those of large ones with them."""

import jax
import numpy as np
import pytest

from inference import compilation


@pytest.fixture
def called(monkeypatch):
    """Levels of optimisation of the programs that were run; None is the compiler's own."""
    levels = []

    def jit(function, compiler_options=None, **options):
        def run(*args, **kwargs):
            levels.append((compiler_options or {}).get("xla_backend_optimization_level"))
            return compiled(*args, **kwargs)

        compiled = jitted(function, compiler_options=compiler_options, **options)
        return run

    jitted = jax.jit
    monkeypatch.setattr(jax, "jit", jit)
    monkeypatch.setattr(
        compilation, "loop_jit", lambda function, **options: jit(function, **options)
    )
    return levels


@pytest.mark.parametrize(("device", "cpu"), [(None, False), ("cpu", True), (0, True)])
def test_the_default_device_decides(monkeypatch, device, cpu):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with jax.default_device(jax.devices("cpu")[0] if device == 0 else device):
        assert compilation.on_cpu() == cpu


def test_small_programs_are_not_optimised(called):
    program = compilation.host_jit(
        lambda pair, times: times * pair[0].sum(), static_argnames="times"
    )
    few, many = np.ones(600_000, np.float32), np.ones(400_001, np.float32)
    assert float(program((few, np.ones(3)), times=2)) == 1_200_000
    assert float(program((few, many), times=2)) == 1_200_000
    assert called == ([0, None] if jax.default_backend() == "cpu" else [None, None])
