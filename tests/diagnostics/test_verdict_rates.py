"""How often verdicts fail where the model is right, and where it is wrong."""

import importlib.util
import sys

import numpy as np
import pytest
from paths import ROOT

from nbmodels import (
    JointNB,
    NoisyGaussianNB,
    NoisyMultinomialNB,
    VerdictWarning,
)
from nbmodels.datasets import corrupt, uniform_noise

SEEDS = range(8)


@pytest.fixture(scope="module")
def worlds():
    """The benchmark's simulations, by file: it is no package."""
    path = ROOT / "benchmarks" / "verdict.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_verdict", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_joint_model_is_judged_by_source(worlds):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=1000)
    x = rng.normal(rng.normal(0, 1.2, (3, 6))[y])
    given = corrupt(y, uniform_noise(3, 0.2), rng)
    bursts = worlds.words(rng, y, 3, concentration=20)
    joint = JointNB(
        {"size": NoisyGaussianNB.published(), "text": NoisyMultinomialNB.published()},
        random_state=0,
    )
    with pytest.warns(VerdictWarning, match="words repeat"):
        joint.fit({"size": x, "text": bursts}, given)
    found = joint.verdict()
    assert {f.name for f in found.bad} >= {"repeated words"}
    assert not any(f.bad for f in found.findings if f.name in ("tails", "skew"))


@pytest.mark.slow
@pytest.mark.parametrize(("k", "share"), [(2, 0.4), (5, 0.1)])
@pytest.mark.parametrize("world", ["normal", "binary", "words", "symbols"])
def test_right_models_are_seldom_blamed(worlds, world, k, share):
    bad = [bool(names) for names, *_ in worlds.run(world, k, share, 1500, SEEDS)]
    assert np.mean(bad) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "world",
    [
        "t(3) under normal",
        "correlation 0.6 under naive",
        "log-normal under normal",
        "columns twice under naive",
        "Dirichlet-multinomial under words",
    ],
)
def test_wrong_models_are_blamed(worlds, world):
    found = [worlds.run(world, 5, share, 1500, SEEDS[:6]) for share in (0.1, 0.4)]
    bad = [bool(names) for part in found for names, *_ in part]
    assert np.mean(bad) >= 0.95
