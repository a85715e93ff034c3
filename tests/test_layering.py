"""Who imports whom, and what an import may do.

Each room of ``nbmodels`` has one rule: the rooms that it may import. ``inference`` never sees
``nbmodels``; importing the library is cheap and changes no setting; nobody holds a default key.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import inference
import nbmodels

ROOT = Path(nbmodels.__file__).parent
SOURCES = sorted([*ROOT.rglob("*.py"), *Path(inference.__file__).parent.rglob("*.py")])

#: The rooms that a room may import, beside itself and ``errors``; from the ground up.
MAY_IMPORT = {
    "errors": set(),
    "datasets": set(),
    "data": set(),
    "audit": {"data"},
    "metrics": {"audit", "data"},
    "core": {"inference"},
    "emissions": {"inference", "core", "data"},
    "channels": {"inference", "core"},
    "class_priors": {"inference", "core"},
    "papers": {"inference", "core", "emissions", "channels", "class_priors"},
    "fitting": {"inference", "core", "data", "emissions", "channels", "class_priors"},
    "diagnostics": {"core", "data", "fitting"},
    "posterior": {"inference", "core", "fitting"},
}
#: What a person touches, which may import all below it; ``cli`` sees ``estimators`` by their names.
FACES = {"estimators": {*MAY_IMPORT, "inference"}, "cli": {*MAY_IMPORT, "inference", "estimators"}}
#: Imported where they are used, never with the library.
HEAVY = {"arviz", "arviz_base", "arviz_plots", "arviz_stats", "funsor", "matplotlib", "numpyro"}


def name(path):
    return path.relative_to(ROOT.parent).as_posix()


def tree(path):
    return ast.parse(path.read_text(), str(path))


def imported(path):
    """Absolute names of all modules that a file imports, inside functions too."""
    package = path.relative_to(ROOT.parent).parent.parts
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            yield ".".join([*above, *([node.module] if node.module else [])])


def under(module, package):
    return module == package or module.startswith(package + ".")


def room(path):
    """``core`` of ``nbmodels/core/model.py``; the file's own name where it stands alone."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def rooms_imported(path):
    """Rooms of ``nbmodels`` that a file imports, and ``inference`` if it does."""
    for module in imported(path):
        parts = module.split(".")
        if parts[0] == "inference":
            yield "inference"
        elif parts[0] == "nbmodels" and len(parts) > 1:
            yield parts[1]


def dotted(node):
    """``a.b.c`` of an attribute chain, or an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return ""


def calls(path):
    return [(dotted(n.func), n) for n in ast.walk(tree(path)) if isinstance(n, ast.Call)]


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_room_imports_what_its_rule_allows(path):
    if ROOT not in path.parents:
        assert not {m for m in imported(path) if under(m, "nbmodels")}
    elif path.parent != ROOT or room(path) == "errors":
        rules = MAY_IMPORT | FACES
        assert set(rooms_imported(path)) <= {*rules[room(path)], room(path), "errors"}


def test_every_room_has_a_rule():
    rooms = {p.name for p in ROOT.iterdir() if (p / "__init__.py").exists()}
    loose = {p.stem for p in ROOT.glob("*.py")}
    assert rooms | loose == {*MAY_IMPORT, *FACES, "__init__", "__main__"}


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_setting_is_changed(path):
    for called, _ in calls(path):
        # there, for as long as the library computes: tests/core/test_jax_settings.py
        restored = called == "jax.config.update" and path == ROOT / "core" / "jax_settings.py"
        assert restored or not called.endswith(("config.update", "basicConfig")), called
        assert not called.startswith(("numpyro.set_", "numpyro.enable_", "warnings.simplefilter"))
        assert called not in ("np.random.seed", "numpy.random.seed", "random.seed"), called


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_default_key(path):
    for called, node in calls(path):
        if called.endswith((".PRNGKey", "random.key", ".default_rng")):
            assert node.args, f"line {node.lineno}: randomness from nowhere"
            assert not isinstance(node.args[0], ast.Constant), f"line {node.lineno}: a fixed seed"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.arguments):
            defaults = [*node.defaults, *(d for d in node.kw_defaults if d is not None)]
            assert not any(isinstance(d, ast.Call) and "key" in dotted(d.func) for d in defaults)


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_heavy_packages_are_imported_late(path):
    # the modules that exist for one of them are themselves imported late
    late = (
        "nbmodels/papers/",
        "nbmodels/posterior/",
        "nbmodels/cli/",
        "inference/nuts",
        "inference/svi",
    )
    if name(path).startswith(late):
        pytest.skip("imported late itself; the next test checks that")
    for node in tree(path).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
            assert not {n.split(".")[0] for n in names if n} & HEAVY


def test_importing_the_library_is_light_and_silent():
    code = (
        "import sys, json, jax\n"
        "before = jax.config.values.copy()\n"
        "import nbmodels, inference\n"
        "changed = [k for k, v in jax.config.values.items() if before.get(k) != v]\n"
        f"print(json.dumps([sorted({HEAVY!r} & set(sys.modules)), changed]))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT.parent,
    )
    assert json.loads(done.stdout) == [[], []]
    assert done.stderr == ""


@pytest.mark.slow
def test_an_estimator_costs_little_more_than_jax_and_scikit_learn():
    """Beside what those load by themselves, which depends on their versions."""
    late = {*HEAVY, "h5netcdf", "optax", "rich", "scipy.stats", "tqdm", "typer", "xarray"}
    code = (
        "import sys, json, jax, sklearn.base\n"
        "before = set(sys.modules)\n"
        "import nbmodels\n"
        "nbmodels.NoisyBernoulliNB, nbmodels.DawidSkene\n"
        f"print(json.dumps(sorted({late!r} & set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    assert json.loads(done.stdout) == []


def test_both_packages_are_ours():
    assert Path(inference.__file__).parent.parent == ROOT.parent
