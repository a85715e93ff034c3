"""Several iterations, sequential or batched: each ends by itself, and leaves the others alone."""

import jax.numpy as jnp
import numpy as np
import pytest
from toys import A, B, ascend, plain

from inference import Status, run_batched, run_sequential


def sequential(step, points, data, *, in_axes, **options):
    """As :func:`run_batched` is called."""
    each = [
        tuple(x if axis is None else x[i] for x, axis in zip(data, in_axes, strict=True))
        for i in range(len(points))
    ]
    return run_sequential(step, list(points), each, **options)


@pytest.fixture(params=[run_batched, sequential])
def several(request):
    return request.param


def many(several, tols=(1e-12, 1e-12, 1e-12), **options):
    starts = np.stack([np.zeros(3), np.ones(3), -np.ones(3)])
    targets = np.stack([B, 2 * B, 3 * B])
    return several(ascend, starts, (A, targets), tols=tols, in_axes=(None, 0), **options)


def test_each_iteration_ends_by_itself(several):
    found = many(several, (1e-12, 1e-2, 1e-12))
    assert all(r.status == Status.CONVERGED for r in found)
    assert found[1].n_iter < found[0].n_iter
    np.testing.assert_allclose(found[0].params, np.linalg.solve(A, B), atol=1e-4)
    np.testing.assert_allclose(found[2].params, np.linalg.solve(A, 3 * B), atol=1e-4)


def test_what_has_settled_stays_settled_when_interrupted(several):
    def stop(n_iter, objective):
        if n_iter > 10:
            raise KeyboardInterrupt

    options = {"report": stop, "chunk_seconds": 0.0, "accelerate": False}
    found = many(several, (1e-12, 1.0, 1e-12), **options)
    status = [Status(int(r.status)) for r in found]
    assert status == [Status.INTERRUPTED, Status.CONVERGED, Status.INTERRUPTED]
    assert [one.ok for one in status] == [False, True, False]


def test_one_that_breaks_leaves_the_others_alone(several):
    def step(x, data):
        (edge,) = data
        return x + 1, plain(jnp.where(edge > 0, jnp.where(x < edge, x, jnp.nan), -((x - 3) ** 2)))

    options = {"in_axes": (0,), "accelerate": False, "tols": (1e-6, 1e-6)}
    found = several(step, np.zeros(2), (np.array([4.0, 0.0]),), **options)
    assert [int(r.status) for r in found] == [Status.NOT_FINITE, Status.OBJECTIVE_FELL]
    np.testing.assert_allclose([r.params for r in found], [3, 3])


def test_axes_may_be_those_of_whole_subtrees():
    """``in_axes`` is that of ``jax.vmap``: a prefix of the data, with None for what is shared."""

    def step(x, data):
        return ascend(x, (data["shared"]["curvature"], data["own"]))

    targets = np.stack([B, 2 * B, 3 * B])
    data = {"shared": {"curvature": A, "nothing": None}, "own": targets}
    axes = {"shared": None, "own": 0}
    found = run_batched(step, np.zeros((3, 3)), data, tols=[1e-12] * 3, in_axes=axes)
    for one, target in zip(found, targets, strict=True):
        np.testing.assert_allclose(one.params, np.linalg.solve(A, target), atol=1e-4)


def test_an_interrupt_before_the_first_points_is_not_swallowed(several):
    def stop(x, data):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        several(stop, np.zeros(2), (np.zeros(2),), tols=(1e-6, 1e-6), in_axes=(0,))
