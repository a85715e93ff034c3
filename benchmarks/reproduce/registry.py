"""All targets by name, in the order of the page."""

from __future__ import annotations

from importlib import import_module

from benchmarks.reproduce.results import Target

MODULES = (
    "zeng2022_table1",
    "zeng2022_table5",
    "why_zeng2022_noise",
    "zeng2022_networks1",
    "zeng2022_networks5",
    "why_zeng2022_networks",
    "why_zeng2022_passes",
    "zeng2022_newsgroups",
    "zeng2022_streams",
    "why_zeng2022_real",
    "denis2006_table1",
    "denis2006_table3",
    "why_denis2006_table3",
    "why_denis2006_noise",
    "why_denis2006_likelihoods",
    "why_denis2006_em",
    "bootkrajang2011",
    "why_bootkrajang2011",
    "maystre2021_figure2",
    "why_maystre2021_figure2",
    "maystre2021_table2",
    "chen2019_theorems",
    "chen2019_figures",
    "why_chen2019",
)


def targets() -> dict[str, Target]:
    """All targets by name."""
    found = [import_module(f"benchmarks.reproduce.targets.{name}").TARGET for name in MODULES]
    return {target.name: target for target in found}
