"""Fits of one candidate: to all labels, and to those outside of each fold.

Candidates are fitted one after the other, and share what can be shared: the prior that the first of
them learned and, where that is wanted, the point that the last of them reached as the next one's
start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool

from inference import Status
from inference.arrays import on_device
from inference.blocks import MANY_CLASSES
from nbmodels.core.model import Data, Model
from nbmodels.fitting.empirical_bayes import fit_with_learned_priors
from nbmodels.fitting.fit import Fit
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.progress import Report
from nbmodels.fitting.scores import Candidate
from nbmodels.fitting.two_starts import fit_from_two_starts

#: Tolerances of a fit that others go on from; with many classes, also of those to a part of the
#: labels.
_TENTATIVE, _OF_MANY = 10.0, 1000.0


@dataclass
class CandidateFits:
    """How candidates are fitted, and what the next one takes over.

    Attributes:
        options: of the fits.
        report: called now and then with the iterations and the value they improve.
        second_start: begin also where the scores' likeliest classes are the true ones.
        warm: begin each fit at the last one of all labels, as its neighbour.
        n_classes: K.
        priors: components that are learned from, in the place of the labels' own where a prior is
            learned.
        start: parameters that the next fit begins at; None for the labels.
        learned: components whose prior a candidate learned, the first that could.
    """

    options: FitOptions
    report: Report | None
    second_start: bool = False
    warm: bool = False
    n_classes: int = 2
    priors: Model = field(default_factory=dict)
    start: Any = None
    learned: Model = field(default_factory=dict)

    @property
    def many(self) -> bool:
        """Whether there are so many classes that iterations take long."""
        return self.n_classes >= MANY_CLASSES

    def of(
        self,
        candidate: Candidate,
        masks: Sequence[Bool[np.ndarray, " n"]],
        options: FitOptions | None = None,
    ) -> list[Fit]:
        """A fit of all labels, and one of those in each mask, by one program where possible.

        Only the first where it was interrupted.
        """
        fits = self._of(candidate, masks, options or self.options)
        if self.warm:
            self.go_on_from(fits[0])
        return fits

    def go_on_from(self, fit: Fit) -> None:
        """Begin the next fits at the solution of a neighbour."""
        self.start = jax.tree.map(on_device, fit.params)

    def _of(
        self, candidate: Candidate, masks: Sequence[np.ndarray], options: FitOptions
    ) -> list[Fit]:
        model, data, learned = candidate
        start = self.start
        first: list[Fit] = []
        if learned:
            model = {**model, **{n: self.priors[n] for n in learned if n in self.priors}}
            if start is None and self.second_start:  # the prior is learned from the better one
                found = self.each([model], [data])[0]
                if found.status == Status.INTERRUPTED:
                    return [found]
                start = jax.tree.map(on_device, found.params)
            roughly = self.warm and self.many
            more: dict[str, Any] = {"start": start, "report": self.report, "roughly": roughly}
            first = [fit_with_learned_priors(model, data, learned, options, **more)]
            if first[0].status == Status.INTERRUPTED:
                return first
            model = first[0].model
            self.learned = {name: model[name] for name in learned}
        loose = self.of_parts(options)
        if not first and loose is not options:
            first = self.each([model], [data], start, options)
            if first[0].status == Status.INTERRUPTED:
                return first
        if first and self.warm:
            start = jax.tree.map(on_device, first[0].params)
        parts = masked(data, masks)
        left = parts if first else [data, *parts]
        return [*first, *self.each([model] * len(left), left, start, loose)]

    def each(
        self,
        models: Sequence[Model],
        data: Sequence[Data],
        start: Any = None,
        options: FitOptions | None = None,
    ) -> list[Fit]:
        """Fits begun at the labels, and perhaps also where the scores' likeliest classes are."""
        if not data:
            return []
        options = options or self.options
        if start is not None:
            starts = [start] * len(data)
            return options.fit_all(models, data, starts=starts, report=self.report)
        if self.second_start:
            return fit_from_two_starts(models, data, options, report=self.report)
        return options.fit_all(models, data, report=self.report)

    def tentative(self, near: bool) -> FitOptions:
        """Options of fits that others go on from, and that nothing else is read from.

        Args:
            near: whether they begin near their solution, as those of all rows do at that of a
                sample; they are looser then.
        """
        loosely = _OF_MANY if self.many else _TENTATIVE
        return replace(self.options, tol=loosely * self.options.tol) if near else self.options

    def of_parts(self, options: FitOptions) -> FitOptions:
        """Options of fits to a part of the labels, which begin at a neighbour's solution if warm.

        With many classes they are looser then: an iteration takes long, and what is left of the way
        moves held-out labels by less than candidates have to differ by. (That is of calibrated
        scores: joint fits are slower to leave labels that they began with.)
        """
        if not (self.warm and self.many):
            return options
        return replace(options, tol=max(options.tol, _OF_MANY * self.options.tol))


def masked(data: Data, masks: Sequence[Bool[np.ndarray, " n"]]) -> list[Data]:
    """The data of the rows in each mask."""
    weights = np.asarray(data.weights)
    return [replace(data, weights=on_device(weights * mask)) for mask in masks]
