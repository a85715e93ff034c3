"""Programs of small arguments are compiled quickly, those of large ones to run fast."""

import jax
import numpy as np
import pytest

from inference import compilation


@pytest.fixture
def called(monkeypatch):
    """Compiler options of the programs that were run."""
    programs = []

    def jit(function, compiler_options=None, **options):
        def run(*args, **kwargs):
            programs.append(compiler_options or {})
            return compiled(*args, **kwargs)

        compiled = jitted(function, compiler_options=compiler_options, **options)
        return run

    jitted = jax.jit
    monkeypatch.setattr(jax, "jit", jit)
    return programs


@pytest.mark.parametrize(("device", "cpu"), [(None, False), ("cpu", True), (0, True)])
def test_the_default_device_decides(monkeypatch, device, cpu):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with jax.default_device(jax.devices("cpu")[0] if device == 0 else device):
        assert compilation.on_cpu() == cpu


FEW, MANY = np.ones(600_000, np.float32), np.ones(400_001, np.float32)


def test_small_programs_are_not_optimised(called):
    program = compilation.host_jit(
        lambda pair, times: times * pair[0].sum(), static_argnames="times"
    )
    assert float(program((FEW, np.ones(3)), times=2)) == 1_200_000
    assert float(program((FEW, MANY), times=2)) == 1_200_000
    levels = [one.get("xla_backend_optimization_level") for one in called]
    assert levels == ([0, None] if jax.default_backend() == "cpu" else [None, None])


def test_loops_over_large_arrays_have_the_kernels_that_run_faster(called, monkeypatch):
    monkeypatch.setattr(compilation, "_PLAIN_KERNELS", {"xla_cpu_enable_fast_math": False})
    program = compilation.loop_jit(lambda a, b: a.sum() + b.sum())
    for more in (np.ones(3), MANY):
        assert float(program(FEW, more)) == 600_000 + len(more)
    plain = {"xla_cpu_enable_fast_math": False} if jax.default_backend() == "cpu" else {}
    assert called == [plain, {}]
