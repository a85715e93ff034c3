"""NumPyro, imported on first use: most fits never need it, and it takes a second to load."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any


class _LazyModule:
    """Stands for a module and imports it when an attribute is first read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


if TYPE_CHECKING:
    import numpyro
    from numpyro import distributions as dist
    from numpyro import handlers
    from numpyro.contrib import funsor
else:
    numpyro = _LazyModule("numpyro")
    dist = _LazyModule("numpyro.distributions")
    handlers = _LazyModule("numpyro.handlers")
    funsor = _LazyModule("numpyro.contrib.funsor")

__all__ = ["dist", "funsor", "handlers", "numpyro"]
