"""Run the notebooks, which are scripts in percent format, and write an ``.ipynb`` beside each.

``python -m examples.render`` renders all of them, ``python -m examples.render 01 06`` those whose
file names begin with one of these words. It needs ``pip install -e ".[notebooks]"``.

Exercises have solutions in markdown cells, folded by ``<details>``: a fence of ``python``, and one
of ``text`` with what it prints. Rendering runs each solution after the last cell and writes what
it printed into script and notebook.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parent

#: Seconds that a cell may take.
_TIMEOUT = 600

_FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
_SOLUTION = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<printed>.*?)```", re.DOTALL)
_FIGURE = re.compile(r"# Figure: ((?:.*\n)(?:# .*\n)*)")
_WARNING = re.compile(r"^\w*Warning: .*\n", re.MULTILINE)

#: Run before the first cell: warnings name no file, notes about the machine are not logged, what
#: cells start prints no colours, and pictures are large enough to read.
_SETUP = """
import logging, os, warnings
warnings.formatwarning = lambda message, category, *_, **__: f"{category.__name__}: {message}\\n"
warnings.filterwarnings("ignore", message="IProgress not found")
logging.disable(logging.WARNING)
os.environ.pop("FORCE_COLOR", None)
os.environ.pop("CLICOLOR_FORCE", None)
import matplotlib
matplotlib.rcParams["figure.dpi"] = 100
"""


class Solution(NamedTuple):
    """A solution of an exercise.

    Attributes:
        code: what the reader could have written.
        printed: what it prints, as the notebook states it.
    """

    code: str
    printed: str

    @property
    def fences(self) -> str:
        """Both, as they stand in the markdown cell."""
        return f"```python\n{self.code}```\n\n```text\n{self.printed}```"


def scripts() -> list[Path]:
    """The scripts of all notebooks."""
    return sorted(FOLDER.glob("*/*.py"))


def read_script(script: Path) -> NotebookNode:
    """A script's cells as a notebook without outputs."""
    import jupytext

    notebook = jupytext.read(script, fmt="py:percent")
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for at, cell in enumerate(notebook.cells):
        # names of one's own: random ones would change with each rendering
        cell.id = f"cell-{at}"
        cell.metadata = _tags(cell)
    return notebook


def solutions(notebook: NotebookNode) -> list[Solution]:
    """The solutions of the exercises, in their order."""
    folded = [
        block
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for block in _FOLDED.findall(cell.source)
    ]
    return [Solution(**found.groupdict()) for b in folded for found in _SOLUTION.finditer(b)]


def render(script: Path) -> Path:
    """Run a script's cells and its solutions, and write the notebook.

    Args:
        script: in percent format; what its solutions print is written into it.

    Returns:
        the notebook's path.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell or a solution raised.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = read_script(script)
    cells, solved = notebook.cells, solutions(notebook)
    code = nbformat.v4.new_code_cell
    notebook.cells = [code(_SETUP), *cells, *(code(s.code) for s in solved)]
    with tempfile.TemporaryDirectory() as folder:
        # what notebooks write is not to stay
        resources = {"metadata": {"path": folder}}
        quiet = ["--log-level=ERROR"]
        NotebookClient(
            notebook, timeout=_TIMEOUT, resources=resources, extra_arguments=quiet
        ).execute()
    printed = [_printed(cell) for cell in notebook.cells[1 + len(cells) :]]
    notebook.cells = cells
    text = script.read_text()
    for stated, found in zip(solved, printed, strict=True):
        new = stated._replace(printed=found)
        text = text.replace(_commented(stated.fences), _commented(new.fences))
        for cell in cells:
            cell.source = cell.source.replace(stated.fences, new.fences)
    script.write_text(text)
    _tidy(notebook)
    out = script.with_suffix(".ipynb")
    nbformat.write(notebook, out)
    return out


def figure_text(source: str) -> str | None:
    """What a cell's figure shows, from the comment "Figure: ..." at its top; None without one."""
    found = _FIGURE.match(source)
    return " ".join(line.lstrip("# ") for line in found[1].splitlines()) if found else None


def _printed(cell: NotebookNode) -> str:
    return "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")


def _commented(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in text.splitlines())


def _tags(cell: NotebookNode) -> dict[str, list[str]]:
    return {"tags": cell.metadata["tags"]} if "tags" in cell.metadata else {}


def _tidy(notebook: NotebookNode) -> None:
    """Number the cells anew, without the one of the set-up; drop progress bars."""
    number = 0
    for cell in notebook.cells:
        cell.metadata = _tags(cell)
        if cell.cell_type != "code":
            continue
        number += 1
        cell.execution_count = number
        cell.outputs = _merged([output for output in cell.outputs if _kept(output)])
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = number
            # text beside a picture or a table names objects by their place in memory
            if "data" in output and len(output.data) > 1:
                output.data.pop("text/plain", None)


def _merged(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join what was printed in several pieces: where it was cut is chance."""
    joined: list[NotebookNode] = []
    for output in outputs:
        if joined and output.get("name", "none") == joined[-1].get("name"):
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _kept(output: NotebookNode) -> bool:
    """Whether an output is not a progress bar; of standard error, warnings are left."""
    if output.get("name") == "stderr":
        output.text = "".join(_WARNING.findall(output.text.replace("\r", "\n")))
        return bool(output.text)
    return "application/vnd.jupyter.widget-view+json" not in output.get("data", {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", help="first characters of file names; all by default")
    names = tuple(parser.parse_args().name) or ("",)
    chosen = [script for script in scripts() if script.name.startswith(names)]
    if not chosen:
        parser.error(f"no notebook begins with {' or '.join(names)}")
    for script in chosen:
        print(render(script).relative_to(FOLDER.parent), flush=True)


if __name__ == "__main__":
    main()
