"""Cholesky factorisation and triangular inverses in plain array operations, batched.

LAPACK's routines for several matrices hand them to the threads of the CPU's pool and wait, from
one of these threads: as many such calls at once as there are threads wait forever (jaxlib up to
0.11; side by side in one program, or in programs of several Python threads). Calls for one matrix
do not. These run as ordinary kernels on any device: column by column up to ``_LEAF`` rows, and
recursively by blocks, which matrix products join, above that.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

_LEAF = 48


def _products(a: Array, b: Array) -> Array:
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def _transposed(a: Array) -> Array:
    return jnp.swapaxes(a, -1, -2)


# compiled here, so that a call outside compiled code does not compile its loop anew each time
@jax.jit
def lower_inverse(lower: Float[Array, "*batch d d"]) -> Float[Array, "*batch d d"]:
    """Inverse of lower triangular matrices ``(..., d, d)``."""
    d = lower.shape[-1]
    if d > _LEAF:
        h = d // 2
        first, last = lower_inverse(lower[..., :h, :h]), lower_inverse(lower[..., h:, h:])
        return _join(first, -_products(last, _products(lower[..., h:, :h], first)), last)

    def row(j: Array, inverse: Array) -> Array:
        mine = lax.dynamic_index_in_dim(lower, j, -2, keepdims=False)
        pivot = lax.dynamic_index_in_dim(mine, j, -1, keepdims=True)
        known = jnp.einsum("...i,...ij->...j", mine, inverse)
        solved = ((jnp.arange(d) == j) - known) / pivot
        return lax.dynamic_update_index_in_dim(inverse, solved, j, -2)

    return lax.fori_loop(0, d, row, jnp.zeros_like(lower))


@jax.jit
def factor(
    matrix: Float[Array, "*batch d d"],
) -> tuple[Float[Array, "*batch d d"], Float[Array, "*batch d d"]]:
    """Cholesky factor ``L`` of positive definite matrices ``(..., d, d)``, and its inverse.

    NaN where a matrix is not positive definite. Only the lower triangle is read.
    """
    d = matrix.shape[-1]
    if d > _LEAF:
        h = d // 2
        first, first_inverse = factor(matrix[..., :h, :h])
        below = _products(matrix[..., h:, :h], _transposed(first_inverse))
        rest = matrix[..., h:, h:] - _products(below, _transposed(below))
        last, last_inverse = factor(rest)
        inverse = -_products(last_inverse, _products(below, first_inverse))
        return _join(first, below, last), _join(first_inverse, inverse, last_inverse)

    def scaled(rest: Array, pivot: Array, j: Array) -> Array:
        return rest / jnp.sqrt(pivot)

    lower = _by_columns(matrix, scaled)
    return lower, lower_inverse(lower)


@jax.jit
def solve_positive(matrix: Float[Array, "d d"], right: Float[Array, " d"]) -> Float[Array, " d"]:
    """``matrix^-1 right`` of a symmetric positive definite matrix, by Cholesky factorisation.

    Rows and columns are scaled to a diagonal of one, without which coefficients of very different
    units would not survive single precision. LAPACK's LU of 300 rows, on two threads of a busy
    machine, takes 100 times as long.
    """
    unit = 1 / jnp.sqrt(jnp.diag(matrix))
    inverse = factor(matrix * unit[:, None] * unit)[1]
    return unit * (inverse.T @ (inverse @ (unit * right)))


@jax.jit
def semidefinite_root(matrix: Float[Array, "*batch d d"]) -> Float[Array, "*batch d d"]:
    """``L``, lower triangular with ``L L^T = matrix``, of positive semidefinite matrices.

    A pivot within rounding of zero counts as zero. Only the lower triangle is read.
    """
    d = matrix.shape[-1]
    diagonal = jnp.diagonal(matrix, axis1=-2, axis2=-1)
    least = d * jnp.finfo(matrix.dtype).eps * diagonal

    def scaled(rest: Array, pivot: Array, j: Array) -> Array:
        enough = pivot > lax.dynamic_index_in_dim(least, j, -1, keepdims=True)
        return jnp.where(enough, rest / jnp.sqrt(jnp.where(enough, pivot, 1)), 0)

    return _by_columns(matrix, scaled)


def _by_columns(matrix: Array, scaled: Callable[[Array, Array, Array], Array]) -> Array:
    """Cholesky's columns one after the other, each what is left of the matrix's, scaled."""
    d = matrix.shape[-1]

    def column(j: Array, lower: Array) -> Array:
        mine = lax.dynamic_index_in_dim(lower, j, -2, keepdims=False)
        given = lax.dynamic_index_in_dim(matrix, j, -1, keepdims=False)
        rest = given - jnp.einsum("...ij,...j->...i", lower, mine)
        pivot = lax.dynamic_index_in_dim(rest, j, -1, keepdims=True)
        done = jnp.where(jnp.arange(d) >= j, scaled(rest, pivot, j), 0)
        return lax.dynamic_update_index_in_dim(lower, done, j, -1)

    return lax.fori_loop(0, d, column, jnp.zeros_like(matrix))


def _join(first: Array, below: Array, last: Array) -> Array:
    above = jnp.zeros((*first.shape[:-1], last.shape[-1]), first.dtype)
    top, bottom = jnp.concatenate([first, above], -1), jnp.concatenate([below, last], -1)
    return jnp.concatenate([top, bottom], -2)


def log_diagonal(lower: Float[Array, "*batch d d"]) -> Float[Array, "*batch"]:
    """Sum of the logarithms of the diagonal, half the log-determinant of the factored matrix."""
    return jnp.sum(jnp.log(jnp.diagonal(lower, axis1=-2, axis2=-1)), -1)
