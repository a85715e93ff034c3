"""Every public name has an example in its docstring, which runs as it stands there.

Public names are those of the API page, ``docs/api.md``.
"""

import doctest
import importlib
import inspect
import re

import pytest
from paths import ROOT

ENTRY = re.compile(r"^   (\w+)$", re.MULTILINE)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def public_names():
    """Full names, as the page groups them by module."""
    parts = (ROOT / "docs" / "api.md").read_text().split(".. currentmodule:: ")[1:]
    return [f"{part.split()[0]}.{name}" for part in parts for name in ENTRY.findall(part)]


def example_of(name):
    module, last = name.rsplit(".", 1)
    try:
        text = importlib.import_module(name).__doc__
    except ModuleNotFoundError:
        text = getattr(importlib.import_module(module), last).__doc__
    return doctest.DocTestParser().get_doctest(inspect.cleandoc(text), {}, name, None, None)


def test_every_public_name_has_an_example():
    names = public_names()
    assert len(names) > 100
    assert not [name for name in names if not example_of(name).examples]


@pytest.mark.slow  # together they compile for minutes
@pytest.mark.parametrize("name", public_names())
def test_its_example_runs(name):
    said = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(example_of(name), out=said.append)
    assert not said, "".join(said)
