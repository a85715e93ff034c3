"""The environment of processes that tests start."""

import os
import sys


def counting(**more):
    """:func:`environment`, in which each program is traced, and found in JAX's cache if anywhere.

    Args:
        more: further variables.
    """
    jax = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    if folder := os.environ.get("NBMODELS_CACHE"):
        jax["JAX_COMPILATION_CACHE_DIR"] = folder
    return environment(**{**jax, "NBMODELS_CACHE": "0", **more})


def environment(**more):
    """The tests' own, in which programs are compiled as quickly as in tests' processes.

    Args:
        more: further variables.
    """
    path = os.pathsep.join(filter(None, sys.path))
    return {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1", **os.environ, "PYTHONPATH": path, **more}
