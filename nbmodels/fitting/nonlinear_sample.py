"""Rows and labels that nonlinear classifiers are learned from, and by which they are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from nbmodels.fitting.copied_rows import among
from nbmodels.fitting.nonlinear_classifier import Basis, shares_below, some_of
from nbmodels.fitting.plain import plain_classifier
from nbmodels.fitting.scores import stratified_folds

#: Columns and rows that are looked at, of more at random; labels below which nothing is learned.
COLUMNS, ROWS, LABELS = 300, 10_000, 30

#: Folds of the classifiers that are compared.
FOLDS = 5


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

    def part(self, most: int) -> Sample:
        """At most so many of its rows that have a label; itself where there are no more."""
        if len(self.labelled) <= most:
            return self
        at = some_of(np.flatnonzero(self.fold >= 0), most, self.rng)
        by_row = ("rows", "x", "shares", "target", "fold", "weights")
        found = {name: getattr(self, name)[at] for name in by_row}
        return self._replace(labelled=found["rows"], **found)

    def held_out(self, out: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " m"]:
        """``(m,)`` log-probability of each label by out-of-fold predictions, temperature-scaled."""
        known = self.fold >= 0
        about = out[known], self.target[known], self.weights[known], self.fold[known]
        return plain_classifier(*about, False).held_out


#: From rows with labels to what scores are linear in, and ``(m, K)`` coefficients.
Learn = Callable[[Sample], tuple[Basis, np.ndarray]]

#: Out-of-fold predictions, and how they are learned from all rows.
Way = tuple[Float[np.ndarray, "n k"], Learn]


def out_of_fold(learn: Learn, sample: Sample) -> Float[np.ndarray, "n k"]:
    """Predictions of rows by what is learned from all other folds."""
    out, fold = np.empty(sample.target.shape), sample.fold
    for f in np.unique(fold):
        here = fold == f
        basis, table = learn(sample._replace(fold=np.where(here, -1, fold)))
        out[here] = basis(sample.x[here], sample.shares[here]) @ table
    return out


def too_few(codes: Int[np.ndarray, " n"]) -> bool:
    """Whether labels are too few, or of one class, to learn from."""
    return len(codes) < LABELS or len(np.unique(codes)) < 2
