"""Linear algebra of small tables on one thread.

Threads that share a processor with other work wait for each other longer than they compute: five
systems of 323 equations took 60 times as long on two threads of a busy machine as on one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

#: Cells of a table up to which linear algebra runs on one thread.
_CELLS = 1_000_000


def one_thread_if_small(items: Any) -> AbstractContextManager[Any]:
    """Context in which linear algebra of few items runs on one thread, in the whole process.

    Args:
        items: what has a shape; the number of threads is left as it is for anything else.
    """
    n_cells = int(np.prod(np.shape(items))) if hasattr(items, "shape") else 0
    return threadpool_limits(1) if 0 < n_cells <= _CELLS else nullcontext()
