"""``nbmodels clean`` on votes of several annotators: items are corrected, and votes are noticed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_tables import SPECIES, run

from nbmodels.data.annotations import vote_columns

ROLES = ["--label", "label", "--task", "task", "--worker", "worker"]


def votes(n=150, seed=0):
    """Three of five annotators on each item, the last of whom guesses; ids with zeros in front."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    item = np.repeat(np.arange(n), 3)
    worker = rng.permuted(np.tile(np.arange(5), (n, 1)), axis=1)[:, :3].ravel()
    right = rng.random(3 * n) < np.array([0.95, 0.9, 0.9, 0.85, 0.0])[worker]
    label = np.where(right, y[item], rng.integers(0, 3, 3 * n))
    return pd.DataFrame(
        {
            "task": [f"{i:04d}" for i in item[::-1]],
            "worker": np.array(["ann", "bob", "cat", "dan", "eve"])[worker[::-1]],
            "label": SPECIES[label[::-1]],
            "truth": SPECIES[y[item[::-1]]],
        }
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_items_of_votes_are_corrected(here, suffix):
    frame = votes()
    frame.loc[0, "label"] = None
    write = frame.to_parquet if suffix == ".parquet" else frame.to_csv
    write(f"votes{suffix}", index=False)
    done = run("clean", f"votes{suffix}", *ROLES, "--truth", "truth")
    assert done.exit_code == 0, done.output
    written = f"votes-corrected{suffix}"
    read = (
        pd.read_csv(written, dtype={"task": str}) if suffix == ".csv" else pd.read_parquet(written)
    )
    assert list(read) == [
        "task", "votes", "majority_label", "suggested_label", "p_label_wrong", "p_suggested",
        "check_rank", "p_cat", "p_dog", "p_emu",
    ]  # fmt: skip
    assert read["task"].tolist() == frame["task"].unique().tolist()
    assert read["votes"].tolist() == [2, *[3] * 149]
    true = frame.groupby("task")["truth"].first()[read["task"]].to_numpy()
    right = np.mean(read["suggested_label"] == true)
    assert right >= np.mean(read["majority_label"] == true)
    assert right > 0.9
    for words in (
        "449 votes of 5 annotators on 150 items",
        "1 row has no label",
        "spammer score",
        "P(majority is wrong)",
        "labels right after",
    ):
        assert words in done.output
    spammer = next(line for line in done.output.splitlines() if "eve" in line)
    assert float(spammer.split("│")[5]) > 0.9


def graded(rng, n=120, graders=6):
    """Four votes an item from 1 to 5, by graders of different severity."""
    score, severity = rng.normal(size=n), rng.normal(0, 0.5, graders)
    cuts = [-1.3, -0.4, 0.4, 1.3]
    item = np.repeat(np.arange(n), 4)
    worker = rng.permuted(np.tile(np.arange(graders), (n, 1)), axis=1)[:, :4].ravel()
    seen = score[item] - severity[worker] + 0.5 * rng.normal(size=4 * n)
    named = {
        "task": item,
        "worker": [f"w{j}" for j in worker],
        "label": 1 + np.digitize(seen, cuts),
    }
    return pd.DataFrame(named), 1 + np.digitize(score, cuts)


@pytest.mark.slow
def test_grades_are_ordered(here):
    frame, true = graded(np.random.default_rng(0))
    frame.to_csv("grades.csv", index=False)
    plain = run("clean", "grades.csv", *ROLES)
    assert plain.exit_code == 0, plain.output
    assert "--grades numbers" in " ".join(plain.output.split())
    done = run(
        "clean", "grades.csv", *ROLES, "--grades", "numbers", "--overwrite", "--report", "out"
    )
    assert done.exit_code == 0, done.output
    read = pd.read_csv("grades-corrected.csv")
    right, voted = (np.mean(read[name] == true) for name in ("suggested_label", "majority_label"))
    assert right > voted + 0.05
    assert {"severity", "scale", "range", "lapse"} <= set(pd.read_csv("out/annotators.csv"))
    words = np.array(["poor", "fair", "good", "better", "best"])
    frame["label"] = words[frame["label"] - 1]
    frame.to_csv("words.csv", index=False)
    named = run("clean", "words.csv", *ROLES, "--grades", ",".join(words))
    assert named.exit_code == 0, named.output
    again = pd.read_csv("words-corrected.csv")["suggested_label"]
    assert again.tolist() == words[read["suggested_label"] - 1].tolist()


@pytest.mark.parametrize(
    ("grades", "words"),
    [
        ("numbers", "--grades: the labels are no numbers; name them in their order: cat, dog, emu"),
        ("cat,dog", "--grades: expected each of cat, dog, emu once, got cat, dog"),
        ("cat,dog,bee", "--grades: expected each of cat, dog, emu once, got cat, dog, bee"),
        ("cat,dog,emu,emu", "expected each of cat, dog, emu once"),
    ],
)
def test_other_grades_are_refused(here, grades, words):
    votes().to_csv("votes.csv", index=False)
    done = run("clean", "votes.csv", *ROLES, "--truth", "truth", "--grades", grades)
    assert done.exit_code != 0
    assert words in " ".join(done.output.split())


@pytest.mark.parametrize("numbers", [True, False])
def test_a_scale_may_have_grades_that_no_vote_is(here, numbers):
    frame = votes(60)
    codes = frame["label"].map({"cat": 2, "dog": 3, "emu": 5})
    scale = list("123456") if numbers else ["nil", "low", "mid", "high", "top", "over"]
    frame["label"] = codes if numbers else codes.map(lambda code: scale[code - 1])
    frame.drop(columns="truth").to_csv("votes.csv", index=False)
    done = run("clean", "votes.csv", *ROLES, "--grades", ",".join(scale))
    assert done.exit_code == 0, done.output
    found = pd.read_csv("votes-corrected.csv", dtype=str)
    # grades at the ends are no classes, those between others are
    assert [one for one in found if one.startswith("p_")][-4:] == [f"p_{one}" for one in scale[1:5]]
    assert set(found["majority_label"]) == {scale[1], scale[2], scale[4]}
    assert set(found["suggested_label"]) <= set(scale[1:5])
    assert "nobody uses the grades at an end of the scale" in " ".join(done.output.split())


def test_a_table_of_items_has_no_grades(here):
    votes().to_csv("votes.csv", index=False)
    done = run("clean", "votes.csv", "--label", "label", "--grades", "numbers")
    assert done.exit_code != 0
    assert "--grades: for a table of votes" in " ".join(done.output.split())


def test_roles_have_the_names_of_columns_and_of_others(here):
    renamed = {"task": "question", "worker": "who", "label": "answer", "truth": "votes"}
    votes(60).rename(columns=renamed).to_csv("votes.csv", index=False)
    roles = ["--label", "answer", "--item", "question", "--annotator", "who"]
    done = run("clean", "votes.csv", *roles, "--no-probabilities", "--out", "new.csv")
    assert done.exit_code == 0, done.output
    assert list(pd.read_csv("new.csv"))[:2] == ["question", "votes"]


@pytest.mark.parametrize("command", [["clean"], ["audit", "plan"]])
@pytest.mark.parametrize("task", ["Item_ID", "image", "document-id"])
@pytest.mark.parametrize("first", [True, False])
def test_votes_are_no_items(here, command, task, first):
    """Whichever of the two columns comes first."""
    given = votes().drop(columns="truth").rename(columns={"task": task, "worker": "rater"})
    given = given[[task, "rater", "label"] if first else ["rater", task, "label"]]
    given.to_csv("votes.csv", index=False)
    done = run(*command, "votes.csv", "--label", "label")
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert f"--label: each row seems to be a vote, on an item of '{task}'" in said
    assert f"--task {task} --worker rater learns" in said
    assert [path.name for path in Path().glob("votes*")] == ["votes.csv"]


def test_other_tables_are_not_taken_for_votes(here):
    """One label an item, or items that are seen again by the same user."""
    frame = votes()
    assert vote_columns(frame) == [("task", "worker")]
    assert not vote_columns(frame.drop_duplicates("task"))
    assert not vote_columns(pd.concat([frame, frame]))
    assert vote_columns(frame.assign(item=frame["task"])[["item", "worker"]])
    assert not vote_columns(frame.rename(columns={"worker": "age"}))
    assert not vote_columns(frame.assign(worker=None))
    # texts that users wrote, each its own item
    texts = frame.assign(text=[f"text {i}" for i in range(len(frame))], user=frame["worker"])
    assert not vote_columns(texts[["user", "text", "label"]])


def test_names_that_leave_the_items_open_are_all_told(here):
    given = votes().drop(columns="truth").rename(columns={"task": "photo", "worker": "expert"})
    given.assign(image=given["photo"]).to_csv("votes.csv", index=False)
    done = run("clean", "votes.csv", "--label", "label")
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert "an item of 'photo' or 'image' by an annotator of 'expert'" in said
    assert "--task photo --worker expert or --task image --worker expert" in said


def test_votes_are_no_texts(here):
    """With --text each vote was taken for an item, and its text for as many."""
    given = votes(20).drop(columns="truth")
    given["body"] = "a text of " + given["task"]
    given.to_csv("votes.csv", index=False)
    done = run("clean", "votes.csv", "--label", "label", "--text", "body")
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert "each row seems to be a vote, on an item of 'task' by an annotator of 'worker'" in said
    assert "--groups task takes each row for an item of its own" in said
    reviews = given.assign(body=[f"review {i} of an item" for i in range(len(given))])
    assert vote_columns(given, "body")
    assert not vote_columns(reviews, "body")


BAD = {
    "one role": (["--task", "task"], "--worker: --task names one column"),
    "the other role": (["--worker", "worker"], "--task: --worker names one column"),
    "features": ([*ROLES[2:], "--features", "a"], "--features: not for a table of votes"),
    "text": ([*ROLES[2:], "--text", "truth"], "--text: not for a table of votes"),
    "estimator": ([*ROLES[2:], "--estimator", "auto"], "--estimator: not for a table of votes"),
    "no column": (["--task", "task", "--worker", "rater"], "--worker: there is no column 'rater'"),
    "two roles": (["--task", "task", "--worker", "task"], "--worker: 'task' is the column of the"),
    "empty": (["--task", "gaps", "--worker", "worker"], "--task: column 'gaps' is empty in row 3"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused(here, case):
    frame = votes(20)
    frame["gaps"] = frame["task"].where(frame.index != 2)
    frame.to_csv("votes.csv", index=False)
    more, words = BAD[case]
    done = run("clean", "votes.csv", "--label", "label", *more)
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())
    assert not Path("votes-corrected.csv").exists()


def test_items_are_checked_and_known_in_a_fit(here):
    frame = votes(120)
    frame["url"] = "https://example.org/" + frame["task"]
    frame["when"] = np.arange(len(frame))
    frame.to_csv("votes.csv", index=False)
    done = run("audit", "plan", "votes.csv", *ROLES, "--truth", "truth", "--rows", "30")
    assert done.exit_code == 0, done.output
    assert "Check 30 of 120 labels" in " ".join(done.output.split())
    rows = pd.read_csv("votes-audit.csv", dtype={"task": str})
    # what is the same in all votes on an item helps to check it; the truth would, too well
    assert list(rows) == ["audit_row", "task", "votes", "majority_label", "url", "audit_true_label"]
    order = frame["task"].unique()
    assert rows["task"].tolist() == order[rows["audit_row"] - 1].tolist()
    true = frame.groupby("task")["truth"].first()
    rows["audit_true_label"] = true[rows["task"]].to_numpy()
    rows.to_csv("votes-audit.csv", index=False)
    done = run("audit", "read", "votes-audit.csv")
    assert done.exit_code == 0, done.output
    assert "of 120 labels are wrong" in " ".join(done.output.split())

    checked = ["--checked", "votes-audit.csv"]
    done = run("clean", "votes.csv", *ROLES, "--truth", "truth", *checked)
    assert done.exit_code == 0, done.output
    assert "of 90" in done.output  # checked items are not compared with
    found = pd.read_csv("votes-corrected.csv", dtype={"task": str}).set_index("task")
    found = found.loc[rows["task"]]
    assert found["suggested_label"].tolist() == rows["audit_true_label"].tolist()
    np.testing.assert_allclose(found["p_suggested"], 1)


CHECKED = {
    "an unknown item": ({"task": ["9999"]}, "--checked: item '9999' has no vote"),
    "an unknown class": ({"audit_true_label": ["fox"]}, "--checked: item '0019' is 'fox'"),
    "no items": ({"task": None}, "has no column 'task'"),
}


@pytest.mark.parametrize("case", CHECKED)
def test_checked_items_are_refused(here, case):
    votes(20).to_csv("votes.csv", index=False)
    other, words = CHECKED[case]
    rows = pd.DataFrame({"audit_row": [1], "task": ["0019"], "audit_true_label": ["cat"]})
    rows = rows.assign(**other).dropna(axis=1)
    rows.to_csv("rows.csv", index=False)
    done = run("clean", "votes.csv", *ROLES, "--checked", "rows.csv")
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())


def test_the_source_of_copies_is_named(here):
    rng = np.random.default_rng(0)
    names, rates = (
        np.array(["ann", "bob", "cat", "dan", "eve", "fay"]),
        [0.15, 0.2, 0.2, 0.25, 0.3, 0.3],
    )
    y = rng.integers(0, 3, 300)
    wrong = rng.random((300, 6)) < rates
    cast = np.where(wrong, (y[:, None] + rng.integers(1, 3, (300, 6))) % 3, y[:, None])
    for copy in (4, 5):
        cast[:, copy] = np.where(rng.random(300) < 0.6, cast[:, 1], cast[:, copy])
    task, worker = np.divmod(np.arange(cast.size), 6)
    table = {"task": task, "worker": names[worker], "label": SPECIES[cast.ravel()]}
    pd.DataFrame(table).to_csv("votes.csv", index=False)
    done = run("clean", "votes.csv", *ROLES)
    assert done.exit_code == 0, done.output
    assert " ".join(done.output.split()).count("bob (copied in") == 2
    assert "worker_report" not in done.output


def spammers(n=200):
    """Two annotators of six look at the items; the others nearly always give one class."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    right = rng.random((n, 2)) < 0.85
    good = np.where(right, y[:, None], rng.integers(0, 3, (n, 2)))
    spam = np.where(rng.random((n, 4)) < 0.9, 2, rng.integers(0, 3, (n, 4)))
    cast = np.hstack([good, spam])
    task, worker = np.divmod(np.arange(cast.size), 6)
    return pd.DataFrame({"task": task, "worker": worker, "label": SPECIES[cast.ravel()]})


@pytest.mark.parametrize("command", ["clean", "audit plan"])
def test_a_verdict_is_printed_once(here, command):
    spammers().to_csv("votes.csv", index=False)
    done = run(*command.split(), "votes.csv", *ROLES)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert said.count("some vote as a group") == 1
    assert "Warning: Do not use this fit as it is" in said
    assert "pooling=" not in said
    if command == "clean":
        assert "All annotators are taken to be alike, since the votes do not show" in said


def test_two_annotators_are_warned_of_once(here):
    frame = votes()
    frame[frame["worker"].isin(["ann", "bob"])].to_csv("votes.csv", index=False)
    done = run("clean", "votes.csv", *ROLES)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert said.count("otes of two workers do not show") == 1
    assert "All checks of this fit passed" not in said


def test_a_label_that_one_vote_names_is_told(here):
    frame = votes(60)
    frame.loc[33, "label"] = "dgo"
    frame.to_csv("votes.csv", index=False)
    done = run("clean", "votes.csv", *ROLES)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "Warning: the label 'dgo' occurs once among 180, in row 34: is it misspelt?" in said


def test_an_item_has_one_true_label(here):
    frame = votes()
    row = int(np.flatnonzero(frame["task"] == frame["task"][0])[-1])
    other = str(next(one for one in SPECIES if one != frame["truth"][0]))
    frame.loc[row, "truth"] = other
    frame.to_csv("votes.csv", index=False)
    done = run("clean", "votes.csv", *ROLES, "--truth", "truth")
    said = " ".join(done.output.split())
    assert done.exit_code != 0
    assert f"is {frame['truth'][0]!r} in row 1 and {other!r} in row {row + 1}" in said


@pytest.mark.slow
def test_report_of_annotators(here, monkeypatch):
    """A fifth of the items is guessed: the picture shows what the table says, of all votes."""
    from nbmodels.posterior import plots

    shown, drawn = plots.annotators_reported, {}

    def watched(report):
        figure, frame = shown(report)
        drawn["shares"] = figure.axes[0].lines[0].get_xdata()
        return figure, frame

    monkeypatch.setattr(plots, "annotators_reported", watched)
    frame = votes()
    rng = np.random.default_rng(5)
    guessed = rng.choice(frame["task"].unique(), 30, replace=False)
    chance = frame["task"].isin(guessed)
    frame.loc[chance, "label"] = SPECIES[rng.integers(0, 3, chance.sum())]
    frame.to_csv("votes.csv", index=False)
    done = run("clean", "votes.csv", *ROLES, "--report", "report")
    assert done.exit_code == 0, done.output
    assert {path.name for path in Path("report").iterdir()} == {
        "annotators.csv", "annotators.png", "noise_matrices.csv", "noise_matrix.png",
        "posterior.nc",
    }  # fmt: skip
    cells = pd.read_csv("report/noise_matrices.csv")
    assert len(cells) == 5 * 3 * 3
    np.testing.assert_allclose(cells.groupby(["annotator", "true"])["mean"].sum(), 1, atol=1e-5)
    assert (cells["low"] <= cells["high"]).all()
    right = cells[cells["true"] == cells["vote"]].groupby("annotator")["mean"].mean()
    assert right.idxmin() == "eve"
    workers = pd.read_csv("report/annotators.csv")
    assert sorted(workers["worker"]) == sorted(frame["worker"].unique())
    shares = workers["accuracy"].sort_values(ascending=False)
    np.testing.assert_allclose(drawn["shares"], shares, atol=1e-6)


@pytest.mark.slow
def test_a_spreadsheet_of_windows_is_read_and_written_as_it_is(here):
    """Checked rows are saved by another program in UTF-8; a report is for the same spreadsheet."""
    frame = votes()
    names = {"cat": "Käfer", "dog": "Vögel", "emu": "Füchse"}
    frame["label"], frame["truth"] = frame["label"].map(names), frame["truth"].map(names)
    frame = frame.rename(columns={"worker": "Schüler"})
    frame.to_csv("votes.csv", index=False, sep=";", encoding="cp1252")
    roles = ["--label", "label", "--task", "task", "--worker", "Schüler", "--truth", "truth"]
    done = run("clean", "votes.csv", *roles)
    assert done.exit_code == 2
    assert "would have 'Schüler'" in done.output
    assert "add --encoding cp1252" in done.output
    named = [*roles, "--encoding", "cp1252"]
    planned = run("audit", "plan", "votes.csv", *named, "--rows", 20)
    assert planned.exit_code == 0, planned.output
    told = " ".join(planned.output.split())
    assert "nbmodels audit read votes-audit.csv --encoding cp1252" in told
    true = frame.groupby("task")["truth"].first()
    rows = pd.read_csv("votes-audit.csv", sep=";", encoding="cp1252", dtype=str)
    rows["audit_true_label"] = rows["task"].map(true)
    rows.to_csv("votes-audit.csv", sep=";", index=False, encoding="cp1252")
    read = run("audit", "read", "votes-audit.csv", "--encoding", "cp1252", "--report", "flips.csv")
    assert read.exit_code == 0, read.output
    flips = pd.read_csv("flips.csv", sep=";", encoding="cp1252")
    assert set(flips["true"]) <= set(names.values())
    rows.to_csv("votes-audit.csv", sep=";", index=False)
    checked = ["--checked", "votes-audit.csv", "--report", "report"]
    done = run("clean", "votes.csv", *named, *checked)
    assert done.exit_code == 0, done.output
    assert "Käfer" in Path("votes-corrected.csv").read_text(encoding="cp1252")
    cells = pd.read_csv("report/noise_matrices.csv", sep=";", encoding="cp1252")
    assert set(cells["vote"]) == set(names.values())
