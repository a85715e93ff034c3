"""``nbmodels audit plan`` and ``audit read``: a file to fill in, and the answer."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cli_tables import QUICK, SPECIES, animals, run

from nbmodels import NoisyMixedNB
from nbmodels.audit.plan import draw_plan
from nbmodels.cli.audit import _plan
from nbmodels.cli.checked import check_rows
from nbmodels.cli.console import InputError
from nbmodels.cli.files import read_table

FILLED, COLUMN = "animals-audit.csv", "audit_true_label"


def planned(n=40):
    """A plan of the table of animals and its file, as ``audit plan`` writes them, without a fit."""
    frame = animals()
    rng = np.random.default_rng(0)
    corrected = pd.DataFrame(
        {
            "row": np.arange(1, len(frame) + 1),
            "given": frame["label"],
            "suggested": frame["truth"],
            "p_wrong": np.where(frame["label"] != frame["truth"], 0.8, 0.1),
            "p_suggested": rng.uniform(0.8, 1, len(frame)),
        }
    )
    plan = draw_plan(corrected, SPECIES, n)
    plan.to_json(Path("animals-audit.json"))
    rows = frame.iloc[plan.rows["position"]].drop(columns="truth")
    rows.insert(0, "audit_row", plan.rows["row"].to_numpy())
    rows[COLUMN] = frame["truth"].iloc[plan.rows["position"]]
    return rows


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_plan_fill_in_and_read(here):
    done = run("audit", "plan", "animals.csv", *QUICK, "--truth", "truth", "--rows", 60)
    assert done.exit_code == 0, done.output
    assert "Check 60 of 240 labels" in " ".join(done.output.split())
    rows = pd.read_csv(FILLED, dtype=str, keep_default_na=False)
    assert list(rows) == ["audit_row", "code", "weight", "fur", "sound", "label", COLUMN]
    assert (rows[COLUMN] == "").all()
    whole = pd.read_csv("animals.csv", dtype=str)
    source = whole.iloc[rows["audit_row"].astype(int) - 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(rows[["code", "label"]], source[["code", "label"]])
    # checkers sort the file as they like
    rows.assign(**{COLUMN: source["truth"]}).sort_values("code").to_csv(FILLED, index=False)
    done = run("audit", "read", FILLED, "--report", "flips.csv")
    assert done.exit_code == 0, done.output
    words = " ".join(done.output.split())
    assert "60 checked rows:" in words
    assert "suggested labels that are right" in words
    assert len(pd.read_csv("flips.csv")) == 9
    done = run("clean", "animals.csv", *QUICK, "--truth", "truth", "--checked", FILLED)
    assert done.exit_code == 0, done.output
    assert "of 180" in done.output  # of the rows that are not checked
    found = pd.read_csv("animals-corrected.csv", dtype=str).iloc[rows["audit_row"].astype(int) - 1]
    assert (found["suggested_label"] == found["truth"]).all()


def overlapping(n=1200):
    """Labels that are wrong near the boundary, so that the two ends are far apart."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 4))
    side = x[:, 0] + 0.7 * x[:, 1]
    wrong = rng.random(n) < 0.45 * np.exp(-1.5 * np.abs(side))
    return pd.DataFrame(x, columns=list("wxyz")), np.where((side > 0) ^ wrong, "no", "yes")


@pytest.mark.slow
def test_margins_are_those_of_the_library(here):
    x, given = overlapping()
    x.assign(label=given).to_csv("t.csv", index=False)
    done = run("audit", "plan", "t.csv", "--label", "label", "--margin", 0.03)
    assert done.exit_code == 0, done.output
    plan = NoisyMixedNB(random_state=0).fit(x, given).audit_plan(margin=0.03)
    words = " ".join(done.output.split())
    assert plan.sentence in words
    assert "if errors do not depend on the features, and" in words  # both ends


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_a_second_round_draws_other_rows(here):
    first = planned(60)
    first.to_csv("first.csv", index=False)
    plan = ["audit", "plan", "animals.csv", *QUICK, "--truth", "truth", "--rows", 60]
    done = run(*plan, "--checked", "first.csv", "--overwrite")
    assert done.exit_code == 0, done.output
    assert "Check 60 of 180 labels" in " ".join(done.output.split())
    second = pd.read_csv(FILLED, dtype=str, keep_default_na=False)
    assert not set(second["audit_row"]) & set(first["audit_row"].astype(str))
    truth = animals()["truth"].iloc[second["audit_row"].astype(int) - 1]
    second.assign(**{COLUMN: truth.to_numpy()}).to_csv(FILLED, index=False)
    both = ["--truth", "truth", "--checked", "first.csv", "--checked", FILLED]
    done = run("clean", "animals.csv", *QUICK, *both)
    assert done.exit_code == 0, done.output
    assert "of 120" in done.output  # of the rows that are not checked


