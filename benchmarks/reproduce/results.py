"""What a reproduction returns: cells beside the paper's, claims, further tables and a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Cell:
    """One printed figure of a paper beside ours.

    Attributes:
        row: setting.
        column: method and measure.
        ours: mean over our replicates.
        low, high: range that holds, with 95 % probability, a further figure made as the paper's
            was.
        paper: the printed figure.
        rounding: half a unit of the last printed digit.
        tolerance: largest difference that counts as reproduced where the paper's data set is not
            the same to the row; 0 elsewhere.
    """

    row: str
    column: str
    ours: float
    low: float
    high: float
    paper: float
    rounding: float = 0.0
    tolerance: float = 0.0

    @property
    def reproduced(self) -> bool:
        inside = self.low - self.rounding <= self.paper <= self.high + self.rounding
        # differences of decimals are off by rounding errors
        return inside or abs(self.ours - self.paper) <= self.tolerance + 1e-9


@dataclass(frozen=True)
class Claim:
    """A statement, of a paper as a rule: in how many of its cases it holds with us.

    Attributes:
        text: the claim.
        held: number of cases where it holds.
        cases: number of cases.
        most: whether the paper claims it of most cases only.
        printed: cases in which the paper's own table bears it out, where it has one.
        ours: whether it is a statement of ours about the cause of a difference, not the paper's.
    """

    text: str
    held: int
    cases: int
    most: bool = False
    printed: int | None = None
    ours: bool = False

    @property
    def holds(self) -> bool:
        return 2 * self.held > self.cases if self.most else self.held == self.cases


@dataclass(frozen=True)
class Table:
    """Further results, printed as they are."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Result:
    """Everything that one target returns; ``figure`` is a Matplotlib figure or None."""

    cells: tuple[Cell, ...] = ()
    claims: tuple[Claim, ...] = ()
    tables: tuple[Table, ...] = ()
    figure: Any = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """A table or figure of a paper, or an experiment on why one differs.

    Attributes:
        name: what the command line calls it.
        paper: short name of the paper.
        title: which table or figure.
        about: how it was done, Markdown.
        run: computes the result at a scale.
        scales: settings by name of the scale: ``"toy"``, ``"quick"``, ``"full"``.
        needs: data files below the shared folder; without them the target is skipped.
        why: cause of what is missed, or what the experiment shows, Markdown.
    """

    name: str
    paper: str
    title: str
    about: str
    run: Callable[[Any], Result]
    scales: dict[str, Any]
    needs: tuple[str, ...] = ()
    why: str = ""


def beside(
    row: str,
    column: str,
    replicates: Sequence[float],
    paper: float,
    rounding: float = 0.0,
    tolerance: float = 0.0,
    *,
    variance: float | None = None,
) -> Cell:
    """A cell from our replicates.

    Args:
        row: setting.
        column: method and measure.
        replicates: our figures, whose mean is shown.
        paper: the printed figure.
        rounding: half a unit of its last digit.
        tolerance: see :class:`Cell`.
        variance: of a figure such as the paper's; that of one replicate by default.
    """
    ours, low, high = prediction_interval(replicates, variance)
    return Cell(row, column, ours, low, high, paper, rounding, tolerance)


def prediction_interval(
    replicates: Sequence[float], variance: float | None = None
) -> tuple[float, float, float]:
    """Mean, and the range of a further figure with 95 % probability (Student's t).

    Args:
        replicates: independent figures.
        variance: of the further figure; that of the replicates by default.
    """
    values = np.asarray(replicates, float)
    mean, n = float(values.mean()), len(values)
    if n < 2:
        return mean, mean, mean
    spread = float(values.var(ddof=1))
    further = spread if variance is None else variance
    reach = float(stats.t.ppf(0.975, n - 1) * np.sqrt(further + spread / n))
    return mean, mean - reach, mean + reach


def variance_of_mean(replicates: Sequence[float], count: int) -> float:
    """Variance of a mean over ``count`` replicates, from ours."""
    return float(np.var(replicates, ddof=min(1, len(replicates) - 1)) / count)


def variance_of_truth(
    replicates: Sequence[float], within: Sequence[float], ours: int, theirs: int
) -> float:
    """Variance of the mean over ``theirs`` data sets from one random truth.

    Args:
        replicates: means over ``ours`` data sets, each of a truth of its own.
        within: variances between the data sets of one truth.
        ours: number of data sets of each truth here.
        theirs: number in the paper.
    """
    between = np.var(replicates, ddof=min(1, len(replicates) - 1)) - np.mean(within) / ours
    return float(max(between, 0) + np.mean(within) / theirs)


def claim(text: str, cases: Sequence[bool], **details: Any) -> Claim:
    """A claim from whether it holds in each of its cases."""
    return Claim(text, int(np.sum(cases)), len(cases), **details)
