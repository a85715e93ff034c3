"""Compiler options of large programs, started from the host and never inlined into another."""

from __future__ import annotations

from functools import partial

import jax

#: Up to jax 0.10 a CPU's kernels take twice as long to compile with these emitters, and run no
#: faster; later releases have no others.
_PLAIN_KERNELS = {"xla_cpu_use_fusion_emitters": False}

#: ``jax.jit`` for a large program that is never part of another.
host_jit = partial(
    jax.jit, compiler_options=None if jax.__version_info__ >= (0, 11) else _PLAIN_KERNELS
)
