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


def found(name):
    module, last = name.rsplit(".", 1)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return getattr(importlib.import_module(module), last)


def test_the_api_page_has_names():
    assert len(public_names()) > 100


@pytest.mark.parametrize("name", public_names())
def test_its_example_runs(name):
    text = inspect.cleandoc(found(name).__doc__)
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert example.examples, f"{name} has no example in its docstring"
    said = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(example, out=said.append)
    assert not said, "".join(said)
