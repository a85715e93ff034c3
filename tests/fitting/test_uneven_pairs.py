"""Bayes factors of groups of annotators, by how unevenly pairs agree."""

import numpy as np
import pytest

from nbmodels.fitting.uneven_pairs import UnevenPairs
from nbmodels.fitting.vote_dependence import HIDDEN, LEAST, assumed_dependence


def pairs(correlation, n=190, shared=100, seed=0):
    """Pairs whose correlations vary by so much, with expected agreement 0.6."""
    rng = np.random.default_rng(seed)
    per_unit = np.full(n, 0.4 / np.sqrt(0.24 / shared))
    return UnevenPairs(rng.normal(size=n) + correlation * per_unit * rng.normal(size=n), per_unit)


def test_groups_are_told_from_independent_annotators():
    assert pairs(0.0).log_factor < -3
    assert pairs(2 * LEAST).log_factor > 3
    assert pairs(0.0).unevenness == pytest.approx(1, abs=0.3)
    assert pairs(2 * LEAST).unevenness > 1.3


def test_few_pairs_and_few_shared_items_say_nothing():
    none = UnevenPairs(np.zeros(0), np.zeros(0))
    assert none.log_factor == none.unevenness == 0
    assert abs(pairs(0.0, n=5, shared=5).log_factor) < 0.2


def test_the_factor_is_that_of_normal_surprises():
    """One pair, by the densities of its surprise."""
    one = UnevenPairs(np.array([2.0]), np.array([20.0]))
    spread = np.hypot(1, 20 * LEAST * np.array([1, 2, 4]))
    density = np.exp(-0.5 * (2 / spread) ** 2) / spread
    assert one.log_factor == pytest.approx(np.log(density.mean()) + 2)


def test_only_both_kinds_of_evidence_clear_votes():
    """Votes of independent items whose annotators cannot be compared are tempered still."""
    assert assumed_dependence(0.0) == pytest.approx(HIDDEN)
    assert assumed_dependence(0.0, 0.0, 0.0) == pytest.approx(0.9 * HIDDEN)
    assert assumed_dependence(0.0, -20.0, 0.0) > HIDDEN / 2
    assert assumed_dependence(0.0, 0.0, -20.0) > HIDDEN / 2
    assert assumed_dependence(0.0, -20.0, -20.0) < 1e-6
    assert assumed_dependence(0.3, -20.0, -20.0) == pytest.approx(0.3)
