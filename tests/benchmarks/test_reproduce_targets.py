"""Every target of the reproductions at its smallest scale."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from benchmarks.reproduce import page, storage
from benchmarks.reproduce.data import missing
from benchmarks.reproduce.registry import targets
from nbmodels import NbmodelsWarning

#: Those that take some two seconds at most.
FAST = {
    "why-denis2006-noise",
    "why-denis2006-table3",
}


def a_case(name):
    return pytest.param(name, marks=() if name in FAST else (pytest.mark.slow,))


@pytest.mark.parametrize("name", [a_case(name) for name in targets()])
def test_a_target_runs_at_its_smallest_scale(name, tmp_path):
    target = targets()[name]
    if lacking := missing(target.needs):
        pytest.skip(f"{', '.join(lacking)} not at hand")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        result = target.run(target.scales["toy"])
    assert result.cells or result.claims or result.tables
    for cell in result.cells:
        assert np.isfinite([cell.ours, cell.low, cell.high, cell.paper]).all(), cell
        assert cell.low <= cell.ours <= cell.high
    assert all(0 <= claim.held <= claim.cases for claim in result.claims)
    storage.save(tmp_path, target, result, "toy", 0.0)
    assert f"### {target.title}" in page.write(tmp_path, [target]).read_text()
