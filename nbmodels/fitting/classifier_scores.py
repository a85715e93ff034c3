"""Out-of-fold scores of a classifier, as data of the class prior, and those of nested rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from jax import Array
from jaxtyping import Float, Int

from nbmodels.core.model import PRIOR, Data
from nbmodels.data.validation import pad_rows
from nbmodels.fitting.label_sources import LabelSource, class_prior, learned_priors
from nbmodels.fitting.matrix_scaling import (
    MATRIX,
    MatrixScaling,
    matrix_scaling,
    scaled_out_of_fold,
)
from nbmodels.fitting.scores import Candidate, Settings, without_fold
from nbmodels.fitting.self_training import NestedRounds

#: Share of the folds whose labels test whether a round pays.
_TESTED = 0.4

#: Fewest folds of which half of those that a sequence sees are enough to learn from.
_HALVED = 5


class Learner(Protocol):
    """A classifier of the features."""

    @property
    def rounds(self) -> int:
        """Self-training rounds that are taken where a round pays.

        One takes back a part of the noise that the classifier's probabilities hold, several nearly
        all of it, as EM does; each but the last costs trainings by the square of the number of
        folds.
        """

    @property
    def halves(self) -> bool:
        """Whether trainings are dear: labels of nested rounds are corrected by classifiers of half
        of the other folds rather than of all but one of them.
        """

    def out_of_fold(
        self,
        resp: Float[np.ndarray, "n k"],
        weights: Float[np.ndarray, " n"],
        fold: Int[np.ndarray, " n"],
        settings: Settings,
        folds: Sequence[int] | None = None,
    ) -> Float[np.ndarray, "n k"]:
        """Scores of each item by a classifier of the other folds' items.

        Args:
            resp: responsibilities to learn from, rows of zeros where nothing is known.
            weights: row weights.
            fold: fold of each item.
            settings: those of the classifier among them.
            folds: those whose items' scores are needed, where others can be saved; None for all.
        """


@dataclass
class ClassifierScores:
    """Labels with the scores of a classifier, kept while the responsibilities are the same.

    Attributes:
        learner: the classifier.
        settings: value of every setting that is not open.
        own: names of the classifier's settings, without which its scores are the same.
        copies: group of each row, or None.
        open_rounds: whether held-out labels decide on rounds. A number of rounds is of rounds that
            learn from as much as they can.
    """

    learner: Learner
    settings: Settings
    sources: Mapping[str, LabelSource]
    data: Data
    n_classes: int
    weights: np.ndarray
    fold: np.ndarray
    own: tuple[str, ...] = ()
    copies: np.ndarray | None = None
    open_rounds: bool = False
    _of: Array | None = None
    _kept: dict[Any, Any] = field(default_factory=dict)
    without_shares: ClassVar[bool] = False

    def labels(self, settings: Settings) -> Candidate:
        own = {**self.settings, **settings}
        k = self.n_classes
        channels = {name: source.channel(k, own) for name, source in self.sources.items()}
        model = {PRIOR: class_prior(k, own), **channels}
        return Candidate(model, self.data, learned_priors(channels))

    def scores(self, settings: Settings, resp: Array, folds: Sequence[int] | None = None) -> Array:
        if resp is not self._of:
            self._of, self._kept = resp, {}
        about = (settings.get(name) for name in (*self.own, "scaling"))
        key = (*about, None if folds is None else (*folds,))
        if key not in self._kept:
            known = np.asarray(resp)[: len(self.weights)]
            self._kept[key] = self.scored(settings, known, self.fold, folds)
        return self._kept[key]

    def scored(
        self,
        settings: Settings,
        resp: np.ndarray,
        fold: np.ndarray,
        folds: Sequence[int] | None = None,
    ) -> Any:
        """Padded scores of a classifier of the other folds' items, folds as given."""
        by_matrix = self.by_matrix(settings)
        # a matrix is learned from scores of all other folds
        found = self.unscaled(settings, resp, fold, None if by_matrix else folds)
        if by_matrix:
            found = scaled_out_of_fold(found, self.weights[:, None] * resp, fold)
        return self.padded(found)

    def unscaled(
        self,
        settings: Settings,
        resp: np.ndarray,
        fold: np.ndarray,
        folds: Sequence[int] | None = None,
    ) -> np.ndarray:
        """Scores of a classifier of the other folds' items as they are, folds as given."""
        own = {**self.settings, **settings}
        return self.learner.out_of_fold(resp, self.weights, fold, own, folds)

    def by_matrix(self, settings: Settings) -> bool:
        """Whether scores are calibrated by a matrix."""
        return {**self.settings, **settings}.get("scaling") == MATRIX

    def padded(self, rows: np.ndarray) -> np.ndarray:
        """A table of the items with rows of zeros below."""
        return pad_rows(rows, len(self.data.weights))

    # Self-training rounds

    @property
    def n_folds(self) -> int:
        return int(self.fold.max()) + 1

    @property
    def economical(self) -> bool:
        """Whether dear trainings are saved, see :attr:`Learner.halves`; known once it learned."""
        return self.open_rounds and self.learner.halves

    @property
    def halved(self) -> bool:
        """Whether nested rounds learn from halves."""
        return self.economical and self.n_folds >= _HALVED

    @property
    def tested(self) -> list[int]:
        """Folds whose labels test whether a round pays; halves are shared by those of one test."""
        n_tested = max(1, round(_TESTED * self.n_folds))
        if not self.halved:  # the trainings of one sequence are as many as there are folds
            return [*range(1 if self.economical else n_tested)]
        return [k * self.half % self.n_folds for k in range(min(n_tested, self.half))]

    @property
    def half(self) -> int:
        """Number of folds in half of those that a sequence sees, one of which may be in neither."""
        return (self.n_folds - 1) // 2

    def nested_scores(self, settings: Settings, resp: Array, without: int, *, own: bool) -> Any:
        """See :class:`nbmodels.fitting.scores.ScoredLabels`.

        Where halves are learned from, those of the fold's own items are not scaled.
        """
        resp = self._without(resp, without)
        if not self.halved:
            folds = [k for k in range(self.n_folds) if k != without]
            return self.scores(settings, resp, None if own else folds)
        known = np.asarray(resp)[: len(self.weights)]
        place = (self.fold - without - 1) % self.n_folds  # of the fold itself the last
        part = np.minimum(place // self.half, 1)
        halves = known * (place < 2 * self.half)[:, None]
        out = self.unscaled(settings, halves, part, [0, 1])
        if self.by_matrix(settings):
            out = scaled_out_of_fold(out, self.weights[:, None] * known, self.fold)
        out = out * (self.fold != without)[:, None]
        if own:
            found = self.unscaled(settings, known, self.fold, [without])
            out += found * (self.fold == without)[:, None]
        return self.padded(out)

    def fold_scores(self, settings: Settings, resp: Array, fold: int) -> Any:
        """See :meth:`nested_scores`."""
        resp = self._without(resp, fold)
        here = pad_rows(self.fold, len(resp)) == fold
        if not self.halved:
            return np.asarray(self.scores(settings, resp, [fold]))[here]
        known = np.asarray(resp)[: len(self.weights)]
        return self.padded(self.unscaled(settings, known, self.fold, [fold]))[here]

    def _without(self, resp: Array, fold: int) -> Array:
        return without_fold(resp, pad_rows(self.fold, len(resp)), fold)

    def all_at_once(self, settings: Settings) -> bool:
        """Never: every fold is a training."""
        return False

    def scaled(self, settings: Settings, scores: Any, resps: Sequence[Any]) -> Any:
        """See :class:`nbmodels.fitting.scores.ScoredLabels`."""
        if not (self.halved and self.by_matrix(settings)):
            return scores
        n_rows = len(self.weights)
        rows, out = np.asarray(scores)[:n_rows], np.zeros((n_rows, self.n_classes))
        for k, resp in enumerate(resps):
            here = self.fold == k
            given = self.weights[:, None] * np.asarray(resp)[:n_rows]
            out[here] = matrix_scaling(rows[~here], given[~here]).scaled(rows[here])
        return self.padded(out)

    def scaling(
        self, settings: Settings, resp: np.ndarray, nested: NestedRounds | None
    ) -> MatrixScaling | None:
        """What scores of new items are scaled by; None where a temperature is all.

        Args:
            settings: those selected.
            resp: what the classifier learns from last.
            nested: the rounds that were taken, whose scores are not scaled yet; None without.
        """
        if not self.by_matrix(settings):
            return None
        if nested is None or not self.halved:
            found = self.unscaled(settings, resp, self.fold)
        else:
            found = nested.held_out_scores()[: len(resp)]
        return matrix_scaling(found, self.weights[:, None] * resp)
