"""What an iteration returns; status members are sentences, to be shown as they are."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple


class Status(enum.IntEnum):
    """How a fixed-point iteration ended.

    The integer travels through compiled code; ``Status(code).sentence`` is what a person reads.
    """

    RUNNING = 0
    CONVERGED = 1
    LIMIT_REACHED = 2
    OBJECTIVE_FELL = 3
    NOT_FINITE = 4
    INTERRUPTED = 5

    @property
    def sentence(self) -> str:
        """The meaning of this status, as one sentence."""
        return _SENTENCES[self]

    @property
    def ok(self) -> bool:
        """True only for :attr:`CONVERGED`."""
        return self is Status.CONVERGED


_SENTENCES = {
    Status.RUNNING: "The iteration is still running.",
    Status.CONVERGED: "The objective gains less than the tolerance with a further step.",
    Status.LIMIT_REACHED: "The iteration limit was reached before the objective settled.",
    Status.OBJECTIVE_FELL: (
        "A plain step lowered the objective by more than rounding explains; "
        "the point before that step is returned."
    ),
    Status.NOT_FINITE: "The objective became infinite or NaN; the last finite point is returned.",
    Status.INTERRUPTED: "The iteration was interrupted; the best point so far is returned.",
}


class Result(NamedTuple):
    """Outcome of :func:`inference.fixed_point.solve`; a pytree, so it passes through ``vmap``.

    Attributes:
        params: the best point found, in the shape of the starting point.
        objective: scalar, the objective at ``params``.
        remainder: digits of the objective beyond its dtype; add the two in float64.
        trace: ``(max_steps,)`` objective at each accepted point, NaN beyond ``n_iter``.
        n_iter: number of accepted points, the starting point included.
        n_evaluations: number of calls of the step, rejected extrapolations included.
        status: a :class:`Status` code.
    """

    params: Any
    objective: Any
    remainder: Any
    trace: Any
    n_iter: Any
    n_evaluations: Any
    status: Any
