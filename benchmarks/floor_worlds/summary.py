"""Tables of the figures of all fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

#: What names a cell of the grid.
CELL = ["kind", "world", "n", "k", "rare", "errors", "share"]
#: Measures that have a floor.
MEASURES = {"labels": "labels", "new": "predictions"}
#: Points that accuracy may be below the best plain answer, on average and at worst; the latter of
#: up to 60 items apart.
_MEAN, _WORST, _WORST_SMALL, _SMALL = -0.5, -3.0, -8.0, 60
#: Points below plain answers from which on the labels or the predictions of one fit are bad, and
#: share of its right labels below which a class is lost.
_BAD_LABELS, _BAD_PREDICTIONS, _LOST = 3.0, 5.0, 0.5
#: By so much a plain answer beats chance where a constant prediction is a failure.
_CHANCE = 0.05


def by_cell(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a cell, estimator and measure: ours beside the best plain answers.

    Figures are averaged over seeds before the best plain answer is taken: the maximum of several
    noisy figures is higher than the best of them is.

    Args:
        rows: a row a fit, as :func:`floor.measured` makes them.

    Returns:
        columns of :data:`CELL`, ``method``, ``measure``, ``ours``, ``seeds``, ``own`` and ``best``
        (points by which ours is above the best plain answer to its own question, and of all),
        ``plain`` (name of the latter), ``chosen``.
    """
    good = rows[rows["error"] == ""]
    parts = []
    for cell, here in good.groupby(CELL, sort=False):
        plain = here[here["role"] == "plain"].groupby("method")[list(MEASURES)].mean()
        for method, fits in here[here["role"] == "ours"].groupby("method", sort=False):
            family = fits["family"].iloc[0].split("|")
            for measure in MEASURES:
                mean, rivals = fits[measure].mean(), plain[measure].dropna()
                own = rivals[rivals.index.isin(family)]
                if np.isnan(mean) or rivals.empty or own.empty:
                    continue
                found = {
                    "method": method,
                    "measure": measure,
                    "seeds": len(fits),
                    "ours": mean,
                    "own": 100 * (mean - own.max()),
                    "best": 100 * (mean - rivals.max()),
                    "plain": rivals.idxmax(),
                    "chosen": " / ".join(dict.fromkeys(fits["chosen"])),
                }
                parts.append({**dict(zip(CELL, cell, strict=True)), **found})
    return pd.DataFrame(parts)


def constants(rows: pd.DataFrame) -> pd.DataFrame:
    """Fits of ours with one class for all where a plain answer beats chance by five points."""
    good = rows[rows["error"] == ""]
    said = good["new"].fillna(good["labels"])
    key = [*CELL, "seed"]
    plain = said[good["role"] == "plain"].groupby([good[c] for c in key]).max().rename("plain")
    ours = good[good["role"] == "ours"].join(plain, on=key)
    return ours[ours["constant"] & (ours["plain"] > ours["chance"] + _CHANCE)]


def bad_otherwise(rows: pd.DataFrame, fits: pd.DataFrame) -> pd.Series:
    """Whether fits are bad for another reason than their noise matrix, which warnings name, too.

    Labels three points below the given ones or the plain answer of the same family, predictions
    five points below the best plain answer of any family, or a class that loses most of its right
    labels.
    """
    key = [*CELL, "seed"]
    plain = rows[(rows["role"] == "plain") & (rows["error"] == "")]
    best = plain.groupby(key)["new"].max()
    by_method = plain.set_index([*key, "method"])["labels"]
    bad = []
    for fit in fits.to_dict("records"):
        cell = tuple(fit[c] for c in key)
        own = max((by_method.get((*cell, m), 0.0) for m in fit["family"].split("|")), default=0.0)
        labels = 100 * (own - fit["labels"]) >= _BAD_LABELS
        predictions = 100 * (best.get(cell, np.nan) - fit["new"]) >= _BAD_PREDICTIONS
        bad.append(bool(labels or predictions or fit["kept"] < _LOST))
    return pd.Series(bad, index=fits.index, dtype=bool)


def spoken(fits: pd.DataFrame) -> pd.Series:
    """Whether a warning or a failed check speaks of a fit."""
    return (fits["warned"] != "") | (fits["failed_checks"] != "")


def _share(values: pd.Series) -> str:
    return f"{values.sum()}/{len(values)}"


def _pair(values: pd.Series) -> str:
    return f"{values.mean():+.1f} {values.min():+.1f}" if len(values) else ""


