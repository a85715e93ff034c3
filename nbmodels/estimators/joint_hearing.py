"""Which sources a joint model hears: features that predict labels, graphs that have learned.

A flag that comes last is of Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nbmodels.core.model import with_role
from nbmodels.core.roles import Emission
from nbmodels.estimators.joint_assembly import About, part_name
from nbmodels.estimators.sources import LearnedSource
from nbmodels.fitting.graph_evidence import Known, beliefs
from nbmodels.fitting.heard_features import powers_of_features
from nbmodels.fitting.joint import joint
from nbmodels.fitting.label_sources import LabelSource, learned_priors
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.scores import Candidate


def is_graph(learned: LearnedSource) -> bool:
    """Whether a source is a graph, in whichever way it is fitted."""
    ways = (learned.listening, learned.crossed, learned.heard)
    return any(one is not None for one in ways)


def hear_features(
    learned: dict[str, LearnedSource], about: About, noise: Any, options: FitOptions
) -> tuple[dict[str, LearnedSource], bool]:
    """Sources, of which features have the power under which they predict labels and votes best.

    Args:
        learned: what each source learned; after Ctrl-C it is returned as it is.
        about: what the model is assembled from beside that.
        noise: form of the noise without graphs.
        options: of the fits.
    """
    known = {name: one for name, one in learned.items() if not is_graph(one)}
    model, data = about.with_noise(noise).assembled(known)
    emissions = with_role(model, Emission)
    parts = {
        name: [part_name(name, part, len(one.parts)) for part in one.parts]
        for name, one in known.items()
    }
    features = {name: own for name, own in parts.items() if set(own) <= set(emissions)}
    votes = [part for name, own in parts.items() if name not in features for part in own]
    if not features or not (votes or "labels" in model):
        return learned, False
    labels = [*votes, *(name for name in model if name in about.labels)]
    try:
        open_ = {name for name, one in known.items() if one.open_power}
        found = powers_of_features(model, data, features, open_, labels, options)
    except KeyboardInterrupt:
        return learned, True
    return {**learned, **{name: learned[name].to_power(one) for name, one in found.items()}}, False


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
    known: dict[str, LabelSource] = dict(about.labels)
    names = about.classes.names
    if others:
        model, data = about.with_noise(noise).assembled(others)
        fitted = joint(
            Candidate(model, data, learned_priors(model)), names, len(about.ids), options
        )
        if fitted.interrupted:
            return dict(learned), True
        known = {name: one for name, one in known.items() if name == "labels"}
        known["beliefs"] = beliefs(fitted.fit, fitted.data, len(about.ids))
    rest = Known(known, about.parameters, about.weights, names, options)
    found = {name: listen(rest) for name, listen in listening.items()}
    graphs = [one.heard.fitted for one in found.values() if one.heard is not None]
    return {**learned, **found}, any(one.interrupted for one in graphs)
