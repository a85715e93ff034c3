"""What a joint model of several sources is assembled from: components, data, and their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from inference.arrays import on_device
from nbmodels.core.component import Component
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.data.labels import Classes
from nbmodels.errors import Caution, IdentifiabilityWarning
from nbmodels.estimators.sources import LearnedSource, Part
from nbmodels.fitting.cautions import INTERRUPTED
from nbmodels.fitting.label_sources import LabelSource, class_prior
from nbmodels.fitting.vote_shares import held_by


class About(NamedTuple):
    """What models of the items are assembled from, beside what the sources learned.

    Attributes:
        X: data by source.
        ids: ``(N,)`` ids of the items.
        classes: names of the classes.
        labels: label sources, by channel.
        weights: ``(N,)`` row weights.
        parameters: settings of the channels and the class shares.
        waiting: sources that models have, without a weight, until they have learned. Models with
            and without them then share their programs.
    """

    X: Mapping[str, Any]
    ids: np.ndarray
    classes: Classes
    labels: Mapping[str, LabelSource]
    weights: np.ndarray
    parameters: dict[str, Any]
    waiting: Mapping[str, LearnedSource] = {}

    def with_noise(self, form: Any) -> About:
        """The same with this form of the noise matrix."""
        return self._replace(parameters={**self.parameters, "noise": form})

    def assembled(self, learned: Mapping[str, LearnedSource]) -> tuple[dict[str, Any], Data]:
        """Model and data of the labels and of these sources."""
        n, k = len(self.ids), len(self.classes)
        learned = {**self.waiting, **learned}
        model: dict[str, Component] = {PRIOR: class_prior(k, self.beside(learned))}
        parts: dict[str, Any] = {PRIOR: None}
        for name, source in self.labels.items():
            model[name], parts[name] = source.channel(k, self.parameters), source.padded(n)
        for name, part in by_part(learned, "parts").items():
            model[name], parts[name] = part.component, part.data
        powers = item_powers(learned, self.X, self.ids, self.classes)
        return model, Data(parts, on_device(self.weights), powers)

    def beside(self, learned: Mapping[str, LearnedSource]) -> dict[str, Any]:
        """Settings beside some sources: votes hold the shares where nothing else shows these.

        Noisy labels of few items hardly show them, and a class that is lost beside spam does not
        come back in sources that learn from the others.
        """
        shown = set(self.labels) - {"labels"}
        held = None if shown else held_by([one.held for one in learned.values()])
        return {**self.parameters, "shares_held": held}


def log_jacobian_of(found: Mapping[str, Part], model: Model, n: int) -> np.ndarray:
    """``(N,)`` what the codings of the data add to the items' log-densities."""
    terms = [float(model[name].weight) * part.log_jacobian for name, part in found.items()]
    return np.zeros(n) + sum(terms)


def parts_without_weight(found: Mapping[str, Part]) -> list[str]:
    """Names of the components that were tried before, and have no weight."""
    return [name for name in found if np.all(np.asarray(found[name].component.weight) == 0)]


def left_out(model: Model, tried: Iterable[str], interrupted: bool) -> tuple[Caution, ...]:
    """A warning of each source that was left without weight, unless Ctrl-C ended that."""
    if interrupted:
        return (INTERRUPTED,)
    unused = [name for name in tried if model[name].weight == 0]
    return tuple(
        Caution(
            IdentifiabilityWarning,
            f"{name}: its data do not surely predict labels that were held out, or lead to classes "
            "with which the votes hardly agree, and have no weight",
        )
        for name in unused
    )


def cautions_of_data(learned: Mapping[str, LearnedSource]) -> tuple[Caution, ...]:
    """Warnings about the sources' data, whatever the fit, by the name of each."""
    return tuple(
        replace(caution, message=f"{name}: {caution.message}")
        for name, one in learned.items()
        for caution in one.cautions
    )


def item_powers(learned: Mapping[str, LearnedSource], X: Mapping[str, Any], *about: Any) -> Any:
    """``(N,)`` powers of the items' likelihoods, by the name of the component."""
    of = {name: one.powers for name, one in learned.items() if one.powers and name in X}
    return {name: on_device(x) for name, f in of.items() for x in f(X[name], *about).values()}


def part_name(name: str, part: str, n_parts: int) -> str:
    """Name of a component: the source's own where it has one part only."""
    return name if n_parts == 1 else f"{name}_{part}"


def by_part(learned: Mapping[str, LearnedSource], what: str) -> dict[str, Any]:
    """One attribute of all sources, by the name of the component."""
    return {
        part_name(name, part, len(one.parts)): value
        for name, one in learned.items()
        for part, value in getattr(one, what).items()
    }
