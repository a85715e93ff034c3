"""Which sources a joint model hears: features that predict labels, graphs that have learned.

A flag that comes last is of Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nbmodels.core.model import with_role
from nbmodels.core.roles import Emission, LabelChannel
from nbmodels.estimators.joint_assembly import About, by_part, silent_parts
from nbmodels.estimators.sources import LearnedSource
from nbmodels.estimators.table_source import no_evidence
from nbmodels.estimators.table_training import refuted
from nbmodels.fitting.beliefs import BELIEFS, Known, beliefs
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.heard_features import POWERS, HeldOut, LabelsOfUnseen, folds
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


def is_graph(learned: LearnedSource) -> bool:
    """Whether a source is a graph, in whichever way it is fitted."""
    ways = (learned.listening, learned.crossed, learned.heard)
    return any(one is not None for one in ways)


def hear_features(
    learned: dict[str, LearnedSource], about: About, noise: Any, options: FitOptions
) -> tuple[dict[str, LearnedSource], bool]:
    """Sources, of which features are heard in the way under which labels and votes are likeliest.

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
    heard = {name: one for name, one in known.items() if name not in features}
    votes = by_part(heard, "parts")
    if not features or not (votes or "labels" in about.labels):
        return learned, False
    n, k = len(about.ids), len(about.classes)
    crossed = [name for name, one in features.items() if one.cross_fitted is not None]
    about = about._replace(waiting=dict.fromkeys(crossed, no_evidence(n, k)))
    ways = [(len(POWERS) if one.open_power else 1) + 1 for one in features.values()]
    total = (1 + sum(ways)) * len(folds(about.weights))
    try:
        with options.progress.bar("testing the features", total) as bar:
            judge = LabelsOfUnseen(about.weights, [*votes, *about.labels], options, bar)
            before = judge.under(*about.assembled(heard))
            for name, one in features.items():
                open_ = one.open_power or one.cross_fitted is not None  # else as it was asked for
                for tried, found in _by_likelihood(name, one, heard, about, judge):
                    informative = judge.informative(before, found)
                    if informative is None:  # nothing is held out
                        return learned, False
                    if not informative:
                        break
                    if not open_ or _as_agreed(name, tried, heard, about, options):
                        heard[name], before = tried, found
                        break
    except KeyboardInterrupt:
        return learned, True
    silent = {name: one.to_power(0.0) for name, one in features.items() if name not in heard}
    return {**learned, **heard, **silent}, False


def _by_likelihood(
    name: str,
    one: LearnedSource,
    heard: Mapping[str, LearnedSource],
    about: About,
    judge: LabelsOfUnseen,
) -> list[tuple[LearnedSource, HeldOut]]:
    """A source of features in the ways that may be taken, the one of likeliest labels first."""

    def under(tried: LearnedSource) -> HeldOut:
        components = _components(name, tried)
        return judge.under(*about.assembled({**heard, name: tried}), components)

    if one.cross_fitted is None:
        return [_at_likeliest_power(one, under, judge)]
    crossed = one.cross_fitted(_known_beside(heard, about, judge.options))
    other = crossed, under(crossed)
    if silent_parts(one.parts):  # it is not to be fitted jointly
        return [other]
    best, found = _at_likeliest_power(one, under, judge)
    if silent_parts(crossed.parts):
        return [(best, found)]
    likelier, whole = judge.likelier(other[1], found), best.chosen["weight"] == 1
    if likelier and not (whole and _contradicted({**heard, name: best}, about, judge.options)):
        return [(best, found), other]
    return [other]


def _at_likeliest_power(
    one: LearnedSource, under: Callable[[LearnedSource], HeldOut], judge: LabelsOfUnseen
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


def _contradicted(sources: Mapping[str, LearnedSource], about: About, options: FitOptions) -> bool:
    """Whether features contradict their joint model with other sources."""
    from nbmodels.diagnostics.check import check_features

    fitted, columns = _fitted(sources, about, options), by_part(sources, "columns")
    if len(about.ids) <= FEW_ROWS and refuted(fitted, columns):
        return True
    return not check_features(fitted.fit, fitted.data, fitted.names, columns).ok


def _as_agreed(
    name: str,
    one: LearnedSource,
    heard: Mapping[str, LearnedSource],
    about: About,
    options: FitOptions,
) -> bool:
    """Whether labels and votes agree with the classes about as without a source of features.

    Where half of the annotators are spam, one class for all items with votes at random may be
    likelier than the truth, held-out votes included, and features lead there.
    """
    others = {name: part.component for name, part in by_part(heard, "parts").items()}
    if not with_role(others, LabelChannel):
        return True  # there are no votes, and labels alone agree with themselves
    found, before = (_fitted(s, about, options) for s in ({**heard, name: one}, heard))
    given = given_responsibilities(before.fit.model, before.data)
    if given is None:
        return True
    shares = np.asarray(given)[: len(about.ids)]
    if one.chosen.get("training") == "cross_fit":
        least = AGREEMENT_LEFT
    else:
        low = one.chosen.get("weight", 1.0) < _LOW
        least = AGREEMENT_LEFT_TO_LOW_POWER if low else AGREEMENT_LEFT_JOINTLY
    weights = about.weights * shares.any(1)
    return votes_agree(found.fit.resp, before.fit.resp, shares, weights, least)


def _components(name: str, one: LearnedSource) -> list[str]:
    """Names of a source's components."""
    return [*by_part({name: one}, "parts")]


def _known_beside(others: Mapping[str, LearnedSource], about: About, options: FitOptions) -> Known:
    """What a source may learn from: the labels, and what other sources say of the items.

    Raises:
        KeyboardInterrupt: the fit to these was interrupted.
    """
    known, names = dict(about.labels), about.classes.names
    if others:
        fitted = _fitted(others, about, options)
        known[BELIEFS] = beliefs(fitted.fit, fitted.data, len(about.ids), about.labels)
    return Known(known, about.beside(others), about.weights, names, options)


def _fitted(sources: Mapping[str, LearnedSource], about: About, options: FitOptions) -> FittedModel:
    """A joint fit of the labels and some sources.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    model, data = about.assembled(sources)
    candidate = Candidate(model, data, learned_priors(model))
    fitted = joint(candidate, about.classes.names, len(about.ids), options)
    if fitted.interrupted:
        raise KeyboardInterrupt
    return fitted


def hear_graphs(
    learned: Mapping[str, LearnedSource],
    listening: Mapping[str, Callable[[Known], LearnedSource]],
    about: About,
    noise: Any,
    options: FitOptions,
) -> tuple[dict[str, LearnedSource], bool]:
    """Sources, of which graphs have learned from the others.

    Args:
        learned: what each source learned.
        listening: graphs that are to learn, by name.
        about: what the model is assembled from beside that, with the noise that was asked for.
        noise: form of the noise without graphs.
        options: of the fits.
    """
    others = {name: one for name, one in learned.items() if not is_graph(one)}
    try:
        rest = _known_beside(others, about.with_noise(noise), options)
    except KeyboardInterrupt:
        return dict(learned), True
    rest = rest._replace(settings=about.parameters)
    found = {name: listen(rest) for name, listen in listening.items()}
    graphs = [one.heard.fitted for one in found.values() if one.heard is not None]
    return {**learned, **found}, any(one.interrupted for one in graphs)
