"""Compiler options of programs that are started from the host and never inlined into another."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax

from inference.executables import Program

P = ParamSpec("P")
R = TypeVar("R")

#: Up to jax 0.10 a CPU's kernels take twice as long to compile with these emitters. That pays where
#: they run on large arrays, those of 300 classes two to three times as fast. Later releases have no
#: others.
_PLAIN_KERNELS: dict[str, Any] = (
    {} if jax.__version_info__ >= (0, 11) else {"xla_cpu_use_fusion_emitters": False}
)

#: Compiling takes a third of the time without optimisations, and running up to thrice as long.
_UNOPTIMISED = {"xla_backend_optimization_level": 0}

#: Numbers in all arguments up to which a program compiles for longer than it runs.
_SMALL = 1_000_000


def loop_jit(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    """``jax.jit`` for the loop of an iteration or a sampler, which is optimised at every size.

    Args:
        function: to be compiled.
        options: of ``jax.jit``.
    """
    return _by_size(function, _PLAIN_KERNELS, options)


def host_jit(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    """``jax.jit`` for what a fit computes once or a few times, such as starts and read-outs.

    On a CPU the program of small arguments is not optimised.

    Args:
        function: to be compiled.
        options: of ``jax.jit``.
    """
    return _by_size(function, _PLAIN_KERNELS | _UNOPTIMISED, options)


def _by_size(
    function: Callable[P, R], where_small: dict[str, Any], options: dict[str, Any]
) -> Callable[P, R]:
    """With compiler options for small arguments on a CPU.

    Sizes have programs of their own anyway, so that nothing is compiled twice.
    """
    large = Program(function, **options)
    quick = Program(function, where_small or None, **options)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not on_cpu():
            found: R = large.jitted(*args, **kwargs)
            return found
        leaves = jax.tree.leaves((args, kwargs))
        small = sum(getattr(leaf, "size", 1) for leaf in leaves) <= _SMALL
        found = (quick if small else large)(*args, **kwargs)
        return found

    return call


def on_cpu() -> bool:
    """Whether programs run on a CPU: by ``jax.default_device``, or as the only device there is."""
    settings: Any = jax.config
    device = settings.jax_default_device
    if device is None:
        return jax.default_backend() == "cpu"
    return getattr(device, "platform", device) == "cpu"
