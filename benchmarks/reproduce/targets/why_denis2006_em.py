"""What decides the cells of NB-CCCN-EM in Table 3 of Denis et al. 2006: a search over readings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy import stats

from benchmarks.reproduce import denis_em
from benchmarks.reproduce.data import printed
from benchmarks.reproduce.denis_em import (
    CLOSED_FIRST,
    EARLY_ONE,
    EXPLAINED,
    FIGURES,
    LESS_NOISE,
    NONE,
    ONE_DRAW,
    Folds,
)
from benchmarks.reproduce.denis_fits import cross_validated
from benchmarks.reproduce.denis_sets import Prepared, prepare
from benchmarks.reproduce.results import Result, Table, Target, beside, claim, variance_of_mean
from benchmarks.reproduce.targets import denis2006_table3 as table3
from benchmarks.reproduce.targets.why_denis2006_noise import STATED

CLEAN = (0.0, 0.0)
#: Noise nearest the figures of naive Bayes, by ``why-denis2006-noise``.
NEAREST = {
    "House Votes": (0.15, 0.5),
    "Tic Tac Toe": (0.1, 0.4),
    "Hepatitis": (0.2, 0.5),
    "Breast Cancer": (0.15, 0.4),
    "Breast Cancer Wisconsin": (0.25, 0.4),
    "Balance Scale": (0.1, 0.4),
}
STOPS = (*(f"{steps} steps" for steps in denis_em.STEPS), "converged")
EARLY, CONVERGED = STOPS.index("20 steps"), len(STOPS) - 1
#: Pseudo-items a value and class in EM.
SMOOTHINGS = (1.0, 0.5, 0.1, 0.0)
#: Half a unit of the last digit of each figure.
HALF = np.array([5e-4, 0.5, 5e-3, 5e-3])
LK = FIGURES.index("lk")
#: Experiments that a figure is a mean of: each with a draw of the noise, or all with the same.
TEN, ONE = 10, 1
#: Least probability at which four figures count as those of one draw.
LEAST = 0.01


@dataclass(frozen=True)
class Scale:
    """Draws of the noise, each with one cross-validation, random starts, and sets."""

    draws: int
    random: int
    sets: int = 6


@dataclass(frozen=True)
class Case:
    """A set with one noise.

    Attributes:
        row: of the printed table.
        found: the set.
        eta: noise.
        folds: of all cross-validations.
    """

    row: dict[str, Any]
    found: Prepared
    eta: tuple[float, float]
    folds: Folds

    @property
    def there(self) -> np.ndarray:
        """The paper's figures of NB-CCCN-EM, without noise the first two."""
        row = self.row["noise"][json.dumps(STATED) if any(self.eta) else "[0, 0]"]
        method = "NB-CCCN-EM"
        return np.array(
            [row["acc"][method], row["lk"][method], *row.get("eta", {}).get(method, [])]
        )

    def fitted(self, starts: Sequence[Any], alpha: float) -> np.ndarray:
        """``(stops, draws, 4)`` figures of each cross-validation."""
        return by_draw(denis_em.fitted(self.found, self.folds, starts, alpha))

    def starts(self, random: int) -> dict[str, Any]:
        rates = self.row["noise"][json.dumps(STATED)]["eta"]["NB-CCCN"]
        named = {"NB-CCCN's printed rates": rates, "0.2, 0.5": STATED}
        return denis_em.begun(self.found, self.folds, named, random)


def by_draw(figures: np.ndarray) -> np.ndarray:
    """Means over the ten folds of each cross-validation, the last axis but one."""
    return figures.reshape(*figures.shape[:-2], -1, 10, figures.shape[-1]).mean(-2)


def a_case(row: dict[str, Any], eta: tuple[float, float], draws: int) -> Case:
    found = prepare(row, table3.CUT, table3.MISSING)
    weights, labels = table3.folds(found, np.array(eta), draws)
    arrays = weights.astype(float), labels, found.y, found.codes
    return Case(row, found, eta, Folds(*map(jnp.asarray, arrays)))


