"""Which sources a joint model uses: features that predict labels, graphs that have learned.

A flag that comes last is of Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nbmodels.core.model import Data, with_role
from nbmodels.core.roles import Emission
from nbmodels.estimators.joint_assembly import About, by_part, parts_without_weight
from nbmodels.estimators.joint_or_cross_fitted import refuted
from nbmodels.estimators.sources import LearnedSource
from nbmodels.estimators.table_source import no_evidence
from nbmodels.fitting.beliefs import BELIEFS, Known, beliefs
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.held_out_items import POWERS, ComparedOnHeldOutItems, HeldOut, folds
from nbmodels.fitting.informative import (
    AGREEMENT_LEFT,
    AGREEMENT_LEFT_JOINTLY,
    AGREEMENT_LEFT_TO_LOW_POWER,
    votes_agree,
)
from nbmodels.fitting.joint import joint
from nbmodels.fitting.label_sources import learned_priors
from nbmodels.fitting.options import FEW_ROWS, FitOptions
from nbmodels.fitting.scores import Candidate, given_responsibilities

#: Power of a likelihood below which columns are far from their model.
_LOW = 0.5


@dataclass(frozen=True)
class _Jointly:
    """Sources that are fitted jointly with the labels: one fit, made where it is asked for.

    Attributes:
        sources: what each learned, by name.
        about: what the model is assembled from beside that.
        options: of the fit.
    """

    sources: Mapping[str, LearnedSource]
    about: About
    options: FitOptions

    def with_source(self, name: str, one: LearnedSource) -> _Jointly:
        """With one source more."""
        return _Jointly({**self.sources, name: one}, self.about, self.options)

    @cached_property
    def assembled(self) -> tuple[dict[str, Any], Data]:
        """Model and data."""
        return self.about.assembled(self.sources)

    @cached_property
    def fitted(self) -> FittedModel:
        """The joint fit.

        Raises:
            KeyboardInterrupt: it was interrupted.
        """
        model, data = self.assembled
        candidate = Candidate(model, data, learned_priors(model))
        about = self.about.classes.names, len(self.about.ids)
        fitted = joint(candidate, *about, self.options)
        if fitted.interrupted:
            raise KeyboardInterrupt
        return fitted


def is_graph(learned: LearnedSource) -> bool:
    """Whether a source is a graph, in whichever way it is fitted."""
    ways = (learned.learn_beside, learned.crossed, learned.graph)
    return any(one is not None for one in ways)


def select_features(
    learned: dict[str, LearnedSource], about: About, noise: Any, options: FitOptions
) -> tuple[dict[str, LearnedSource], bool]:
    """Sources, of which features are used in the way under which labels and votes are likeliest.

    They are fitted jointly, to a power where that is open, or cross-fitted; they have no weight
    where they predict no labels.

    Args:
        learned: what each source learned; after Ctrl-C it is returned as it is.
        about: what the model is assembled from beside that.
        noise: form of the noise without graphs.
        options: of the fits.
    """
    known = {name: one for name, one in learned.items() if not is_graph(one)}
    about = about.with_noise(noise)
    emissions = with_role(about.assembled(known)[0], Emission)
    features = {
        name: one
        for name, one in known.items()
        if one.cross_fitted is not None or set(_components(name, one)) <= set(emissions)
    }
    others = {name: one for name, one in known.items() if name not in features}
    votes = by_part(others, "parts")
    if not features or not (votes or "labels" in about.labels):
        return learned, False
    n, k = len(about.ids), len(about.classes)
    crossed = [name for name, one in features.items() if one.cross_fitted is not None]
    about = about._replace(waiting=dict.fromkeys(crossed, no_evidence(n, k)))
    ways = [(len(POWERS) if one.open_power else 1) + 1 for one in features.values()]
    total = (1 + sum(ways)) * len(folds(about.weights))
    used = _Jointly(others, about, options)
    try:
        with options.progress.bar("testing the features", total) as bar:
            judge = ComparedOnHeldOutItems(about.weights, [*votes, *about.labels], options, bar)
            before = judge.under(*used.assembled)
            for name, one in features.items():
                open_ = one.open_power or one.cross_fitted is not None  # else as it was asked for
                for tried, found in _by_likelihood(name, one, used, judge):
                    informative = judge.informative(before, found)
                    if informative is None:  # nothing is held out
                        return learned, False
                    if not informative:
                        break
                    if not open_ or not votes or _as_agreed(name, tried, used, votes):
                        used, before = tried, found
                        break
    except KeyboardInterrupt:
        return learned, True
    sources = used.sources
    unused = {name: one.to_power(0.0) for name, one in features.items() if name not in sources}
    return {**learned, **sources, **unused}, False


def _by_likelihood(
    name: str, one: LearnedSource, used: _Jointly, judge: ComparedOnHeldOutItems
) -> list[tuple[_Jointly, HeldOut]]:
    """With a source of features, in the ways that may be taken; that of likeliest labels first."""

    def under(tried: LearnedSource) -> HeldOut:
        return judge.under(*used.with_source(name, tried).assembled, _components(name, tried))

    def beside(tried: LearnedSource, found: HeldOut) -> tuple[_Jointly, HeldOut]:
        return used.with_source(name, tried), found

    if one.cross_fitted is None:
        return [beside(*_at_likeliest_power(one, under, judge))]
    crossed = one.cross_fitted(_known_beside(used))
    other = beside(crossed, under(crossed))
    if parts_without_weight(one.parts):  # it is not to be fitted jointly
        return [other]
    best, found = _at_likeliest_power(one, under, judge)
    jointly = beside(best, found)
    if parts_without_weight(crossed.parts):
        return [jointly]
    likelier, whole = judge.likelier(other[1], found), best.chosen["weight"] == 1
    if likelier and not (whole and _contradicted(jointly[0])):
        return [jointly, other]
    return [other]


def _at_likeliest_power(
    one: LearnedSource, under: Callable[[LearnedSource], HeldOut], judge: ComparedOnHeldOutItems
) -> tuple[LearnedSource, HeldOut]:
    """A source of features fitted jointly, to the power under which they are likeliest."""
    best = one.to_power(1.0)
    found = under(best)
    for power in POWERS[1:] if one.open_power else ():
        less = one.to_power(power)
        other = under(less)
        if not judge.likelier(found, other):
            break
        best, found = less, other
    return best, found


def _contradicted(together: _Jointly) -> bool:
    """Whether features contradict their joint model with other sources."""
    from nbmodels.diagnostics.check import check_features

    fitted, columns = together.fitted, by_part(together.sources, "columns")
    if len(together.about.ids) <= FEW_ROWS and refuted(fitted, columns):
        return True
    return not check_features(fitted.fit, fitted.data, fitted.names, columns).ok


def _as_agreed(name: str, tried: _Jointly, used: _Jointly, votes: Collection[str]) -> bool:
    """Whether votes agree with the classes about as without a source of features.

    Where half of the annotators are spam, one class for all items with votes at random may be
    likelier than the truth, held-out votes included, and features lead there. Labels beside
    votes need not agree: better classes contradict more of them. But where these have other names
    of the classes than votes, it is enough if both together agree.

    Args:
        name: of the source.
        tried: with it.
        used: without it.
        votes: names of the components of votes.
    """
    found, before, about = tried.fitted, used.fitted, used.about
    chosen = tried.sources[name].chosen
    if chosen.get("training") == "cross_fit":
        least = AGREEMENT_LEFT
    else:
        low = chosen.get("weight", 1.0) < _LOW
        least = AGREEMENT_LEFT_TO_LOW_POWER if low else AGREEMENT_LEFT_JOINTLY
    model = before.fit.model
    for channels in ({one: model[one] for one in votes}, model):
        given = given_responsibilities(channels, before.data)
        if given is None:
            return True
        shares = np.asarray(given)[: len(about.ids)]
        weights = about.weights * shares.any(1)
        if votes_agree(found.fit.resp, before.fit.resp, shares, weights, least):
            return True
    return False


def _components(name: str, one: LearnedSource) -> list[str]:
    """Names of a source's components."""
    return [*by_part({name: one}, "parts")]


