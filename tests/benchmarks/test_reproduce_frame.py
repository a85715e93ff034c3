"""Ranges, claims, storage and the page of the reproductions."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from benchmarks.reproduce import causes, denis_em, page, storage
from benchmarks.reproduce.data import ROOT
from benchmarks.reproduce.figures import lines
from benchmarks.reproduce.registry import targets
from benchmarks.reproduce.results import (
    Cell,
    Claim,
    Result,
    Table,
    Target,
    beside,
    claim,
    prediction_interval,
    variance_of_mean,
    variance_of_truth,
)


def coverage(draw, variance, further, repeats=2000):
    """Share of ranges that hold a further figure."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(repeats):
        replicates = draw(rng)
        _, low, high = prediction_interval(replicates, variance(replicates))
        held += low <= further(rng) <= high
    return held / repeats


def test_a_range_holds_a_further_replicate():
    def draw(rng):
        return rng.normal(3, 2, 8)

    found = coverage(draw, lambda replicates: None, lambda rng: rng.normal(3, 2))
    assert found == pytest.approx(0.95, abs=0.02)


def test_a_range_holds_a_further_mean_over_as_many_replicates_as_the_papers():
    def draw(rng):
        return rng.normal(3, 2, 8)

    found = coverage(
        draw,
        lambda replicates: variance_of_mean(replicates, 10),
        lambda rng: rng.normal(3, 2, 10).mean(),
    )
    assert found == pytest.approx(0.95, abs=0.02)


def test_a_range_of_means_from_random_truths_follows_the_papers_number_of_data_sets():
    within = [4.0] * 12

    def draw(rng):  # means over ten data sets, each truth apart
        return rng.normal(0, 1, 12) + rng.normal(0, 2 / np.sqrt(10), 12)

    found = coverage(
        draw,
        lambda replicates: variance_of_truth(replicates, within, 10, 100),
        lambda rng: rng.normal(0, 1) + rng.normal(0, 2 / 10),
    )
    # the variance between truths is a difference, whose error Student's t does not know
    assert 0.92 < found < 0.97


def test_a_range_of_one_replicate_is_a_point():
    assert prediction_interval([2.0]) == (2.0, 2.0, 2.0)
    assert variance_of_mean([2.0], 10) == 0


def test_a_cell_counts_where_the_papers_figure_may_be_a_rounded_one_of_the_range():
    cell = beside("row", "column", [0.9, 1.1, 1.0, 1.0], 1.34, 0.05)
    assert cell.ours == pytest.approx(1)
    assert cell.high == pytest.approx(1.29, abs=0.01)
    assert cell.reproduced
    assert not Cell("row", "column", 1.0, 0.9, 1.1, 1.34, 0.05).reproduced
    assert Cell("row", "column", 1.0, 0.9, 1.1, 1.34, 0.05, tolerance=0.4).reproduced


def test_claims_of_all_cases_and_of_most():
    assert claim("text", [True, True]).holds
    assert not claim("text", [True, True, False]).holds
    assert claim("text", [True, True, False], most=True).holds
    assert not claim("text", [True, False], most=True).holds


def an_example() -> Target:
    figure = Figure()
    figure.subplots().plot([0, 1])
    result = Result(
        (Cell("first", "ACC", 66.04, 60.0, 72.0, 65.0, 0.05), Cell("first", "AUC", 1, 1, 1, 2)),
        (Claim("it grows", 2, 3), Claim("a cause", 1, 1, ours=True)),
        (Table("More", ("name", "value"), (("a", 0.123456),)),),
        figure,
    )
    return Target(
        name="example",
        paper="Example 2000",
        title="Table 1",
        about="How.",
        run=lambda scale: result,
        scales={"full": SimpleNamespace(n=1)},
        why="Because.",
    )


def test_a_stored_result_comes_back_and_the_page_counts_it(tmp_path):
    target = an_example()
    storage.save(tmp_path, target, target.run(None), "full", 12.3)
    record = storage.load(tmp_path, "example")
    assert record["cells"] == list(target.run(None).cells)
    assert record["claims"] == list(target.run(None).claims)
    assert record["tables"] == list(target.run(None).tables)
    assert record["seconds"] == 12
    text = page.write(tmp_path, [target]).read_text()
    assert "| Example 2000 | 1 of 2 (50 %)" in text
    assert "66.0 [60.0, 72.0]<br>65.0 =" in text.replace(page.NO_BREAK, " ")
    assert "**not held**" in text
    assert "0 of 1" in text  # the cause is no claim of the paper
    assert "![Table 1](reproduction/example.png)" in text
    assert (tmp_path / "reproduction" / "example.png").stat().st_size > 0
    assert (
        "first,ACC,66.04,60,72,65,True" in (tmp_path / "reproduction" / "example.csv").read_text()
    )


