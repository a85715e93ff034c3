"""Settings of the documentation: ``python -m sphinx -W docs build/site``, from the root.

Nothing is fetched to build it: names of other projects are linked by ``inventories.py``, or by
those projects' own inventories with ``NBMODELS_DOCS_ONLINE=1``. Pages with formulas load MathJax
when they are read. Notebooks are shown as they were executed in ``examples/``; with
``NBMODELS_DOCS_EXECUTE=1`` they are executed anew, unless they are cached.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
# what is documented is this checkout, whatever is installed
sys.path[:0] = [str(ROOT), str(DOCS)]

import inventories  # noqa: E402 (after the paths that it is found by)

import nbmodels  # noqa: E402 (likewise)
from examples.render import figure_text  # noqa: E402 (likewise)

project = "nbmodels"
author = "the authors of nbmodels"
release = nbmodels.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["templates", "generated/benchmarks.md"]
templates_path = ["templates"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache" if os.environ.get("NBMODELS_DOCS_EXECUTE") else "off"
nb_execution_timeout = 600
bibtex_bibfiles = ["references.bib"]
# prompts are not copied
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_ignore_module_all = False
# names that end in an underscore are no links
strip_signature_backslash = True
# attributes of a docstring may be properties, too, which are documented on their own
napoleon_use_ivar = True
napoleon_attr_annotations = False

html_theme = "pydata_sphinx_theme"
html_title = "nbmodels"
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"show_toc_level": 2, "navbar_center": [], "footer_end": []}
html_sidebars = {"**": ["all_pages"]}
toc_object_entries_show_parents = "hide"

intersphinx_mapping = inventories.write(
    DOCS / "generated" / "inventories", online=bool(os.environ.get("NBMODELS_DOCS_ONLINE"))
)


def gather_notebooks() -> None:
    """Copy the executed notebooks to ``docs/generated``, and write the page that lists them."""
    examples, generated = ROOT / "examples", DOCS / "generated"
    generated.mkdir(exist_ok=True)
    names = []
    for folder in sorted(p for p in examples.iterdir() if p.is_dir()):
        shutil.rmtree(generated / folder.name, ignore_errors=True)
        for notebook in sorted(folder.glob("*.ipynb")):
            to = generated / folder.name / notebook.name
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(described(notebook.read_text()))
            # by its time Sphinx tells what is new
            shutil.copystat(notebook, to)
            names.append(f"{folder.name}/{notebook.stem}")
    text = (examples / "README.md").read_text().replace("# Examples", "# Notebooks", 1)
    contents = ["", "## All notebooks", "", "```{toctree}", ":maxdepth: 1", "", *names, "```", ""]
    (generated / "notebooks.md").write_text(text + "\n".join(contents))


def described(text: str) -> str:
    """A notebook whose figures have the text of the comment at their cell's top for readers."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if alt := figure_text("".join(cell["source"])):
            cell["metadata"]["mystnb"] = {"image": {"alt": alt}}
    return json.dumps(notebook)


def gather_reproduction() -> None:
    """Copy the papers' tables beside ours, and their figures, to ``docs/generated``."""
    examples, generated = ROOT / "examples", DOCS / "generated"
    shutil.copy2(examples / "REPRODUCTION.md", generated)
    (generated / "reproduction").mkdir(exist_ok=True)
    for figure in sorted((examples / "reproduction").glob("*.png")):
        shutil.copy2(figure, generated / "reproduction")


def gather_benchmarks() -> None:
    """Write the page of benchmarks, with links as from ``benchmarks.md``, which includes it.

    The records that it links to are pages of their own.
    """
    generated = DOCS / "generated"
    text = (ROOT / "benchmarks" / "README.md").read_text()
    text = text.replace("](../examples/REPRODUCTION.md)", "](generated/REPRODUCTION.md)")
    text = text.replace("](records/", "](generated/records/")
    (generated / "benchmarks.md").write_text(text)
    shutil.rmtree(generated / "records", ignore_errors=True)
    (generated / "records").mkdir()
    for record in sorted((ROOT / "benchmarks" / "records").glob("*.md")):
        page = record.read_text().replace("](../README.md", "](../../benchmarks.md")
        (generated / "records" / record.name).write_text(page)


def links_of_the_site(_app: Any, name: str, text: list[str]) -> None:
    """Link the page of benchmarks where a page, read in the checkout, links its source."""
    if "/" not in name:
        text[0] = text[0].replace("](../benchmarks/README.md", "](benchmarks.md")


def of_scikit_learn(_app: Any, _what: str, _name: str, member: Any, *_: Any) -> bool | None:
    """Leave out methods that estimators inherit from scikit-learn, which documents them."""
    return True if str(getattr(member, "__module__", "")).startswith("sklearn.") else None


def setup(app: Any) -> None:
    """Gather what is generated before pages are read."""
    gather_notebooks()
    gather_reproduction()
    gather_benchmarks()
    app.connect("source-read", links_of_the_site)
    app.connect("autodoc-skip-member", of_scikit_learn)