def within(name: str, goal: np.ndarray, values: np.ndarray, experiments: int) -> list[bool]:
    """Which figures of the paper lie in the range of a mean over a number of experiments.

    Args:
        name: of the set.
        goal: the paper's figures, in the order of ``FIGURES``.
        values: ``(draws, 4)`` ours.
        experiments: each with a draw of its own.
    """
    found = []
    for figure, half, each, key in zip(goal, HALF, values.T, FIGURES, strict=False):
        tolerance = 0.02 if key == "acc" and name in table3.NOT_THE_SAME else 0.0
        variance = variance_of_mean(each, experiments)
        cell = beside(name, key, each, figure, half, tolerance, variance=variance)
        found.append(cell.reproduced)
    return found


def chance(goal: np.ndarray, values: np.ndarray, half: np.ndarray) -> float:
    """Probability that one more draw is as far from ours as the paper's, by Hotelling's T.

    Args:
        goal: the paper's figures.
        values: ``(draws, figures)`` ours.
        half: half a unit of the last printed digits.
    """
    count, size = values.shape
    if count <= size:
        return float("nan")
    off = goal - values.mean(0)
    # printed figures are rounded
    spread = np.cov(values.T) * (1 + 1 / count) + np.diag(half**2 / 3)
    square = off @ np.linalg.solve(spread, off)
    return float(stats.f.sf(square * (count - size) / (size * (count - 1)), size, count - size))


@dataclass(frozen=True)
class Smoothing:
    """EM without noise, begun from the closed form.

    Attributes:
        alpha: pseudo-items a value and class.
        stop: when EM was stopped, of ``STOPS``.
        gaps: by which our log-likelihood is above the paper's, by set.
        inside: how many of the cells are in the range.
    """

    alpha: float
    stop: int
    gaps: dict[str, float]
    inside: int

    @property
    def off(self) -> float:
        """Sum of differences but of Hepatitis, which was cut otherwise."""
        return sum(abs(gap) for name, gap in self.gaps.items() if name != "Hepatitis")


def smoothed(cases: Sequence[Case], alpha: float, stop: int = CONVERGED) -> Smoothing:
    gaps, inside = {}, 0
    for case in cases:
        ours = case.fitted(case.starts(0)[CLOSED_FIRST], alpha)[stop]
        gaps[case.row["name"]] = float(ours[:, LK].mean() - case.there[LK])
        inside += sum(within(case.row["name"], case.there, ours, TEN))
    return Smoothing(alpha, stop, gaps, inside)


def smoothings(cases: Sequence[Case], tried: Sequence[Smoothing]) -> Table:
    there = {case.row["name"]: float(case.there[LK]) for case in cases}
    rows = [
        (
            f"{one.alpha:g}, {STOPS[one.stop]}",
            *(f"{there[name] + gap:.1f}" for name, gap in one.gaps.items()),
            f"{one.off:.1f}",
            f"{one.inside} of {2 * len(cases)}",
        )
        for one in tried
    ]
    return Table(
        "Smoothing in EM by its log-likelihoods without noise",
        ("pseudo-items", *there, "sum of differences but of Hepatitis", "cells in the range"),
        (("the paper", *(f"{value:.0f}" for value in there.values()), "", ""), *rows),
    )


@dataclass(frozen=True)
class Search:
    """All readings of one set.

    Attributes:
        name: of the set.
        etas: the noise called ``"stated"`` and ``"nearest"``.
        figures: ``(stops, draws, 4)`` by noise, smoothing and start.
        goals: the paper's figures by smoothing, the log-likelihood moved by how far that of
            converged EM is off without noise.
    """

    name: str
    etas: dict[str, tuple[float, float]]
    figures: dict[tuple[str, float, str], np.ndarray]
    goals: dict[float, np.ndarray]

    def inside(self, reading: tuple[str, float, str], stop: int, experiments: int) -> list[bool]:
        goal = self.goals[reading[1]]
        return within(self.name, goal, self.figures[reading][stop], experiments)

    def chance(self, reading: tuple[str, float, str], stop: int) -> float:
        """Of all figures; without accuracy on sets that are not the same to the row."""
        first = int(self.name in table3.NOT_THE_SAME)
        return chance(
            self.goals[reading[1]][first:], self.figures[reading][stop][:, first:], HALF[first:]
        )

    def always(self, noise: str, alpha: float, experiments: int) -> np.ndarray:
        """``(4,)`` whether converged EM has a cell in the range from every start."""
        mine = [one for one in self.figures if one[:2] == (noise, alpha)]
        return np.all([self.inside(one, CONVERGED, experiments) for one in mine], 0)


