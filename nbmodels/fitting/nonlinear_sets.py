"""Nonlinear least squares as a learner of label sets: out-of-fold scores, and those of new rows.

Naive Bayes and a logistic regression of the sets fail where classes are rings, or of several
clusters. Kernels and the columns themselves are candidates of what the classes are linear in
(:func:`nbmodels.fitting.nonlinear_classifier.bases`), of all columns or of informative ones, and
every fit is a closed form. A class of a
set counts as much as each other, or as far as the classifier has it (EM; Jin and Ghahramani 2002).
Kernels confirm whatever they were taught of an item, so EM asks for predictions without the item
itself, which of least squares follow from its leverage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from nbmodels.data.features import Block
from nbmodels.data.validation import row_blocks
from nbmodels.fitting.informative_columns import Screening
from nbmodels.fitting.nonlinear_classifier import (
    Basis,
    NonlinearClassifier,
    OfColumns,
    Ranks,
    bases,
    shares_below,
    some_of,
)
from nbmodels.fitting.nonlinear_ways import SURELY_BETTER, by_selected_columns
from nbmodels.fitting.paired_gains import surely
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
        sample: the rows that are learned from.
        columns: those of the points that are looked at.
        x: ``(N, d)`` their cells.
        taken: rows that are learned from.
        ranks: of their cells.
        way: what the scores are linear in.
        by_em: whether a class of a set counts as far as the classifier has it, or evenly.
    """

    sample: _Sample
    columns: Int[np.ndarray, " d"]
    x: Float[np.ndarray, "n d"]
    taken: Int[np.ndarray, " m"]
    ranks: Ranks
    way: _Way
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
        sample = _Sample.of(x[taken], possible[taken], weights[taken])
        fold = draw_folds(sample.even, _FOLDS, None if copies is None else copies[taken])
        ranks = Ranks.of(sample.x, sample.screening.shares)
        return cls(sample, columns, x, taken, ranks, *_best_way(sample, fold, rng))

    def out_of_fold(
        self,
        resp: np.ndarray,
        weights: np.ndarray,
        fold: np.ndarray,
        settings: Settings,
        folds: Sequence[int] | None = None,
    ) -> Float[np.ndarray, "n k"]:
        """See :class:`nbmodels.fitting.classifier_scores.Learner`."""
        learned = [self._learned(resp, weights * (fold != f)) for f in range(int(fold.max()) + 1)]
        out = np.empty(resp.shape)
        for rows in row_blocks(len(out), max(len(table) for _, table in learned)):
            cells, own = self.x[rows], fold[rows]
            shares = self.ranks(cells)
            for f in np.unique(own):
                here = own == f
                basis, table = learned[f]
                out[rows][here] = basis(cells[here], shares[here]) @ table
        return out

    def _learned(
        self, resp: np.ndarray, weights: np.ndarray
    ) -> tuple[Basis, Float[np.ndarray, "p k"]]:
        """What scores are linear in and coefficients, learned from the rows that have a weight."""
        own = weights[self.taken] > 0
        rows = self.taken[own]
        sample = self.sample
        basis = self.way(sample, np.flatnonzero(own))
        design = basis(sample.x[own], sample.screening.shares[own])
        about = resp[rows], sample.possible[own], weights[rows]
        return basis, _learned(design, *about)[int(self.by_em)]

    def classifier(
        self, coding: Coding, resp: np.ndarray, weights: np.ndarray, settings: Settings
    ) -> CodedNonlinear:
        """See :class:`nbmodels.fitting.label_regression.CodedLearner`."""
        basis, table = self._learned(resp, weights)
        about = coding, self.columns, self.ranks, basis
        return CodedNonlinear(NonlinearClassifier(*about, table, slope=1.0))


@dataclass(frozen=True)
class CodedNonlinear:
    """A nonlinear classifier of checked columns."""

    classifier: NonlinearClassifier

    def scores(self, block: Block) -> Float[np.ndarray, "n k"]:
        """Log-probabilities of new rows."""
        return self.classifier.log_probabilities(block.x, block.missing)


