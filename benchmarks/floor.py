"""Ours beside every plain answer, over one grid of worlds: ``python benchmarks/floor.py --quick``.

A world is one function (``floor_worlds/``) of a cell of the grid: items, classes, a class of 2 %,
kind and share of label errors. Estimators are on their defaults. Labels are compared with the
labels as given and the plain classifiers' cross-validated predictions, predictions of new items
with the plain classifiers', graphs with the neighbours' votes, annotators with their majority.
"Own" is the best plain answer to the estimator's own question: the same family on the same labels,
or the labels as they are. "Any" is the best of all on that kind of data, such as a forest beside
naive Bayes.

Figures are averaged over seeds before the best plain answer is taken. The best of several noisy
figures is still flattered: with few seeds, ours can be a point or two below it on small tables
without being worse. ``--seeds`` takes more.
"""

import argparse
import os
import time
from pathlib import Path

import pandas as pd
from floor_worlds import WORLDS, AbsentError, draw
from floor_worlds.answers import OURS, PLAIN
from floor_worlds.measures import figures
from floor_worlds.summary import by_cell, by_estimator, failures, sentences, worst
from rich.console import Console

import nbmodels


def jobs(args):
    """Worlds and cells, those of one size one after the other: they share compiled programs."""
    found = []
    for world in WORLDS.values():
        cells = world.quick if args.quick else world.settings
        if args.only not in world.name or (args.kind and world.kind not in args.kind):
            continue
        found += [(world, s) for s in cells if not args.sizes or s.n in args.sizes]
    return sorted(found, key=lambda job: (job[1].n, job[1].k, job[0].kind))


def methods(kind, setting, wanted, quick):
    """Who answers in a cell: name, role, own plain answers, function."""
    for name, run in PLAIN[kind].items():
        yield name, "plain", "", run
    for name, ours in OURS[kind].items():
        if (not wanted or name in wanted) and ours.where(setting) and not (quick and ours.slow):
            yield name, "ours", "|".join(ours.family or PLAIN[kind]), ours.run


def measured(world, setting, seed, wanted, quick):
    """A row for each who answers."""
    task = draw(world, setting, seed)
    for name, role, family, run in methods(world.kind, setting, wanted, quick):
        row = {
            "kind": world.kind,
            "world": world.name,
            **vars(setting),
            "seed": seed,
            "method": name,
            "role": role,
            "family": family,
            "error": "",
        }
        began = time.perf_counter()
        try:
            answer = run(task, seed)
            row["seconds"] = time.perf_counter() - began
            row |= figures(task, answer)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"
        yield row


def collect(args, console):
    """Rows of all fits, of those before Ctrl-C where it was pressed."""
    rows, todo, began = [], jobs(args), time.perf_counter()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    absent = {}
    try:
        for i, (world, setting) in enumerate(todo):
            try:
                for seed in seeds:
                    rows += measured(world, setting, seed, args.estimator, args.quick)
            except AbsentError as error:
                absent[world.name] = str(error)
                continue
            passed = time.perf_counter() - began
            console.print(
                f"{i + 1}/{len(todo)} {passed:.0f} s {world.name}, {setting}", style="dim"
            )
    except KeyboardInterrupt:
        console.print("interrupted; this is what there is")
    for name, reason in absent.items():
        console.print(f"{name} was left out: {reason}")
    return pd.DataFrame(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="some cells, in five minutes")
    parser.add_argument("--kind", nargs="*", choices=list(PLAIN), help="of data")
    parser.add_argument("--only", default="", help="worlds with this in their name")
    parser.add_argument("--sizes", nargs="*", type=int, help="numbers of items")
    parser.add_argument("--estimator", nargs="*", help="ours by name")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--worst", type=int, default=10, help="cells listed")
    parser.add_argument("--csv", type=Path, help="file for a row a fit")
    args = parser.parse_args()
    # a table is wide; a file has no width of its own
    console = Console(width=None if os.isatty(1) else 200)
    # of several checkouts it is easy to measure the wrong one
    console.print(f"measured: {Path(nbmodels.__file__).parent}")
    rows = collect(args, console)
    if rows.empty:
        console.print("no world has these names")
        return
    if args.csv is not None:
        rows.to_csv(args.csv, index=False)
    cells = by_cell(rows)
    console.print(by_estimator(rows, cells))
    console.print(worst(cells, args.worst))
    for line in sentences(rows, cells):
        console.print(line)
    failed = failures(rows)
    console.print(f"Fits that ended in an error: {len(failed)} of {len(rows)}")
    for line in failed:
        console.print(f"  {line}")


if __name__ == "__main__":
    main()
