"""Tables that are read block by block give the numbers of those read as a whole."""

import numpy as np
import pytest

from nbmodels.data import validation
from nbmodels.data.features import Block
from nbmodels.emissions import RealColumns
from nbmodels.fitting.points import points


@pytest.mark.parametrize("gaps", [False, True])
def test_columns_are_coded_alike(gaps, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(3, [1, 10, 1e-3], (200, 3))
    missing = rng.random((200, 3)) < 0.2 if gaps else None
    weights = rng.uniform(0, 2, 200)
    found = []
    for cells in (1 << 17, 60):
        monkeypatch.setattr(validation, "_BLOCK_CELLS", cells)
        coded = RealColumns.fit(Block(x, missing, ("a", "b", "c")), weights)
        found.append(np.vstack([coded.location, coded.scale, points(x, missing)]))
    np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-12)
