"""The driver, on maps of five lines: where it goes, how it ends, what an interrupt keeps.

Nothing of ``nbmodels`` is imported: the driver knows maps and objectives only.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import A, B, ascend, bend, plain, slow

from inference import Status, run, solve, total

START = np.zeros(3)


def count(x, data):
    """A step to the right; the objective is highest at ``data``."""
    return x + 1, plain(-((x - data) ** 2))


def break_off(x, data):
    """Climbs by one a step until it falls off the edge at ``data``."""
    return x + 1, plain(jnp.where(x < data, x, jnp.nan))


def points(result):
    return np.asarray(result.trace)[: int(result.n_iter)]


@pytest.mark.parametrize("accelerate", [False, True])
def test_it_finds_the_fixed_point(accelerate):
    r = solve(ascend, START, (A, B), tol=1e-14, accelerate=accelerate)
    assert r.status == Status.CONVERGED
    # a gap of 1e-14 (and the rate's 10 further such gains) in a quadratic of curvature 0.4
    np.testing.assert_allclose(r.params, np.linalg.solve(A, B), atol=1e-6)
    assert np.isclose(r.objective, B @ np.linalg.solve(A, B) / 2, rtol=0, atol=1e-12)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize(
    ("step", "start", "data"), [(ascend, START, (A, B)), (slow, np.ones(2), 0.0), (bend, 9.0, 2.0)]
)
def test_the_trace_never_falls(step, start, data, accelerate):
    r = solve(step, jnp.asarray(start), data, tol=1e-13, max_steps=300, accelerate=accelerate)
    assert (np.diff(points(r)) >= -1e-15).all()
    assert np.isnan(np.asarray(r.trace)[int(r.n_iter) :]).all()
    assert r.objective == points(r).max()
    assert step(r.params, data)[1].value == r.objective
    # a last plain step may be within rounding of the best point
    assert 0 <= r.n_evaluations - r.n_iter <= (r.n_iter if accelerate else 1)


def test_status_converged_needs_a_small_gain_of_a_plain_step():
    tol = 1e-3
    r = solve(slow, jnp.ones(2), 0.0, tol=tol, max_steps=3000, accelerate=False)
    gains = np.diff(points(r))
    assert r.status == Status.CONVERGED
    assert gains[-1] <= tol < gains[:-1].min()


def test_status_limit_reached():
    r = solve(slow, jnp.ones(2), 0.0, tol=0.0, max_steps=7)
    assert r.status == Status.LIMIT_REACHED
    assert r.n_iter == len(r.trace) == 7


@pytest.mark.parametrize("accelerate", [False, True])
def test_status_objective_fell(accelerate):
    r = solve(count, 0.0, 3.0, accelerate=accelerate)
    assert r.status == Status.OBJECTIVE_FELL
    assert (r.params, r.objective) == (3.0, 0.0)


def test_status_not_finite():
    r = solve(break_off, 0.0, 4.5, accelerate=False)
    assert r.status == Status.NOT_FINITE
    assert (r.params, r.objective, r.n_iter, r.n_evaluations) == (4.0, 4.0, 5, 6)


def test_status_interrupted():
    seen = []

    def report(n_iter, objective):
        seen.append((n_iter, objective))
        if len(seen) == 2:
            raise KeyboardInterrupt

    r = run(slow, jnp.ones(2), 0.0, tol=0.0, max_steps=5000, accelerate=False, report=report)
    assert r.status == Status.INTERRUPTED
    assert not Status(int(r.status)).ok
    assert len(seen) == 2
    assert seen[0][0] < seen[1][0] == r.n_iter < 5000
    assert r.objective == seen[1][1] == slow(r.params, 0.0)[1].value


def test_only_a_converged_iteration_is_ok():
    assert {status for status in Status if status.ok} == {Status.CONVERGED}
    assert not Status.INTERRUPTED.ok


def test_an_interrupt_before_the_first_point_is_not_swallowed():
    def stop(x, data):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(stop, jnp.ones(2), 0.0)


@pytest.mark.parametrize("status", list(Status))
def test_every_status_is_a_sentence(status):
    assert status.sentence[0].isupper()
    assert status.sentence.endswith(".")
    assert status.ok == (status == Status.CONVERGED)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("tol", [0.0, 1e-5])
@pytest.mark.parametrize(
    ("step", "start", "data"), [(slow, np.ones(2), 0.0), (count, 0.0, 90.0), (bend, 9.0, 2.0)]
)
def test_run_is_solve(step, start, data, tol, accelerate):
    settings = {"tol": tol, "max_steps": 60, "accelerate": accelerate}
    one = solve(step, jnp.asarray(start), data, **settings)
    # chunks as short as they come, so that the carried state crosses many borders
    many = run(step, jnp.asarray(start), data, **settings, chunk_seconds=0.0)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("stride", [2, 5])
def test_looking_now_and_then_is_the_same_path(stride):
    """One point in ``stride`` is looked at, the first one among them; all steps are counted."""
    every = run(ascend, START, (A, B), max_steps=41, tol=-np.inf, accelerate=False)
    some = run(ascend, START, (A, B), max_steps=41, tol=-np.inf, accelerate=False, stride=stride)
    np.testing.assert_allclose(points(some), points(every)[::stride], rtol=0, atol=1e-15)
    assert int(some.n_evaluations) == 1 + stride * (int(some.n_iter) - 1)
    settled = run(ascend, START, (A, B), tol=1e-14, accelerate=False, stride=stride)
    assert settled.status == Status.CONVERGED
    np.testing.assert_allclose(settled.params, np.linalg.solve(A, B), atol=1e-6)


def test_run_reports_the_accepted_points_in_order():
    seen = []
    r = run(ascend, START, (A, B), tol=1e-12, report=lambda *p: seen.append(p), chunk_seconds=0.0)
    assert seen == sorted(seen)
    assert len(seen) > 2
    assert seen[-1] == (r.n_iter, r.objective)


@pytest.mark.parametrize("accelerate", [False, True])
def test_vmap_is_a_loop(accelerate):
    goals = jnp.array([[0.5, 0.1], [3.0, -2.0], [1.0, 1.0]])

    def fit(goal):
        return solve(slow, jnp.ones(2), goal, tol=1e-8, accelerate=accelerate)

    together = jax.vmap(fit)(goals)
    assert len(set(np.asarray(together.n_iter).tolist())) > 1  # they end at different times
    for i, goal in enumerate(goals):
        alone = fit(goal)
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_allclose(a, b[i], rtol=1e-12, atol=1e-12)


def test_any_pytree_is_a_point():
    def step(p, data):
        return {"a": p["a"] / 2, "b": (p["b"][0] / 3,)}, plain(
            -jnp.sum(p["a"] ** 2) - p["b"][0] ** 2
        )

    r = solve(step, {"a": jnp.ones(2), "b": (jnp.ones(()),)}, None, tol=1e-12)
    assert r.status == Status.CONVERGED
    np.testing.assert_allclose(jax.tree.leaves(r.params)[0], 0, atol=1e-5)


def test_float32_objectives_of_1e8_converge_by_their_gains():
    def step(x, data):  # starts 20 nats below the top of a hill 1e8 nats deep
        terms = jnp.concatenate([data, -(x**2)])
        return x * jnp.float32(0.9), total(terms)

    deep = jnp.full(1000, -1e5, jnp.float32)
    start = jnp.full(1, 20**0.5, jnp.float32)
    r = solve(step, start, deep, tol=1e-3, max_steps=1000, accelerate=False)
    assert r.status == Status.CONVERGED
    assert float(r.params[0]) ** 2 < 0.01  # tol / (1 - 0.9**2)
