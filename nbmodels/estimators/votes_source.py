"""Votes as one source of several: what they count for, and packed by the workers of a fit.

Votes that depend on each other given the class are too much evidence. Beside other sources they are
tempered by what a fit to the votes alone shows of that (:mod:`nbmodels.fitting.vote_dependence`,
:mod:`nbmodels.fitting.copied_votes`), and by nothing that is assumed. As there, they are fitted as
if they were independent and tempered afterwards (:func:`nbmodels.core.model.untempered`), and
annotators of whom votes do not show who is right are taken to be alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import sparse
from sklearn.base import clone

from nbmodels.channels import Annotators
from nbmodels.data.annotations import Votes
from nbmodels.data.labels import Classes
from nbmodels.errors import Caution, IdentifiabilityWarning, NbmodelsWarning
from nbmodels.estimators.options import Solver
from nbmodels.estimators.sources import Items, LearnedSource, Part
from nbmodels.fitting.annotator_fits import ALIKE
from nbmodels.fitting.copied_votes import MOST_UNEVEN
from nbmodels.fitting.copies import Copies, no_copies
from nbmodels.fitting.label_sources import annotators, number_of_votes
from nbmodels.fitting.vote_agreement import LEAST_AGREEMENT
from nbmodels.fitting.vote_dependence import (
    VoteDependence,
    VoteTable,
    annotator_model,
    described,
    effective_number,
)
from nbmodels.fitting.vote_shares import SharesHeld, all_alike

if TYPE_CHECKING:
    from nbmodels.estimators.annotators import DawidSkene

#: Name of the component.
VOTES = "votes"

#: Likelihood ratio statistic from where one source of several tempers votes: 0.1 %.
_SURELY = 10.8

#: The warning where pairs of annotators agree too unevenly.
_GROUPED = (
    "some annotators vote as a group, and votes do not show whose side is right; check some items "
    "by hand (trusted=)"
)


@dataclass(frozen=True)
class VotesOf:
    """Packs votes on items by the workers of a fit, with what they count for.

    Attributes:
        workers: ``(W,)`` their ids.
        copies: who copies.
        size: ``(W,)`` square root of the information of a vote.
        correlation: of votes on an item given its class.
        alike: whether all annotators are taken to be alike.
        by_chance: whether they are since votes agree no more often than by chance.
        dependence: what the votes show of themselves, of checks; None where nothing was sought.
        held: by what the votes hold the class shares, where nothing else shows these; or None.
        cautions: warnings about the votes, whatever the fit.
    """

    workers: np.ndarray
    copies: Copies
    size: Float[np.ndarray, " w"]
    correlation: float
    alike: bool = False
    by_chance: bool = False
    held: SharesHeld | None = None
    dependence: VoteDependence | None = None
    cautions: tuple[Caution, ...] = ()

    def table(self, values: Any, items: np.ndarray, classes: Classes) -> VoteTable:
        """The votes as codes, by what they count for."""
        votes = VoteTable(*Votes.read(values).cells(items, self.workers, classes), len(items))
        return replace(votes, weights=self.copies.weights(votes)) if self.copies.found else votes

    def counted(self, values: Any, items: np.ndarray, classes: Classes) -> sparse.csr_array:
        """``(N, W * K)`` counts of votes by what they count for."""
        return self.table(values, items, classes).counted(len(self.workers), len(classes))

    def _power(self, votes: VoteTable) -> Float[np.ndarray, " n"]:
        """``(N,)`` power of each item's votes, by the design effect of their correlation."""
        number = effective_number(self.size[votes.worker], votes)
        return 1 / (1 + (number - 1) * self.correlation)

    def __call__(self, values: Any, items: np.ndarray, classes: Classes) -> dict[str, Any]:
        return {VOTES: Annotators.pack(self.counted(values, items, classes))}

    def item_powers(
        self, values: Any, items: np.ndarray, classes: Classes
    ) -> Float[np.ndarray, " n"]:
        """``(N,)`` power of each item's votes."""
        return self._power(self.table(values, items, classes))

    def powers(self, values: Any, items: np.ndarray, classes: Classes) -> dict[str, np.ndarray]:
        """:meth:`item_powers` by the name of the component."""
        return {VOTES: self.item_powers(values, items, classes)}


