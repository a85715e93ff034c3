"""Model-free inference: fixed points, products, samplers.

Functions here see arrays of log-densities and maps ``(point, data) -> (point, objective)``; they
know nothing of labels or noise. ``nbmodels`` imports this package, never the other way round.
"""

from inference.fixed_point import Coordinates, run, run_batched, run_sequential, solve
from inference.moments import Total, add, negate, total
from inference.results import Result, Status

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
