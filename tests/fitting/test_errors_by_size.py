"""Error rates by how much is known of an item: found where they are, and nowhere else."""

import numpy as np
import pytest

from nbmodels.core.model import Data
from nbmodels.fitting.errors_by_size import (
    ERRORS,
    ErrorsBySize,
    errors_by_size,
    log_rates,
    relative_rates,
)

K = 3
START = 0.9 * np.eye(K) + 0.1 * (1 - np.eye(K)) / (K - 1)


def items(rng, n=3000, apart=0.6):
    """Sizes, classes, and log-likelihoods of the classes that add up over an item's parts."""
    size = np.maximum(1, np.rint(6 * rng.lognormal(0, 0.8, n))).astype(int)
    y = rng.integers(0, K, n)
    x = apart * size[:, None] * np.eye(K)[y] + np.sqrt(size)[:, None] * rng.normal(size=(n, K))
    return size, y, apart * x - 0.5 * apart**2 * size[:, None]


def labelled(rng, y, wrong):
    return np.where(rng.random(len(y)) < wrong, (y + rng.integers(1, K, len(y))) % K, y)


def rank(size):
    return (np.argsort(np.argsort(size, kind="stable")) + 0.5) / len(size)


def found(seed, share, power=1.0):
    rng = np.random.default_rng(seed)
    size, y, scores = items(rng)
    codes = labelled(rng, y, share(rank(size)))
    scores = scores * np.asarray(power(rank(size)) if callable(power) else power)[..., None]
    return errors_by_size(scores, codes, np.ones(len(y)), START, size), codes, y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("larger", [False, True])
def test_rates_of_small_and_large_items_are_found(seed, larger):
    errors, codes, y = found(seed, lambda r: 0.5 * (r if larger else 1 - r))
    assert errors is not None
    rates = errors.relative * (1 - np.diag(errors.matrix).mean())
    true = [np.mean((codes != y)[errors.group == g]) for g in range(3)]
    np.testing.assert_allclose(rates, true, atol=0.1)


def test_one_rate_is_left_as_it_is():
    """But for one in a hundred."""
    assert sum(found(seed, lambda r: 0.25)[0] is not None for seed in range(20)) <= 1


def test_evidence_that_repeats_itself_in_large_items_is_no_noise():
    """Their scores are too steep, which looks as if their labels were wrong."""
    steeper = [found(seed, lambda r: 0.2, lambda r: 1 + 3 * r)[0] for seed in range(10)]
    assert sum(one is not None for one in steeper) <= 1


def test_few_labels_have_one_rate():
    rng = np.random.default_rng(0)
    size, y, scores = items(rng, 150)
    codes = labelled(rng, y, 0.6 * (1 - rank(size)))
    assert errors_by_size(scores, codes, np.ones(150), START, size) is None


def test_items_of_one_size_have_one_rate():
    rng = np.random.default_rng(0)
    _, y, scores = items(rng)
    codes = labelled(rng, y, 0.3)
    assert errors_by_size(scores, codes, np.ones(len(y)), START, np.ones(len(y), int)) is None


def test_rates_are_multiples_of_the_matrix():
    codes, rate = np.array([0, 2, -1]), np.array([1.0, 0.5, 2.0])
    table = np.exp(log_rates(codes, START, rate))
    np.testing.assert_allclose(table[0], START[:, 0])
    np.testing.assert_allclose(table[1], [0.025, 0.025, 0.95])
    np.testing.assert_allclose(table[2], 1)


def test_rates_are_read_back_from_encoded_evidence():
    codes = np.array([0, 2, -1, 1])
    errors = ErrorsBySize(np.array([0, 1, 1, 0]), np.array([1.5, 0.5]), codes, START)
    data = Data({ERRORS: errors.source().padded(8)}, np.ones(8))
    rates = relative_rates(data, codes, np.arange(4))
    np.testing.assert_allclose(rates, [1.5, 0.5, 1.0, 1.5], rtol=1e-5)
    assert relative_rates(Data({}, np.ones(8)), codes, np.arange(4)) is None
