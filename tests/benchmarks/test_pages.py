"""The benchmarks' page and its records: short lines, links that lead somewhere, no record lost."""

import re

import pytest
from paths import ROOT

FOLDER = ROOT / "benchmarks"
RECORDS = sorted((FOLDER / "records").glob("*.md"))
PAGES = (FOLDER / "README.md", *RECORDS)
LINK = re.compile(r"\]\((?!http)([^)\s#]*)(?:#([^)\s]*))?\)")
#: Modules that scripts share, named below the table.
SHARED = {"calibration", "simulation", "threads"}


def anchors(text):
    """Names of a page's headings in links, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_lines_are_short_but_for_tables(page):
    lines = page.read_text().split("\n")
    assert not [n for n, line in enumerate(lines, 1) if line[:1] != "|" and len(line) > 110]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files_and_headings(page):
    links = LINK.findall(page.read_text())
    assert links
    for path, anchor in links:
        to = page.parent / path if path else page
        assert to.exists(), path
        assert not anchor or anchor in anchors(to.read_text()), (path, anchor)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_rows_of_tables_are_as_wide_as_their_heads(page):
    columns = None
    for line in page.read_text().split("\n"):
        cells = line.count("|") if line.startswith("|") else None
        assert columns is None or cells is None or cells == columns, line
        columns = cells


def test_every_record_is_linked_and_on_the_site():
    linked = {path for path, _ in LINK.findall(PAGES[0].read_text())}
    site = (ROOT / "docs" / "benchmarks.md").read_text()
    assert RECORDS
    for record in RECORDS:
        assert f"records/{record.name}" in linked
        assert f"generated/records/{record.stem}\n" in site


def test_the_page_of_goals_stays_short():
    assert PAGES[0].read_text().count("\n") <= 330


def test_the_table_has_every_script():
    named = set(re.findall(r"^\| `(\w+)\.py`", PAGES[0].read_text(), re.MULTILINE))
    assert named == {script.stem for script in FOLDER.glob("*.py")} - SHARED


def test_benchmarks_that_other_files_name_are_there():
    files = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "nbmodels").rglob("*.py")]
    named = {
        name
        for file in files
        for name in re.findall(r"\bbenchmarks/[\w/]+\.(?:md|py)\b", file.read_text())
    }
    assert named
    # pages of the site are written when it is built
    assert not [name for name in named if not (ROOT / name).exists()]