def searched(row: dict[str, Any], scale: Scale, tried: Sequence[Smoothing]) -> Search:
    name = row["name"]
    etas = {"stated": STATED, "nearest": NEAREST[name]}
    by_eta: dict[tuple[Any, float, str], np.ndarray] = {}
    for eta in dict.fromkeys(etas.values()):
        case = a_case(row, eta, scale.draws)
        starts = case.starts(scale.random)
        for alpha in (one.alpha for one in tried):
            by_eta.update({(eta, alpha, s): case.fitted(b, alpha) for s, b in starts.items()})
    figures = {
        (noise, alpha, start): values
        for noise, eta in etas.items()
        for (at, alpha, start), values in by_eta.items()
        if at == eta
    }
    moved = np.arange(len(FIGURES)) == LK
    goals = {one.alpha: case.there + one.gaps[name] * moved for one in tried}
    return Search(name, etas, figures, goals)


def optima(searches: Sequence[Search], alpha: float) -> Table:
    """Where converged EM ends, by start."""
    rows = []
    for search in searches:
        for noise, eta in search.etas.items():
            mine = [one for one in search.figures if one[:2] == (noise, alpha)]
            found = [search.figures[one][CONVERGED].mean(0) for one in mine]
            agree = sum(search.chance(one, CONVERGED) >= LEAST for one in mine)
            spans = [
                f"{low:.{digits}f} to {high:.{digits}f}, {goal:.{digits}f}"
                for low, high, goal, digits in zip(
                    np.min(found, 0),
                    np.max(found, 0),
                    search.goals[alpha],
                    (3, 0, 2, 2),
                    strict=True,
                )
            ]
            how = f"{eta[0]:g}, {eta[1]:g}"
            rows.append((search.name, how, *spans, f"{agree} of {len(mine)}"))
    columns = ("accuracy", "log-likelihood", "eta0", "eta1", "starts that agree with one draw")
    title = "Converged EM, lowest and highest mean by start, and the paper's"
    return Table(title, ("set", "noise", *columns), tuple(dict.fromkeys(rows)))


def by_cells(searches: Sequence[Search]) -> tuple[Table, list[bool]]:
    """Readings by cells in the range, and whether each leaves some outside."""
    total, rows = len(FIGURES) * len(searches), []
    for reading in searches[0].figures:
        for stop, words in enumerate(STOPS):
            counts = [
                [sum(one.inside(reading, stop, experiments)) for one in searches]
                for experiments in (TEN, ONE)
            ]
            rows.append((sum(map(sum, counts)), described(reading), words, *counts))
    rows.sort(key=lambda row: -row[0])
    shown = tuple(
        (*how, words, *(f"{sum(each)} of {total}: {', '.join(map(str, each))}" for each in counts))
        for _, how, words, *counts in rows[:10]
    )
    columns = ("noise", "pseudo-items", "start", "stopped", "ten draws, by set", "one draw, by set")
    table = Table(f"The best ten of {len(rows)} readings by cells in the range", columns, shown)
    return table, [sum(each) < total for row in rows for each in row[3:]]


def described(reading: tuple[str, float, str]) -> tuple[str, str, str]:
    noise, alpha, start = reading
    return noise, f"{alpha:g}", start


