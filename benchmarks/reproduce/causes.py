"""Why single cells are not reproduced, each by the experiment that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.reproduce import denis_em, zeng_table
from benchmarks.reproduce.results import Cell

#: Stored results by the name of their target.
Records = Mapping[str, Any]


@dataclass(frozen=True)
class Cause:
    """Why a cell is missed.

    Attributes:
        text: the cause.
        shown_by: heading of the experiment that shows it, as an anchor; empty where none does.
    """

    text: str
    shown_by: str = ""

    def __str__(self) -> str:
        return f"[{self.text}](#{self.shown_by})" if self.shown_by else self.text


OTHER_P = Cause(
    "how p was drawn: in the range with another p", "why-tables-1-and-5-how-rho-and-p-were-drawn"
)
NOT_P = Cause("not known: outside with another p, too")
LITTLE_TRAINED = Cause("networks that were hardly trained", "why-the-networks-differ")
STOPPED = Cause("not known: ours is less accurate, stopped by held-out noisy labels")
REAL_DATA = Cause("no smoothing and no words give the effect", "why-section-42-smoothing-and-words")
CLOSED_FORM = Cause(
    "the parameters of its closed form are others", "why-table-3-log-likelihoods-of-nb-cccn"
)
PREPARED = Cause("how the set was cut, coded and split", "why-table-3-how-the-sets-were-prepared")
LESS_NOISE = Cause("labels with less noise than stated", "why-table-3-how-much-noise-there-was")
FOLDS = Cause(
    "the majority class, by a row or by the folds", "why-table-3-how-the-sets-were-prepared"
)
EM = "why-table-3-nb-cccn-em-with-noise"
#: What has a cell of NB-CCCN-EM in the range, by reading.
READINGS = {
    denis_em.ONE_DRAW: Cause("one draw of the noise for all experiments", EM),
    denis_em.EARLY_ONE: Cause("EM begun elsewhere or not converged, on one draw of the noise", EM),
    denis_em.LESS_NOISE: Cause("labels with less noise than stated, whatever the start of EM", EM),
}
NO_READING = Cause("not known: neither where EM began nor when it stopped, nor which draws")


def of_tables(table: int, cell: Cell, records: Records) -> Cause:
    """Tables 1 and 5 of Zeng et al., but for the networks."""
    experiment = records.get("why-zeng2022-noise")
    left = [t for t in experiment["tables"] if t.title == zeng_table.LEFT] if experiment else []
    outside = {tuple(row) for one in left for row in one.rows}
    return NOT_P if not left or (f"Table {table}", cell.row, cell.column) in outside else OTHER_P


def of_networks(cell: Cell, _: Records) -> Cause:
    """Networks of Zeng et al."""
    return LITTLE_TRAINED if cell.ours > cell.paper else STOPPED


def of_real_data(_: Cell, __: Records) -> Cause:
    """Section 4.2 of Zeng et al."""
    return REAL_DATA


def of_em(cell: Cell, records: Records) -> Cause:
    """NB-CCCN-EM of Denis et al. with noise."""
    experiment = records.get("why-denis2006-em")
    tables = experiment["tables"] if experiment else []
    found = {
        (row, column): reading
        for table in tables
        if table.title == denis_em.EXPLAINED
        for row, column, reading in table.rows
    }
    return READINGS.get(found.get((cell.row, cell.column), denis_em.NONE), NO_READING)


def of_denis_sets(cell: Cell, records: Records) -> Cause:
    """Table 3 of Denis et al."""
    name, eta = cell.row.split(", eta ")
    figure, method = cell.column.split(" ", 1)
    clean = eta == "[0, 0]"
    if method == "NB-CCCN":
        return CLOSED_FORM
    if method == "MajCl":
        return FOLDS if clean else LESS_NOISE
    if clean or (name == "Hepatitis" and figure == "lk"):
        return PREPARED
    if method == "NB":
        return LESS_NOISE
    return of_em(cell, records)


#: By target.
CAUSES: dict[str, Callable[[Cell, Records], Cause]] = {
    "zeng2022-table1": partial(of_tables, 1),
    "zeng2022-table5": partial(of_tables, 5),
    "zeng2022-networks1": of_networks,
    "zeng2022-networks5": of_networks,
    "zeng2022-newsgroups": of_real_data,
    "zeng2022-streams": of_real_data,
    "denis2006-table3": of_denis_sets,
}
