"""Linear algebra of small tables on one thread.

Threads that share a processor with other work wait for each other longer than they compute: five
systems of 323 equations took 60 times as long on two threads of a busy machine as on one.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

#: Cells of a table up to which linear algebra runs on one thread.
_CELLS = 1_000_000


def one_thread_if_small(items: Any) -> AbstractContextManager[Any]:
    """Context in which linear algebra of few items runs on one thread, in the whole process.

    Args:
        items: what has a shape; the number of threads is left as it is for anything else.
    """
    n_cells = int(np.prod(np.shape(items))) if hasattr(items, "shape") else 0
    if not 0 < n_cells <= _CELLS:
        return nullcontext()
    return _controller(len(sys.modules)).limit(limits=1)


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """The libraries' thread pools, looked for again where modules were imported since.

    The search reads the map of the process's memory, which every compiled program makes longer.
    """
    return ThreadpoolController()
