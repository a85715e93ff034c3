"""Notebooks: script and notebook hold the same cells, both run, and solutions print what they say.

A notebook is a script in percent format and an executed ``.ipynb`` beside it; see
``examples/render.py``.
"""

import ast
import json
import os
import re
import subprocess
import sys

import pytest

from examples.render import FOLDER, read_script, scripts, solutions

nbformat = pytest.importorskip("nbformat", reason="needs the extra 'test'")
pytest.importorskip("jupytext", reason="needs the extra 'test'")

#: Largest size of a notebook, bytes.
LARGEST = 500_000
#: Notebooks whose short form runs in the default tests.
QUICK = ("07_noisy_test_labels", "07_the_cut")

#: Paths of a machine, times of day, and addresses in memory.
_OF_ONE_MACHINE = re.compile(r"/(?:home|root|tmp|work|Users)/|ipykernel_\d|\d:\d\d:\d\d| at 0x")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

#: Runs a script, and then each solution on a copy of its variables; prints what solutions print.
_DRIVER = """
import contextlib, io, json, runpy, sys
script, codes = sys.argv[1], json.loads(sys.argv[2])
with contextlib.redirect_stdout(io.StringIO()):
    end = runpy.run_path(script, run_name="__main__")
printed = []
for code in codes:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "solution", "exec"), dict(end))
    printed.append(out.getvalue())
print(json.dumps(printed))
"""

NAMES = [script.stem for script in scripts()]
PATHS = dict(zip(NAMES, scripts(), strict=True))
each = pytest.mark.parametrize("name", NAMES)


def written(name):
    return nbformat.read(PATHS[name].with_suffix(".ipynb"), as_version=4)


def run(name, folder, *, fast):
    """What the solutions of a script print; the short form runs without them."""
    codes = [] if fast else [one.code for one in solutions(read_script(PATHS[name]))]
    environment = {
        **os.environ,
        "MPLBACKEND": "agg",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        **({"NBMODELS_FAST": "1", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"} if fast else {}),
    }
    done = subprocess.run(
        [sys.executable, "-c", _DRIVER, str(PATHS[name]), json.dumps(codes)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_notebook_has_its_script():
    assert len(NAMES) == len(set(NAMES)) >= 15
    assert sorted(FOLDER.glob("*/*.ipynb")) == [path.with_suffix(".ipynb") for path in scripts()]


@each
def test_script_and_notebook_hold_the_same_cells(name):
    script = [(cell.cell_type, cell.source) for cell in read_script(PATHS[name]).cells]
    assert [(cell.cell_type, cell.source) for cell in written(name).cells] == script


@each
def test_the_notebook_is_executed_without_an_error(name):
    notebook = written(name)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert all(output.output_type != "error" for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)


@each
def test_the_notebook_is_small_and_of_no_machine(name):
    assert PATHS[name].with_suffix(".ipynb").stat().st_size < LARGEST
    for cell in written(name).cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            texts = [output.get("text", ""), *(v for k, v in data.items() if k != "image/png")]
            for text in texts:
                assert not _OF_ONE_MACHINE.search(str(text)), text


@each
def test_exercises_have_solutions(name):
    notebook = read_script(PATHS[name])
    text = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    solved = solutions(notebook)
    assert 2 <= len(solved) <= 4
    assert text.count("<details>") == text.count("</details>") == len(solved)
    for solution in solved:
        ast.parse(solution.code)
        assert solution.printed, "render the notebook to write down what the solution prints"


@pytest.mark.parametrize("name", QUICK)
def test_the_short_form_runs(name, tmp_path):
    run(name, tmp_path, fast=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in QUICK])
def test_the_short_form_of_others_runs(name, tmp_path):
    run(name, tmp_path, fast=True)


@pytest.mark.slow
@each
def test_solutions_print_what_they_say(name, tmp_path):
    printed = run(name, tmp_path, fast=False)
    for solution, found in zip(solutions(read_script(PATHS[name])), printed, strict=True):
        assert _NUMBER.sub("#", found) == _NUMBER.sub("#", solution.printed)
        # another processor rounds otherwise
        numbers = [[float(x) for x in _NUMBER.findall(text)] for text in (found, solution.printed)]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.05, abs=0.011)


TOY = """# %% [markdown]
# # A toy
#
# <details><summary>Solution</summary>
#
# ```python
# print(x + 1)
# ```
#
# ```text
# out of date
# ```
# </details>

# %%
import sys
import warnings

x = 1
warnings.warn("mind the gap", stacklevel=1)
print("\\\\r 10 %", file=sys.stderr)
x
"""


@pytest.mark.slow
def test_rendering_writes_what_solutions_print_and_nothing_of_the_machine(tmp_path):
    pytest.importorskip("nbclient", reason="needs the extra 'test'")
    script = tmp_path / "toy.py"
    script.write_text(TOY)
    code = (
        "import pathlib, sys; from examples import render; render.render(pathlib.Path(sys.argv[1]))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code, str(script)], env=environment, check=True)
    (solution,) = solutions(read_script(script))
    assert solution.printed == "2\n"
    text, cell = nbformat.read(script.with_suffix(".ipynb"), as_version=4).cells
    assert solution.fences in text.source
    warned, result = cell.outputs
    assert warned.text == "UserWarning: mind the gap\n"
    assert (cell.execution_count, result.execution_count) == (1, 1)
    assert result.data == {"text/plain": "1"}