def test_files_that_contradict_each_other_are_refused(here):
    rows = planned(10)
    rows.to_csv("first.csv", index=False)
    names = dict(zip(SPECIES, np.roll(SPECIES, 1), strict=True))
    rows.assign(**{COLUMN: rows[COLUMN].map(names)}).to_csv(FILLED, index=False)
    both = ["--checked", "first.csv", "--checked", FILLED]
    done = run("audit", "plan", "animals.csv", *QUICK, *both, "--out", "next.csv")
    assert done.exit_code == 2
    words = " ".join(done.output.split())
    first = rows["audit_row"].iloc[0]
    assert f"--checked: row {first} is {rows[COLUMN].iloc[0]!r} in one file and" in words


@pytest.mark.parametrize(("end", "share"), [(0.4, 0.4), (0.0, 0.2)])
def test_margins_suppose_the_larger_end(end, share):
    n = 400
    fitted = SimpleNamespace(
        separable=SimpleNamespace(end=SimpleNamespace(share_wrong=end)), as_given=False
    )
    corrected = pd.DataFrame(
        {"given": "cat", "suggested": "cat", "p_wrong": np.full(n, 0.2), "p_suggested": 0.8}
    )
    model = SimpleNamespace(classes_=np.array(["cat", "dog"]), fitted_=fitted)
    plan = _plan(model, corrected, np.zeros(n, bool), None, margin=0.05, share=None, seed=0)
    assert plan.share == pytest.approx(share, abs=0.001)


@pytest.mark.parametrize(
    ("row", "name", "words"),
    [
        (241, "cat", "--checked: there is no row 241; the table has 240"),
        (3, "cow", "--checked: row 3 is 'cow', which no given label is"),
    ],
)
def test_checked_rows_of_another_table_are_refused(here, row, name, words):
    rows = animals().iloc[[row % 240 - 1]].assign(audit_row=row, audit_true_label=name)
    rows.to_csv(FILLED, index=False)
    done = run("clean", "animals.csv", *QUICK, "--checked", FILLED)
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())


def test_checked_rows_of_a_table_that_was_sorted_since_are_refused(here):
    rows = planned()
    # a spreadsheet writes numbers its own way, and checkers correct labels in their place
    kept = rows.assign(weight=rows["weight"].map("{:.4f}".format), label=rows[COLUMN])
    # and end lines their own way
    said = kept[["audit_row", "sound", "label", COLUMN]]
    said = said.assign(sound="so\r\n" + said["sound"])
    for table, filled, refused in [
        (animals(), kept, False),
        (animals(), kept.drop(columns=["code", "weight", "fur", "sound"]), False),
        (animals().assign(sound="so\n" + animals()["sound"]), said, False),
        (animals().sort_values("weight"), kept, True),
    ]:
        table.to_csv("sorted.csv", index=False)
        filled.to_csv(FILLED, index=False)
        read = [read_table(Path(name)) for name in (FILLED, "sorted.csv")]
        if not refused:
            check_rows(*read, "label", "--checked")
            continue
        words = r"^--checked: row \d+ of sorted.csv is not the row .*: its 'code' is \d+, and was"
        with pytest.raises(InputError, match=words):
            check_rows(*read, "label", "--checked")
    done = run("clean", "sorted.csv", *QUICK, "--checked", FILLED)
    assert done.exit_code == 2
    assert "was the table sorted since, or did it lose rows?" in " ".join(done.output.split())


def test_read_prints_the_answer(here):
    planned().to_csv(FILLED, index=False)
    done = run("audit", "read", FILLED)
    assert done.exit_code == 0, done.output
    for words in ("40 checked rows", "wrong labels", "cat", "emu", "Suggested labels are right on"):
        assert words in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("names", "cells"),
    [
        (["01", "02", "x"], ["01", "02", "x"]),
        (["01", "02", "03"], ["01", "02", "03"]),
        (["01", "02", "03"], ["1", "2.0", "3"]),  # as a spreadsheet writes them
        (["true", "false", "unsure"], ["true", "FALSE", " unsure "]),
        (["1.50", "2", "10"], ["1.50", "2", "10"]),
    ],
)
def test_class_names_as_they_are_spelt(here, names, cells):
    rows = planned()
    spelt = dict(zip(SPECIES, names, strict=True))
    content = json.loads(Path("animals-audit.json").read_text())
    content["classes"] = names
    for name in ("given", "suggested"):
        content["rows"][name] = [spelt[v] for v in content["rows"][name]]
    Path("animals-audit.json").write_text(json.dumps(content))
    filled = rows[COLUMN].map(dict(zip(SPECIES, cells, strict=True)))
    rows.assign(**{COLUMN: filled}).to_csv(FILLED, index=False)
    done = run("audit", "read", FILLED)
    assert done.exit_code == 0, done.output
    # the wrong row is named, and no other
    filled.iloc[7] = "oops"
    rows.assign(**{COLUMN: filled}).to_csv(FILLED, index=False)
    done = run("audit", "read", FILLED)
    assert done.exit_code == 2
    assert f"row {rows['audit_row'].iloc[7]} has the label 'oops'" in " ".join(done.stderr.split())