@dataclass(frozen=True)
class _Sample:
    """Rows from which a classifier is learned.

    Attributes:
        x: ``(m, d)`` cells.
        screening: of their columns.
        possible: ``(m, K)`` what items may be.
        even: the same as probabilities.
        weights: ``(m,)`` row weights.
    """

    x: Float[np.ndarray, "m d"]
    screening: Screening
    possible: Bool[np.ndarray, "m k"]
    even: Float[np.ndarray, "m k"]
    weights: Float[np.ndarray, " m"]

    @classmethod
    def of(
        cls,
        x: Float[np.ndarray, "m d"],
        possible: Bool[np.ndarray, "m k"],
        weights: Float[np.ndarray, " m"],
    ) -> _Sample:
        even = possible / possible.sum(1, keepdims=True)
        return cls(x, Screening.of(shares_below(x)), possible, even, weights)

    def rng(self) -> np.random.Generator:
        """The same in each fold: a basis of the same columns is then the same."""
        return np.random.default_rng(len(self.x))

    def informative(self, rows: Int[np.ndarray, " r"]) -> Int[np.ndarray, " c"]:
        """Columns by which sets of some rows surely differ, each class of a set an item's part."""
        item, code = np.nonzero(self.possible[rows])
        at = rows[item]
        weights = self.even[at, code] * self.weights[at]
        even, own = self.even[rows], self.weights[rows]
        mean = np.average(even, axis=0, weights=own)
        spread = float(np.average(np.square(even - mean).sum(1), weights=own))
        if spread < np.finfo(np.float32).eps:  # all sets are the same
            return np.arange(self.x.shape[1])
        about = self.possible.shape[1], weights, spread / (1 - float(np.square(mean).sum()))
        return self.screening.informative(at, code, *about)


#: What scores are linear in, learned from some rows.
_Way = Callable[[_Sample, Int[np.ndarray, " r"]], Basis]


@dataclass(frozen=True)
class _ByAll:
    """A basis of all columns."""

    basis: Basis

    def __call__(self, sample: _Sample, rows: np.ndarray) -> Basis:
        return self.basis


@dataclass(frozen=True)
class _ByInformative:
    """One of the bases of informative columns alone."""

    number: int

    def __call__(self, sample: _Sample, rows: np.ndarray) -> Basis:
        about = sample.x, sample.screening.shares, sample.rng()
        return OfColumns.numbered(self.number, sample.informative(rows), *about)


def _best_way(
    sample: _Sample, fold: Int[np.ndarray, " m"], rng: np.random.Generator
) -> tuple[_Way, bool]:
    """The way by which held-out sets are likeliest, and whether classes are counted by EM.

    Informative columns alone have to be surely better than all.
    """
    shares, weights = sample.screening.shares, sample.weights

    def likeliest(ways: Iterable[tuple[_Way, np.ndarray]]) -> _Tried:
        tried = [
            _Tried(way, bool(by_em), np.log((sample.possible * _shares(one)).sum(1)))
            for way, scores in ways
            for by_em, one in enumerate(scores)
        ]
        return max(tried, key=lambda one: float(weights @ one.logs))

    best = likeliest(
        (_ByAll(basis), _held_out(design, sample, fold))
        for basis, design in bases(sample.x, shares, rng)
    )
    found = by_selected_columns(
        lambda other: sample.informative(np.flatnonzero(other)),
        lambda columns: bases(sample.x[:, columns], shares[:, columns], sample.rng()),
        lambda design, folds: _held_out(design, sample, fold, folds),
        fold,
        sample.x.shape[1],
    )
    if found:
        other = likeliest((_ByInformative(number), one) for number, one in enumerate(found))
        if surely(other.logs - best.logs, weights, SURELY_BETTER):
            best = other
    return best.way, best.by_em


class _Tried(NamedTuple):
    """A way, whether by EM, and ``(m,)`` log-probabilities of held-out sets."""

    way: _Way
    by_em: bool
    logs: Float[np.ndarray, " m"]


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
    sample: _Sample,
    fold: Int[np.ndarray, " m"],
    folds: Iterable[int] | None = None,
) -> Float[np.ndarray, "2 m k"]:
    """Out-of-fold predictions of all or some folds, classes counted evenly and by EM."""
    out = np.empty((2, *sample.even.shape))
    for f in range(int(fold.max()) + 1) if folds is None else folds:
        here = fold == f
        about = sample.even[~here], sample.possible[~here], sample.weights[~here]
        tables = _learned(design[~here], *about)
        out[:, here] = design[here] @ np.stack(tables)
    return out


def _shares(scores: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """Predictions of least squares as probabilities."""
    positive = np.maximum(scores, _LEAST)
    return positive / positive.sum(1, keepdims=True)
