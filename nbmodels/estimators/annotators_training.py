"""Training on votes: who copies, what matrices are drawn to, and how far votes are independent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from inference.arrays import on_device
from inference.products import MOST
from nbmodels.channels import Annotators, CandidateSets
from nbmodels.channels.candidates import pack_candidates
from nbmodels.channels.ordered_annotators import POINTS
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.validation import pad_rows, padded_annotators, padded_length
from nbmodels.estimators.votes_source import VOTES
from nbmodels.fitting.annotator_fits import (
    ALIKE,
    better_held_out,
    first_estimate,
    tempered,
    without_padding,
)
from nbmodels.fitting.copied_votes import MOST_UNEVEN, find_copies, uneven_pairs
from nbmodels.fitting.copies import Copies, no_copies
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.joint import joint
from nbmodels.fitting.label_sources import annotators
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.ordered_evidence import MOST_VOTES, OrderedGain, ordered_gain, seem_ordered
from nbmodels.fitting.scores import Candidate
from nbmodels.fitting.subtypes import Subtypes
from nbmodels.fitting.uneven_pairs import UnevenPairs
from nbmodels.fitting.vote_agreement import LEAST_AGREEMENT, beyond_chance
from nbmodels.fitting.vote_dependence import VoteTable, annotator_model, fitted_to
from nbmodels.fitting.vote_shares import (
    LEAST_SHOWN,
    SharesHeld,
    all_alike,
    held_fast,
    held_near,
    least_kept,
    shown_share,
    shown_votes,
)

#: Gain in nats per row that ends a fit of graders which is compared alone.
_ROUGHLY = 1e-3


class TrainedVotes(NamedTuple):
    """A fit to votes, and what it found of them.

    Attributes:
        fitted: the fit.
        votes: by what they count for.
        copies: who copies.
        held: by what votes hold the class shares, or None.
        shown: ``(W,)`` number of each worker's votes of which it is shown whether they are right.
        graders: held-out votes under graders on an ordered scale, or None where these were not
            compared.
    """

    fitted: FittedModel
    votes: VoteTable
    copies: Copies
    held: SharesHeld | None
    shown: Float[np.ndarray, " w"]
    graders: OrderedGain | None = None


#: Share of a function's votes, in units of an even one, up to which it does not name a class.
_NAMED = 0.03


@dataclass(frozen=True)
class VotesTraining:
    """How a model of votes is trained.

    Attributes:
        cast: votes as codes.
        n_workers: W.
        names: ``(K,)`` names of the classes.
        types: sub-types of the classes.
        checked: ``(N,)`` codes of checked classes, -1 where unchecked; None without any.
        parameters: settings of the channel and of the class shares.
        options: of the fits.
        functions: whether votes are outputs of functions, which abstain.
        dependence: correlation of votes given the class, or how it is learned.
        pooling_open: whether the form of the matrices is selected.
        sole: whether votes are the only evidence; beside other evidence they may show who is right
            though they agree by chance.
        ordered: whether labels are grades of an ordered scale; ``types`` are then the scores
            within each class.
        rank: ``(K,)`` place of each class on a scale, by which the fit is compared with graders;
            None for no comparison.
    """

    cast: VoteTable
    n_workers: int
    names: np.ndarray
    types: Subtypes
    checked: Int[np.ndarray, " n"] | None
    parameters: Mapping[str, Any]
    options: FitOptions
    functions: bool
    dependence: float | Literal["auto", "shown"]
    pooling_open: bool
    sole: bool = True
    ordered: bool = False
    rank: Int[np.ndarray, " k"] | None = None

    def trained(self) -> TrainedVotes:
        """Find who copies, select what matrices are drawn to, fit, and temper the answer."""
        shown, pairs = self._shown
        votes, pooling, paper = self.votes, self.parameters["pooling"], self.options.rule == "ml"
        hidden = shown < LEAST_SHOWN or pairs.unevenness > MOST_UNEVEN or self._by_chance
        if hidden and self.pooling_open and not (self.functions or self.ordered or paper):
            pooling = ALIKE
        known = self.parameters["class_prior"] is not None or self.checked is not None
        open_ = self._as_annotators and not (self.ordered or known or paper)
        # one matrix of all annotators leaves items as voted, and no class is lost
        shown_by = votes.without(self._name_one)
        held = held_near(shown_by, len(self.names)) if open_ and pooling != ALIKE else None
        found = self._fitted(pooling, held)
        if pooling == "shared":
            pooling, found = better_held_out(found, self._fitted("none", held), votes)
        if open_:
            information = annotator_model(found.fit).information()[shown_by.worker]
            informative = replace(shown_by, weights=shown_by.weight * np.sqrt(information))
            fast = held_fast(self.types.summed(found.class_shares), informative)
            if fast is not None and not found.interrupted:
                held, found = fast, self._fitted(pooling, fast)
        graders = None if found.interrupted else self._graders(found)
        of_workers = shown_votes(votes, self.n_workers, self._is_checked) * (pooling != ALIKE)
        if not found.interrupted and not (paper and self.dependence == "auto"):
            # by one vote of a doubtful function, an item is rather of a more frequent class; and
            # grades may lie between the votes, or beyond those of strict annotators
            supported = not (self.functions or self.ordered)
            fixed = self._is_checked, supported, pairs.log_factor, self._as_annotators
            seen = {
                "copying": self.copies.share,
                "shown": shown,
                "uneven": pairs.unevenness,
                "agreement": self._agreement,
            }
            # where thresholds of all graders move together, no prior holds the shares
            shares = self.types.summed(found.class_shares)
            kept = least_kept(shares, votes) if self.ordered else np.nan
            how: dict[str, Any] = {"pooling": pooling, "kept": kept, **seen}
            found = tempered(found, votes, self.dependence, *fixed, **how)
        return TrainedVotes(found, votes, self.copies, held, of_workers, graders)

    def _graders(self, found: FittedModel) -> OrderedGain | None:
        """Held-out votes under graders; None where order is not known or not to be seen."""
        if self.rank is None or self.copies.found or not seem_ordered(self.votes, self.rank):
            return None
        some, items = self.votes.thinned(MOST_VOTES).of_items()
        workers, worker = np.unique(some.worker, return_inverse=True)
        order = np.argsort(self.rank)
        graded = replace(
            self,
            cast=replace(some, worker=worker, label=self.rank[some.label]),
            # annotators without votes say nothing, and similar numbers compile once
            n_workers=padded_annotators(len(workers), POINTS * len(order) ** 2),
            names=self.names[order],
            types=Subtypes(len(order), POINTS),
            checked=None,
            parameters={**self.parameters, "class_prior": None},
            options=replace(self.options.without_restarts(), tol=_ROUGHLY),
            dependence=0.0,
            ordered=True,
        )
        fitted = graded._fitted("ordered", None)
        if fitted.interrupted:
            return None
        free = fitted_to(found.fit, self.votes)
        free = replace(free, pseudo=free.pseudo[workers], resp=free.resp[items])
        return ordered_gain(free, fitted.fit, replace(some, worker=worker), self.rank, VOTES)

    @cached_property
    def copies(self) -> Copies:
        """Who copies; nobody where votes are taken for independent."""
        if self._independent:
            return no_copies(self.n_workers)
        return find_copies(self.cast, self.n_workers, len(self.names), self.functions)

    @cached_property
    def votes(self) -> VoteTable:
        """The votes by what they count for."""
        return weighted(self.cast, self.copies, self.functions)

    @property
    def _independent(self) -> bool:
        return self.options.rule == "ml" or self.dependence == 0

    @property
    def _shown(self) -> tuple[float, UnevenPairs]:
        """Share of the votes of which it is shown whether they are right, and uneven pairs."""
        none = UnevenPairs(np.zeros(0), np.zeros(0))
        if self.functions and not self._as_annotators:
            return 1.0, none
        if self.functions:
            some = self.cast.without(self._name_one)
            return 1.0, uneven_pairs(some, self.copies, len(self.names))
        shown = shown_share(self.votes, self.n_workers, self._is_checked)
        if self._independent:
            return shown, none
        return shown, uneven_pairs(self.cast, self.copies, len(self.names))

    @cached_property
    def _agreement(self) -> float:
        """Standard errors by which votes agree beyond chance; NaN of functions.

        Functions that name one class each agree by what they cover.
        """
        if self.functions:
            return np.nan
        return beyond_chance(self.votes, self.n_workers, len(self.names))

    @property
    def _by_chance(self) -> bool:
        """Whether nothing shows who is right: votes, alone, agree no more often than by chance."""
        return self.sole and self.checked is None and self._agreement < LEAST_AGREEMENT

    @property
    def _is_checked(self) -> np.ndarray:
        if self.checked is None:
            return np.zeros(self.cast.n_items, bool)
        return self.checked >= 0

    @property
    def _length(self) -> int:
        return padded_length(self.cast.n_items, self.types.number)

    @property
    def _room(self) -> int | None:
        """Number of workers that a fit is compiled for; None for their own, as of many votes."""
        if self.functions or self.ordered or len(self.cast.row) > MOST:
            return None
        return padded_annotators(self.n_workers, len(self.names) * self.types.number)

    @cached_property
    def _checks(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Channel of the checked classes, and its data."""
        if self.checked is None:
            return {}, {}
        allowed = pad_rows(self.types.allowed(self.checked), self._length, True)
        packed = pack_candidates(allowed, self.types.number)
        return {"trusted": CandidateSets.of(self.types.number)}, {"trusted": packed}

    @cached_property
    def _data(self) -> Data:
        # functions that copy have a power of their own instead: they abstain, too
        packed = replace(self.cast if self.functions else self.votes, n_items=self._length)
        counts = packed.counted(self._room or self.n_workers, len(self.names))
        parts = {PRIOR: None, **self._checks[1], VOTES: Annotators.pack(counts)}
        return Data(parts, on_device(pad_rows(np.ones(self.cast.n_items), self._length)))

    def _fitted(self, pooling: str, held: SharesHeld | None) -> FittedModel:
        """A fit whose matrices are drawn to something, the shares of the classes held or free."""
        options, types = self.options, self.types
        own = {"pooling": pooling, "subtypes": types.each, "n_votes": self.votes.weight.sum()}
        settings = {**self.parameters, **own}
        channel: Any = annotators(self.n_workers, len(self.names), settings)
        if pooling == "functions":
            channel = replace(channel, power=on_device(self.copies.powers()))
        elif pooling == ALIKE:
            channel = all_alike(channel, self.votes, types.each)
        # maximum likelihood has no prior to learn
        bare = pooling in ("none", ALIKE) or (pooling == "functions" and options.rule == "ml")
        learned = () if bare else (VOTES,)
        if self._room is not None:
            channel = channel.padded(self._room)
        prior = types.prior({**self.parameters, "shares_held": held})
        model = {**self._checks[0], PRIOR: prior, VOTES: channel}
        candidate = Candidate(model, self._data, learned)
        about = types.names(self.names), self.cast.n_items, options
        if pooling == "functions" and types.each == 1:
            fitted = self._likeliest(candidate, about)
        else:
            begin = None if self.ordered else types.start(candidate, options.rule, options.seed)
            fitted = joint(candidate, *about, start=begin)
        return fitted if self._room is None else without_padding(fitted, VOTES)

    @cached_property
    def _name_one(self) -> Bool[np.ndarray, " w"]:
        """``(W,)`` functions that do not name every class; none of annotators.

        Their votes say little of the class shares, and of others' errors: they name one class
        seldom or often.
        """
        if not self.functions:
            return np.zeros(self.n_workers, bool)
        counts = np.zeros((self.n_workers, len(self.names)))
        np.add.at(counts, (self.cast.worker, self.cast.label), 1)
        least = _NAMED * counts.mean(1, keepdims=True)
        return np.asarray((counts <= least).any(1))

    @property
    def _as_annotators(self) -> bool:
        """Whether most votes are of such as name every class, as annotators do."""
        return not self.functions or bool(self._name_one[self.cast.worker].mean() < 0.5)

    def _likeliest(self, candidate: Candidate, about: tuple[Any, ...]) -> FittedModel:
        """Functions fitted from each first estimate: the likelier; after Ctrl-C what there is."""
        found: FittedModel | None = None
        for shares in self._first_shares:
            one, begin = self._begun(candidate, shares)
            fitted = joint(one, *about, start=begin)
            if fitted.interrupted:
                return fitted if found is None else replace(found, interrupted=True)
            if found is None or fitted.fit.objective > found.fit.objective:
                found = fitted
        assert found is not None
        return found

    def _begun(
        self, candidate: Candidate, shares: Float[np.ndarray, " k"] | None
    ) -> tuple[Candidate, Any]:
        """Functions whose prior is estimated under some class shares, and where a fit begins."""
        held = pad_rows(self._is_checked, self._length)
        return first_estimate(candidate, VOTES, held, self.options.rule, shares)

    @property
    def _first_shares(self) -> list[Float[np.ndarray, " k"] | None]:
        """Class shares of the first estimates of functions: known ones, or learned and as voted.

        One accuracy of each function may do without a class on whose items functions differ, as in
        the middle of a scale, and no fit that begins so finds it. Functions that name a frequent
        class seldom need shares that are learned.
        """
        known = self.parameters["class_prior"]
        if known is not None:
            return [known]
        voted = np.bincount(self.cast.label, minlength=len(self.names)) + 1.0
        return [None, voted / voted.sum()]


def weighted(votes: VoteTable, copies: Copies, functions: bool) -> VoteTable:
    """The votes by what they count for where some are copies; those of functions by a power."""
    if not copies.found:
        return votes
    weights = copies.powers()[votes.worker] if functions else copies.weights(votes)
    return replace(votes, weights=weights)
