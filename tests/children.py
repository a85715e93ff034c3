"""The environment of processes that tests start."""

import os
import sys


def environment(**more):
    """The tests' own, in which programs are compiled as quickly as in tests' processes.

    Args:
        more: further variables.
    """
    path = os.pathsep.join(filter(None, sys.path))
    return {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1", **os.environ, "PYTHONPATH": path, **more}
