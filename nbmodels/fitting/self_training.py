"""Self-training by nested cross-fitting: scores learned anew from corrected labels.

Responsibilities contain the labels that they were found with, and scores of other items that are
learned from them contain those, too. So in later rounds the scores of a fold come from fits that
never saw a label of it, in no round: the labels of the fold remain held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jax import Array

from inference import Status
from inference.arrays import on_device
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.fitting.scores import ScoredLabels, Settings, with_score_prior


class NestedRounds:
    """One sequence of rounds for each fold, none of which sees a label of that fold.

    Args:
        source: scores of the features.
        settings: those under which scores are learned.
        resp: ``(N, K)`` responsibilities of the first round, from the labels.
        fold: ``(N,)`` fold of each item.
        log_slope_sd: see :func:`nbmodels.fitting.scores.with_score_prior`.
    """

    def __init__(
        self,
        source: ScoredLabels,
        settings: Settings,
        resp: Array,
        fold: np.ndarray,
        log_slope_sd: float,
    ) -> None:
        self._source, self._settings, self._sd = source, settings, log_slope_sd
        self._fold = np.asarray(fold)
        self._masks = [fold != k for k in range(int(fold.max()) + 1)]
        self._resps: list[Any] = [resp] * len(self._masks)
        self._learned = False  # whether each sequence has the scores that the next round needs

    def _learn(self, folds: Sequence[Sequence[int] | None]) -> list[Data]:
        return [
            self._scored(on_device(np.asarray(resp) * mask[:, None]), needed)
            for resp, mask, needed in zip(self._resps, self._masks, folds, strict=True)
        ]

    def _scored(self, resp: Array, folds: Sequence[int] | None) -> Data:
        scores = self._source.scores(self._settings, resp, folds)
        labels = self._source.labels(self._settings)
        return with_score_prior(labels, scores, log_slope_sd=self._sd).data

    def next(self, fit_all: Any, model: Model, *, last: bool = False) -> Data:
        """Data in which each item has the scores of the sequence that did not see its fold.

        Args:
            fit_all: fits a model to several data sets.
            model: the labels' model with a score prior.
            last: whether there may be no round after it, so that scores of one fold are enough of
                each sequence; those of the others are learned if there is one.

        Raises:
            KeyboardInterrupt: a fit was interrupted.
        """
        every = range(len(self._masks))
        if not self._learned:
            self._data = self._learn([[j for j in every if j != k] for k in every])
        seen = [
            replace(data, weights=on_device(np.asarray(data.weights) * mask))
            for data, mask in zip(self._data, self._masks, strict=True)
        ]
        fits = fit_all(model, seen)
        if any(fitted.status == Status.INTERRUPTED for fitted in fits):
            raise KeyboardInterrupt
        self._resps, self._learned = [fitted.resp for fitted in fits], not last
        self._data = self._learn([[k] if last else None for k in every])
        scores = np.stack([data.parts[PRIOR] for data in self._data])
        own = on_device(scores[self._fold, np.arange(len(self._fold))])
        first = self._data[0]
        return replace(first, parts={**first.parts, PRIOR: own})
