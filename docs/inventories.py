"""Names of other projects that pages link to, as intersphinx inventories that need no network."""

import zlib
from pathlib import Path
from typing import NamedTuple


class Project(NamedTuple):
    """A project's documentation.

    Attributes:
        url: where it begins.
        pages: ``{role: {name: page}}``; ``$`` at a page's end stands for the name.
    """

    url: str
    pages: dict[str, dict[str, str]]


PROJECTS = {
    "arviz": Project("https://python.arviz.org/en/stable/", {"std:doc": {"index": "index.html"}}),
    "jax": Project(
        "https://docs.jax.dev/en/latest/",
        {
            "py:function": {"jax.jit": "_autosummary/jax.jit.html#$"},
            "std:doc": {"persistent_compilation_cache": "persistent_compilation_cache.html"},
        },
    ),
    "numpyro": Project(
        "https://num.pyro.ai/en/stable/",
        {
            "py:class": {
                "numpyro.infer.hmc.NUTS": "mcmc.html#$",
                "numpyro.infer.svi.SVI": "svi.html#$",
            },
            "py:module": {"numpyro.handlers": "handlers.html#module-$"},
        },
    ),
    "sklearn": Project(
        "https://scikit-learn.org/stable/",
        {
            "py:class": {
                name: f"modules/generated/{name}.html#$"
                for name in (
                    "sklearn.naive_bayes.BernoulliNB",
                    "sklearn.pipeline.Pipeline",
                    "sklearn.semi_supervised.SelfTrainingClassifier",
                )
            },
            "py:function": {
                "sklearn.neighbors.kneighbors_graph": (
                    "modules/generated/sklearn.neighbors.kneighbors_graph.html#$"
                )
            },
        },
    ),
    "xarray": Project(
        "https://docs.xarray.dev/en/stable/",
        {"py:class": {"xarray.DataTree": "generated/xarray.DataTree.html#$"}},
    ),
}


def write(folder: Path, *, online: bool = False) -> dict[str, tuple[str, tuple[str | None, ...]]]:
    """Write an inventory of each project; what ``intersphinx_mapping`` is to be.

    Args:
        folder: where inventories lie.
        online: whether each project's own inventory is asked for first, on the network.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for name, project in PROJECTS.items():
        path = folder / f"{name}.inv"
        path.write_bytes(_inventory(name, project))
        mapping[name] = (project.url, (None, str(path)) if online else (str(path),))
    return mapping


def _inventory(name: str, project: Project) -> bytes:
    """In Sphinx's format, version 2."""
    head = (
        f"# Sphinx inventory version 2\n# Project: {name}\n# Version: \n"
        "# The remainder of this file is compressed using zlib.\n"
    )
    lines = [
        f"{target} {role} 1 {page} -\n"
        for role, targets in project.pages.items()
        for target, page in targets.items()
    ]
    return head.encode() + zlib.compress("".join(lines).encode())
