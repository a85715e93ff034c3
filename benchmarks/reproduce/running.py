"""Running targets in processes of their own."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console

from benchmarks.reproduce import storage
from benchmarks.reproduce.data import missing
from benchmarks.reproduce.registry import targets
from benchmarks.reproduce.results import Result


def run_all(console: Console, names: Sequence[str], scale: str, folder: Path, jobs: int) -> None:
    """Run targets in processes: at full scale in their own, so that none keeps another's memory."""
    known = targets()
    ready = []
    for name in names:
        if lacking := missing(known[name].needs):
            console.print(f"{name}: skipped, {', '.join(lacking)} not at hand")
        else:
            ready.append(name)
    # small scales: what is imported and compiled serves the next target, too
    most = 1 if scale == "full" else None
    with ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=most) as pool:
        waiting = {pool.submit(run_one, name, scale, folder): name for name in ready}
        for done in as_completed(waiting):
            console.print(f"{waiting[done]}: {done.result()}")


def run_one(name: str, scale: str, folder: Path) -> str:
    """Run a target, store its result, and say in a line what came of it."""
    from nbmodels import NbmodelsWarning

    target = targets()[name]
    begun = time.process_time()
    with warnings.catch_warnings():
        # at 70 % noise, say, a noise matrix may be anything; the figures say so
        warnings.simplefilter("ignore", NbmodelsWarning)
        result = target.run(target.scales[scale])
    # a case that a small scale leaves out is neither held nor not
    result = replace(result, claims=tuple(claim for claim in result.claims if claim.cases))
    seconds = time.process_time() - begun  # waiting is not counted
    storage.save(folder, target, result, scale, seconds)
    return f"{told(result)}; {seconds:.0f} s"


def told(result: Result) -> str:
    """Counts of a result in a line."""
    reproduced = sum(cell.reproduced for cell in result.cells)
    claims = [claim for claim in result.claims if not claim.ours]
    held = sum(claim.holds for claim in claims)
    return f"{reproduced} of {len(result.cells)} cells, {held} of {len(claims)} claims"
