"""The other end of what labels allow: near items' labels as votes."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nbmodels.datasets import corrupt
from nbmodels.diagnostics.noise_range import noise_range
from nbmodels.fitting import nearest
from nbmodels.fitting.nearest import labels_near, nearest_labels, numbers_of_neighbours
from nbmodels.fitting.points import point_coding, points
from nbmodels.fitting.separable import fit_separable

PAIR = np.array([[0.7, 0.0, 0.3], [0.3, 0.7, 0.0], [0.0, 0.3, 0.7]])


def clouds(n, apart, seed=0):
    """Three normal classes on a circle, and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    angle = 2 * np.pi * np.arange(3) / 3
    means = apart / np.sqrt(3) * np.column_stack([np.cos(angle), np.sin(angle)])
    return means[y] + rng.normal(size=(n, 2)), y, rng


def separable(x, given, **options):
    near = nearest_labels(points(x), given, 3)
    return fit_separable(near, 3, np.ones(len(x)), **options)


def noise_of(y, given):
    counts = np.zeros((3, 3))
    np.add.at(counts, (y, given), 1)
    return counts / counts.sum(1, keepdims=True)


def test_the_noise_of_clear_classes_is_found_without_a_model_of_the_features():
    x, y, rng = clouds(600, 6.0)
    given = corrupt(y, PAIR, rng)
    found = separable(x, given)
    np.testing.assert_allclose(found.transition, noise_of(y, given), atol=0.05)
    assert found.share_wrong == pytest.approx(np.mean(given != y), abs=0.02)
    rates, shares = found.draws(2000, 0)
    low, high = np.quantile(rates, [0.01, 0.99], axis=0)
    assert ((low <= noise_of(y, given) + 0.01) & (noise_of(y, given) <= high + 0.01)).all()
    assert np.mean(shares) == pytest.approx(found.share_wrong, abs=0.02)


def test_errors_that_alike_rows_share_are_seen_by_more_neighbours():
    """Held-out labels select few neighbours, which share the errors; the range has both."""
    rng = np.random.default_rng(0)
    centres, kinds, _ = clouds(75, 6.0)
    x = np.repeat(centres, 8, axis=0) + 1e-3 * rng.normal(size=(600, 2))
    y = np.repeat(kinds, 8)
    given = np.repeat(np.where(rng.random(75) < 0.2, (kinds + 1) % 3, kinds), 8)
    found = separable(x, given)
    wrong = np.mean(given != y)
    assert found.n_neighbours < found.widest.n_neighbours
    assert found.share_wrong < 0.02
    assert found.widest.share_wrong == pytest.approx(wrong, abs=0.05)
    independent = np.broadcast_to(np.eye(3), (50, 3, 3))
    shares = np.full((50, 3), 1 / 3)
    ends = noise_range(np.arange(3), np.eye(3), 0.0, independent, shares, found, 0.0, 0)
    assert ends.holds(given, y)[0]


def test_overlap_counts_as_noise():
    x, y, _ = clouds(600, 2.2)
    assert separable(x, y).share_wrong > 0.1


def test_an_own_label_is_no_vote_of_a_neighbour():
    """A label that all neighbours contradict is not among their votes, duplicates or not."""
    x = np.repeat([[0.0, 0.0], [9.0, 9.0]], 40, axis=0)
    codes = np.repeat([0, 1], 40)
    codes[3] = 2
    near = nearest_labels(points(x), codes, 3, (4,))
    own = near.counts[4][near.rows == 3][0]
    np.testing.assert_array_equal(own, [4, 0, 0])
    assert (near.counts[4].sum(1) == 4).all()


def test_only_labelled_items_are_neighbours():
    x, y, _ = clouds(80, 6.0)
    codes = np.where(np.arange(80) % 2, y, -1)
    near = nearest_labels(points(x), codes, 3, (2,))
    assert set(near.rows) == set(np.flatnonzero(codes >= 0))
    assert nearest_labels(points(x), np.where(np.arange(80) < 29, y, -1), 3) is None


def test_checked_labels_move_the_end():
    x, y, rng = clouds(300, 1.5)
    given = corrupt(y, PAIR, rng)
    checked = np.where(np.arange(300) < 250, y, -1)
    free, held = separable(x, given), separable(x, given, trusted=checked)
    truth = noise_of(y, given)
    assert np.abs(held.transition - truth).max() < np.abs(free.transition - truth).max()


