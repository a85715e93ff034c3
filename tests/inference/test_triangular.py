"""Factors of matrices without LAPACK, which can deadlock where several programs run at once."""

import jax.numpy as jnp
import numpy as np
import pytest

from inference.triangular import factor, log_diagonal, semidefinite_root, solve_positive


def matrices(rank, d, n=20, seed=0):
    half = np.random.default_rng(seed).normal(size=(n, d, rank))
    return half @ half.swapaxes(-1, -2)


@pytest.mark.parametrize("d", [1, 5, 70])
def test_cholesky_factors_and_their_inverses(d):
    given = matrices(d + 2, d)
    lower, inverse = factor(given)
    np.testing.assert_allclose(lower, np.linalg.cholesky(given), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(inverse @ lower, np.broadcast_to(np.eye(d), given.shape), atol=1e-7)
    np.testing.assert_allclose(2 * log_diagonal(lower), np.linalg.slogdet(given)[1])


@pytest.mark.parametrize("d", [1, 5, 70])
def test_systems_of_very_different_units_in_single_precision(d):
    matrix = matrices(d + 2, d, n=1)[0] + np.eye(d)
    unit = np.logspace(-9, 9, d)
    scaled = (matrix * unit[:, None] * unit).astype(np.float32)
    found = np.asarray(solve_positive(jnp.asarray(scaled), jnp.asarray(unit, np.float32)), float)
    np.testing.assert_allclose(found * unit, np.linalg.solve(matrix, np.ones(d)), atol=1e-3)


@pytest.mark.parametrize(("rank", "d"), [(6, 6), (2, 6), (0, 3), (1, 1)])
def test_roots_of_semidefinite_matrices(rank, d):
    given = matrices(rank, d)
    root = semidefinite_root(given)
    np.testing.assert_allclose(root @ root.mT, given, atol=1e-6 * max(given.max(), 1))
    np.testing.assert_array_equal(root, jnp.tril(root))


def test_a_root_leaves_out_what_has_no_variance():
    """As the missing cells of a row beside those that are seen."""
    given = matrices(4, 4, n=1)[0]
    hidden = np.array([False, True, False, True])
    root = semidefinite_root(np.where(hidden[:, None] & hidden, given, 0))
    assert not np.any(root[~hidden])
    assert not np.any(root[:, ~hidden])
    np.testing.assert_allclose((root @ root.T)[1, 3], given[1, 3])
