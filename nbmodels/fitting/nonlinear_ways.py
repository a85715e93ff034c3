"""Ways to a nonlinear classifier, and the one by which held-out labels are likeliest.

Least squares on the columns, on their normal scores and with Gaussian kernels beside these; the
same of informative columns alone, since distances over columns that say nothing are noise; and
least squares on the levels of informative columns. Each fit is a closed form of all folds at once,
from sums less those of the fold, and what is screened is screened by the labels of other folds.
Trees (:mod:`nbmodels.fitting.trees`) are tried beside the best of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from jaxtyping import Bool, Float, Int

from nbmodels.fitting.column_levels import ColumnLevels
from nbmodels.fitting.informative_columns import Screening
from nbmodels.fitting.nonlinear_classifier import (
    LINEAR,
    Basis,
    OfColumns,
    bases,
)
from nbmodels.fitting.nonlinear_sample import Sample, Way
from nbmodels.fitting.paired_gains import surely
from nbmodels.fitting.screened_columns import (
    ScreenedLevels,
    screened_columns,
    screened_predictions,
)
from nbmodels.fitting.trees import with_trees

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


def best_way(sample: Sample) -> Way:
    """Out-of-fold predictions of all ways, the best ones, and how they are learned from all.

    Ways by columns that labels select have to be surely better than those by all columns, by
    temperature-scaled log-probabilities of held-out labels or by their squared errors; kernels of
    informative columns also surely better than what is linear in these. Where labels are linear in
    few columns, a classifier of these is likelier than a regression of all with noise or without,
    and hardly distinguishes noise from overlap: right changes of labels were not made.
    """
    return with_trees(_best_in_closed_form(sample), sample)


def _best_in_closed_form(sample: Sample) -> Way:
    x, shares, target, fold = sample.x, sample.shares, sample.target, sample.fold
    known, about = fold >= 0, (target, fold, sample.weights)
    weights = sample.weights[known]

    def gains(way: Way) -> Float[np.ndarray, " m"]:
        found: np.ndarray = -np.square(way[0] - target)[known].sum(1)
        return found

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
    own = sample.held_out(other[0])
    leads = [own - sample.held_out(one[0]) for one in (best, selected)]
    return other if all(surely(one, weights, SURELY_BETTER) for one in leads) else best


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
