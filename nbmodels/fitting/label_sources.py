"""Label channels and the class prior of a model, from read labels and settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from inference.arrays import on_device
from nbmodels.channels import (
    Annotators,
    CandidateSets,
    ExternalEvidence,
    FixedTransition,
    LabellingFunctions,
    OneCoinAnnotators,
    OrderedAnnotators,
    PooledAnnotators,
    PooledTransition,
    SymmetricTransition,
    Transition,
    TrustedLabels,
)
from nbmodels.channels.candidates import pack_candidates
from nbmodels.channels.transition import pack_labels
from nbmodels.class_priors import FixedProportions, Proportions
from nbmodels.core.component import Component
from nbmodels.core.model import with_role
from nbmodels.core.roles import LabelChannel
from nbmodels.data.noisy_labels import LabelData
from nbmodels.data.validation import as_floats, pad_rows
from nbmodels.errors import DataError
from nbmodels.fitting.vote_dependence import VoteTable
from nbmodels.fitting.vote_shares import all_alike

Settings = Mapping[str, Any]

#: Names of the channels of several annotators' votes, of sets of candidate classes, and of which
#: items have a label at all.
VOTES, CANDIDATES, LABELLED = "votes", "candidates", "labelled"


@dataclass(frozen=True)
class LabelSource:
    """One kind of label evidence before it is padded and packed.

    Attributes:
        channel: from the number of classes and the settings to the channel; called where the
            precision of the fit holds.
        values: ``(N, ...)`` one row an item.
        fill: row of an item of which nothing is known.
        pack: from rows to the channel's data.
        powers: ``(N,)`` power of each item's likelihood; None for 1.
    """

    channel: Callable[[int, Settings], Component]
    values: np.ndarray
    fill: Any
    pack: Callable[[np.ndarray], Any]
    powers: Float[np.ndarray, " n"] | None = None

    def padded(self, length: int) -> Any:
        """The channel's data for ``length`` rows, of which the last hold nothing."""
        return self.pack(pad_rows(self.values, length, self.fill))

    def of_rows(self, rows: Int[np.ndarray, " m"]) -> LabelSource:
        """The same of some items."""
        powers = None if self.powers is None else self.powers[rows]
        return replace(self, values=self.values[rows], powers=powers)