def test_a_target_without_results_is_named_on_the_page(tmp_path):
    assert "not run" in page.write(tmp_path, [an_example()]).read_text()


def test_every_target_has_its_scales_and_a_name_of_its_own():
    found = targets()
    assert len(found) >= 21
    for name, target in found.items():
        assert name == target.name
        assert set(target.scales) == {"toy", "quick", "full"}
        assert target.about.strip()


def test_every_cell_that_is_missed_has_its_cause():
    stored = {name: storage.load(ROOT / "examples", name) for name in targets()}
    stored = {name: record for name, record in stored.items() if record}
    found = page.missed(stored)
    assert len(stored) >= 22
    for name, record in stored.items():
        outside = [cell for cell in record["cells"] if not cell.reproduced]
        assert [cell for cell, _ in found.get(name, [])] == outside
    named = [cause for cells in found.values() for _, cause in cells]
    shown = [cause for cause in named if cause.shown_by]
    # of the rest it is said that nothing shows their cause
    assert len(shown) >= 0.95 * len(named)
    assert all("not known" in c.text or "not shown" in c.text for c in named if not c.shown_by)


def test_a_cell_of_em_has_the_cause_of_the_reading_that_the_experiment_found():
    rows = (
        ("Hepatitis, eta [0.2, 0.5]", "eta0 NB-CCCN-EM", denis_em.ONE_DRAW),
        ("House Votes, eta [0.2, 0.5]", "eta0 NB-CCCN-EM", denis_em.NONE),
    )
    table = Table(denis_em.EXPLAINED, ("set", "cell", "reading"), rows)
    records = {"why-denis2006-em": {"tables": [table]}}
    found = [
        causes.of_denis_sets(Cell(row, column, 0.3, 0.3, 0.3, 0.2), records)
        for row, column, _ in rows
    ]
    assert found == [causes.READINGS[denis_em.ONE_DRAW], causes.NO_READING]
    assert causes.of_em(Cell(*rows[0][:2], 0.3, 0.3, 0.3, 0.2), {}) == causes.NO_READING


def test_links_between_targets_lead_to_headings(tmp_path):
    """Anchors as code hosts make them from headings."""
    known = list(targets().values())
    headings = {
        "".join(c for c in t.title.lower().replace(" ", "-") if c.isalnum() or c in "-_")
        for t in known
    }
    for target in known:
        for part in f"{target.about} {target.why}".split("](#")[1:]:
            assert part.split(")")[0] in headings, target.name
    for cause in (one for one in vars(causes).values() if isinstance(one, causes.Cause)):
        assert not cause.shown_by or cause.shown_by in headings, cause


def test_the_stored_results_of_the_examples_are_of_known_targets():
    for path in (ROOT / "examples" / storage.FOLDER).glob("*.json"):
        assert path.stem in targets()
        assert json.loads(path.read_text())["scale"] == "full"


def test_accuracies_count_within_two_points_of_their_own_units():
    def cell(column, ours, paper):
        return Cell("row", column, ours, ours, ours, paper)

    assert page.near(cell("ACC % NB", 80.0, 81.9))
    assert not page.near(cell("ACC % NB", 80.0, 82.1))
    assert page.near(cell("acc NB", 0.80, 0.819))
    assert not page.near(cell("acc NB", 0.80, 0.821))
    assert not page.near(cell("AUC % NB", 80.0, 80.1))
    assert page.near(cell("AUC % NB", 80.0, 80.0))


def test_panels_beyond_a_row_go_below():
    panels = {str(i): {"line": ([0, 1], [i, 1], None)} for i in range(7)}
    figure = lines(panels, "x", "y", "title", x_labels={"6": "other"})
    places = [axis.get_subplotspec().rowspan.start for axis in figure.axes]
    assert places == [0, 0, 0, 0, 1, 1, 1]
    assert [axis.get_xlabel() for axis in figure.axes] == ["x"] * 6 + ["other"]
