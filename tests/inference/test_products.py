"""Both products, dense and sparse, are those of SciPy, whatever the shape of the matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse

from inference import products
from inference.products import Coordinate, Dense, Sparse, coordinate, layout, matrix

K = 3


def scattered(n, d, density, seed=0):
    return sparse.random_array((n, d), density=density, rng=np.random.default_rng(seed)).tocsr()


def with_hubs():
    """Degrees from 0 to all, on both sides: every bucket of the layout is used."""
    rng = np.random.default_rng(1)
    dense = rng.random((200, 170)) < np.linspace(0, 1, 200)[:, None] * np.linspace(0, 1, 170) ** 2
    dense[7] = dense[:, 11] = True
    dense[3] = dense[:, 5] = False
    return sparse.csr_array(dense * rng.normal(size=dense.shape))


def duplicated():
    """The same cells several times, in a CSR matrix that has not been put in order."""
    indptr, indices = [0, 4, 4, 7], [2, 0, 2, 2, 1, 1, 0]
    return sparse.csr_array((np.arange(1.0, 8.0), indices, indptr), shape=(3, 4))


def exactly(degree):
    """Rows at the borders of the chunks' width."""
    return sparse.csr_array(np.arange(40) < np.arange(degree - 1, degree + 2)[:, None]) * 1.0


CASES = {
    "small": lambda: scattered(5, 4, 0.5),
    "tall": lambda: scattered(500, 3, 0.3),
    "wide": lambda: scattered(3, 500, 0.3),
    "one row": lambda: scattered(1, 9, 0.5),
    "one column": lambda: scattered(9, 1, 0.5),
    "one cell": lambda: sparse.csr_array([[2.5]]),
    "full": lambda: scattered(30, 20, 1.0),
    "nothing in it": lambda: sparse.csr_array((6, 5)),
    "empty rows and columns": lambda: scattered(60, 50, 0.01),
    "hubs": with_hubs,
    "duplicates": duplicated,
    "duplicates in COO": lambda: sparse.coo_array(([1.0, 2, 4], ([0, 0, 1], [1, 1, 0])), (3, 2)),
    "explicit zeros": lambda: sparse.csr_array(([0.0, 1, 0, 3], ([0, 0, 1, 2], [0, 1, 1, 0]))),
    "cancelling": lambda: sparse.coo_array(([1.0, -1, 2], ([0, 0, 1], [1, 1, 0])), (2, 2)),
    "width": lambda: exactly(16),
    "two widths": lambda: exactly(32),
    "CSC": lambda: scattered(20, 30, 0.2).tocsc(),
    "old style": lambda: sparse.csr_matrix(scattered(20, 30, 0.2)),
    "integers": lambda: (scattered(20, 30, 0.2) * 9).astype(int),
    "booleans": lambda: scattered(20, 30, 0.2) > 0.3,
}


def tables(shape, seed=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(shape[1], K)), rng.normal(size=(shape[0], K))


BINARY = ["small", "nothing in it", "empty rows and columns", "hubs", "duplicates", "width"]


@jax.jit
def both(ours, table, rows):
    return ours.times(table), ours.transpose_times(rows), ours.to_dense()


