"""What the command line refuses in one line, without writing."""

import subprocess
import sys
from pathlib import Path

import pytest
from cli_tables import QUICK, run

import nbmodels

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
    "text is numbers": (["clean", "animals.csv", *QUICK, "--text", "weight"], "--text: row 1 is"),
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
    "no groups column": (
        ["clean", "animals.csv", *QUICK, "--groups", "herd"],
        "--groups: there is no column 'herd'",
    ),
    "groups as a feature": (
        ["clean", "animals.csv", *QUICK, "--features", "fur", "--groups", "fur"],
        "--groups: 'fur' is the column of something else",
    ),
    "no truth column": (
        ["clean", "animals.csv", *QUICK, "--truth", "gold"],
        "--truth: there is no column 'gold'",
    ),
    "truth of other names": (
        ["clean", "upper.csv", *QUICK, "--truth", "truth"],
        "--truth: none of the labels in 'truth' ('X', 'Y') is among those in 'label' ('x', 'y')",
    ),
    "truth is a number": (
        ["clean", "animals.csv", *QUICK, "--truth", "weight"],
        "--truth: none of the labels in 'weight'",
    ),
    "label is truth": (["clean", "animals.csv", *QUICK, "--truth", "label"], "--truth: 'label'"),
    "label is an id": (["clean", "animals.csv", "--label", "code"], "--label: column 'code' has"),
    "one class": (["clean", "one.csv", *QUICK], "--label: column 'label' needs two classes"),
    "infinite": (
        ["clean", "infinite.csv", *QUICK],
        "Error: column 'a' is infinite in row 2; empty the cell if its value is not known, or "
        "leave the column out: name the others by --features",
    ),
    "infinite feature": (
        ["clean", "infinite.csv", *QUICK, "--features", "a"],
        "--features: column 'a' is infinite in row 2; empty the cell if its value is not known, "
        "or leave the column out",
    ),
    "weight": (["clean", "animals.csv", *QUICK, "--weight", "-1"], "--weight: expected"),
    "estimator": (
        ["clean", "animals.csv", *QUICK, "--estimator", "auto", "--alpha", "1"],
        "--alpha: estimator 'auto' chooses it",
    ),
    "seed": (["clean", "animals.csv", *QUICK, "--seed", "-1"], "--seed"),
    "draws": (["clean", "animals.csv", *QUICK, "--draws", "0"], "--draws"),
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
        ["clean", "animals.csv", *QUICK, "--report", "folder.csv"],
        "--report: folder.csv exists",
    ),
    "report is a file": (
        ["clean", "animals.csv", *QUICK, "--report", "one.csv", "--overwrite"],
        "--report: one.csv is a file",
    ),
    "report is the output": (
        ["clean", "animals.csv", *QUICK, "--report", "new.csv", "--out", "new.csv"],
        "--report: new.csv is the corrected table",
    ),
    "report holds the input": (
        ["clean", "folder.csv/noise_matrix.csv", *QUICK, "--report", "folder.csv", "--overwrite"],
        "--report: folder.csv/noise_matrix.csv is the input",
    ),
    "output is a folder": (
        ["clean", "animals.csv", *QUICK, "--out", "folder.csv", "--overwrite"],
        "--out: folder.csv is a folder; expected a file",
    ),
    "output is the checked rows": (
        ["clean", "animals.csv", *QUICK, "--checked", "one.csv", "--out", "one.csv", "--overwrite"],
        "--out: one.csv is the file of --checked",
    ),
    "plan is the input": (
        ["audit", "plan", "animals.csv", *QUICK, "--out", "./animals.csv", "--overwrite"],
        "--out: animals.csv is the input",
    ),
    "plan is a folder": (
        ["audit", "plan", "animals.csv", *QUICK, "--out", "folder.csv", "--overwrite"],
        "--out: folder.csv is a folder",
    ),
    "flip rates are the input": (
        ["audit", "read", "one.csv", "--report", "one.csv", "--overwrite"],
        "--report: one.csv is the input",
    ),
    "flip rates are the plan": (
        ["audit", "read", "one.csv", "--report", "one.json", "--overwrite"],
        "--report: one.json is the plan",
    ),
    "no rows to check": (
        ["audit", "plan", "animals.csv", *QUICK, "--features", "weight", "--rows", "0"],
        "--rows: expected a whole number",
    ),
    "two columns of one name": (
        ["clean", "twice.csv", *QUICK],
        "FILE: twice.csv has two columns of the name 'a'",
    ),
    "demo exists": (["demo", "--out", "folder.csv"], "--out: folder.csv exists"),
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
    Path("folder.csv").mkdir()
    Path("folder.csv/noise_matrix.csv").write_text("a,label\n1,x\n2,y\n")
    Path("one.json").write_text("{}")
    Path("one.csv").write_text("a,label\n1,x\n2,x\n3,x\n")
    Path("upper.csv").write_text("a,label,truth\n1,x,X\n2,y,Y\n3,x,X\n4,y,\n")
    Path("twice.csv").write_text("a,b,a,label\n1,2,3,x\n2,3,4,y\n3,4,5,x\n")
    Path("infinite.csv").write_text("a,label\n1.5,x\ninf,y\n3,x\n2,y\n")
    before = {p: p.read_bytes() for p in Path().rglob("*") if p.is_file()}
    args, words = BAD[case]
    done = run(*args)
    assert done.exit_code == 2, done.output
    assert words in " ".join(done.output.split())
    assert "Traceback" not in done.output
    if case in ("noise", "seed", "draws"):  # choices and ranges are typer's to refuse, in a box
        assert "reading the columns" not in done.stderr
    else:
        stages = ("reading the columns", "fitting the model", "checking the result")
        lines = [s for s in done.stderr.splitlines() if not any(stage in s for stage in stages)]
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


@pytest.mark.parametrize("module", ["nbmodels", "nbmodels.cli"])
def test_the_package_is_a_command(module):
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True
    )
    assert "Usage: nbmodels " in done.stdout
    assert "audit" in done.stdout


def test_the_version_is_told():
    done = run("--version")
    assert done.exit_code == 0
    assert done.output.strip() == f"nbmodels {nbmodels.__version__}"
