"""The generated page: all stored results as one Markdown file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.reproduce.causes import CAUSES, Cause
from benchmarks.reproduce.data import missing
from benchmarks.reproduce.results import Cell, Target
from benchmarks.reproduce.storage import FOLDER, load

PAGE = "REPRODUCTION.md"
NO_BREAK = "\N{NO-BREAK SPACE}"
#: A point of accuracy in the units of a column, by how its name begins.
POINTS = {"ACC %": 1.0, "dACC": 1.0, "gain": 1.0, "acc": 0.01, "F ": 0.01}

HEAD = """# The papers' tables and figures, ours beside theirs

Written by `python -m benchmarks.reproduce`; do not edit. `--list` names the targets, `--quick` runs
all of them at a small scale in minutes, `--all` at the scale of this page.

A cell holds our mean and the range that holds a further figure of ours, made as the paper's was,
with 95 % probability (Student's t over the replicates; what a replicate is, and of what the paper's
figure is a mean, stands with each table). Below is the paper's figure; `=` marks one that lies in
the range, half a unit of its last digit allowed, or within the stated tolerance where the data set
is not the same to the row, `x` one that does not. Nothing is tuned towards the papers. Where a
paper prints a curve without numbers, its textual claims are checked instead and the curve is drawn.
"""


def write(folder: Path, targets: Sequence[Target]) -> Path:
    """Write the page from the results stored below ``folder``."""
    records = [(target, load(folder, target.name)) for target in targets]
    causes = missed({target.name: record for target, record in records if record})
    parts = [HEAD, summary([(t, r) for t, r in records if r]), by_cause(causes)]
    for paper in dict.fromkeys(target.paper for target in targets):
        parts.append(f"## {paper}")
        parts += [
            section(target, record, causes.get(target.name, []))
            for target, record in records
            if target.paper == paper
        ]
    path = folder / PAGE
    path.write_text("\n\n".join(part.strip("\n") for part in parts) + "\n")
    return path


def missed(records: dict[str, dict[str, Any]]) -> dict[str, list[tuple[Cell, Cause]]]:
    """Cells that are not reproduced, each with its cause, by target."""
    return {
        name: [
            (cell, cause(cell, records)) for cell in records[name]["cells"] if not cell.reproduced
        ]
        for name, cause in CAUSES.items()
        if name in records
    }


def by_cause(found: dict[str, list[tuple[Cell, Cause]]]) -> str:
    """How many cells each cause accounts for."""
    causes = [cause for cells in found.values() for _, cause in cells]
    if not causes:
        return ""
    shown = sum(bool(cause.shown_by) for cause in causes)
    counts = {cause: causes.count(cause) for cause in dict.fromkeys(causes)}
    rows = [(cause, n) for cause, n in sorted(counts.items(), key=lambda one: -one[1])]
    text = f"{shown} of the {len(causes)} cells missed have a cause that an experiment shows:"
    return f"{text}\n\n{markdown_table(('cause', 'cells'), rows)}"


def causes_of(cells: Sequence[tuple[Cell, Cause]]) -> str:
    """Missed cells of a target by cause."""
    rows = [
        (cause, len(mine), "; ".join(f"{c.row}: {c.column}" for c in mine))
        for cause in dict.fromkeys(cause for _, cause in cells)
        if (mine := [cell for cell, other in cells if other == cause])
    ]
    few = [(cause, n, names if n <= 12 else "the rest") for cause, n, names in rows]
    return "Cells missed, by cause:\n\n" + markdown_table(("cause", "cells", "which"), few)


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table; numbers to four significant digits."""
    lines = [columns, ["---"] * len(columns), *([show(v) for v in row] for row in rows)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def show(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def summary(records: Sequence[tuple[Target, dict[str, Any]]]) -> str:
    """Cells reproduced and claims held, by paper."""
    rows, sums = [], [0, 0, 0, 0, 0, 0]
    reaches: list[float] = []
    for paper in dict.fromkeys(target.paper for target, _ in records):
        mine = [record for target, record in records if target.paper == paper]
        cells = [cell for record in mine for cell in record["cells"]]
        claims = [claim for record in mine for claim in record["claims"] if not claim.ours]
        reach = [(c.high - c.low) / 2 / max(abs(c.paper), c.rounding) for c in cells]
        counts = [
            sum(cell.reproduced for cell in cells),
            len(cells),
            sum(near(cell) for cell in cells),
            sum(claim.holds for claim in claims),
            len(claims),
            sum(record["seconds"] for record in mine),
        ]
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        rows.append(summary_row(paper, counts, reach))
        reaches += reach
    rows.append(summary_row("all", sums, reaches))
    columns = (
        "paper",
        "cells reproduced",
        "or an accuracy within 2 points",
        "median half-width of a range, % of the paper's figure",
        "claims held",
        "seconds of processor time",
    )
    return "## Summary\n\n" + markdown_table(columns, rows)


def summary_row(name: str, counts: list[int], reach: Sequence[float]) -> tuple[str, ...]:
    reproduced, cells, close, held, claims, seconds = counts
    middle = f"{100 * median(reach):.1f}" if reach else ""
    tallies = (
        f"{count} of {cells} ({100 * count / cells:.0f} %)" if cells else "none printed"
        for count in (reproduced, close)
    )
    return name, *tallies, middle, f"{held} of {claims}", str(seconds)


def near(cell: Cell) -> bool:
    """Whether a cell is reproduced, or an accuracy within two points of the paper's."""
    points = [size for start, size in POINTS.items() if cell.column.startswith(start)]
    return cell.reproduced or abs(cell.ours - cell.paper) <= 2 * sum(points) + 1e-9


def section(
    target: Target, record: dict[str, Any] | None, causes: Sequence[tuple[Cell, Cause]] = ()
) -> str:
    parts = [f"### {target.title}", f"`{target.name}`. {target.about.strip()}"]
    if record is None:
        lacking = missing(target.needs)
        reason = f"{', '.join(lacking)} not at hand" if lacking else "not run"
        return "\n\n".join([*parts, f"*Skipped: {reason}.*"])
    parts.append(
        f"Scale: {record['scale']}, {record['settings']}; {record['seconds']} s of processor time."
    )
    if record["cells"]:
        reproduced = sum(cell.reproduced for cell in record["cells"])
        parts.append(f"**{reproduced} of {len(record['cells'])} cells reproduced.**")
        parts.append(pivot(record["cells"]))
    if causes:
        parts.append(causes_of(causes))
    if record["claims"]:
        parts.append(claims(record["claims"]))
    parts += [f"{t.title}:\n\n{markdown_table(t.columns, t.rows)}" for t in record["tables"]]
    if record["figure"]:
        parts.append(f"![{target.title}]({FOLDER}/{target.name}.png)")
    parts += record["notes"]
    if target.why:
        parts.append(f"**Why.** {target.why.strip()}")
    return "\n\n".join(parts)


def pivot(cells: Sequence[Cell]) -> str:
    """Cells by row and column."""
    columns = list(dict.fromkeys(cell.column for cell in cells))
    by_row: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        by_row.setdefault(cell.row, {})[cell.column] = cell
    rows = [
        [
            row.replace(" ", NO_BREAK),
            *(text(found[column]) if column in found else "" for column in columns),
        ]
        for row, found in by_row.items()
    ]
    return markdown_table(["", *columns], rows)


def text(cell: Cell) -> str:
    digits = max(0, len(f"{cell.rounding:.6f}".rstrip("0").split(".")[1]) - 1)
    ours, low, high, paper = (
        f"{v:.{digits}f}" for v in (cell.ours, cell.low, cell.high, cell.paper)
    )
    # two lines, neither of which a narrow column breaks
    lines = f"{ours} [{low}, {high}]", f"{paper} {'=' if cell.reproduced else 'x'}"
    return "<br>".join(lines).replace(" ", NO_BREAK)


def claims(found: Sequence[Any]) -> str:
    rows = []
    for one in found:
        printed = "" if one.printed is None else f"{one.printed} of {one.cases}"
        wanted = "most" if one.most else "all"
        verdict = "held" if one.holds else "**not held**"
        source = "ours" if one.ours else "paper"
        rows.append((source, one.text, wanted, f"{one.held} of {one.cases}", printed, verdict))
    columns = ("claim of", "text", "claimed of", "ours", "the paper's table", "verdict")
    return markdown_table(columns, rows)
