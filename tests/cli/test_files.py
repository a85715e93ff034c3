"""Tables, text and planted noise: the pieces of the command line."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbmodels.cli.files import read_table, replacing, write_table
from nbmodels.data.text import text_features
from nbmodels.datasets import corrupt, flip_noise, noisy_digits, uniform_noise
from nbmodels.errors import DataError


def half_way(target):
    with replacing(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError("half way")


def test_a_write_that_fails_leaves_nothing(here):
    target = here / "new.csv"
    with pytest.raises(RuntimeError, match="half way"):
        half_way(target)
    assert os.listdir() == ["animals.csv"]
    target.write_text("old")
    with pytest.raises(RuntimeError, match="half way"):
        half_way(target)
    assert target.read_text() == "old"
    assert sorted(os.listdir()) == ["animals.csv", "new.csv"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_tables_come_back_as_they_were(here, suffix):
    text = 'a,b,c\n007,1.10,x y\n,NA,"q,\nr"\n'
    Path("in.csv").write_text(text)
    table = read_table(Path("in.csv"))
    assert table.frame["b"].isna().tolist() == [False, True]
    added = pd.DataFrame({"new": [1, 2]})
    write_table(table, added, Path(f"out{suffix}"))
    back = read_table(Path(f"out{suffix}"))
    assert list(back.frame.columns) == ["a", "b", "c", "new"]
    if suffix != ".parquet":
        assert back.raw["a"].tolist() == ["007", ""]
        assert back.raw["b"].tolist() == ["1.10", "NA"]
        assert back.raw["c"].tolist() == ["x y", "q,\nr"]


def test_planted_noise_is_what_was_asked_for():
    rng = np.random.default_rng(0)
    matrix = flip_noise(4, {(0, 1): 0.3, (2, 3): 0.1}, rate=0.06)
    np.testing.assert_allclose(matrix.sum(0), 1)
    assert matrix[1, 0] == pytest.approx(0.3 + 0.7 * 0.02)
    y = rng.integers(0, 4, 40_000)
    counts = np.zeros((4, 4))
    np.add.at(counts, (corrupt(y, matrix, rng), y), 1)
    np.testing.assert_allclose(counts / counts.sum(0), matrix, atol=0.015)
    np.testing.assert_array_equal(corrupt(y, np.eye(4), rng), y)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: corrupt([0, 4], np.eye(4), r), "y: row 1 is 4"),
        (lambda r: corrupt([0, 1], np.ones((2, 2)), r), "matrix"),
        (lambda r: corrupt([0.5, 1], np.eye(2), r), "y: expected"),
        (lambda r: flip_noise(3, {(1, 1): 0.2}), "flips"),
        (lambda r: flip_noise(3, {(1, 0): 0.7, (1, 2): 0.7}), "add up to 1.4"),
        (lambda r: uniform_noise(3, 1.5), "rate"),
    ],
)
def test_noise_refuses(call, words):
    with pytest.raises(DataError, match=words):
        call(np.random.default_rng(0))


def test_digits_are_split_and_named():
    data = noisy_digits(3)
    assert len(data.x) + len(data.x_test) == 1797
    assert 0.1 < (data.given != data.truth).mean() < 0.2
    again = noisy_digits(3)
    np.testing.assert_array_equal(data.given, again.given)
    assert (noisy_digits(4).given != data.given).any()


def test_text_features():
    found = text_features(["a tale of cats", None, "cats and dogs"])
    assert found.x.shape[0] == 3
    assert found.x[1].nnz == 0
    assert "cats" in set(found.words)
    with pytest.raises(DataError, match="text: row 1 is 3"):
        text_features(["a", 3])
    with pytest.raises(DataError, match="no words"):
        text_features(["", None])
