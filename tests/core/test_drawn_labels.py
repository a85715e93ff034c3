"""Labels drawn from a noise matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nbmodels.channels.transition import draw_labels

#: Standard errors that the most deviating of some twenty cells exceeds once in a thousand runs.
SURELY = 4.2


@pytest.mark.parametrize("observed", [2, 3, 5])
def test_labels_are_as_frequent_as_the_matrix_says(observed):
    n, rng = 30_000, np.random.default_rng(0)
    matrix = rng.dirichlet(np.ones(observed), 4)
    matrix[0] = np.eye(observed)[1]  # a class without errors
    y = rng.integers(0, 4, n)
    drawn = np.asarray(draw_labels(jax.random.key(0), jnp.asarray(matrix), y))
    assert (drawn[y == 0] == 1).all()
    counts = np.zeros((4, observed))
    np.add.at(counts, (y, drawn), 1)
    size = counts.sum(1, keepdims=True)
    error = np.sqrt(matrix * (1 - matrix) / size)
    assert (np.abs(counts / size - matrix) <= SURELY * error + 1e-12).all()


def test_labels_of_one_class_are_independent():
    drawn = np.asarray(
        draw_labels(jax.random.key(1), jnp.asarray([[0.3, 0.7]]), np.zeros(20_000, int))
    )
    gap = drawn - drawn.mean()
    assert abs(np.mean(gap[1:] * gap[:-1]) / gap.var()) < SURELY / np.sqrt(len(drawn))
