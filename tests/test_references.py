"""Names that docstrings and comments refer to exist."""

import pkgutil
import re
from pathlib import Path

import pytest

import inference
import nbmodels

PACKAGES = [Path(package.__file__).parent for package in (nbmodels, inference)]
SOURCES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
REFERENCE = re.compile(r":\w+:`~?((?:nbmodels|inference)\.[\w.]+)`|``((?:nbmodels|inference)\.\w+)")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "/".join(path.parts[-3:]))
def test_references_lead_somewhere(path):
    for role, plain in REFERENCE.findall(path.read_text()):
        pkgutil.resolve_name(role or plain)
