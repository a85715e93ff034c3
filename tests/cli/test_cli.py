"""The command line: what it writes, what it says, and what it refuses without writing."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from paths import ROOT
from typer.testing import CliRunner

from nbmodels.cli.app import app
from nbmodels.cli.clean import Scores, clean
from nbmodels.cli.files import read_table, replacing, write_table
from nbmodels.data.text import text_features
from nbmodels.datasets import corrupt, flip_noise, noisy_digits, uniform_noise
from nbmodels.errors import DataError

SPECIES = np.array(["cat", "dog", "emu"])
QUICK = ["--label", "label"]


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


def sentences(n=300, seed=1):
    rng = np.random.default_rng(seed)
    words = [[f"{name}{j}" for j in range(30)] for name in ("red", "green", "blue")]
    y = rng.integers(0, 3, n)
    texts = [" ".join([*rng.choice(words[k], 8), *rng.choice(words[(k + 1) % 3], 2)]) for k in y]
    given = corrupt(y, uniform_noise(3, 0.2), rng)
    return pd.DataFrame({"text": texts, "label": SPECIES[given], "truth": SPECIES[y]})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    animals().to_csv("animals.csv", index=False)
    return tmp_path


def run(*args):
    return CliRunner().invoke(app, [str(a) for a in args], env={"COLUMNS": "100"})


# What is written --------------------------------------------------------------------------------


def test_clean_keeps_rows_and_columns_and_scores(here):
    done = run("clean", "animals.csv", *QUICK, "--truth", "truth")
    assert done.exit_code == 0, done.output
    before = pd.read_csv("animals.csv", dtype=str)
    after = pd.read_csv("animals-corrected.csv", dtype=str)
    # "0007" is still "0007", and no row moved
    pd.testing.assert_frame_equal(after[before.columns], before)
    new = [c for c in after if c not in before]
    assert new[:3] == ["suggested_label", "p_label_wrong", "p_suggested"]
    assert new[3:] == ["p_cat", "p_dog", "p_emu"]
    assert (after["suggested_label"] == after["truth"]).mean() > 0.97
    assert np.allclose(after[new[3:]].astype(float).sum(axis=1), 1, atol=1e-5)
    for words in ("NoisyMixedNB", "cat", "labels right after", "AUC", "it numbers the rows"):
        assert words in done.output
    assert sorted(os.listdir()) == ["animals-corrected.csv", "animals.csv"]


def test_truth_is_never_a_feature(here):
    frame = animals()
    with_truth = clean(frame, "label", truth="truth", draws=0)
    without = clean(frame.drop(columns="truth"), "label", draws=0)
    assert "truth" not in with_truth.choice.families
    assert "label" not in with_truth.choice.families
    np.testing.assert_allclose(with_truth.p_wrong, without.p_wrong)


def test_parquet_keeps_types(here):
    frame = animals()
    frame["when"] = pd.Timestamp("2024-02-29")
    frame["fur"] = frame["fur"].astype(bool)
    frame.to_parquet("animals.parquet")
    done = run("clean", "animals.parquet", *QUICK, "--out", "new.parquet", "--no-probabilities")
    assert done.exit_code == 0, done.output
    after = pd.read_parquet("new.parquet")
    pd.testing.assert_frame_equal(after[frame.columns], frame)
    assert list(after.columns[len(frame.columns) :]) == [
        "suggested_label",
        "p_label_wrong",
        "p_suggested",
    ]


def test_text(here):
    sentences().to_parquet("texts.parquet")
    args = [
        "--text",
        "text",
        "--noise",
        "symmetric",
        "--truth",
        "truth",
        "--out",
        "t.csv",
        "--report",
        "r",
    ]
    done = run("clean", "texts.parquet", *QUICK, *args)
    assert done.exit_code == 0, done.output
    after = pd.read_csv("t.csv")
    assert (after["suggested_label"] == after["truth"]).mean() > 0.95
    assert "self-training rounds" in " ".join(done.output.split())
    assert sorted(os.listdir("r")) == [
        "noise_matrix.csv",
        "noise_matrix.png",
        "posterior.nc",
        "second_opinion.csv",
    ]
    cells = pd.read_csv("r/noise_matrix.csv")
    assert (cells["low"] <= cells["mean"]).all()
    assert (cells["mean"] <= cells["high"]).all()
    right = cells.loc[cells["true"] == cells["observed"], ["low", "mean", "high"]]
    # a fifth of the labels is wrong, at one rate for all classes
    assert (right == right.iloc[0]).all(axis=None)
    assert (right["low"] < 0.8).all()
    assert (right["high"] > 0.8).all()


def test_holes_are_missing_and_unlabelled_rows_get_a_label(here):
    frame = animals()
    frame.loc[:9, "label"] = None
    frame.loc[5:20, "weight"] = None
    frame.loc[15:30, "sound"] = None
    frame.loc[16, "fur"] = None
    frame.loc[17, "label"] = None
    frame.to_csv("holes.csv", index=False)
    done = run("clean", "holes.csv", *QUICK, "--truth", "truth")
    assert done.exit_code == 0, done.output
    assert "11 rows have no label" in done.output
    assert "1 rows have no features" in done.output
    after = pd.read_csv("holes-corrected.csv")
    assert after["suggested_label"].notna().all()
    assert after["p_label_wrong"].isna().tolist() == after["label"].isna().tolist()
    assert (after["suggested_label"][:10] == after["truth"][:10]).mean() >= 0.8


def test_numbered_classes_stay_numbers(here):
    frame = animals()
    frame["label"] = frame["label"].map({"cat": 2, "dog": 10, "emu": 9}).astype("Int64")
    frame.loc[3, "label"] = pd.NA
    frame.drop(columns="truth").to_csv("numbers.csv", index=False)
    assert run("clean", "numbers.csv", *QUICK).exit_code == 0
    after = pd.read_csv("numbers-corrected.csv")
    assert set(after["suggested_label"]) == {2, 9, 10}
    assert after["suggested_label"].dtype == np.int64
    assert list(after.columns[-3:]) == ["p_2", "p_9", "p_10"]


def test_existing_columns_are_not_overwritten(here):
    frame = animals()
    frame["suggested_label"] = "mine"
    cleaned = clean(frame, "label", features=["weight", "sound"], draws=0)
    assert "suggested_label" not in cleaned.added
    assert cleaned.columns["suggested_label"] == "suggested_label_2"
    assert any("suggested_label_2" in note for note in cleaned.notes)


def test_chosen_features_and_settings(here):
    args = ["--features", "weight, fur", "--noise", "symmetric", "--weight", "0.5", "--alpha", "2"]
    done = run("clean", "animals.csv", *QUICK, *args)
    assert done.exit_code == 0, done.output
    assert "in a joint model, weight 0.5" in done.output
    assert "alpha 2" in done.output
    assert "one error rate" in done.output
    assert "sound" not in done.output


def test_overwrite(here):
    Path("animals-corrected.csv").write_text("old")
    assert run("clean", "animals.csv", *QUICK, "--overwrite").exit_code == 0
    assert Path("animals-corrected.csv").read_text() != "old"


def test_as_a_program(here):
    """Once from outside, as a user would, and with nothing but its own output."""
    done = subprocess.run(
        [sys.executable, "-m", "nbmodels.cli", "clean", "animals.csv", "--label", "label"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "animals-corrected.csv" in done.stdout
    assert "Traceback" not in done.stderr
    assert Path("animals-corrected.csv").exists()


def test_help_is_light():
    code = (
        "import sys, nbmodels.cli.app\n"
        "heavy = {'jax', 'pandas', 'sklearn', 'matplotlib', 'numpyro', 'arviz_base', 'scipy'}\n"
        "sys.exit(sorted(heavy & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    for args in ([], ["--help"], ["clean", "--help"], ["demo", "--help"]):
        assert "Usage" in run(*args).output


# What is refused --------------------------------------------------------------------------------

BAD = {
    "no such file": (["clean", "gone.csv", *QUICK], "FILE: there is no file gone.csv"),
    "a directory": (["clean", ".", *QUICK], "is not a file"),
    "another kind of file": (["clean", "picture.png", *QUICK], "FILE: picture.png is neither"),
    "not text": (["clean", "picture.csv", *QUICK], "FILE: picture.csv is not a table"),
    "ragged": (["clean", "ragged.csv", *QUICK], "FILE: ragged.csv is not a table"),
    "empty": (["clean", "empty.csv", *QUICK], "FILE: empty.csv is not a table"),
    "no rows": (["clean", "header.csv", *QUICK], "FILE: header.csv has no rows"),
    "not parquet": (["clean", "picture.parquet", *QUICK], "is not a Parquet table"),
    "no label column": (
        ["clean", "animals.csv", "--label", "species"],
        "--label: there is no column 'species'",
    ),
    "no text column": (
        ["clean", "animals.csv", *QUICK, "--text", "words"],
        "--text: there is no column 'words'",
    ),
    "text is numbers": (["clean", "animals.csv", *QUICK, "--text", "weight"], "--text: row 0"),
    "no feature column": (
        ["clean", "animals.csv", *QUICK, "--features", "fur,tail"],
        "--features: there is no column 'tail'",
    ),
    "no features": (
        ["clean", "animals.csv", *QUICK, "--features", ","],
        "--features: expected at least one column",
    ),
    "text and features": (
        ["clean", "animals.csv", *QUICK, "--text", "sound", "--features", "fur"],
        "--features: give either",
    ),
    "label as a feature": (
        ["clean", "animals.csv", *QUICK, "--features", "fur,label"],
        "--features: 'label' is the column of the label",
    ),
    "truth as a feature": (
        ["clean", "animals.csv", *QUICK, "--features", "truth", "--truth", "truth"],
        "--features: 'truth' is the column of the truth",
    ),
    "no truth column": (
        ["clean", "animals.csv", *QUICK, "--truth", "gold"],
        "--truth: there is no column 'gold'",
    ),
    "label is truth": (["clean", "animals.csv", *QUICK, "--truth", "label"], "--truth: 'label'"),
    "label is an id": (["clean", "animals.csv", "--label", "code"], "--label: column 'code' has"),
    "one class": (["clean", "one.csv", *QUICK], "--label: column 'label' needs two classes"),
    "infinite": (["clean", "infinite.csv", *QUICK], "column 'a' is infinite in row 1"),
    "weight": (["clean", "animals.csv", *QUICK, "--weight", "-1"], "--weight: expected"),
    "alpha": (["clean", "animals.csv", *QUICK, "--alpha", "nan"], "--alpha: expected"),
    "noise": (["clean", "animals.csv", *QUICK, "--noise", "loud"], "--noise"),
    "output exists": (
        ["clean", "animals.csv", *QUICK, "--out", "one.csv"],
        "--out: one.csv exists; choose another, or add --overwrite",
    ),
    "output is the input": (
        ["clean", "animals.csv", *QUICK, "--out", "animals.csv", "--overwrite"],
        "--out: animals.csv is the input",
    ),
    "output of no kind": (["clean", "animals.csv", *QUICK, "--out", "new.txt"], "--out: new.txt"),
    "output nowhere": (
        ["clean", "animals.csv", *QUICK, "--out", "no/such/new.csv"],
        "--out: there is no directory",
    ),
    "output under a file": (
        ["clean", "animals.csv", *QUICK, "--out", "one.csv/new.csv"],
        "--out: there is no directory",
    ),
    "report exists": (
        ["clean", "animals.csv", *QUICK, "--report", "one.csv"],
        "--report: one.csv exists",
    ),
    "demo exists": (["demo", "--out", "one.csv"], "--out: one.csv exists"),
    "demo is a file": (["demo", "--out", "one.csv", "--overwrite"], "--out: one.csv is a file"),
    "demo nowhere": (["demo", "--out", "no/such"], "--out: there is no directory"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_writes_nothing(here, case):
    picture = b"\x89PNG\r\n\x1a\n\x00\xff\xfe,\xff"
    for name in ("picture.png", "picture.csv", "picture.parquet"):
        Path(name).write_bytes(picture)
    Path("ragged.csv").write_text("a,label\n1,x\n1,2,3,y\n")
    Path("empty.csv").write_text("")
    Path("header.csv").write_text("a,label\n")
    Path("one.csv").write_text("a,label\n1,x\n2,x\n3,x\n")
    Path("infinite.csv").write_text("a,label\n1.5,x\ninf,y\n3,x\n2,y\n")
    before = {p: p.read_bytes() for p in Path().rglob("*") if p.is_file()}
    args, words = BAD[case]
    done = run(*args)
    assert done.exit_code == 2, done.output
    assert words in " ".join(done.output.split())
    assert "Traceback" not in done.output
    if case != "noise":  # a choice is typer's to refuse, in a box
        lines = [line for line in done.stderr.splitlines() if "reading the columns" not in line]
        assert len(lines) == 1
        assert lines[0].startswith("Error: ")
    assert {p: p.read_bytes() for p in Path().rglob("*") if p.is_file()} == before


def test_directory_that_cannot_be_written(here):
    for path in ("/proc/new.csv", "/sys/new.csv"):
        if Path(path).parent.is_dir():
            done = run("clean", "animals.csv", *QUICK, "--out", path)
            assert done.exit_code == 2
            assert "--out: cannot write to" in done.output
            return
    pytest.skip("every directory here can be written")


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


# The pieces -------------------------------------------------------------------------------------


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


def test_columns_are_taken_for_what_they_are():
    n = 60
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "row": np.arange(n),
            "yes": rng.integers(0, 2, n),
            "flag": rng.integers(0, 2, n).astype(bool),
            "size": rng.normal(size=n),
            "kind": rng.choice(list("abc"), n),
            "id": [f"x{i}" for i in range(n)],
            "same": 1,
            "none": np.full(n, np.nan),
            "when": pd.Timestamp("2024-02-29"),
            "y": rng.choice(list("pq"), n),
        }
    )
    choice = clean(frame, "y", draws=0).choice
    assert choice.families == {
        "yes": "bernoulli",
        "flag": "bernoulli",
        "size": "gaussian",
        "kind": "categorical",
    }
    assert set(choice.left_out) == {"row", "id", "same", "none", "when"}
    binary = clean(frame[["yes", "flag", "y"]], "y", draws=0)
    assert binary.choice.estimator == "NoisyBernoulliNB"


def test_a_fit_that_left_its_labels_is_reported():
    rng = np.random.default_rng(0)
    # ten copies of one coin: naive Bayes believes it ten times
    cluster = rng.integers(0, 2, 400)
    frame = pd.DataFrame({f"copy {j}": cluster for j in range(10)})
    frame["y"] = np.where(rng.random(400) < 0.55, cluster, 1 - cluster)
    cleaned = clean(frame, "y", draws=0)
    assert cleaned.expected_wrong < 0.5 or cleaned.warnings


def test_scores():
    scores = Scores.of(list("aabb"), list("abba"), [0.1, 0.9, 0.2, 0.8], list("abbb"))
    assert (scores.before, scores.after, scores.errors) == (0.75, 0.75, 1)
    assert (scores.changed, scores.found, scores.mended) == (2, 1, 1)
    assert (scores.precision, scores.recall, scores.auc) == (0.5, 1.0, 1.0)


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


@pytest.mark.slow
def test_demo(here):
    done = run("demo", "--out", "shown")
    assert done.exit_code == 0, done.output
    assert sorted(os.listdir("shown")) == [
        "corrected.csv",
        "noise_matrix.csv",
        "noise_matrix.png",
        "posterior.nc",
    ]
    for words in ("Planted against recovered", "precision", "NUTS", "modelling the noise"):
        assert words in " ".join(done.output.split())
    import xarray

    with xarray.open_datatree("shown/posterior.nc") as posterior:
        assert posterior["posterior"]["noise_matrix"].dims[-2:] == ("observed_class", "true_class")
        assert list(posterior["posterior"]["true_class"].values) == list("0123456789")