def check(ours, expected):
    assert ours.shape == expected.shape
    table, rows = tables(expected.shape)
    forward, backward, dense = both(ours, table, rows)
    np.testing.assert_allclose(forward, expected @ table, rtol=0, atol=1e-12)
    np.testing.assert_allclose(backward, expected.T @ rows, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(dense, expected)


@pytest.mark.parametrize("case", CASES)
def test_sparse_products(case):
    x = CASES[case]()
    ours = matrix(x)
    assert isinstance(ours, Sparse)
    check(ours, x.toarray().astype(float))


@pytest.mark.parametrize("case", CASES)
def test_products_in_coordinate_format(case):
    x = CASES[case]()
    ours = matrix(x, room=0)
    assert isinstance(ours, Coordinate)
    check(ours, x.toarray().astype(float))
    np.testing.assert_array_equal(ours.to_host().toarray(), x.toarray())


def test_small_matrices_of_one_shape_share_a_program_whatever_stands_in_them():
    shapes = [
        jax.tree.map(jnp.shape, matrix(scattered(60, 50, density), room=0))
        for density in (0.0, 0.1, 1.0)
    ]
    assert shapes[0] == shapes[1] == shapes[2]


def test_there_is_room_for_as_many_entries_as_asked_for():
    x = scattered(60, 50, 0.5)
    assert len(matrix(x, room=20_000).value) == 32_768
    assert len(matrix(x, room=10**9).value) == coordinate.MOST


def test_matrices_of_many_entries_are_laid_out(monkeypatch):
    monkeypatch.setattr(products, "MOST", 100)
    assert isinstance(matrix(scattered(60, 50, 0.5), room=0), Sparse)


def test_first_rows_in_coordinate_format():
    x = scattered(30, 20, 0.3)
    padded = sparse.vstack([x, sparse.csr_array((10, 20))])
    check(matrix(padded, room=0).first_rows(30), x.toarray())


@pytest.mark.parametrize("case", BINARY)
def test_binary_products(case):
    x = (CASES[case]() != 0).astype(float)
    assert matrix(x).forward.values is None
    check(matrix(x), x.toarray())


@pytest.fixture
def large(monkeypatch):
    """The layout of large matrices, for small ones."""
    monkeypatch.setattr(layout, "_LARGE", 0)


@pytest.mark.parametrize("case", CASES)
def test_blocks_of_several_widths(case, large):
    x = CASES[case]()
    ours = matrix(x)
    check(ours, x.toarray().astype(float))
    both_ways = (ours.forward, ours.backward)
    assert {b.shape[0] for g in both_ways for b in g.blocks} <= set(layout._WIDTHS)


def test_hubs_use_every_block(large):
    assert len(matrix(with_hubs()).forward.blocks) > 4
    assert matrix(with_hubs()).forward.wide is not None


def test_rows_in_the_order_of_their_blocks_stay_where_they_are(large):
    x = with_hubs()
    x = x[np.argsort(products.block_of(np.diff(x.indptr)), kind="stable")]
    assert np.diff(x.indptr).min() == 0
    ours = matrix(x)
    assert ours.forward.place is None
    assert ours.backward.place is not None
    check(ours, x.toarray())


def test_sizes_are_rounded_up_to_eight_an_octave():
    rounded = np.array([products.padded_size(n) for n in range(1, 4097)])
    assert (rounded >= np.arange(1, 4097)).all()
    assert (rounded <= 1.125 * np.arange(1, 4097) + 1).all()
    assert len(np.unique(rounded[1024:2048])) == 8


@pytest.mark.parametrize("case", BINARY)
def test_dense_products(case):
    x = CASES[case]().toarray()
    assert isinstance(matrix(x), Dense)
    check(matrix(x), x)


def test_a_binary_matrix_carries_no_values():
    x = with_hubs()
    assert matrix(x).forward.values is not None
    ones = matrix((x != 0).astype(float))
    assert ones.forward.values is None
    assert ones.backward.values is None
    assert all(block.dtype == jnp.int32 for block in ones.forward.blocks)


def test_input_is_left_alone():
    x = duplicated()
    matrix(x)
    assert x.nnz == 7
    assert not x.has_canonical_format


@pytest.mark.parametrize("columns", [1, 2, 20])
def test_products_of_any_number_of_columns(columns):
    x = with_hubs()
    table = np.random.default_rng(3).normal(size=(x.shape[1], columns))
    found = both(matrix(x), table, np.ones((x.shape[0], columns)))[0]
    np.testing.assert_allclose(found, x @ table, rtol=0, atol=1e-12)


def test_products_under_jit_vmap_and_grad():
    x = with_hubs()
    ours = matrix(x)
    table, rows = tables(x.shape)
    stack = jnp.stack([table, 2 * table])
    together = jax.jit(jax.vmap(lambda m, t: m.times(t), (None, 0)))(ours, stack)
    np.testing.assert_allclose(together, [x @ table, 2 * (x @ table)], rtol=0, atol=1e-12)
    slope = jax.jit(jax.grad(lambda t: jnp.sum(ours.times(t) * rows)))(table)
    np.testing.assert_allclose(slope, x.T @ rows, rtol=0, atol=1e-12)


def test_float32_data_stay_float32():
    x = with_hubs()
    table = tables(x.shape)[0].astype(np.float32)
    for kind in (x, x.toarray()):
        found = jax.jit(lambda m, t: m.times(t))(matrix(kind, jnp.float32), table)
        assert found.dtype == jnp.float32
        # 170 terms of size 1: a bound on the rounding error of float32 sums
        np.testing.assert_allclose(found, x @ table.astype(float), rtol=0, atol=170 * 6e-7)


def by_column(sums, scale, shift):
    """Something that is not linear, with numbers of each column and numbers of all."""
    return scale * jnp.tanh(sums + shift), scale[:, 0] * jnp.sum(jnp.square(sums), 1)


def check_round_trip(x):
    expected = x.toarray().astype(float)
    _, rows = tables(expected.shape)
    rng = np.random.default_rng(3)
    scale, shift = rng.uniform(1, 2, (expected.shape[1], 1)), rng.normal(size=(1, K))
    sums = expected.T @ rows
    for ours in (matrix(x), matrix(x, room=0), matrix(expected)):
        trip = jax.jit(lambda m, rows, more: m.round_trip(rows, by_column, more))
        found, extras = trip(ours, rows, (jnp.asarray(scale), jnp.asarray(shift)))
        there = expected @ (scale * np.tanh(sums + shift))
        np.testing.assert_allclose(found, there, rtol=0, atol=1e-12)
        total = sum(float(jnp.sum(extra)) for extra in extras)
        np.testing.assert_allclose(total, (scale * sums**2).sum(), rtol=1e-12)


@pytest.mark.parametrize("case", ["small", "one cell", "nothing in it", "hubs", "duplicates"])
def test_a_round_trip_is_both_products(case):
    check_round_trip(CASES[case]())


@pytest.mark.slow
def test_a_round_trip_goes_block_by_block(large, monkeypatch):
    monkeypatch.setattr("inference.products.sparse._PIECE", 5)
    x = with_hubs()
    x = x[:, np.argsort(products.block_of(np.diff(x.tocsc().indptr)), kind="stable")]
    check_round_trip(x)
    calls = []

    def inner(sums):
        calls.append(sums.shape[0])
        return sums, jnp.zeros(1)

    ours = matrix(x)
    ours.round_trip(jnp.ones((x.shape[0], K)), inner)
    assert ours.backward.place is None
    assert len(calls) > 4
    assert max(calls) < x.shape[1]


def test_rows_fill_cache_lines_where_that_is_cheap():
    assert products.whole_lines(43, np.float32) == 48
    assert products.whole_lines(43, np.float64) == 48
    assert products.whole_lines(16, np.float32) == 16
    assert products.whole_lines(10, np.float32) == 10
    assert products.whole_lines(2, np.float32) == 2