def votes_of(
    crowd: DawidSkene, values: Any, workers: np.ndarray, items: Items, *, sole: bool = True
) -> VotesOf:
    """With the copies and the dependence that a fit to votes and labels alone shows.

    Where half of the annotators copy from each other, votes do not show who is right, and labels
    of another origin do.

    Args:
        crowd: how votes are fitted; it is left as it is.
        values: table of votes.
        workers: ``(W,)`` ids of those who cast them.
        items: whose noisy labels are taken for votes of one more annotator.
        sole: whether nothing else shows who is right where votes agree by chance.
    """
    w = len(workers)
    if crowd._rule == "ml":
        return VotesOf(workers, no_copies(w), np.ones(w), 0.0)
    solver = Solver(method=crowd._solver.method, progress=False)
    alone = clone(crowd).set_params(classes=items.classes.names, solver=solver)
    alone._beside_graders = False  # which have no place beside other sources
    alone._sole = sole
    votes = _with_labels(Votes.read(values), workers, items)
    with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
        alone.fit(votes)
    found, size = alone.fitted_.vote_dependence, annotator_model(alone.fit_).information()
    assert found is not None  # of votes alone
    correlation = visible = found.visible if 2 * found.gain > _SURELY else 0.0
    if not isinstance(crowd.dependence, str):
        correlation = float(crowd.dependence)
    grouped = found.uneven > MOST_UNEVEN
    own = np.arange(w)
    return VotesOf(
        workers,
        alone._copies.extended(own),
        np.sqrt(size[own]),
        correlation,
        found.pooling == ALIKE,
        found.pooling == ALIKE and found.agreement < LEAST_AGREEMENT,
        held=alone._held,
        dependence=_of_checks(alone, correlation, visible),
        cautions=(Caution(IdentifiabilityWarning, _GROUPED),) if grouped else (),
    )


def learned_votes(
    name: str, votes: VotesOf, values: Any, items: Items, parameters: Mapping[str, Any]
) -> LearnedSource:
    """The annotators' channel with their votes by what they count for.

    Args:
        name: of the channel.
        votes: how they are packed.
        values: table of votes.
        items: on which they are.
        parameters: settings of the channel.
    """
    about = values, items.ids, items.classes
    counts = votes.counted(*about)
    settings = {**parameters, "n_votes": number_of_votes(counts, items.weights)}
    channel: Any = annotators(len(votes.workers), len(items.classes), settings)
    if votes.alike:
        channel = all_alike(channel, votes.table(*about), 1)
    return LearnedSource(
        {name: Part(channel, Annotators.pack(counts))},
        votes,
        powers=votes.powers if votes.correlation > 0 else None,
        coords={name: {"annotator": votes.workers}},
        held=votes.held,
        cautions=votes.cautions,
    )


def _of_checks(alone: DawidSkene, correlation: float, visible: float) -> VoteDependence:
    """What checks are of, with the correlation that is reckoned with beside other sources.

    A class for which nobody votes may be that of other evidence, beside which copies that count for
    less lead nobody astray; groups are warned of.
    """
    found, model = alone.fitted_.vote_dependence, annotator_model(alone.fit_)
    assert found is not None  # of votes alone
    here = described(model, alone._votes, correlation, None, visible, found.gain)
    seen = {name: getattr(found, name) for name in ("copying", "pooling", "shown")}
    return replace(here, unsupported=np.nan, uneven=np.nan, alone=False, **seen)


def _with_labels(votes: Votes, workers: np.ndarray, items: Items) -> pd.DataFrame:
    """Votes by code, with the items' labels as those of one more annotator, the last."""
    task, worker, label = votes.cells(items.ids, workers, items.classes)
    known = np.flatnonzero(items.given >= 0)
    named = np.concatenate([label, items.given[known]])
    return pd.DataFrame(
        {
            "task": np.concatenate([task, known]),
            "worker": np.concatenate([worker, np.full(len(known), len(workers))]),
            "label": items.classes.names[named],
        }
    )
