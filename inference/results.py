"""Result and termination status of a fixed-point iteration."""

from __future__ import annotations

import enum
from typing import NamedTuple

from jax import Array
from jaxtyping import Float, Int, PyTree


class Status(enum.IntEnum):
    """How a fixed-point iteration ended.

    Compiled code carries the integer; ``Status(code).sentence`` is for messages to the user.

    Examples:
        >>> import jax.numpy as jnp
        >>> from inference import Status, solve, total
        >>> def step(x, b):
        ...     return x + 0.01 * (b - 2 * x), total(b * x - x**2)
        >>> result = solve(step, jnp.zeros(1), jnp.array([6.0]), max_steps=3)
        >>> status = Status(int(result.status))
        >>> status.ok, status.name
        (False, 'LIMIT_REACHED')
        >>> print(status.sentence)
        The iteration limit was reached before the objective settled.
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
    """Outcome of :func:`inference.solve`; a pytree, so it passes through ``vmap``.

    Attributes:
        params: the best point found, in the shape of the starting point.
        objective: scalar, the objective at ``params``.
        remainder: digits of the objective beyond its dtype; add the two in float64.
        trace: ``(max_steps,)`` objective at each accepted point, NaN beyond ``n_iter``.
        n_iter: number of accepted points, the starting point included.
        n_evaluations: number of calls of the step, rejected extrapolations included.
        status: a :class:`Status` code.

    Examples:
        >>> import jax.numpy as jnp
        >>> from inference import solve, total
        >>> def step(x, b):
        ...     return x + 0.3 * (b - 2 * x), total(b * x - x**2)
        >>> result = solve(step, jnp.zeros(1), jnp.array([6.0]), max_steps=100)
        >>> round(float(result.objective), 3), result.trace.shape
        (9.0, (100,))
        >>> gains = jnp.diff(result.trace[: int(result.n_iter)])
        >>> bool((gains > 0).all())
        True
    """

    params: PyTree
    objective: Float[Array, "*batch"]
    remainder: Float[Array, "*batch"]
    trace: Float[Array, "*batch max_steps"]
    n_iter: Int[Array, "*batch"]
    n_evaluations: Int[Array, "*batch"]
    status: Int[Array, "*batch"]
