"""Python code in the README and in the pages of ``docs/`` runs as it stands there.

Blocks of a page run one after the other, on small stand-in data for the names that the page takes
as given. Code of other libraries stands in ``{code-block}`` fences and is not run.
"""

import importlib
import pkgutil
import re
import runpy
import sys

import jax
import numpy as np
import pandas as pd
import pytest
from paths import ROOT

import nbmodels
from inference import Status

PAGES = {path.name: path.read_text() for path in (ROOT / "README.md", *ROOT.glob("docs/*.md"))}
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = {name: FENCE.findall(text) for name, text in PAGES.items() if FENCE.search(text)}

N, K, D = 240, 3, 12
NAMES = np.array(["ant", "bee", "cat"])


def stand_ins():
    """The names that pages take as given."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, K, N)
    labels = np.where(rng.random(N) < 0.2, (truth + 1) % K, truth)
    probs = np.where(np.arange(D) % K == np.arange(K)[:, None], 0.9, 0.1)
    X = (rng.random((N, D)) < probs[truth]).astype(int)
    worker = np.tile(["ann", "bob"], N)
    named = np.repeat(truth, 2)
    named = np.where(rng.random(2 * N) < 0.3, (named + 1) % K, named)
    votes = {"task": np.repeat(np.arange(N), 2), "worker": worker, "label": NAMES[named]}
    # a user keeps to items of one class
    users = rng.integers(0, 10, 3 * N) * K + np.repeat(truth, 3)
    pairs = {"user": users, "item": np.repeat(np.arange(N), 3)}
    return {
        "X": X,
        "y": NAMES[labels],
        "true": NAMES[truth],
        "X_new": X[:20],
        "X_test": X[::2],
        "y_test": NAMES[labels[::2]],
        "votes": pd.DataFrame(votes),
        "pairs": pd.DataFrame(pairs),
        "codes": labels,
        "true_codes": truth,
        "words": X,
        "sensors": truth[:, None] + rng.normal(size=(N, 2)),
        "n_words": D,
        "n_sensors": 2,
        "n_items": N,
    }


def run(page, *, only=None, **more):
    """Names that a page's blocks leave behind.

    Args:
        page: file name.
        only: a text that the blocks to be run contain.
        more: further names that the page takes as given.
    """
    names = stand_ins() | more
    for at, block in enumerate(BLOCKS[page]):
        if only is None or only in block:
            exec(compile(block, f"{page}, block {at}", "exec"), names)
    return names


def accuracy(predicted, after):
    return np.mean(predicted == NAMES[after["codes"]])


def test_every_page_with_code_is_run():
    assert set(BLOCKS) == {
        "README.md",
        "coming_from.md",
        "own_model.md",
        "uncertainty.md",
        "using.md",
        "which_estimator.md",
    }


@pytest.mark.slow
def test_the_readme_draws_a_noise_matrix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    after = run("README.md")
    assert (tmp_path / "noise_matrix.png").stat().st_size > 10_000
    assert after["model"].random_state is not None  # the picture is the same each time
    rates = after["rates"].set_index(["true", "observed"])
    low, high = rates.loc[("Grignolino", "Barolo"), ["low", "high"]]
    assert 0.1 < low < 0.25 < high < 0.4
    described = re.search(r"corrected_labels\(\)  # ([\w, ]+)", PAGES["README.md"])[1]
    assert list(after["labels"])[:6] == described.split(", ")
    vines = np.array(["Barolo", "Grignolino", "Barbera"])[after["vine"]]
    wrong, right = np.mean(after["y"] != vines), np.mean(after["labels"]["suggested"] == vines)
    text = PAGES["README.md"].replace("\n", " ")
    assert f"{wrong:.0%} got a wrong label".replace("%", " %") in text
    assert f"of the suggested labels {right:.0%} are right".replace("%", " %") in text


@pytest.mark.slow
def test_fitting_and_reading():
    after = run("using.md")
    model = after["model"]
    np.testing.assert_allclose(model.noise_matrix_.sum(0), 1)
    assert accuracy(model.predict(after["X"]), after) > 0.6
    scores = after["scores"]
    assert scores.accuracy.low <= scores.accuracy.value <= scores.accuracy.high
    described = re.search(r"corrected_labels\(\)  # data frame: ([\w, ]+)", PAGES["using.md"])[1]
    assert list(model.corrected_labels())[:6] == described.split(", ")


def test_settings_of_training_and_solver():
    run("using.md", only="Solver(")


@pytest.mark.slow
def test_both_ends_and_an_audit():
    given = stand_ins()
    model = nbmodels.NoisyBernoulliNB.published(random_state=0).fit(given["X"], given["y"])
    # the page's plan is drawn by the same seed
    checked = given["true"][model.audit_plan(100).rows["row"]]
    after = run("uncertainty.md", model=model, labels_by_people=checked)
    share = after["result"].share_wrong
    assert share.low <= np.mean(given["y"] != given["true"]) <= share.high
    low, high = after["both"].share
    assert low <= after["both"].independent.share <= high


@pytest.mark.slow
def test_several_sources():
    joint = run("which_estimator.md", only="JointNB(")["joint"]
    assert set(joint.noise_matrices()) == {"labels", "crowd"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:votes of two workers")
def test_annotators():
    crowd = run("which_estimator.md", only="worker_report")["crowd"]
    assert set(crowd.workers_) == {"ann", "bob"}


@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
@pytest.mark.slow
def test_code_beside_that_of_other_libraries():
    after = run("coming_from.md")
    assert set(after["aggregated"]) <= set(NAMES)
    assert accuracy(after["robust"].predict(after["X"]), after) > 0.6
    assert accuracy(after["own"].predict(after["X"]), after) > 0.6


@pytest.mark.slow
def test_a_model_of_ones_own():
    import numpyro  # it takes a second to load

    after = run("own_model.md")
    assert Status(int(after["result"].status)).ok
    assert np.mean(after["fitted"].resp.argmax(1) == after["true_codes"]) > 0.9
    found = np.asarray(after["guide"].median(after["found"].params)["labels_transition"])
    np.testing.assert_allclose(found, after["fitted"].transitions["labels"], atol=0.05)
    with numpyro.handlers.seed(rng_seed=jax.random.key(0)):
        assert "words_probs" in numpyro.handlers.trace(after["program"]).get_trace()


@pytest.mark.parametrize("page", PAGES)
def test_names_and_links_lead_somewhere(page):
    text = PAGES[page]
    folder = ROOT if page == "README.md" else ROOT / "docs"
    for link in re.findall(r"\]\((?!http|#|inv:)([^)\s#]+)(?:#[^)]*)?\)", text):
        assert (folder / link).exists(), link
    projects = runpy.run_path(str(ROOT / "docs" / "inventories.py"))["PROJECTS"]
    for project, name in re.findall(r"\]\(inv:(\w+)[\w:]*#([^)]*)\)", text):
        assert any(name in targets for targets in projects[project].pages.values()), name
    for name in re.findall(r"`(nbmodels\.\w[\w.]*)", text):
        pkgutil.resolve_name(name)


@pytest.mark.parametrize("page", ["README.md", "which_estimator.md"])
def test_tables_of_estimators_name_those_that_there_are(page):
    for row in re.findall(r"^\| .*NB.*\|$|^\| .*Noisy.*\|$", PAGES[page], re.MULTILINE):
        for name in re.findall(r"`([A-Z]\w+)", row):
            assert name in nbmodels.__all__, name


def test_the_readme_stays_short():
    assert PAGES["README.md"].count("\n") <= 120


MODULES = [
    "nbmodels",
    "nbmodels.metrics",
    "nbmodels.posterior",
    "nbmodels.posterior.plots",
    "nbmodels.class_priors",
    "nbmodels.channels",
    "nbmodels.emissions",
    "nbmodels.datasets",
    "inference",
]


@pytest.mark.parametrize("module", MODULES)
def test_the_api_page_has_every_public_name(module):
    of_module = r"^\.\. currentmodule:: " + re.escape(module) + r"\n(.*?)^```$"
    blocks = re.findall(of_module, PAGES["api.md"], re.MULTILINE | re.DOTALL)
    listed = re.findall(r"^   (\w+)$", "".join(blocks), re.MULTILINE)
    public = [n for n in importlib.import_module(module).__all__ if not n.startswith("_")]
    assert sorted(listed) == sorted(public)


def test_the_command_line_page_has_every_option():
    import typer

    from nbmodels.cli.app import app

    page = PAGES["command_line.md"]

    def commands(command, name):
        for key, one in getattr(command, "commands", {}).items():
            yield from commands(one, f"{name} {key}")
        if not hasattr(command, "commands"):
            yield name, command

    for name, command in commands(typer.main.get_command(app), "nbmodels"):
        assert f"`{name}" in page, name
        for parameter in command.params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert not option.startswith("--") or f"`{option}" in page, (name, option)


def test_help_shows_the_defaults_that_are_no_values():
    from typer.testing import CliRunner

    from nbmodels.cli.app import app

    found = []
    for command in (["clean"], ["audit", "plan"], ["audit", "read"]):
        done = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "300"})
        assert done.exit_code == 0
        found.append(" ".join(done.output.split()))
    clean, plan, read = found
    for default in (
        "FILE's name with -corrected, here",
        "pooled",
        "jointly where that model passes its checks",
        "learned",
        "chosen by held-out labels",
        "up to 10 classes",
        "all usable ones",
    ):
        assert f"[default: ({default}" in clean, default
    assert "[default: (100)]" in plan
    assert "[default: (FILE's name with .json)]" in read


def test_pictures_are_those_of_their_rows():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        pictures = importlib.import_module("pictures")
    finally:
        sys.path.remove(str(ROOT / "docs"))
    svg = (ROOT / "docs" / "which_estimator.svg").read_text()
    assert svg == pictures.which_estimator()
    assert (ROOT / "docs" / "evidence_table.svg").read_text() == pictures.evidence_table()
    for rows in pictures.KINDS.values():
        for _, names in rows:
            for name in re.findall(r"\w+", names):
                assert name in nbmodels.__all__
                assert f"`{name}" in PAGES["which_estimator.md"]
