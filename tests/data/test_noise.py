"""Labels drawn from a noise matrix."""

import numpy as np
import pytest

from nbmodels import DataError
from nbmodels.datasets import corrupt, uniform_noise

NOISE = uniform_noise(3, 0.2)
TRUE = np.arange(300) % 3


def test_a_seed_is_a_generator_of_that_seed():
    of_seed = corrupt(TRUE, NOISE, 7)
    np.testing.assert_array_equal(of_seed, corrupt(TRUE, NOISE, np.random.default_rng(7)))
    assert 0.1 < np.mean(of_seed != TRUE) < 0.3
    # a generator goes on where it was
    rng = np.random.default_rng(7)
    assert (corrupt(TRUE, NOISE, rng) != corrupt(TRUE, NOISE, rng)).any()


@pytest.mark.parametrize("wrong", ["seven", -1, 0.5])
def test_no_seed(wrong):
    with pytest.raises(DataError, match=r"^rng: expected a seed or a generator, got"):
        corrupt(TRUE, NOISE, wrong)
