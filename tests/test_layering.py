"""Who imports whom, and what an import may do.

``inference`` never sees ``nbmodels``; within ``nbmodels`` only the modules in ``MAY_INFER`` see
``inference``; importing the library is cheap and changes no setting; nobody holds a default key.
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

#: What of ``inference`` a part of ``nbmodels`` may import; the first matching prefix decides.
MAY_INFER = {
    "__init__.py": {"inference"},
    "abreast.py": {"inference"},
    "choosing.py": {"inference"},
    "cli.py": {"inference"},
    "fit.py": {"inference"},
    "identify.py": {"inference"},
    "model.py": {"inference"},
    "plots.py": {"inference"},
    "draws/": {"inference"},
    "program.py": {"inference.products"},
    "report.py": {"inference"},
    "estimators/": {"inference"},
    "papers/": {"inference"},
    "emissions/": {"inference.products", "inference.triangular"},
    "channels/": {"inference.products"},
    "priors/": {"inference"},
    "collapsed.py": {"inference"},
    "pooling.py": {"inference"},
    "families.py": {"inference.gamma", "inference.special", "inference.triangular"},
    "exchangeable.py": {"inference.products"},
}
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


def allowed(path):
    inside = path.relative_to(ROOT).as_posix()
    return next((to for start, to in MAY_INFER.items() if inside.startswith(start)), set())


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
def test_no_back_edge(path):
    modules = set(imported(path))
    if ROOT in path.parents:
        found = {module for module in modules if under(module, "inference")}
        assert all(any(under(m, to) for to in allowed(path)) for m in found), found
    else:
        assert not {m for m in modules if under(m, "nbmodels")}


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_setting_is_changed(path):
    for called, _ in calls(path):
        assert not called.endswith(("config.update", "basicConfig")), called
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
    late = {"nbmodels/plots.py", "nbmodels/posterior.py", "nbmodels/report.py", "nbmodels/cli.py"}
    late |= {"nbmodels/draws/pictures.py"}
    if name(path) in late or name(path).startswith(
        ("nbmodels/papers/", "inference/nuts", "inference/svi")
    ):
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


def test_both_packages_are_ours():
    assert Path(inference.__file__).parent.parent == ROOT.parent