def jointly(searches: Sequence[Search]) -> tuple[Table, list[bool]]:
    """Readings by sets whose four figures may be those of one draw."""
    rows = []
    for reading in searches[0].figures:
        for stop, words in enumerate(STOPS):
            chances = [one.chance(reading, stop) for one in searches]
            held = sum(value >= LEAST for value in chances)
            rows.append((held, sum(np.log(chances)), described(reading), words, chances))
    rows.sort(key=lambda row: (-row[0], -row[1]))
    shown = tuple(
        (*how, words, held, *(f"{value:.1g}" for value in chances))
        for held, _, how, words, chances in rows[:10]
    )
    names = (one.name for one in searches)
    columns = ("noise", "pseudo-items", "start", "stopped", f"sets above {LEAST:g}", *names)
    title = "The best ten by the probability that one draw is as far off in all four figures"
    return Table(title, columns, shown), [row[0] < len(searches) for row in rows]


def explained(searches: Sequence[Search], alpha: float) -> Iterator[tuple[str, str, str]]:
    """Cells with noise, each by the first reading that has it in the range.

    The log-likelihood, the most exact figure, must be in the range as well. Where all figures are
    to be of one draw, they must agree with that jointly.
    """
    for search in searches:
        begun = ("stated", alpha, CLOSED_FIRST)

        def of_one(stop: int, search: Search = search, begun: Any = begun) -> np.ndarray:
            fits = search.chance(begun, stop) >= LEAST
            return np.array(search.inside(begun, stop, ONE)) & fits

        tried = {
            "ten draws, converged": search.always("stated", alpha, TEN),
            ONE_DRAW: of_one(CONVERGED),
            EARLY_ONE: of_one(EARLY),
            LESS_NOISE: search.always("nearest", alpha, TEN),
        }
        for i, figure in enumerate(FIGURES):
            held = (how for how, cells in tried.items() if cells[i] and cells[LK])
            yield f"{search.name}, eta [0.2, 0.5]", f"{figure} NB-CCCN-EM", next(held, NONE)


def all_methods(cases: Sequence[Case], clean: Sequence[Case]) -> Table:
    """Cells with noise of every method in the range of ten draws and of one."""
    rows = []
    for case, without in zip(cases, clean, strict=True):
        name, noisy = case.row["name"], case.row["noise"][json.dumps(STATED)]
        ours, plain = methods(case), methods(without)["NB"]
        tallies = []
        for method in table3.METHODS:
            lk = [noisy["lk"][method]] if method in noisy["lk"] else []
            goal = np.array([noisy["acc"][method], *lk, *noisy["eta"].get(method, [])])
            counts = [sum(within(name, goal, ours[method], n)) for n in (TEN, ONE)]
            tallies.append(f"{counts[0]}, {counts[1]} of {len(goal)}")
        gap = plain[:, LK].mean() - case.row["noise"]["[0, 0]"]["lk"]["NB"]
        goal = np.array([noisy["acc"]["NB"], noisy["lk"]["NB"] + gap])
        rows.append((name, *tallies, f"{chance(goal, ours['NB'][:, :2], HALF[:2]):.2g}"))
    columns = ("set", *table3.METHODS, "probability of NB's two figures in one draw")
    title = "Cells with noise in the range, ten draws and one"
    return Table(title, columns, tuple(rows))


def methods(case: Case) -> dict[str, np.ndarray]:
    """``(draws, 4)`` figures of each method, as in the table."""
    arrays = np.asarray(case.folds.weights), np.asarray(case.folds.given)
    result = cross_validated(case.found, *arrays, table3.ALPHA)
    return {
        name: by_draw(np.stack([result[table3.OURS.get(name, name)][k] for k in FIGURES], -1))
        for name in table3.METHODS
    }


