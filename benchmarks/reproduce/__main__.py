"""Every table and figure of the five papers, ours beside theirs.

Results go to ``examples/reproduction`` and ``examples/REPRODUCTION.md``; those of ``--quick`` to
``reproduction-quick``. The page is always written from all results that are stored there, so targets
may be run one by one.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.reproduce import page, storage
from benchmarks.reproduce.data import ROOT, missing
from benchmarks.reproduce.registry import targets
from benchmarks.reproduce.results import Result


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


def show_list(console: Console, known: dict[str, storage.Target]) -> None:
    table = Table("name", "paper", "what", "data")
    for target in known.values():
        lacking = missing(target.needs)
        data = f"lacks {', '.join(lacking)}" if lacking else ", ".join(target.needs)
        table.add_row(target.name, target.paper, target.title, data)
    console.print(table)


def run_all(
    console: Console, names: Sequence[str], scale: str, folder: Path, jobs: int
) -> None:
    """Run targets in processes of their own, so that none keeps another's memory."""
    known = targets()
    ready = []
    for name in names:
        if lacking := missing(known[name].needs):
            console.print(f"{name}: skipped, {', '.join(lacking)} not at hand")
        else:
            ready.append(name)
    with ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
        waiting = {pool.submit(run_one, name, scale, folder): name for name in ready}
        for done in as_completed(waiting):
            console.print(f"{waiting[done]}: {done.result()}")


def run_one(name: str, scale: str, folder: Path) -> str:
    """Run a target, store its result, and say in a line what came of it."""
    from nbmodels import NbmodelsWarning

    target = targets()[name]
    began = time.perf_counter()
    with warnings.catch_warnings():
        # at 70 % noise, say, a noise matrix may be anything; the figures say so
        warnings.simplefilter("ignore", NbmodelsWarning)
        result = target.run(target.scales[scale])
    seconds = time.perf_counter() - began
    storage.save(folder, target, result, scale, seconds)
    return f"{told(result)}; {seconds:.0f} s"


def told(result: Result) -> str:
    reproduced = sum(cell.reproduced for cell in result.cells)
    claims = [claim for claim in result.claims if not claim.ours]
    held = sum(claim.holds for claim in claims)
    return f"{reproduced} of {len(result.cells)} cells, {held} of {len(claims)} claims"


if __name__ == "__main__":
    main()
