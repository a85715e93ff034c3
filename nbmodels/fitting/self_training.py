"""Self-training by nested cross-fitting: scores learned anew from corrected labels.

Responsibilities contain the labels that they were found with, and scores of other items that are
learned from them contain those, too. So in later rounds the scores of a fold come from fits that
never saw a label of it, in no round: the labels of the fold remain held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from jax import Array
from jaxtyping import Float

from inference import Status
from inference.arrays import on_device
from nbmodels.core.model import PRIOR, Data, Model, with_parts
from nbmodels.fitting.em import Fit, responsibilities
from nbmodels.fitting.judged_rows import of_rows
from nbmodels.fitting.scores import ScoredLabels, Settings, with_score_prior


class NestedRounds:
    """One sequence of rounds for each fold, none of which sees a label of that fold.

    Args:
        source: scores of the features.
        settings: those under which scores are learned.
        resp: ``(N, K)`` responsibilities of the first round, from the labels.
        fold: ``(N,)`` fold of each item.
        log_slope_sd, shares: see :func:`nbmodels.fitting.scores.with_score_prior`.
        rows: those that fits are of, where not of all: their parameters are few, and
            responsibilities of all rows are read from them.
    """

    def __init__(
        self,
        source: ScoredLabels,
        settings: Settings,
        resp: Array,
        fold: np.ndarray,
        log_slope_sd: float,
        rows: np.ndarray | None = None,
        shares: Float[np.ndarray, " k"] | None = None,
    ) -> None:
        self._source, self._settings = source, settings
        self._scored = partial(with_score_prior, log_slope_sd=log_slope_sd, shares=shares)
        self._fold, self._rows = np.asarray(fold), rows
        self._masks = [fold != k for k in range(int(fold.max()) + 1)]
        self._resps: list[Any] = [resp] * len(self._masks)
        self._scores: list[Any] = [None] * len(self._masks)
        self._own: list[Any] = [None] * len(self._masks)  # scores of a fold's items by its sequence
        self._ready: set[int] = set()  # sequences with the scores that their next round needs
        self._ahead: set[int] = set()  # sequences that took the next round already

    def _learn(self, sequence: int, *, own: bool, others: bool) -> None:
        about = self._settings, self._resps[sequence], sequence
        if others:
            self._scores[sequence] = scores = self._source.nested_scores(*about, own=own)
            self._ready.add(sequence)
            self._own[sequence] = np.asarray(scores)[~self._masks[sequence]] if own else None
        else:
            self._scores[sequence] = None
            self._ready.discard(sequence)
            self._own[sequence] = self._source.fold_scores(*about)

    def _candidate(
        self, model: Model, scores: Any, rows: np.ndarray | None = None
    ) -> tuple[Model, Data]:
        """The model with its score prior about these scores, and data of some rows or of all."""
        labels = self._source.labels(self._settings)
        some = labels._replace(data=of_rows(labels.data, rows))
        found = self._scored(some, scores if rows is None else np.asarray(scores)[rows])
        return {**model, PRIOR: found.model[PRIOR]}, found.data

    def _read(self, sequence: int, fitted: Fit) -> Array:
        """Responsibilities of all rows, for which scores need not be centred."""
        labels = self._source.labels(self._settings).data
        parts = {**labels.parts, PRIOR: on_device(self._scores[sequence])}
        return responsibilities(fitted, with_parts(labels, parts))

    def advance(
        self, sequences: Sequence[int], fit_all: Any, model: Model, *, last: bool = False
    ) -> list[Fit]:
        """Take a round of some sequences before the others, which :meth:`next` does not repeat.

        Args:
            sequences: folds that they do not see.
            fit_all, model, last: see :meth:`next`.

        Returns:
            the fit of each, from whose responsibilities the scores are learned anew.

        Raises:
            KeyboardInterrupt: a fit was interrupted.
        """
        for k in sequences:
            if k not in self._ready:
                self._learn(k, own=False, others=True)
        seen, models = [], []
        for k in sequences:
            here, data = self._candidate(model, self._scores[k], self._rows)
            mask = self._masks[k] if self._rows is None else self._masks[k][self._rows]
            seen.append(replace(data, weights=on_device(np.asarray(data.weights) * mask)))
            models.append(here)
        fits: list[Fit] = fit_all(models, seen)
        if any(fitted.status == Status.INTERRUPTED for fitted in fits):
            raise KeyboardInterrupt
        whole = not last or self._source.all_at_once(self._settings)
        for k, fitted in zip(sequences, fits, strict=True):
            self._resps[k] = fitted.resp if self._rows is None else self._read(k, fitted)
            self._learn(k, own=True, others=whole)
        self._ahead.update(sequences)
        return fits

    def fold_scores(self, sequence: int) -> Float[np.ndarray, "m k"]:
        """Scores of a fold's items, in their order, by the last round of its sequence."""
        return np.asarray(self._own[sequence])

    def next(self, fit_all: Any, model: Model, *, last: bool = False) -> tuple[Model, Data]:
        """Model and data with each item's scores by the sequence that did not see its fold.

        Args:
            fit_all: fits several models, each to its data.
            model: the labels' model with a score prior.
            last: whether there may be no round after it, so that scores of one fold are enough of
                each sequence; those of the others are learned if there is one.

        Raises:
            KeyboardInterrupt: a fit was interrupted.
        """
        others = [k for k in range(len(self._masks)) if k not in self._ahead]
        self.advance(others, fit_all, model, last=last)
        self._ahead = set()
        scaled = self._source.scaled(self._settings, self.held_out_scores(), self._resps)
        return self._candidate(model, scaled)

    def held_out_scores(self) -> Float[np.ndarray, "n k"]:
        """Of each item, by the sequence that did not see its fold."""
        own = [self.fold_scores(k) for k in range(len(self._masks))]
        out = np.empty((len(self._fold), own[0].shape[1]), own[0].dtype)
        for scores, mask in zip(own, self._masks, strict=True):
            out[~mask] = scores
        return out
