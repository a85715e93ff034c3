"""SQUAREM saves evaluations, never lowers the objective, and extrapolates in given coordinates."""

import jax.numpy as jnp
import numpy as np
import pytest
from toys import A, B, ascend, bend, plain, slow

from inference import Coordinates, Status, run, solve

START = np.zeros(3)


def test_an_extrapolation_over_the_edge_is_only_refused():
    def shy(x, data):  # converges to 1, faster and faster, and cannot be evaluated beyond
        gap = 1 - x
        return 1 - gap * (0.3 + 0.5 * gap), plain(jnp.where(x < 1, x, jnp.nan))

    r = solve(shy, 0.0, None, tol=1e-6)
    assert r.status == Status.CONVERGED
    assert r.n_evaluations > r.n_iter
    assert 1 - 1e-5 < r.params < 1


def test_acceleration_looks_at_every_point():
    with pytest.raises(ValueError, match="stride: 1 is needed for acceleration"):
        run(ascend, START, (A, B), stride=2)


def test_acceleration_saves_evaluations_and_loses_nothing():
    settings = {"tol": 1e-10, "max_steps": 20000}
    fast, dull = (
        solve(slow, jnp.ones(2), 0.0, **settings, accelerate=accelerate)
        for accelerate in (True, False)
    )
    assert fast.status == dull.status == Status.CONVERGED
    assert fast.n_evaluations * 20 < dull.n_evaluations
    assert fast.objective >= dull.objective


@pytest.mark.parametrize("start", [-20.0, -3.0, 0.1, 3.0, 4.5, 50.0])
def test_refused_extrapolations_do_no_harm(start):
    fast, dull = (solve(bend, start, 0.0, tol=1e-12, accelerate=a) for a in (True, False))
    assert fast.status == dull.status == Status.CONVERGED
    assert fast.objective >= dull.objective - 1e-11
    assert fast.n_evaluations <= 1.1 * dull.n_evaluations


def test_extrapolation_takes_the_coordinates_it_is_given():
    def step(x, data):  # linear in log x, towards 1; no point may be negative
        return x**0.95, plain(-(jnp.log(x) ** 2))

    logs = Coordinates(lambda x, data: jnp.log(x), lambda free, x, data: jnp.exp(free))
    there = solve(step, 1e6, None, tol=1e-9, coordinates=logs)
    assert there.status == Status.CONVERGED
    # the map is linear with one rate there, which one extrapolation solves
    assert there.n_evaluations <= 6
    assert solve(step, 1e6, None, tol=1e-9, accelerate=False).n_evaluations > 100