BAD = {
    "another label": (lambda r: r.assign(**{COLUMN: ["cow", *r[COLUMN][1:]]}), "the label 'cow'"),
    "an empty cell": (
        lambda r: r.assign(**{COLUMN: ["", *r[COLUMN][1:]]}),
        "of the plan is not checked",
    ),
    "a row that is gone": (lambda r: r[1:], "of the plan is not checked"),
    "a row that is not in the plan": (
        lambda r: r.assign(audit_row=[999, *r["audit_row"][1:]]),
        "FILE: row 999 is not in the plan",
    ),
    "a row twice": (lambda r: pd.concat([r, r[:1]]), "occurs twice in 'audit_row'"),
    "no row number": (
        lambda r: r.assign(audit_row=["first", *r["audit_row"][1:]]),
        "FILE: line 2 has no row number",
    ),
    "half a row number": (
        lambda r: r.assign(audit_row=[2.5, *r["audit_row"][1:]]),
        "FILE: line 2 has no row number",
    ),
    "no column": (lambda r: r.drop(columns=COLUMN), "FILE: animals-audit.csv has no column"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_one_line(here, case):
    change, words = BAD[case]
    change(planned()).to_csv(FILLED, index=False)
    done = run("audit", "read", FILLED)
    assert done.exit_code == 2, done.output
    assert words in " ".join(done.stderr.split())
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.output


def test_rows_that_are_still_to_be_checked(here):
    rows = planned()
    rows.loc[rows.index[30:], COLUMN] = ""
    rows.to_csv(FILLED, index=False)
    assert run("audit", "read", FILLED).exit_code == 2
    done = run("audit", "read", FILLED, "--partial")
    assert done.exit_code == 0, done.output
    assert "30 checked rows" in done.output


@pytest.mark.slow
def test_names_of_files_are_printed_as_they_are(here):
    args = [*QUICK, "--features", "weight", "--rows", 9, "--out", "a [v2] :smile:.csv"]
    done = run("audit", "plan", "animals.csv", *args)
    assert done.exit_code == 0, done.output
    words = " ".join(done.output.split())
    assert "Wrote a [v2] :smile:.csv: fill in" in words
    assert "nbmodels audit read 'a [v2] :smile:.csv'" in words
    assert "Wrote a [v2] :smile:.json: the plan" in words


def test_no_plan_beside_the_file(here):
    planned().to_csv("other.csv", index=False)
    done = run("audit", "read", "other.csv")
    assert done.exit_code == 2
    words = " ".join(done.stderr.split())
    assert "FILE: there is no plan other.json of other.csv; give the table that nbmodels" in words
    named = run("audit", "read", "other.csv", "--plan", "another.json")
    assert "--plan: another.json cannot be read" in " ".join(named.stderr.split())
    assert run("audit", "read", "other.csv", "--plan", "animals-audit.json").exit_code == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--rows", 5, "--margin", 0.1], "--margin: give either"),
        (["--out", "plan.parquet"], "--out: plan.parquet is neither"),
        (["--out", "animals.csv"], "--out: animals.csv is the input"),
    ],
)
def test_refused_plans(here, more, words):
    done = run("audit", "plan", "animals.csv", *QUICK, *more)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())


def test_checks_of_other_texts_with_the_same_ids_are_refused(here):
    texts = pd.DataFrame({"id": range(40), "label": ["ant", "bee"] * 20})
    body = "A text number {} that somebody wrote for a message board once"
    texts = texts.assign(body=[body.format(i) for i in range(40)])
    filled = texts.assign(audit_row=range(1, 41), audit_true_label=texts["label"]).head(20)
    # a typo that was mended since
    mended = texts.assign(
        body=texts["body"].where(texts["id"] != 3, "A text, mended; of some length")
    )
    others = texts.assign(body=[body.format(100 - i) for i in range(40)])
    for name, frame in {"filled": filled, "mended": mended, "others": others}.items():
        frame.to_csv(f"{name}.csv", index=False)
    read = {name: read_table(Path(f"{name}.csv")) for name in ("filled", "mended", "others")}
    check_rows(read["filled"], read["mended"], "label", "--checked")
    with pytest.raises(InputError, match="is not the row that was checked: its 'body' is"):
        check_rows(read["filled"], read["others"], "label", "--checked")
