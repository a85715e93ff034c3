"""``nbmodels clean`` and ``demo``: what they write, and what they say."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from children import environment
from cli_tables import FIXED, QUICK, SPECIES, animals, run
from paths import ROOT

from nbmodels.cli import clean as job
from nbmodels.cli import demo
from nbmodels.cli.clean import Scores, clean
from nbmodels.cli.report import _held, changes_table, show
from nbmodels.cli.wording import screen
from nbmodels.data.labels import LabelColumn
from nbmodels.data.user_table import Choice, _usable_kind, texts_left_out
from nbmodels.datasets import corrupt, uniform_noise


def sentences(n=300, seed=1):
    rng = np.random.default_rng(seed)
    words = [[f"{name}{j}" for j in range(30)] for name in ("red", "green", "blue")]
    y = rng.integers(0, 3, n)
    texts = [" ".join([*rng.choice(words[k], 8), *rng.choice(words[(k + 1) % 3], 2)]) for k in y]
    given = corrupt(y, uniform_noise(3, 0.2), rng)
    return pd.DataFrame({"text": texts, "label": SPECIES[given], "truth": SPECIES[y]})


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("options", [FIXED, pytest.param(QUICK, marks=pytest.mark.slow)])
def test_clean_keeps_rows_and_columns_and_scores(here, options):
    done = run("clean", "animals.csv", *options, "--truth", "truth")
    assert done.exit_code == 0, done.output
    before = pd.read_csv("animals.csv", dtype=str)
    after = pd.read_csv("animals-corrected.csv", dtype=str)
    # "0007" is still "0007", and no row moved
    pd.testing.assert_frame_equal(after[before.columns], before)
    new = [c for c in after if c not in before]
    assert new[:4] == ["suggested_label", "p_label_wrong", "p_suggested", "check_rank"]
    assert new[4:] == ["p_cat", "p_dog", "p_emu"]
    assert (after["suggested_label"] == after["truth"]).mean() > 0.97
    assert np.allclose(after[new[4:]].astype(float).sum(axis=1), 1, atol=1e-5)
    for words in ("NoisyMixedNB", "cat", "labels right after", "AUC", "it numbers the rows"):
        assert words in done.output
    assert sorted(os.listdir()) == ["animals-corrected.csv", "animals.csv"]


def test_results_of_an_earlier_run_are_not_learned_from():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 200)
    table = pd.DataFrame(rng.normal(size=(200, 2)) + 3.0 * true[:, None], columns=["a", "b"])
    table["label"] = np.array(["ant", "bee"])[corrupt(true, uniform_noise(2, 0.2), rng)]
    first = clean(table, "label", draws=0)
    both = pd.concat([table, first.added], axis=1)
    again = clean(both, "label", draws=0)
    assert dict.fromkeys(first.added, "a result of clean") == again.choice.left_out
    assert list(again.suggested) == list(first.suggested)
    # a third run leaves out those of both
    thrice = clean(pd.concat([both, again.added], axis=1), "label", draws=0)
    assert set(thrice.choice.families) == {"a", "b"}
    # one such name alone may be a feature
    alone = clean(table.assign(p_ant=table["a"]), "label", draws=0)
    assert "p_ant" in alone.choice.families


@pytest.mark.slow
def test_a_label_that_one_row_has_is_told():
    frame = animals()
    frame.loc[33, "label"] = "dgo"
    (said,) = (w for w in clean(frame, "label", draws=0).warnings if "occurs once" in w)
    assert said.startswith("the label 'dgo' occurs once among 240, in row 34: is it misspelt?")


def test_a_label_that_is_seen_once_is_no_slip_where_it_was_checked():
    labels = pd.Series(["cat", "dog"] * 20 + ["emu"])
    (said,) = LabelColumn.of(labels, "label").seen_once([])
    assert "'emu' occurs once among 41, in row 41" in said
    assert LabelColumn.of(labels, "label").seen_once(["emu"]) == []
    twice = pd.concat([labels, labels[40:]], ignore_index=True)
    assert LabelColumn.of(twice, "label").seen_once([]) == []
    few = labels[20:].reset_index(drop=True)  # of which each is rare
    assert LabelColumn.of(few, "label").seen_once([]) == []


@pytest.mark.parametrize(
    ("once", "meant"),
    [
        ("sapm", "spam"), ("spma", "spam"), ("spamm", "spam"), ("spa m", None), ("hum", None),
        ("Grade B", None), ("grade a", None), ("grades A", "grade A"), ("type2", None),
        ("unspam", None), ("bacon", None),
    ],
)  # fmt: skip
def test_of_few_labels_one_that_is_nearly_another_is_named(once, meant):
    labels = pd.Series([*["spam", "ham", "grade A", "type1"] * 3, once])
    told = LabelColumn.of(labels, "label").seen_once([])
    assert told == (
        [
            f"the label {once!r} occurs once among 13, in row 13: is it {meant!r}, misspelt? It is "
            "taken for a class"
        ]
        if meant
        else []
    )
    assert LabelColumn.of(labels, "label").seen_once([once]) == []


@pytest.mark.slow
def test_truth_is_never_a_feature(here):
    frame = animals()
    with_truth = clean(frame, "label", truth="truth", draws=0)
    without = clean(frame.drop(columns="truth"), "label", draws=0)
    assert "truth" not in with_truth.choice.families
    assert "label" not in with_truth.choice.families
    np.testing.assert_allclose(with_truth.p_wrong, without.p_wrong)


@pytest.mark.parametrize(
    ("columns", "informative", "texts", "told"),
    [
        (1, True, True, True),
        (6, True, True, False),
        (6, False, True, True),
        (1, True, False, False),
    ],
)
def test_texts_that_are_not_used_are_named(columns, informative, texts, told):
    words = "of some words that differ from row to row" if texts else "Ant"
    frame = pd.DataFrame({"what": [f"{i} {words}" for i in range(30)]})
    used = {f"x{j}": "gaussian" for j in range(columns)}
    reason = _usable_kind(frame["what"], asked=False).reason
    choice = Choice("NoisyMixedNB", used, {"what": reason})
    found = texts_left_out(frame, choice, informative=informative)
    assert len(found) == told
    for one in found:
        assert one.startswith("column 'what' holds texts (of 10 words on average)")
        assert one.endswith("use --text what")


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_groups_stay_together(here):
    """Six visits of each patient share one wrong diagnosis."""
    rng = np.random.default_rng(63)
    true = rng.integers(0, 3, 100)
    given = np.where(rng.random(100) < 0.15, (true + 1) % 3, true)
    patient = np.repeat(np.arange(100), 6)
    means = rng.normal(0, 1.5, (3, 6))[true] + rng.normal(size=(100, 6))
    frame = pd.DataFrame(means[patient] + 0.35 * rng.normal(size=(600, 6))).add_prefix("x")
    frame = frame.assign(patient=patient, label=SPECIES[given][patient])
    frame.to_csv("visits.csv", index=False)
    done = run("clean", "visits.csv", *QUICK, "--groups", "patient")
    assert done.exit_code == 0, done.output
    after = pd.read_csv("visits-corrected.csv")
    assert "patient" in after
    assert np.mean(after["suggested_label"] == SPECIES[true][patient]) > 0.95
    assert np.mean(given == true) < 0.9


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_parquet_keeps_types(here):
    frame = animals()
    frame["when"] = pd.Timestamp("2024-02-29")
    frame["fur"] = frame["fur"].astype(bool)
    frame.to_parquet("animals.parquet")
    done = run("clean", "animals.parquet", *FIXED, "--out", "new.parquet", "--no-probabilities")
    assert done.exit_code == 0, done.output
    after = pd.read_parquet("new.parquet")
    pd.testing.assert_frame_equal(after[frame.columns], frame)
    assert list(after.columns[len(frame.columns) :]) == [
        "suggested_label",
        "p_label_wrong",
        "p_suggested",
        "check_rank",
    ]


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
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
    assert "1 row has no features" in done.output
    after = pd.read_csv("holes-corrected.csv")
    assert after["suggested_label"].notna().all()
    assert after["p_label_wrong"].isna().tolist() == after["label"].isna().tolist()
    assert (after["suggested_label"][:10] == after["truth"][:10]).mean() >= 0.8


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_numbered_classes_stay_numbers(here):
    frame = animals()
    frame["label"] = frame["label"].map({"cat": 2, "dog": 10, "emu": 9}).astype("Int64")
    frame.loc[3, "label"] = pd.NA
    frame.drop(columns="truth").to_csv("numbers.csv", index=False)
    assert run("clean", "numbers.csv", *FIXED).exit_code == 0
    after = pd.read_csv("numbers-corrected.csv")
    assert set(after["suggested_label"]) == {2, 9, 10}
    assert after["suggested_label"].dtype == np.int64
    assert list(after.columns[-3:]) == ["p_2", "p_9", "p_10"]


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_labels_keep_their_spelling(here):
    frame = animals().assign(label=lambda t: t["label"].map({"cat": "01", "dog": "02", "emu": "x"}))
    frame["truth"] = frame["truth"].map({"cat": "1.0", "dog": "02", "emu": "x"})
    frame.loc[:4, "label"] += " "
    frame = frame.rename(columns={"weight": "weight [kg] :cat:"})
    frame.to_csv("spelt [v2].csv", index=False)
    args = ["--truth", "truth", "--features", "weight [kg] :cat:"]
    done = run("clean", "spelt [v2].csv", *FIXED, *args)
    assert done.exit_code == 0, done.output
    assert "Blanks around 5 labels are ignored" in done.output
    after = pd.read_csv("spelt [v2]-corrected.csv", dtype=str)
    assert set(after["suggested_label"]) == {"01", "02", "x"}
    assert (after["label"].str.strip() == after["suggested_label"]).mean() > 0.75
    assert list(after["label"]) == list(frame["label"])
    assert "labels right before" in done.output
    # brackets and colons are printed as they are
    for shown in ("spelt [v2].csv: 240 rows", "weight [kg] :cat:", "Wrote spelt [v2]-corrected"):
        assert shown in done.output


def test_true_labels_that_no_label_is():
    frame = animals()[["weight", "label", "truth"]]
    frame.loc[:9, "truth"] = ["ant", "bee", "cow", "doe", "eel"] * 2
    quick = {"truth": "truth", "draws": 0, "noise": "symmetric", "weight": 1, "alpha": 1}
    found = clean(frame, "label", **quick)
    words = "10 of 240 true labels are not among the given ones ('ant', 'bee', 'cow', ...)"
    assert any(words in one for one in found.warnings)
    assert found.scores.rows == 240


@pytest.mark.slow
def test_no_share_of_wrong_labels_where_features_say_nothing(capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    found = clean(frame.assign(label=rng.choice(["x", "y"], 200)), "label", draws=0)
    assert not found.limits.estimated
    show(screen(), found)
    words = " ".join(capsys.readouterr().out.split())
    assert "Expected share of wrong labels: not estimated, since the features do not" in words
    assert "lower bound" not in words
    assert "This model estimates" not in words


@pytest.mark.slow
def test_a_matrix_of_labels_that_may_be_right_says_so(capsys, monkeypatch):
    found = clean(animals(), "label", draws=20)
    for noisy, told in ((0.08, True), (0.99, False)):
        monkeypatch.setattr(type(found), "noisy", noisy)
        show(screen(), found)
        words = " ".join(capsys.readouterr().out.split())
        assert ("give that a probability of 8%" in words) is told


def test_existing_columns_are_not_overwritten(here):
    frame = animals()
    frame["suggested_label"] = "mine"
    fixed = {"noise": "symmetric", "weight": 1, "alpha": 1}
    cleaned = clean(frame, "label", features=["weight", "sound"], draws=0, **fixed)
    assert "suggested_label" not in cleaned.added
    assert cleaned.columns["suggested_label"] == "suggested_label_2"
    assert any("suggested_label_2" in note for note in cleaned.notes)


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_chosen_features_and_settings(here):
    args = ["--features", "weight, fur", "--noise", "symmetric", "--weight", "0.5", "--alpha", "2"]
    done = run("clean", "animals.csv", *QUICK, *args)
    assert done.exit_code == 0, done.output
    assert "in a joint model, weight 0.5" in done.output
    assert "alpha 2" in done.output
    assert "one error rate" in done.output
    assert "sound" not in done.output


@pytest.mark.slow
def test_a_nonlinear_classifier_beside_naive_bayes(here, monkeypatch):
    """The class is in a difference of columns, which each alone says nothing of."""
    found = []

    def watched(*args, **options):
        found.append(clean(*args, **options, draws=0))
        return found[-1]

    monkeypatch.setattr(job, "clean", watched)
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    common = rng.normal(size=400)
    other = common + 2 * y - 1 + rng.normal(0, 0.3, 400)
    given = np.where(rng.random(400) < 0.2, 1 - y, y)
    frame = pd.DataFrame({"a": 3 * common, "b": 3 * other, "label": given, "truth": y})
    frame.to_csv("differences.csv", index=False)
    columns = ["differences.csv", "--label", "label", "--truth", "truth"]
    done = run("clean", *columns, "--out", "by_naive_bayes.csv")
    assert done.exit_code == 0, done.output
    stated = " ".join(done.output.split())
    assert "of a nonlinear classifier, by which labels are corrected" in stated
    done = run("clean", *columns, "--estimator", "auto")
    assert done.exit_code == 0, done.output
    assert "AutoNoisyClassifier" in done.output
    plain, auto = found
    assert not plain.warnings
    assert "predicted by that classifier, too" in plain.model.verdict().sentence
    assert plain.choice.settings["scores"] == "nonlinear classifier"
    assert not any("--estimator" in one for one in auto.warnings)
    assert auto.choice.settings["emission"] != "mixed"
    assert auto.scores.after > auto.scores.before + 0.15
    # labels and predictions of naive Bayes come from a nonlinear classifier, too
    assert auto.scores.after > plain.scores.after - 0.01


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_overwrite(here):
    Path("animals-corrected.csv").write_text("old")
    assert run("clean", "animals.csv", *FIXED, "--overwrite").exit_code == 0
    assert Path("animals-corrected.csv").read_text() != "old"


@pytest.mark.slow
def test_as_a_program(here):
    """Once from outside, as a user would, and with nothing but its own output."""
    done = subprocess.run(
        [sys.executable, "-m", "nbmodels.cli", "clean", "animals.csv", *FIXED],
        capture_output=True,
        text=True,
        env=environment(),
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_fit_that_left_its_labels_is_reported():
    rng = np.random.default_rng(0)
    # ten copies of one coin: naive Bayes believes it ten times
    cluster = rng.integers(0, 2, 400)
    frame = pd.DataFrame({f"copy {j}": cluster for j in range(10)})
    frame["y"] = np.where(rng.random(400) < 0.55, cluster, 1 - cluster)
    cleaned = clean(frame, "y", draws=0)
    assert cleaned.expected_wrong < 0.5 or cleaned.warnings


@pytest.mark.parametrize("inside", [True, False])
def test_the_truth_beside_both_ends_is_plain(inside):
    scores = Scores(100, 0.8, 0.8, None, 20, 5, 3, 3)
    said = _held(scores, inside, np.array([0.0, 1.0, np.nan]))
    assert said == (
        f"The true share of wrong labels (20.0%) lies {'within' if inside else 'outside'} the "
        "range of both ends with their intervals; of 2 classes' shares of right labels 1 lie "
        "within theirs; of 20 wrong labels 3 were found"
    )


def test_checked_rows_are_left_out_of_the_comparison_with_the_truth(capsys):
    frame = animals()[["weight", "label", "truth"]]
    checked = dict(enumerate(frame["truth"][:40]))
    quick = {"draws": 0, "noise": "symmetric", "weight": 1, "alpha": 1}
    found = clean(frame, "label", truth="truth", checked=checked, **quick)
    assert (found.scores.rows, found.scores.checked) == (200, 40)
    show(screen(), found)
    said = " ".join(capsys.readouterr().out.split())
    assert "Against the truth, 40 checked by hand left out" in said


def test_scores():
    scores = Scores.of(list("aabb"), list("abba"), [4, 1, 3, 2], list("abbb"))
    assert (scores.before, scores.after, scores.errors) == (0.75, 0.75, 1)
    assert (scores.changed, scores.found, scores.mended) == (2, 1, 1)
    assert (scores.precision, scores.recall, scores.auc) == (0.5, 1.0, 1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised")
def test_demo(here, monkeypatch):
    for name in ("DRAWS", "GIBBS", "NUTS"):  # a user has more of them
        monkeypatch.setattr(demo, name, {"draws": 40, "warmup": 40})
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


@pytest.mark.parametrize("votes", [False, True])
def test_there_are_as_many_draws_as_are_asked_for(here, monkeypatch, votes):
    asked = []

    def stopped(*_, **options):
        asked.append(options)
        raise KeyboardInterrupt

    of_votes = ["--task", "code", "--worker", "sound", "--report", "shown"] if votes else []
    called = "nbmodels.cli.votes.clean_votes" if votes else "nbmodels.cli.clean.clean"
    monkeypatch.setattr(called, stopped)
    for more in ([], ["--draws", "1000"]):
        assert run("clean", "animals.csv", *QUICK, *of_votes, *more).exit_code == 130
    assert asked[0].get("draws", 200) == 200
    assert asked[1]["draws"] == 1000


def test_ctrl_c_ends_in_one_line(here, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("nbmodels.cli.clean.clean", stopped)
    done = run("clean", "animals.csv", *QUICK)
    assert done.exit_code == 130
    assert done.stderr == "Interrupted; files are written whole or not at all\n"
    assert not Path("animals-corrected.csv").exists()


def test_long_names_that_begin_alike_are_told_apart(capsys):
    names = [f"a label of great length that ends in {end}" for end in ("one", "two")]
    screen().print(changes_table(names, names[::-1]))
    shown = capsys.readouterr().out
    assert "a label of gre…ds in one" in shown
    assert "a label of gre…ds in two" in shown


def test_numbers_of_rows_are_left_out_in_any_order():
    order = np.random.default_rng(0).permutation(50)
    for numbers, reason in [
        (np.arange(50), "it numbers the rows"),
        (order + 1000, "it numbers the rows"),
        (order[:12], ""),  # gaps
        (np.random.default_rng(0).permutation(12), ""),  # of so few it may be a rank
        (order // 2, ""),
    ]:
        assert _usable_kind(pd.Series(numbers), asked=False).reason == reason
        assert not _usable_kind(pd.Series(numbers), asked=True).reason