def _known_beside(others: _Jointly) -> Known:
    """What a source may learn from: the labels, and what other sources say of the items.

    Raises:
        KeyboardInterrupt: the fit to these was interrupted.
    """
    about = others.about
    known, names = dict(about.labels), about.classes.names
    if others.sources:
        fitted = others.fitted
        known[BELIEFS] = beliefs(fitted.fit, fitted.data, len(about.ids), about.labels)
    return Known(known, about.beside(others.sources), about.weights, names, others.options)


def beside_others(
    learned: dict[str, LearnedSource], found: Mapping[str, LearnedSource], about: About
) -> dict[str, LearnedSource]:
    """Sources, of which annotators who agree by chance are not alike where others have a say.

    Features are tested beside annotators who are alike, whose items are as most voted: accuracies
    that are learned from such votes alone are those of chance. Where features or graphs count,
    accuracies are learned together with these.

    Args:
        learned: what each source learned.
        found: the same, of which graphs may have learned from the others.
        about: what the model is assembled from beside that; checked labels show who is right, too.

    Returns:
        ``learned`` itself where there are no such annotators, or nothing else counts.
    """
    by_chance = {name for name, one in learned.items() if one.beside_others is not None}
    shown = any(has_say(one) for name, one in found.items() if name not in by_chance)
    if not by_chance or not (shown or set(about.labels) - {"labels"}):
        return learned
    return {name: one.beside_others or one for name, one in learned.items()}


def has_say(learned: LearnedSource) -> bool:
    """Whether a source has a say in the classes; a graph has one until it has learned of none."""
    if learned.learn_beside is not None:
        return True
    return len(parts_without_weight(learned.parts)) < len(learned.parts)


def learn_graphs(
    learned: Mapping[str, LearnedSource],
    learning: Mapping[str, Callable[[Known], LearnedSource]],
    about: About,
    noise: Any,
    options: FitOptions,
) -> tuple[dict[str, LearnedSource], bool]:
    """Sources, of which graphs have learned from the others.

    Args:
        learned: what each source learned.
        learning: graphs that are to learn, by name.
        about: what the model is assembled from beside that, with the noise that was asked for.
        noise: form of the noise without graphs.
        options: of the fits.
    """
    others = {name: one for name, one in learned.items() if not is_graph(one)}
    try:
        rest = _known_beside(_Jointly(others, about.with_noise(noise), options))
    except KeyboardInterrupt:
        return dict(learned), True
    rest = rest._replace(settings=about.parameters)
    found = {name: learn(rest) for name, learn in learning.items()}
    graphs = [one.graph.fitted for one in found.values() if one.graph is not None]
    return {**learned, **found}, any(one.interrupted for one in graphs)
