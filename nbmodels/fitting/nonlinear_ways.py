"""Ways to a nonlinear classifier in closed form, and the one by which held-out labels are nearest.

Least squares on the columns, on their normal scores and with Gaussian kernels beside these; the
same of informative columns alone, since distances over columns that say nothing are noise; and
least squares on the levels of informative columns. Each fit is of all folds at once, from sums less
those of the fold, and what is screened is screened by the labels of other folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from nbmodels.fitting.column_levels import ColumnLevels
from nbmodels.fitting.copied_rows import among
from nbmodels.fitting.informative_columns import Screening
from nbmodels.fitting.nonlinear_classifier import (
    LINEAR,
    Basis,
    OfColumns,
    bases,
    shares_below,
    some_of,
)
from nbmodels.fitting.plain import plain_classifier
from nbmodels.fitting.scores import stratified_folds
from nbmodels.fitting.screened_columns import (
    ScreenedLevels,
    screened_columns,
    screened_predictions,
)

#: Columns and rows that are looked at, of more at random; labels below which nothing is learned.
COLUMNS, ROWS, LABELS = 300, 10_000, 30

#: Folds of the classifiers that are compared.
FOLDS = 5

#: Standard errors by which labels must be likelier by informative columns alone than by all. Where
#: they were likelier at all, 22 of 100 rows of 60 normal ones were predicted worse.
SURELY_BETTER = 1.5

#: The same of predictions by the columns' levels. Where the smaller one was taken, it was by chance
#: in a sixth of the tables of 60 normal rows, and a fit lost 15 right labels in 100; with 1.5, one
#: of 120 rows with 40 % errors lost 37, at 2.6.
_BETTER = 3.0

#: Share of the columns beyond which informative ones alone, which take as long, are not tried.
_NEARLY = 0.8

#: Pseudo-items behind a coefficient.
_RIDGE = 1.0

#: From rows with labels to what scores are linear in, and ``(m, K)`` coefficients.
Learn = Callable[["Sample"], tuple[Basis, np.ndarray]]


class Sample(NamedTuple):
    """Rows and columns from which a nonlinear classifier is learned.

    Attributes:
        rows: ``(n,)`` rows that are looked at, all or those with a label.
        labelled: ``(m,)`` those of them that have a label, as rows of the table.
        columns: ``(d,)`` columns that are looked at.
        x: ``(n, d)`` their cells.
        shares: ``(n, d)`` share of the rows below each cell.
        target: ``(n, K)`` indicators of the labels or P(class), zeros without a label.
        fold: ``(n,)`` fold of each row, -1 without a label.
        weights: ``(n,)`` row weights.
        rng: for what is drawn beside them.
    """

    rows: Int[np.ndarray, " n"]
    labelled: Int[np.ndarray, " m"]
    columns: Int[np.ndarray, " d"]
    x: Float[np.ndarray, "n d"]
    shares: Float[np.ndarray, "n d"]
    target: Float[np.ndarray, "n k"]
    fold: Int[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]
    rng: np.random.Generator

    @classmethod
    def of(
        cls,
        points: Float[np.ndarray, "n d"],
        codes: Int[np.ndarray, " n"],
        n_classes: int,
        copies: Int[np.ndarray, " n"] | None,
        weights: Float[np.ndarray, " n"] | None,
        classes: Float[np.ndarray, "n k"] | None = None,
    ) -> Sample | None:
        """None where there are too few labels, or no features."""
        labelled = np.flatnonzero(codes >= 0)
        rng = np.random.default_rng(len(labelled))
        if len(labelled) > ROWS:
            labelled = some_of(labelled, ROWS, rng)
        if not points.shape[1] or too_few(codes[labelled]):
            return None
        rows = np.arange(len(codes)) if len(codes) <= ROWS else labelled
        known = codes[rows] >= 0
        fold = np.full(len(rows), -1)
        fold[known] = stratified_folds(codes[labelled], FOLDS, rng, among(copies, labelled))
        target = np.zeros((len(rows), n_classes))
        target[known] = np.eye(n_classes)[codes[labelled]] if classes is None else classes[labelled]
        columns = some_of(points.shape[1], COLUMNS, rng)
        x = np.asarray(points, float)[np.ix_(rows, columns)]
        own = np.ones(len(rows)) if weights is None else np.asarray(weights, float)[rows]
        return cls(rows, labelled, columns, x, shares_below(x), target, fold, own, rng)


Way = tuple[Float[np.ndarray, "n k"], Learn]


def best_way(sample: Sample) -> Way:
    """Out-of-fold predictions of all ways, the best ones, and how they are learned from all.

    Ways by columns that labels select have to be surely better than those by all columns, by
    temperature-scaled log-probabilities of held-out labels or by their squared errors; kernels of
    informative columns also surely better than what is linear in these. Where labels are linear in
    few columns, a classifier of these is likelier than a regression of all with noise or without,
    and hardly distinguishes noise from overlap: right changes of labels were not made.
    """
    x, shares, target, fold = sample.x, sample.shares, sample.target, sample.fold
    known, about = fold >= 0, (target, fold, sample.weights)
    weights = sample.weights[known]

    def gains(way: Way) -> Float[np.ndarray, " m"]:
        found: np.ndarray = -np.square(way[0] - target)[known].sum(1)
        return found

    def logs(way: Way) -> Float[np.ndarray, " m"]:
        return plain_classifier(way[0][known], target[known], weights, fold[known], False).held_out

    def gain(way: Way) -> float:
        return float(weights @ gains(way))

    by_columns: list[Way] = [
        (least_squares(design, *about), partial(_ridge, basis))
        for basis, design in bases(x, shares, sample.rng)
    ]
    by_levels: list[Way] = [
        (screened_predictions(shares, levels, *about), partial(_screened, levels))
        for levels in ColumnLevels.of(shares)
    ]
    best, other = max(by_columns, key=gain), max(by_levels, key=gain)
    if surely(gains(other) - gains(best), weights, _BETTER):
        best = other
    if not (informative := _by_informative_columns(sample)):
        return best
    # those that are linear in columns only select these: the model itself is as flexible
    selected, other = (max(ways, key=gain) for ways in (informative[:LINEAR], informative[LINEAR:]))
    own = logs(other)
    leads = [own - logs(one) for one in (best, selected)]
    return other if all(surely(one, weights, SURELY_BETTER) for one in leads) else best


def surely(gains: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"], errors: float) -> bool:
    """Whether the mean of paired gains is more than so many standard errors above zero."""
    gain = np.average(gains, weights=weights)
    variance = np.average(np.square(gains - gain), weights=weights)
    count = weights.sum() ** 2 / np.square(weights).sum()
    return bool(gain > errors * np.sqrt(variance / count))


def _by_informative_columns(sample: Sample) -> list[Way]:
    """Ways by informative columns, as the labels of other folds have them; none by nearly all."""
    known, screening = sample.fold >= 0, Screening.of(sample.shares)
    about = sample.target, sample.fold, sample.weights
    found = by_selected_columns(
        lambda other: _informative(sample, screening, known & other),
        lambda columns: bases(sample.x[:, columns], sample.shares[:, columns], sample.rng),
        lambda design, _: least_squares(design, *about),
        sample.fold,
        sample.x.shape[1],
    )
    return [(out, partial(_ridge_of_informative, number)) for number, out in enumerate(found)]


def by_selected_columns(
    select: Callable[[Bool[np.ndarray, " n"]], Int[np.ndarray, " m"]],
    bases_of: Callable[[list[int]], Iterable[tuple[Basis, np.ndarray]]],
    held_out: Callable[[np.ndarray, list[int]], Float[np.ndarray, "*b n k"]],
    fold: Int[np.ndarray, " n"],
    n_columns: int,
) -> list[Float[np.ndarray, "*b n k"]]:
    """Out-of-fold predictions in each basis of columns that rows of the other folds select.

    Args:
        select: columns, by the rows for which a mask is true.
        bases_of: bases of columns, with their values of all rows.
        held_out: out-of-fold predictions in a basis, needed of some folds.
        fold: ``(n,)`` fold of each row.
        n_columns: of all.

    Returns:
        predictions by basis; none where nearly all columns are selected, which gains little.
    """
    folds: dict[tuple[int, ...], list[int]] = {}
    for f in np.unique(fold):
        folds.setdefault(tuple(select(fold != f)), []).append(f)
    if all(len(one) > _NEARLY * n_columns for one in folds):
        return []
    found: list[np.ndarray] = []
    for one, own in folds.items():
        here = np.isin(fold, own)
        parts = [held_out(design, own) for _, design in bases_of(list(one))]
        found = found or [np.empty_like(part) for part in parts]
        for out, part in zip(found, parts, strict=True):
            out[..., here, :] = part[..., here, :]
    return found


def _informative(
    sample: Sample, screening: Screening, rows: Bool[np.ndarray, " n"]
) -> Int[np.ndarray, " m"]:
    """Columns by which the labels of some rows surely differ."""
    target, weights = sample.target[rows], sample.weights[rows]
    about = target.argmax(1), target.shape[1], weights
    return screening.informative(np.flatnonzero(rows), *about)


def _ridge_of_informative(number: int, sample: Sample) -> tuple[Basis, Float[np.ndarray, "m k"]]:
    """The basis of this number, of informative columns."""
    columns = _informative(sample, Screening.of(sample.shares), sample.fold >= 0)
    about = sample.x, sample.shares, sample.rng
    return _ridge(OfColumns.numbered(number, columns, *about), sample)


def _ridge(basis: Basis, sample: Sample) -> tuple[Basis, Float[np.ndarray, "m k"]]:
    known = sample.fold >= 0
    roots = np.sqrt(sample.weights[known])[:, None]
    design = roots * basis(sample.x, sample.shares)[known]
    ridge = _RIDGE * np.eye(design.shape[1])
    products = design.T @ (roots * sample.target[known])
    return basis, np.linalg.solve(design.T @ design + ridge, products)


def _screened(
    levels: ColumnLevels, sample: Sample
) -> tuple[ScreenedLevels, Float[np.ndarray, "m k"]]:
    about = sample.target, sample.fold >= 0, sample.weights
    return screened_columns(sample.shares, levels, *about)


def least_squares(
    x: np.ndarray, target: np.ndarray, fold: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Out-of-fold predictions; rows of no fold are predicted from all others."""
    roots = np.ones((len(x), 1)) if weights is None else np.sqrt(weights)[:, None]
    parts = [x[fold == f] for f in range(fold.max() + 1)]
    weighed = [(roots[fold == f] * a, (roots * target)[fold == f]) for f, a in enumerate(parts)]
    squares = np.stack([a.T @ a for a, _ in weighed])
    products = np.stack([a.T @ b for a, b in weighed])
    ridge = _RIDGE * np.eye(x.shape[1])
    table = np.linalg.solve(squares.sum(0) - squares + ridge, products.sum(0) - products)
    out = np.empty(target.shape)
    for f, a in enumerate(parts):
        out[fold == f] = a @ table[f]
    if (fold < 0).any():
        out[fold < 0] = x[fold < 0] @ np.linalg.solve(squares.sum(0) + ridge, products.sum(0))
    return out


def too_few(codes: Int[np.ndarray, " n"]) -> bool:
    """Whether labels are too few, or of one class, to learn from."""
    return len(codes) < LABELS or len(np.unique(codes)) < 2