def test_numbers_of_neighbours_stay_within_a_class():
    assert numbers_of_neighbours(600, 3) == (5, 10, 20)
    assert numbers_of_neighbours(60, 3) == (5, 10)
    assert numbers_of_neighbours(100, 10) == (5,)
    # of many classes also fewer, whose items are all near
    assert numbers_of_neighbours(1400, 13) == (12, 25, 50, 53)
    assert numbers_of_neighbours(600, 2) == (3, 6, 12)
    assert min(numbers_of_neighbours(30, 30)) == 2


def test_symbols_are_as_far_apart_as_numbers():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(5, 3, 4000), "colour": rng.choice(["a", "b"], 4000)})
    found = points(frame)
    pairs = found[:2000] - found[2000:]
    different = frame["colour"].to_numpy()[:2000] != frame["colour"].to_numpy()[2000:]
    assert np.mean(pairs[:, 0] ** 2) == pytest.approx(2, rel=0.1)
    np.testing.assert_allclose((pairs[different, 1:] ** 2).sum(1), 2)


def test_two_values_are_two_symbols_however_rare_one_is():
    rng = np.random.default_rng(0)
    rare, even = rng.random((2, 500)) < [[0.02], [0.5]]
    x = np.column_stack([np.where(rare, 7.0, 3.0), even, rng.integers(0, 3, 500)])
    x[:5, 0] = np.nan
    found = points(x)
    for column, values in ((0, (3, 7)), (1, (0, 1))):
        low, high = (found[x[:, column] == v, column] for v in values)
        np.testing.assert_allclose(high[0] - low, np.sqrt(2))
    np.testing.assert_allclose(found[:5, 0], 0)
    np.testing.assert_allclose(found[:, 2].var(), 1)
    coding = point_coding(x)
    np.testing.assert_allclose(coding(x[10:20]), found[10:20])


def test_rare_properties_do_not_decide_who_is_near():
    """Fingerprints: each divided by its standard deviation, 300 rare ones outweigh ten others."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    telling = rng.random((400, 10)) < np.where(y, 0.85, 0.15)[:, None]
    x = np.hstack([telling, rng.random((400, 300)) < 0.02]).astype(float)
    near = nearest_labels(points(x), y, 2, (5,))
    standardised = nearest_labels((x - x.mean(0)) / x.std(0), y, 2, (5,))
    alike, before = (
        np.mean(one.counts[5][np.arange(400), one.codes] / 5) for one in (near, standardised)
    )
    assert alike > 0.9 > before + 0.1


def test_missing_cells_lie_at_the_mean():
    x = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]])
    assert points(x)[1, 1] == 0
    coding = point_coding(x)
    np.testing.assert_allclose(coding(np.array([[3.0, 4.0]])), [[0.0, 0.0]])


def test_words_have_length_one_and_an_empty_row_no_place():
    x = sparse.csr_array(np.vstack([np.eye(40)[:, :8].repeat(2, 0)[:60], np.zeros((1, 8))]))
    found = points(x)
    lengths = np.sqrt(found.multiply(found).sum(1))
    assert lengths[-1] == 0
    full = np.diff(x.indptr) > 0
    np.testing.assert_allclose(lengths[full], 1)
    near = nearest_labels(found, np.zeros(61, int), 2, (2,))
    assert near is None or 60 not in near.rows


def test_texts_are_near_where_they_share_words():
    texts = ["good red apple", "bad green pear"] * 20
    found = points(texts)
    codes = np.tile([0, 1], 20)
    counts = labels_near(found[:2], found, codes, 2, 3)
    np.testing.assert_array_equal(counts, [[3, 0], [0, 3]])
    assert points([1, 2, 3]) is None


def test_neighbours_of_sparse_rows_are_those_of_scikit_learn(monkeypatch):
    from sklearn.neighbors import NearestNeighbors

    monkeypatch.setattr(nearest, "_MEBIBYTES", 0.01)  # several blocks
    among = sparse.random_array((80, 30), density=0.3, rng=np.random.default_rng(0), format="csr")
    wanted = NearestNeighbors(n_neighbors=5).fit(among).kneighbors(among[:7], return_distance=False)
    np.testing.assert_array_equal(nearest._nearest(among, among[:7], 5), wanted)
