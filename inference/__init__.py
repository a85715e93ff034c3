"""Generic inference: fixed-point iteration, sparse products, Gibbs, NUTS and variational inference.

Nothing here depends on labels or noise: functions take arrays, log-densities and maps ``(point,
data) -> (next point, objective)``. ``nbmodels`` imports this package, never the other way round.
"""

from inference.batched import run_batched
from inference.driver import run, run_sequential, solve
from inference.moments import Total, add, negate, total
from inference.results import Result, Status
from inference.squarem import Coordinates

__all__ = [
    "Coordinates",
    "Result",
    "Status",
    "Total",
    "add",
    "negate",
    "run",
    "run_batched",
    "run_sequential",
    "solve",
    "total",
]
