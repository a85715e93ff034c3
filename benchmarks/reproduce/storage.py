"""Results of a target on disk: JSON for the page, CSV for readers, the figure as PNG."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.reproduce.results import Cell, Claim, Result, Table, Target

FOLDER = "reproduction"


def save(folder: Path, target: Target, result: Result, scale: str, seconds: float) -> None:
    """Write the result of one target below ``folder / "reproduction"``."""
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    if result.figure is not None:
        result.figure.savefig(place / f"{target.name}.png", dpi=80, bbox_inches="tight")
    record = {
        "scale": scale,
        "settings": str(target.scales[scale]),
        "seconds": round(seconds),
        "cells": [asdict(cell) for cell in result.cells],
        "claims": [asdict(claim) for claim in result.claims],
        "tables": [asdict(table) for table in result.tables],
        "notes": list(result.notes),
        "figure": result.figure is not None,
    }
    (place / f"{target.name}.json").write_text(json.dumps(record, indent=1, default=float) + "\n")
    write_csv(place / f"{target.name}.csv", result)


def write_csv(path: Path, result: Result) -> None:
    """Cells and claims in one table; tables without a printed counterpart below."""
    with path.open("w", newline="") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        write(["row", "column", "ours", "low", "high", "paper", "reproduced"])
        for cell in result.cells:
            numbers = [f"{v:.6g}" for v in (cell.ours, cell.low, cell.high, cell.paper)]
            write([cell.row, cell.column, *numbers, cell.reproduced])
        for claim in result.claims:
            write(["claim", claim.text, claim.held, "", claim.cases, "", claim.holds])
        for table in result.tables:
            write([])
            write([table.title])
            write(table.columns)
            for row in table.rows:
                write(row)


def load(folder: Path, name: str) -> dict[str, Any] | None:
    """The stored record of a target, its cells, claims and tables as objects."""
    path = folder / FOLDER / f"{name}.json"
    if not path.exists():
        return None
    record = json.loads(path.read_text())
    record["cells"] = [Cell(**cell) for cell in record["cells"]]
    record["claims"] = [Claim(**claim) for claim in record["claims"]]
    record["tables"] = [
        Table(t["title"], tuple(t["columns"]), tuple(map(tuple, t["rows"])))
        for t in record["tables"]
    ]
    return record
