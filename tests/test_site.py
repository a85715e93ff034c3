"""The documentation builds without a warning and without a network; its links lead somewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

import pytest
from paths import ROOT

NEEDED = ("sphinx", "myst_nb", "pydata_sphinx_theme", "sphinx_design", "sphinx_copybutton")
MISSING = [name for name in NEEDED if find_spec(name) is None]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"needs the extra 'docs': no {', '.join(MISSING)}"),
]

#: The one script that pages fetch; without a network formulas of notebooks stand there as LaTeX.
DRAWS_FORMULAS = re.compile(r"mathjax")
#: Of a figure: words, where Sphinx puts the path of a file without them.
DESCRIPTION = re.compile(r"\w \w")


class Page(HTMLParser):
    """Anchors of a page, what it links to, what it loads, and figures without a description."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded, self.undescribed = set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag == "img" and not DESCRIPTION.search(found.get("alt") or ""):
            self.undescribed.append(found.get("src"))
        if tag in ("script", "img", "link") and (found.get("src") or found.get("href")):
            self.loaded.append(found.get("src") or found["href"])


def leads_somewhere(page, link, pages):
    """Whether a link's file and anchor are there; links out of the site are taken to be."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    anchor = unquote(parts.fragment)
    # other files than pages have no anchors
    return file.exists() and (not anchor or file not in pages or anchor in pages[file].anchors)


def test_the_site_builds_and_its_links_lead_somewhere(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E"]
    command += ["-d", str(tmp_path / "doctrees"), "docs", str(tmp_path / "html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    html = tmp_path / "html"
    # what lies in _static belongs to the theme
    files = [file for file in html.rglob("*.html") if "_static" not in file.parts]
    pages = {file: Page(file.read_text()) for file in files}
    broken = [
        (str(file.relative_to(html)), link)
        for file, page in pages.items()
        for link in (*page.links, *page.loaded)
        if not leads_somewhere(file, link, pages)
    ]
    assert not broken
    figures = [(file.name, src) for file, page in pages.items() for src in page.undescribed]
    assert not [one for one in figures if not one[1].startswith("_static/")]  # Sphinx's own
    fetched = {one for page in pages.values() for one in page.loaded if "//" in one}
    assert not [one for one in fetched if not DRAWS_FORMULAS.search(one)]
    for notebook in (ROOT / "examples").glob("*/*.ipynb"):
        shown = html / "generated" / notebook.parent.name / f"{notebook.stem}.html"
        assert shown in pages