def by_estimator(rows: pd.DataFrame, cells: pd.DataFrame) -> Table:
    """A row a kind of data and estimator."""
    title = "Points above the best plain answer: mean and least over the cells"
    table = Table(
        "data",
        "estimator",
        "cells",
        "labels, own",
        "any",
        "predictions, own",
        "any",
        "constant",
        "recall",
        "AUC",
        "gap",
        "off, spoke",
        "right, spoke",
        "s",
        title=title,
    )
    ours = rows[(rows["role"] == "ours") & (rows["error"] == "")]
    flat = constants(rows)
    rivals = rows[(rows["role"] == "plain") & (rows["error"] == "")]
    most = rivals.groupby([*CELL, "seed"])[["recall", "auc"]].max()
    last = None
    for (kind, method), fits in ours.groupby(["kind", "method"], sort=False):
        if last not in (None, kind):
            table.add_section()
        mine = cells[(cells["kind"] == kind) & (cells["method"] == method)]
        pairs = [
            _pair(mine.loc[mine["measure"] == measure, column])
            for measure in MEASURES
            for column in ("own", "best")
        ]
        beside = fits.join(most, on=[*CELL, "seed"], rsuffix="_plain")
        gains = [(beside[c] - beside[f"{c}_plain"]).mean() for c in ("recall", "auc")]
        said, off = spoken(fits), fits["off"].astype(bool)
        table.add_row(
            "" if kind == last else kind,
            method,
            str(len(fits[CELL].drop_duplicates())),
            *pairs,
            str(len(flat[(flat["kind"] == kind) & (flat["method"] == method)])),
            *("" if np.isnan(g) else f"{g:+.3f}" for g in gains),
            f"{fits['gap'].mean():.3f}",
            _share(said[off]),
            _share(said[~off]),
            f"{fits['seconds'].median():.1f}",
        )
        last = kind
    return table


def worst(cells: pd.DataFrame, n: int = 10) -> Table:
    """The cells farthest below a plain answer to the estimator's own question."""
    table = Table(
        "world",
        "cell",
        "estimator",
        "of",
        "ours",
        "own",
        "any",
        "best plain answer",
        "chosen",
        title=f"The {n} worst",
    )
    for one in cells.sort_values("own").head(n).itertuples():
        rare = ", rare" if one.rare else ""
        errors = "" if one.errors == "own" else f" {one.errors}"
        cell = f"n={one.n} K={one.k}{rare}, {one.share:.0%}{errors}"
        table.add_row(
            one.world,
            cell,
            one.method,
            MEASURES[one.measure],
            f"{one.ours:.3f}",
            f"{one.own:+.1f}",
            f"{one.best:+.1f}",
            one.plain,
            one.chosen,
        )
    return table


def _goal(met: bool) -> str:
    return "met" if met else "NOT met"


def _speakers(fits: pd.DataFrame) -> str:
    """Which warnings and checks spoke, the most frequent first."""
    names = pd.concat([fits[column].str.split("; ") for column in ("warned", "failed_checks")])
    counts = names.explode().loc[lambda n: n != ""].value_counts()
    return "".join(f"; {name} {n}" for name, n in counts.items())


def sentences(rows: pd.DataFrame, cells: pd.DataFrame) -> Iterator[str]:
    """The lines that say whether the floor holds."""
    for column, what in (("own", "to its own question"), ("best", "of all")):
        values = cells[column]
        mean = values.mean()
        small = cells["n"] <= _SMALL
        yield (
            f"Mean difference to the best plain answer {what}: {mean:+.2f} points "
            f"(goal >= {_MEAN}: {_goal(mean >= _MEAN)})"
        )
        for part, least, name in (
            (~small, _WORST, f"n > {_SMALL}"),
            (small, _WORST_SMALL, f"n <= {_SMALL}"),
        ):
            if part.any():
                low = values[part].min()
                below = int((values[part] < least).sum())
                yield (
                    f"Worst difference {what}, {name}: {low:+.1f} points (goal >= {least:g}: "
                    f"{_goal(low >= least)}; {below} of {part.sum()} below)"
                )
    flat = constants(rows)
    yield (
        f"Constant predictions where a plain answer beats chance by 5 points: {len(flat)} "
        f"(goal 0: {_goal(flat.empty)})"
    )
    fits = rows[(rows["role"] == "ours") & (rows["error"] == "")]
    said, off, far = spoken(fits), fits["off"].astype(bool), fits["far"].astype(bool)
    bad = bad_otherwise(rows, fits)
    for part, name, fine in (
        (off, "failed (most of the diagonal outside of its intervals)", lambda s: s >= 0.8),
        (~off, "right", lambda s: s <= 0.05),
        (~off & bad, "right, but bad in labels, predictions or a class", lambda s: s >= 0.8),
        (~off & ~bad, "right in all of these", lambda s: s <= 0.05),
        (far, "failed (most of the diagonal off by more than 0.1)", lambda s: s >= 0.8),
        (~far, "nearer than that", lambda s: s <= 0.05),
    ):
        if part.any():
            share = said[part].mean()
            goal = ">= 80 %" if fine(1) else "<= 5 %"
            yield (
                f"Fits that are {name}, with a warning or a bad verdict: {share:.0%} of "
                f"{part.sum()} (goal {goal}: {_goal(fine(share))}){_speakers(fits[part])}"
            )


def failures(rows: pd.DataFrame) -> list[str]:
    """A line for each fit that ended in an error."""
    bad: Any = rows[rows["error"] != ""]
    return [
        f"{r.world}, n={r.n} K={r.k} {r.share:.0%} {r.errors}, seed {r.seed}: {r.method}: {r.error}"
        for r in bad.itertuples()
    ]
