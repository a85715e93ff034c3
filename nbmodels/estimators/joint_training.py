"""Training of a joint model: its sources, its settings, and the fit of all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nbmodels.core.component import Component
from nbmodels.core.model import PRIOR, Model
from nbmodels.errors import DataError
from nbmodels.estimators.joint_assembly import (
    About,
    by_part,
    cautions_of_data,
    left_out,
    log_jacobian_of,
    parts_without_weight,
)
from nbmodels.estimators.source_selection import (
    beside_others,
    learn_graphs,
    select_features,
)
from nbmodels.estimators.sources import LearnedSource, Part
from nbmodels.fitting.cautions import INTERRUPTED
from nbmodels.fitting.collapsed_updates import given_shares
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.holdout import held_out_scores
from nbmodels.fitting.joint import Alternative, joint, select_parts
from nbmodels.fitting.label_sources import learned_priors
from nbmodels.fitting.options import FitOptions, is_auto
from nbmodels.fitting.scores import Candidate

#: Folds of the labels by which joint and cross-fitted graphs are compared.
_FOLDS = 5


@dataclass(frozen=True)
class JointTraining:
    """How a joint model of several sources is trained.

    Attributes:
        noise: form of the noise of labels, a matrix, or "auto".
        shares_known: whether the shares of the classes are given.
        options: of the fits.
    """

    noise: Any
    shares_known: bool
    options: FitOptions

    def trained(
        self, learned: dict[str, LearnedSource], about: About
    ) -> tuple[dict[str, LearnedSource], FittedModel]:
        """Select which sources are used and how, and fit all of them.

        Args:
            learned: what the sources learned, each by itself.
            about: what the model is assembled from beside that.

        Returns:
            what the sources learned from each other, and the fit; of a graph that was asked to be
            fitted jointly, the cross-fitted one is its counterpart.
        """
        options, alone = self.options, self._forms({}, {}, about)[0]
        learned, interrupted = select_features(learned, about, alone, options)
        alike, learned = learned, beside_others(learned, learned, about)
        learning = {n: one.learn_beside for n, one in learned.items() if one.learn_beside}
        if learning and not interrupted:
            found, interrupted = learn_graphs(learned, learning, about, alone, options)
            if beside_others(alike, found, about) is not alike or learned is alike:
                learned = found
            else:  # the graphs show nobody who is right
                learned, interrupted = learn_graphs(alike, learning, about, alone, options)
        crossed = {n: one.crossed for n, one in learned.items() if one.crossed}
        compared = bool(crossed) and "labels" in about.labels
        fitted = self._jointly(learned, about, interrupted, scored=compared)
        if compared and not fitted.interrupted:
            other, interrupted = learn_graphs(learned, crossed, about, alone, options)
            crossed_fit = self._jointly(other, about, interrupted, scored=True)
            fitted = replace(fitted, counterpart=crossed_fit)
            if crossed_fit.interrupted:
                fitted = replace(fitted, interrupted=True, cautions=(INTERRUPTED,))
        return learned, fitted

    def _jointly(
        self,
        learned: Mapping[str, LearnedSource],
        about: About,
        interrupted: bool,
        *,
        scored: bool = False,
    ) -> FittedModel:
        """Select what is open, and fit.

        Args:
            learned: what the sources learned.
            about: what the model is assembled from beside that.
            interrupted: whether Ctrl-C ended what went before.
            scored: whether labels are held out of the selected model, too.
        """
        found: dict[str, Part] = by_part(learned, "parts")
        forms = self._forms(found, learned, about)
        n, k = len(about.ids), len(about.classes)
        about = about.with_noise(forms[0])
        model, data = about.assembled(learned)
        edges = {name: p.edges for name, p in found.items() if p.edges is not None}
        if edges and not self.shares_known:
            model[PRIOR] = given_shares(model, data, about.parameters["class_alpha"])
        _check_settings(found, model, self.options.rule)
        options = replace(self.options, graphs=edges)
        open_ = {
            name: [_of_source(name, tried) for tried in part.alternatives]
            for name, part in found.items()
            if part.alternatives
        }
        of_labels = about.labels.get("labels")
        models: list[tuple[dict[str, Any], Model]] = [({}, model)]
        if of_labels is not None and len(forms) > 1:
            channels = [of_labels.channel(k, about.with_noise(one).parameters) for one in forms]
            models = [
                ({"noise": form}, {**model, "labels": channel})
                for form, channel in zip(forms, channels, strict=True)
            ]
        selected = select_parts(models, data, open_, options)
        model, interrupted = dict(selected.model), interrupted or selected.interrupted
        scores = None
        if scored and not interrupted:
            try:
                scores = held_out_scores(model, data, options, _FOLDS).scores
            except KeyboardInterrupt:
                interrupted = True
        pooled = tuple(name for name, p in found.items() if p.pooled)
        tried = [*open_, *parts_without_weight(found)]
        powers = {f"{n}_{w}": v for n, one in learned.items() for w, v in one.chosen.items()}
        fitted = joint(
            Candidate(model, data, (*learned_priors(model), *pooled)),
            about.classes.names,
            n,
            options,
            log_jacobian=log_jacobian_of(found, model, n),
            columns=by_part(learned, "columns"),
            units=by_part(learned, "units"),
            chosen={**powers, **selected.chosen},
            choice=selected.table,
            held_out_scores=scores,
            interrupted=interrupted,
            cautions=(*left_out(model, tried, interrupted), *cautions_of_data(learned)),
        )
        fitted = replace(fitted, noisy=max((one.noisy for one in learned.values()), default=1.0))
        alone = not any(model[name].weight for name in set(model) - {PRIOR, "labels"})
        # labels alone say nothing of their noise: it has its prior
        return replace(fitted, drawn=(fitted.fit, fitted.data), collapsed=True) if alone else fitted

    def _forms(
        self, found: Mapping[str, Part], learned: Mapping[str, LearnedSource], about: About
    ) -> list[Any]:
        """Forms of the noise that labels may have, the cautious one first.

        Beside a graph a hierarchical prior takes what the edges say for errors of one class; a
        graph that has learned from the labels has compared the forms.
        """
        if not is_auto(self.noise):
            return [about.classes.in_order("noise", self.noise)]
        if self.options.rule == "ml":  # it has no prior to learn
            return ["full"]
        for one in learned.values():
            if one.graph is not None and one.graph.informative:
                return [one.graph.noise]
        of_graphs = any(part.alternatives or part.edges is not None for part in found.values())
        return ["symmetric", "full"] if of_graphs else ["pooled"]


def _check_settings(found: Mapping[str, Part], model: Mapping[str, Component], rule: str) -> None:
    for name, part in found.items():
        if part.alternatives and "labels" not in model:
            raise DataError(
                f"{name}: settings are selected by labels held out of y, which is not given; give "
                "alpha and weight as numbers"
            )
        if part.pooled and rule == "ml":
            raise DataError(f"{name}: method 'ml' has no prior to learn; take 'map' or 'vb'")


def _of_source(name: str, tried: Alternative) -> Alternative:
    """Settings called by the source's name and their own."""
    return tried._replace(settings={f"{name}_{what}": v for what, v in tried.settings.items()})