def run(scale: Scale) -> Result:
    rows = printed("denis2006_table3")["rows"][: scale.sets]
    clean = [a_case(row, CLEAN, scale.draws) for row in rows]
    tried = [smoothed(clean, alpha) for alpha in SMOOTHINGS]
    chosen = min(tried, key=lambda one: one.off)
    used = [one for one in tried if one.alpha in (1.0, chosen.alpha, 0.0)]
    searches = [searched(row, scale, used) for row in rows]
    best, outside = by_cells(searches)
    likeliest, unlikely = jointly(searches)
    tables = (
        smoothings(clean, [*tried, *(smoothed(clean, chosen.alpha, stop) for stop in (0, EARLY))]),
        optima(searches, chosen.alpha),
        best,
        likeliest,
        Table(EXPLAINED, ("set", "cell", "reading"), tuple(explained(searches, chosen.alpha))),
        all_methods([a_case(row, STATED, scale.draws) for row in rows], clean),
    )
    claims = (
        claim("no reading has all cells of NB-CCCN-EM with noise in the range", outside, ours=True),
        claim("no reading has all sets agree with one draw of the noise", unlikely, ours=True),
    )
    return Result(claims=claims, tables=tables)


TARGET = Target(
    name="why-denis2006-em",
    paper="Denis et al. 2006",
    title="Why, Table 3: NB-CCCN-EM with noise",
    about="""Readings of how the paper's EM was run: begun
from the closed form with its sums taken first or as printed, from naive Bayes of the given labels,
from class shares corrected at known flip rates, from the true classes, or at random; stopped after
1, 5, 20 or 100 steps, or when converged (400 at most); with the smoothing of the table, that which
fits the log-likelihoods of NB-CCCN-EM without noise, or none; with the stated noise or that
[nearest to naive Bayes](#why-table-3-how-much-noise-there-was). Each is compared with the four
figures of each set twice: as a mean over ten draws of the noise, and as ten cross-validations of
one draw, since the text can be read either way ("we relaunch the algorithms on these noisy data").
Figures of one draw depend on each other: what the flip rates leave open of the log-likelihood is a
few units. So all four are compared jointly as well (Hotelling's T; rounding allowed;
accuracy left out on House Votes and Hepatitis, which are not the same to the row or the cell).
Log-likelihoods are moved by how far ours are from the paper's without noise.""",
    run=run,
    scales={"toy": Scale(2, 1, 1), "quick": Scale(5, 1, 1), "full": Scale(15, 2)},
    needs=table3.TARGET.needs,
    why="""*Where EM began* decides little on five sets. On House Votes, Wisconsin and Balance
Scale converged EM has the same mean log-likelihood from every start, to a unit, within 5 on
Hepatitis and 17 on Breast Cancer, all of whose cells are in the range. *Tic Tac Toe*, where
attributes hardly tell the class, depends on it: the printed log-likelihood is 17 to 54 below the
means of converged EM. One draw and 20 steps from the closed form give all four figures; another
start may. *Hepatitis*: begun from either closed form, as the paper's was, all figures agree with
one draw of the stated noise, and eta0 not with ten; from the other six starts they do not agree
jointly. *Balance Scale*: with the noise of naive Bayes, accuracy and log-likelihood are in the
range from every start; flip rates are not. The flip rates of *House Votes* and *Balance Scale* and
the log-likelihood of *Wisconsin* stay without a cause. On House Votes the printed flip rates are
near those of noise of 0.15 and 0.5, whose log-likelihood is 9 above the printed one; on Wisconsin
the printed one is 38 above that of EM from any start, at flip rates that are ours. From no start
does converged EM agree with the figures of these three sets on one draw of either noise.

No reading fits all six sets. By cells, the best have 15 of 24 in the range of ten draws, or 21 in
that of one, which is two and a half times as wide. Jointly, one step from the closed form without
smoothing is not excluded on five sets, but on two of them barely, and the log-likelihoods without
noise are those of converged EM: on House Votes and Breast Cancer one step stays 8 and 12 below.
*One draw of the noise* has 43 of the 66 cells with noise of all methods in its range, where ten
draws have 27. It is no cause of them all. Both figures of naive Bayes agree with it on all sets
but Balance Scale, Wisconsin and Breast Cancer among them, where they are put down to less noise
above; but no draw of the stated noise gives the majority class of Breast Cancer. *Smoothing*: half
a pseudo-item fits EM without noise best, where naive Bayes has one.""",
)
