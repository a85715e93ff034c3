"""Nonlinear least squares as a learner of label sets: out-of-fold scores, and those of new rows.

Naive Bayes and a logistic regression of the sets fail where classes are rings, or of several
clusters. Kernels and the columns themselves are candidates of what the classes are linear in
(:func:`nbmodels.fitting.nonlinear_classifier.bases`), and every fit is a closed form. A class of a
set counts as much as each other, or as far as the classifier has it (EM; Jin and Ghahramani 2002).
Kernels confirm whatever they were taught of an item, so EM asks for predictions without the item
itself, which of least squares follow from its leverage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from nbmodels.data.features import Block
from nbmodels.data.validation import row_blocks
from nbmodels.fitting.nonlinear_classifier import (
    Basis,
    NonlinearClassifier,
    Ranks,
    bases,
    shares_below,
    some_of,
)
from nbmodels.fitting.points import Coding
from nbmodels.fitting.scores import Settings, draw_folds

#: Columns and rows that are learned from, of more at random, and sets below which nothing is.
_COLUMNS, _ROWS, _SETS = 300, 5_000, 30

#: Folds by which a basis is selected, and iterations of EM.
_FOLDS, _ITERATIONS = 5, 10

#: Least share of a class in EM and in what is compared: least squares may be negative.
_LEAST = 0.02

#: Pseudo-items behind a coefficient, and leverage from which on an item says nothing of itself.
_RIDGE, _LEVERAGE = 1.0, 0.99


@dataclass(frozen=True)
class NonlinearSets:
    """Least squares in a basis, learned from label sets.

    Attributes:
        possible: ``(N, K)`` what items may be.
        columns: those of the points that are looked at.
        x: ``(N, d)`` their cells.
        taken: rows that are learned from.
        ranks: of their cells.
        basis: what the scores are linear in.
        by_em: whether a class of a set counts as far as the classifier has it, or evenly.
    """

    possible: Bool[np.ndarray, "n k"]
    columns: Int[np.ndarray, " d"]
    x: Float[np.ndarray, "n d"]
    taken: Int[np.ndarray, " m"]
    ranks: Ranks
    basis: Basis
    by_em: bool
    rounds: ClassVar[int] = 0
    halves: ClassVar[bool] = False

    @classmethod
    def of(
        cls,
        points: Any,
        possible: Bool[np.ndarray, "n k"],
        weights: Float[np.ndarray, " n"],
        copies: Int[np.ndarray, " n"] | None,
    ) -> NonlinearSets | None:
        """The basis, and way of counting, under which held-out sets are likeliest.

        Args:
            points: ``(N, d)`` items in the space of their features.
            possible: ``(N, K)`` what items may be.
            weights: ``(N,)`` row weights.
            copies: rows that stay in one fold, see
                :func:`nbmodels.fitting.scores.stratified_folds`.

        Returns:
            the learner; None where points are sparse, or few sets exclude a class.
        """
        known = np.flatnonzero((weights > 0) & ~possible.all(1))
        if sparse.issparse(points) or not points.shape[1] or len(known) < _SETS:
            return None
        rng = np.random.default_rng(len(known))
        taken = some_of(known, _ROWS, rng)
        columns = some_of(points.shape[1], _COLUMNS, rng)
        x = np.asarray(points, float)[:, columns]
        own, shares = x[taken], shares_below(x[taken])
        sets, weighed = possible[taken], weights[taken]
        even = sets / sets.sum(1, keepdims=True)
        fold = draw_folds(even, _FOLDS, None if copies is None else copies[taken])
        ranks, best, found = Ranks.of(own, shares), -np.inf, None
        for basis, design in bases(own, shares, rng):
            for by_em, scores in enumerate(_held_out(design, even, sets, weighed, fold)):
                inside = (sets * _shares(scores)).sum(1)
                if (score := float(weighed @ np.log(inside))) > best:
                    best, found = score, (basis, bool(by_em))
        assert found is not None  # there are bases
        return cls(possible, columns, x, taken, ranks, *found)

    @cached_property
    def _design(self) -> Float[np.ndarray, "m p"]:
        return self._of(self.taken)

    def _of(self, rows: Any) -> Float[np.ndarray, "r p"]:
        return self.basis(self.x[rows], self.ranks(self.x[rows]))

    def out_of_fold(
        self,
        resp: np.ndarray,
        weights: np.ndarray,
        fold: np.ndarray,
        settings: Settings,
        folds: Sequence[int] | None = None,
    ) -> Float[np.ndarray, "n k"]:
        """See :class:`nbmodels.fitting.classifier_scores.Learner`."""
        tables = np.stack(
            [self._table(resp, weights * (fold != f)) for f in range(int(fold.max()) + 1)]
        )
        out = np.empty(resp.shape)
        for rows in row_blocks(len(out), tables.shape[1]):
            design = self._of(rows)
            for f in np.unique(fold[rows]):
                here = fold[rows] == f
                out[rows][here] = design[here] @ tables[f]
        return out

    def _table(self, resp: np.ndarray, weights: np.ndarray) -> Float[np.ndarray, "p k"]:
        """Coefficients learned from the rows that have a weight."""
        own = weights[self.taken] > 0
        rows = self.taken[own]
        about = resp[rows], self.possible[rows], weights[rows]
        return _learned(self._design[own], *about)[int(self.by_em)]

    def classifier(
        self, coding: Coding, resp: np.ndarray, weights: np.ndarray, settings: Settings
    ) -> CodedNonlinear:
        """See :class:`nbmodels.fitting.label_regression.CodedLearner`."""
        table = self._table(resp, weights)
        about = coding, self.columns, self.ranks, self.basis
        return CodedNonlinear(NonlinearClassifier(*about, table, slope=1.0))


@dataclass(frozen=True)
class CodedNonlinear:
    """A nonlinear classifier of checked columns."""

    classifier: NonlinearClassifier

    def scores(self, block: Block) -> Float[np.ndarray, "n k"]:
        """Log-probabilities of new rows."""
        return self.classifier.log_probabilities(block.x, block.missing)


class _Tables(NamedTuple):
    """Coefficients learned from each class of a set evenly, and by EM."""

    even: Float[np.ndarray, "p k"]
    by_em: Float[np.ndarray, "p k"]


def _learned(
    design: Float[np.ndarray, "m p"],
    even: Float[np.ndarray, "m k"],
    possible: Bool[np.ndarray, "m k"],
    weights: Float[np.ndarray, " m"],
) -> _Tables:
    weighed = weights[:, None] * design
    precision = design.T @ weighed + _RIDGE * np.eye(design.shape[1])
    solved = np.linalg.solve(precision, weighed.T)
    leverage = np.minimum(np.einsum("mp,pm->m", design, solved), _LEVERAGE)[:, None]
    first = table = solved @ even
    target = even
    for _ in range(_ITERATIONS):
        without = (design @ table - leverage * target) / (1 - leverage)
        target = possible * _shares(without)
        target /= target.sum(1, keepdims=True)
        table = solved @ target
    return _Tables(first, table)


def _held_out(
    design: Float[np.ndarray, "m p"],
    even: Float[np.ndarray, "m k"],
    possible: Bool[np.ndarray, "m k"],
    weights: Float[np.ndarray, " m"],
    fold: Int[np.ndarray, " m"],
) -> Float[np.ndarray, "2 m k"]:
    """Out-of-fold predictions, classes counted evenly and by EM."""
    out = np.empty((2, *even.shape))
    for f in range(int(fold.max()) + 1):
        here = fold == f
        tables = _learned(design[~here], even[~here], possible[~here], weights[~here])
        out[:, here] = design[here] @ np.stack(tables)
    return out


def _shares(scores: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """Predictions of least squares as probabilities."""
    positive = np.maximum(scores, _LEAST)
    return positive / positive.sum(1, keepdims=True)
