"""Tables for the command line, and how it is called."""

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from nbmodels.cli.app import app
from nbmodels.datasets import corrupt, uniform_noise

SPECIES = np.array(["cat", "dog", "emu"])
QUICK = ["--label", "label"]
#: With settings that are not selected, where a test is of files and columns.
FIXED = [*QUICK, "--noise", "symmetric", "--weight", "1", "--alpha", "1"]


def animals(n=240, seed=0):
    """Three well-separated classes, a sixth of the labels wrong, columns of every kind."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    given = corrupt(y, uniform_noise(3, 1 / 6), rng)
    return pd.DataFrame(
        {
            "code": [f"{i:04d}" for i in range(n)],
            "weight": np.round(rng.normal(5.0 * y, 1), 2),
            "fur": (y < 2).astype(int),
            "sound": np.array(["purr", "bark", "boom"])[corrupt(y, uniform_noise(3, 0.1), rng)],
            "label": SPECIES[given],
            "truth": SPECIES[y],
        }
    )


def run(*args):
    return CliRunner().invoke(app, [str(a) for a in args], env={"COLUMNS": "100"})