def label_sources(
    labels: LabelData, weights: Float[np.ndarray, " n"] | None = None
) -> dict[str, LabelSource]:
    """Label sources of read labels, by the name of their channel.

    Args:
        labels: as read.
        weights: ``(N,)`` row weights, from which votes have theirs; None for 1.
    """
    k = len(labels.classes)
    out = {}
    if labels.has_given:
        out["labels"] = coded(noise_channel, labels.codes, k)
    if labels.votes is not None:
        n_votes = number_of_votes(labels.votes, weights)
        alike = VoteTable.of_counts(labels.votes, k) if labels.alike else None
        channel = partial(_votes_channel, labels.votes.shape[1] // k, n_votes, alike)
        pack = partial(_pack_votes, labels.votes)
        rows = np.arange(len(labels.codes))
        out[VOTES] = LabelSource(channel, rows, -1, pack, labels.vote_powers)
    if labels.trusted is not None:
        out["trusted"] = coded(trusted_channel, labels.trusted, k)
    return out


def padded_powers(sources: Mapping[str, LabelSource], length: int) -> dict[str, Any]:
    """Powers of the items' likelihoods, by the names of the channels that have them."""
    powers = {name: source.powers for name, source in sources.items()}
    return {n: on_device(pad_rows(p, length, 1.0)) for n, p in powers.items() if p is not None}


def coded(
    channel: Callable[[int, Settings], Component], codes: np.ndarray, n_classes: int
) -> LabelSource:
    """A channel whose data are one code an item, -1 where there is none."""
    return LabelSource(channel, codes, -1, partial(pack_labels, n_observed=n_classes))


def candidate_sets(possible: np.ndarray) -> LabelSource:
    """A channel of ``(N, K)`` booleans of what is possible."""
    pack = partial(_pack_candidates, n_classes=possible.shape[1])
    return LabelSource(_candidates_channel, possible, True, pack)


def class_prior(n_classes: int, settings: Settings) -> Component:
    """Shares of the true classes: learned, or known.

    Raises:
        DataError: ``class_prior`` is no distribution over the classes.
    """
    known = settings.get("class_prior")
    if known is None:
        shares = Proportions.of(n_classes, settings["class_alpha"])
        held = settings.get("shares_held")  # by votes
        return shares if held is None else held.of(shares)
    probs = as_floats("class_prior", known)
    if probs.shape != (n_classes,) or not (probs > 0).all() or not abs(probs.sum() - 1) <= 1e-6:
        raise DataError(
            f"class_prior: expected {n_classes} positive probabilities that sum to one, got {probs}"
        )
    return FixedProportions(prior=on_device(probs))


def noise_channel(n_classes: int, settings: Settings) -> Component:
    """The channel of one noisy label an item, in the form that ``noise`` names.

    Raises:
        DataError: an unknown form, or a matrix whose columns are no distributions.
    """
    noise, k = settings["noise"], n_classes
    if isinstance(noise, str):
        prior = {"alpha": settings["noise_alpha"], "diagonal": settings["noise_diagonal"]}
        if noise == "full":
            return Transition.of(k, **prior)
        if noise == "pooled":
            return PooledTransition.of(k, **prior)
        if noise == "symmetric":
            return SymmetricTransition.of(k, **prior)
        raise DataError(f"noise: expected 'full', 'symmetric', 'pooled' or a matrix, got {noise!r}")
    rho = as_floats("noise", noise)
    if rho.shape != (k, k) or not (rho >= 0).all() or not np.abs(rho.sum(0) - 1).max() <= 1e-6:
        raise DataError(
            f"noise: expected a {k} x {k} matrix [observed, true] of probabilities whose columns "
            "sum to one"
        )
    return FixedTransition(prior=on_device(rho.T))


def trusted_channel(n_classes: int, settings: Settings) -> Component:
    """The channel of checked labels."""
    return TrustedLabels.of(n_classes)


#: Channels of annotators by what their noise matrices are drawn to.
_ANNOTATORS: Mapping[str, Any] = {
    "none": Annotators,
    "alike": Annotators,
    "own": OneCoinAnnotators,
    "shared": PooledAnnotators,
    "functions": LabellingFunctions,
    "ordered": OrderedAnnotators,
}


def number_of_votes(
    counts: sparse.csr_array, weights: Float[np.ndarray, " n"] | None = None
) -> float:
    """Number of votes by what they count for in the statistics of a fit.

    Args:
        counts: ``(N, W * K)`` votes of the items.
        weights: ``(N,)`` row weights; None for 1.
    """
    each = np.asarray(counts.sum(axis=1)).ravel()
    return float(each.sum() if weights is None else each @ weights)


def learned_priors(model: Mapping[str, Component]) -> tuple[str, ...]:
    """Names of the label channels whose priors are learned (empirical Bayes)."""
    return tuple(n for n, c in with_role(model, LabelChannel).items() if c.learns_prior)


def _votes_channel(
    n_annotators: int,
    n_votes: float,
    alike: VoteTable | None,
    n_classes: int,
    settings: Settings,
) -> Component:
    """That of annotators, held to one matrix by these votes where they are taken to be alike."""
    channel: Any = annotators(n_annotators, n_classes, {**settings, "n_votes": n_votes})
    return channel if alike is None else all_alike(channel, alike, 1)


def annotators(n_annotators: int, n_classes: int, settings: Settings) -> Component:
    """The channel of several annotators' votes; with ``subtypes``, several a class."""
    alpha, diagonal = settings["noise_alpha"], settings["noise_diagonal"]
    kind = _ANNOTATORS[settings.get("pooling", "none")]
    all_types = n_classes * int(settings.get("subtypes", 1))
    channel: Any = kind.of(n_annotators, all_types, n_classes, alpha, diagonal)
    learns = isinstance(channel, OneCoinAnnotators) and "n_votes" in settings
    return channel.learning_from(float(settings["n_votes"])) if learns else channel


def _candidates_channel(n_classes: int, settings: Settings) -> Component:
    return CandidateSets.of(n_classes)


def _pack_candidates(rows: np.ndarray, n_classes: int) -> Any:
    return pack_candidates(rows, n_classes)


def _pack_votes(counts: Any, rows: np.ndarray) -> Any:
    """Votes on the given rows; none on row -1."""
    known = counts[rows[rows >= 0]]
    nothing = sparse.csr_array((int((rows < 0).sum()), counts.shape[1]))
    return Annotators.pack(sparse.vstack([known, nothing]).tocsr())


def item_prior_source(item_prior: Any, n_items: int, k: int) -> LabelSource:
    """Prior probabilities of each item as a channel.

    Raises:
        DataError: another shape, or a row without probabilities.
    """
    prior = as_floats("item_prior", item_prior)
    if prior.shape != (n_items, k):
        raise DataError(f"item_prior: expected shape {(n_items, k)}, got {prior.shape}")
    bad = np.flatnonzero(~(np.isfinite(prior) & (prior >= 0)).all(1) | ~(prior.sum(1) > 0))
    if len(bad):
        raise DataError(
            f"item_prior: row {bad[0]} is {prior[bad[0]].tolist()}; expected probabilities, of "
            "which one at least is above 0"
        )
    with np.errstate(divide="ignore"):
        logs = np.log(prior / prior.sum(1, keepdims=True))
    return evidence_source(logs)


def evidence_source(log_evidence: Float[np.ndarray, "n k"]) -> LabelSource:
    """Given log-likelihoods of each item's classes as a channel."""
    return LabelSource(_external_evidence, log_evidence, 0.0, ExternalEvidence.pack)


def _external_evidence(n_classes: int, settings: Mapping[str, Any]) -> ExternalEvidence:
    return ExternalEvidence.of(n_classes)
