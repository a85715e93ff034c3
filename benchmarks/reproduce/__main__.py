"""Every table and figure of the five papers, ours beside theirs.

Results go to ``examples/reproduction`` and ``examples/REPRODUCTION.md``; those of ``--quick`` to
``reproduction-quick``. The page is always written from all results that are stored there, so that
targets may be run one by one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.reproduce import page
from benchmarks.reproduce.data import ROOT, missing
from benchmarks.reproduce.registry import targets
from benchmarks.reproduce.results import Target
from benchmarks.reproduce.running import run_all


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reproduce", description=__doc__.split("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="targets; see --list")
    parser.add_argument("--list", action="store_true", help="name the targets and stop")
    parser.add_argument("--all", action="store_true", help="all targets")
    parser.add_argument("--quick", action="store_true", help="a small scale; alone, all targets")
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    parser.add_argument("--jobs", type=int, default=2, help="processes; 2 by default")
    parser.add_argument("--output", type=Path, help="folder of the results and the page")
    args = parser.parse_args(argv)

    known, console = targets(), Console()
    folder = args.output or ROOT / ("reproduction-quick" if args.quick else "examples")
    if args.list:
        show_list(console, known)
        return
    if unknown := set(args.names) - set(known):
        parser.error(f"no target is called {', '.join(sorted(unknown))}; see --list")
    names = list(known) if args.all or (args.quick and not args.names) else args.names
    if not names and not args.page:
        parser.error("say which targets, or --all, --quick, --list")
    began = time.perf_counter()
    run_all(console, names, "quick" if args.quick else "full", folder, args.jobs)
    path = page.write(folder, list(known.values()))
    console.print(f"{path} written; {time.perf_counter() - began:.0f} s")


def show_list(console: Console, known: dict[str, Target]) -> None:
    table = Table("name", "paper", "what", "data")
    for target in known.values():
        lacking = missing(target.needs)
        data = f"lacks {', '.join(lacking)}" if lacking else ", ".join(target.needs)
        table.add_row(target.name, target.paper, target.title, data)
    console.print(table)


if __name__ == "__main__":
    main()
