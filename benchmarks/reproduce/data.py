"""Where the papers' printed figures and the real data sets are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXPECTED = ROOT / "tests" / "papers" / "expected"
SHARED = ROOT.parent / "shared" / "data"

NEWSGROUPS = "text/newsgroups20.parquet"
REUTERS = "text/reuters_r8.parquet"
STREAMS = "live_streaming.csv"


def printed(name: str) -> Any:
    """A transcribed table of a paper."""
    return json.loads((EXPECTED / f"{name}.json").read_text())


def missing(needs: tuple[str, ...]) -> list[str]:
    """Those data files that are not at hand."""
    return [name for name in needs if not (SHARED / name).exists()]
