"""Votes as one source of a joint model: packed by the workers of a fit, copies and all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from nbmodels.channels import Annotators
from nbmodels.data.annotations import Votes
from nbmodels.data.labels import Classes
from nbmodels.fitting.copied_votes import Copies
from nbmodels.fitting.vote_dependence import VoteTable, effective_number

#: Name of the component.
VOTES = "votes"


@dataclass(frozen=True)
class VotesOf:
    """Packs votes on items by the workers of a fit, with what they count for.

    Attributes:
        workers: ``(W,)`` their ids.
        copies: who copies.
        size: ``(W,)`` square root of the information of a vote.
        correlation: of votes on an item given its class.
    """

    workers: np.ndarray
    copies: Copies
    size: Float[np.ndarray, " w"]
    correlation: float

    def _table(self, values: Any, items: np.ndarray, classes: Classes) -> VoteTable:
        counts = Votes.read(values).counts(items, self.workers, classes)
        votes = VoteTable.of(counts, len(classes))
        return replace(votes, weights=self.copies.weights(votes)) if self.copies.found else votes

    def __call__(self, values: Any, items: np.ndarray, classes: Classes) -> dict[str, Any]:
        counts = self._table(values, items, classes).counted(len(self.workers), len(classes))
        return {VOTES: Annotators.pack(counts)}

    def powers(self, values: Any, items: np.ndarray, classes: Classes) -> dict[str, np.ndarray]:
        """``(N,)`` power of each item's votes, by the design effect of their correlation."""
        votes = self._table(values, items, classes)
        number = effective_number(self.size[votes.worker], votes)
        return {VOTES: 1 / (1 + (number - 1) * self.correlation)}
