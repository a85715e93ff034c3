"""Notebooks: script and notebook hold the same cells, both run, and solutions print what they say.

A notebook is a script in percent format and an executed ``.ipynb`` beside it; see
``examples/render.py``.
"""

import ast
import json
import os
import re
import runpy
import subprocess
import sys
import warnings
from functools import partial
from importlib.util import find_spec

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from numpyro.infer import init_to_uniform, init_to_value
from numpyro.infer.util import initialize_model
from typer.testing import CliRunner

import inference.nuts
import nbmodels.posterior.numpyro
from examples.render import FOLDER, figure_text, read_script, scripts, solutions
from inference.nuts import _STATISTICS

if not all(map(find_spec, ("nbformat", "jupytext"))):
    pytest.skip("needs the extra 'test'", allow_module_level=True)

#: Largest size of a notebook, bytes.
LARGEST = 500_000
#: Begins the command by which a notebook calls the command line.
COMMAND_LINE = [sys.executable, "-m", "nbmodels.cli"]

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

#: Notebooks whose short form, too, takes longer than the fast tests have time for; a slow test runs
#: the whole.
WHOLE = {
    "02_noise_matrix",
    "03_auditing",
    "05_chen2019",
    "06_identifiability",
    "08_your_own_component",
    "01_five_minutes",
    "04_maystre2021",
    "07_the_cut",
    "04_your_own_classifier",
    "06_when_not_to_believe_it",
    "01_zeng2022",
    "02_denis2006",
    "03_bootkrajang2011",
}

NAMES = [script.stem for script in scripts()]
PATHS = dict(zip(NAMES, scripts(), strict=True))
each = pytest.mark.parametrize("name", NAMES)


def written(name):
    import nbformat  # it takes a second, in every worker

    return nbformat.read(PATHS[name].with_suffix(".ipynb"), as_version=4)


def run_with_solutions(name, folder):
    """What the solutions of a script print."""
    codes = [one.code for one in solutions(read_script(PATHS[name]))]
    environment = {
        **os.environ,
        "MPLBACKEND": "agg",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
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
    import nbformat

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
def test_figures_are_described(name):
    for cell in written(name).cells:
        outputs = (output.get("data", {}) for output in cell.get("outputs", []))
        if any("image/png" in data for data in outputs):
            text = figure_text(cell.source)
            assert text, cell.source
            assert text.endswith(".")


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


def in_this_process(command, **_):
    """Stands in for ``subprocess.run`` where a notebook calls the command line."""
    assert command[:3] == COMMAND_LINE, command
    from nbmodels.cli.app import app

    result = CliRunner().invoke(app, command[3:], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return subprocess.CompletedProcess(command, 0, result.output, "")


def where_it_starts(program, key, *, draws, chains=4, start=None, **_):
    """Stands in for NUTS, which compiles for seconds: all draws are where a chain would start.

    The program of a notebook is traced, its enumerated density and gradient are evaluated.
    """
    strategy = init_to_uniform() if start is None else init_to_value(values=start)

    @jax.jit
    def begin():
        model = initialize_model(key, program, init_strategy=strategy)
        return model.postprocess_fn(model.param_info.z), model.param_info.potential_energy

    sites, energy = begin()
    assert np.isfinite(energy)
    # what the sampler reports is of no matter to a notebook's code
    statistics = dict.fromkeys(_STATISTICS.values(), energy) | {"diverging": energy < -np.inf}
    everywhere = partial(jax.tree.map, lambda x: np.full((chains, draws, *x.shape), x))
    return everywhere(sites), everywhere(statistics)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in WHOLE])
def test_the_short_form_runs(name, tmp_path, monkeypatch):
    """In this process, which has imported the library and compiled what notebooks share."""
    monkeypatch.setenv("NBMODELS_FAST", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "run", in_this_process)
    for module in (inference.nuts, nbmodels.posterior.numpyro):
        monkeypatch.setattr(module, "nuts", where_it_starts)
    plt.switch_backend("agg")
    with warnings.catch_warnings(), plt.rc_context():
        # a notebook shows warnings, and with few rows and draws there are more of them
        warnings.simplefilter("ignore")
        end = runpy.run_path(str(PATHS[name]), run_name="__main__")
    plt.close("all")
    assert any(isinstance(value, Figure) for value in end.values()), "draws no picture"


@pytest.mark.slow
@each
def test_solutions_print_what_they_say(name, tmp_path):
    printed = run_with_solutions(name, tmp_path)
    for solution, found in zip(solutions(read_script(PATHS[name])), printed, strict=True):
        assert _NUMBER.sub("#", found) == _NUMBER.sub("#", solution.printed), found
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
    import nbformat

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
