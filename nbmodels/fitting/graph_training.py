"""Training on a user-item graph: settings, noise and users, jointly or cross-fitted."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import pandas as pd
from scipy import sparse

from inference.arrays import on_device
from nbmodels.channels.fixed import fixed_at
from nbmodels.core.component import Component, Given
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.emissions import Users
from nbmodels.errors import Caution
from nbmodels.fitting.cautions import INTERRUPTED
from nbmodels.fitting.collapsed_updates import Edges, given_shares
from nbmodels.fitting.cross_fitted import cross_fitted
from nbmodels.fitting.duplicate_users import Grouped, grouped
from nbmodels.fitting.em import Fit
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.graph_labels_as_given import JOINT_UNINFORMATIVE
from nbmodels.fitting.holdout import (
    compare_on_holdout,
    cross_fitted_posterior,
    noise_given_posterior,
)
from nbmodels.fitting.joint import joint
from nbmodels.fitting.label_sources import LabelSource, class_prior
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.scores import Candidate, Settings
from nbmodels.fitting.stacked_graph import labels_as_given

#: Name of the users' emission.
USERS = "users"

#: Settings that are compared on held-out labels: concentrations of the users, powers of the edges.
ALPHAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
WEIGHTS = (0.03, 0.1, 0.3, 1.0)

#: Slope of scores that count nothing.
_UNHEARD = 1e-6

#: The selected concentration is varied by these factors while the noise is learned, in two rounds.
_STEPS, _ROUNDS = (0.5, 1.0, 2.0), 2


@dataclass(frozen=True)
class GraphSettings:
    """How a graph is modelled.

    Attributes:
        labels: settings of the label channels and the class shares.
        alpha: concentration of the users' proportions, a number or (users, classes).
        select_alpha: whether it is selected on held-out labels.
        learn_alpha: whether it is learned by empirical Bayes.
        weight: power of the edges.
        select_weight: whether it is selected on held-out labels.
        collapsed: whether an item's own vote is left out of its users' counts.
        noise_folds: folds by which the noise is learned; 0 to learn it within the fit.
    """

    labels: Mapping[str, Any]
    alpha: Any
    select_alpha: bool
    learn_alpha: bool
    weight: float
    select_weight: bool
    collapsed: bool
    noise_folds: int


def train_joint(
    settings: GraphSettings,
    graph: sparse.csr_array,
    sources: Mapping[str, LabelSource],
    weights: np.ndarray,
    names: np.ndarray,
    options: FitOptions,
) -> FittedModel:
    """Fit users and labels in one model, the noise from predictions that have not seen the label.

    Args:
        settings: how the graph is modelled.
        graph: ``(N, users)`` numbers of edges.
        sources: label sources, by channel.
        weights: ``(N,)`` row weights.
        names: ``(K,)`` names of the classes.
        options: of the fits.
    """
    n_users, k = graph.shape[1], len(names)
    model, parts = _labels(settings, sources, len(weights), k)
    edges, multiplicity = graph, np.ones(1)
    # a concentration learned from the bound needs every user
    groups: Grouped | None = None
    if np.ndim(settings.alpha) == 0 and not settings.learn_alpha:
        groups = grouped(graph)
        edges, multiplicity = groups.edges, groups.multiplicity
        users = groups.users(float(settings.alpha), k)
    else:
        users = Users.of(n_users, k, settings.alpha)
    model[USERS] = replace(users, weight=settings.weight)
    data = Data({**parts, USERS: Users.pack(edges)}, on_device(weights))
    if settings.labels["class_prior"] is None:
        model[PRIOR] = given_shares(model, data, settings.labels["class_alpha"])
    if settings.collapsed:
        options = replace(options, graphs={USERS: Edges.of(edges, multiplicity)})
    choice: pd.DataFrame | None = None
    interrupted = False
    if settings.select_alpha or settings.select_weight:
        model, choice, interrupted = _selected(settings, model, data, options)
    cautions: tuple[Caution, ...] = (INTERRUPTED,) if interrupted else ()
    noise: tuple[Fit, Data] | None = None
    if not isinstance(model["labels"], Given):
        if _users(model).weight == 0:
            about = (graph, sources, weights, names, options, cautions or (JOINT_UNINFORMATIVE,))
            return replace(labels_as_given(settings.labels, *about, interrupted), choice=choice)
        if settings.noise_folds:
            model, noise, interrupted = _with_noise(settings, model, data, options)
            cautions = (INTERRUPTED,) if interrupted else ()
            cautions += () if noise is None else noise[0].cautions(names)
    learned = (USERS,) if settings.learn_alpha else ()
    fitted = joint(Candidate(model, data, learned), names, len(weights), options)
    fit = fitted.fit if groups is None else groups.expanded(fitted.fit, USERS)
    drawn = noise
    if noise is None and groups is not None:  # each user has draws of their own
        with computing(fitted.double):
            whole = Data({**data.parts, USERS: Users.pack(graph)}, data.weights)
            drawn = (fit, jax.tree.map(np.asarray, whole))
    concentration = np.asarray(_users(fit.model).prior.concentration, float)
    one = np.ptp(concentration) == 0
    return replace(
        fitted,
        fit=fit,
        choice=choice,
        drawn=drawn,
        collapsed=bool(options.graphs),
        interrupted=fitted.interrupted or interrupted,
        cautions=(*cautions, *fitted.cautions),
        settings={
            "alpha": float(concentration.flat[0]) if one else concentration,
            "weight": float(_users(fit.model).weight),
            "noise_fit": None if noise is None else noise[0],
        },
    )


def train_cross_fitted(
    settings: GraphSettings,
    graph: sparse.csr_array,
    sources: Mapping[str, LabelSource],
    weights: np.ndarray,
    names: np.ndarray,
    options: FitOptions,
) -> FittedModel:
    """Fit with the users' proportions learned out of fold; arguments as :func:`train_joint`."""
    n_users, k = graph.shape[1], len(names)
    model, parts = _labels(settings, sources, len(weights), k)
    data = Data({**parts, USERS: Users.pack(graph)}, on_device(weights))
    grid = {"alpha": ALPHAS[::-1]} if settings.select_alpha else {}
    build = _GraphBuilder(model, data, n_users, k, settings.alpha)
    fitted = cross_fitted(build, (USERS,), names, len(weights), options, grid=grid, rounds=0)
    alpha = fitted.settings.get("alpha", settings.alpha)
    slope = float(np.exp(np.asarray(fitted.fit.point_of(PRIOR))[0]))
    if slope < _UNHEARD:
        about = (graph, sources, weights, names, options, fitted.cautions)
        floor = labels_as_given(settings.labels, *about, fitted.interrupted)
        return replace(floor, choice=fitted.choice)
    return replace(fitted, settings={"alpha": alpha, "weight": slope})


@dataclass(frozen=True)
class _GraphBuilder:
    """Models of a graph under given settings."""

    model: Model
    data: Data
    n_users: int
    n_classes: int
    alpha: Any

    def __call__(self, settings: Settings) -> Candidate:
        users = Users.of(self.n_users, self.n_classes, settings.get("alpha", self.alpha))
        return Candidate({**self.model, USERS: users}, self.data)


def alternatives(
    settings: GraphSettings, users: Users
) -> tuple[list[tuple[float | None, float]], list[Users]]:
    """Settings to compare, the first without the edges, and ``users`` under each."""
    alphas = ALPHAS if settings.select_alpha else (None,)
    powers = WEIGHTS if settings.select_weight else (settings.weight,)
    tried = [(None, 0.0), *itertools.product(alphas, powers)]
    found = []
    for alpha, weight in tried:
        one = users
        if alpha is not None:
            n_users, k = users.prior.concentration.shape
            one = replace(users, prior=Users.of(n_users, k, alpha).prior)
        found.append(replace(one, weight=weight))
    return tried, found


def _labels(
    settings: GraphSettings, sources: Mapping[str, LabelSource], n_items: int, k: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Class prior and channels, and their data."""
    model: dict[str, Component] = {PRIOR: class_prior(k, settings.labels)}
    parts: dict[str, Any] = {PRIOR: None}
    for name, source in sources.items():
        model[name], parts[name] = source.channel(k, settings.labels), source.padded(n_items)
    return model, parts


def _users(model: Model) -> Any:
    return model[USERS]


def _selected(
    settings: GraphSettings, model: dict[str, Any], data: Data, options: FitOptions
) -> tuple[dict[str, Any], pd.DataFrame | None, bool]:
    """The model with the alpha and weight under which held-out labels are likeliest.

    After Ctrl-C, whose flag comes last, it is the cautious one, without edges.
    """
    tried, found = alternatives(settings, _users(model))
    candidates = [{**model, USERS: users} for users in found]
    try:
        compared = compare_on_holdout(candidates, [data] * len(candidates), options)
    except KeyboardInterrupt:
        return candidates[0], None, True
    table = pd.DataFrame(tried, columns=["alpha", "weight"]).assign(
        log_likelihood=compared.log_likelihood,
        gain=compared.gain,
        standard_error=compared.standard_error,
        identified=compared.identified,
    )
    return candidates[compared.best], table, False


def _with_noise(
    settings: GraphSettings, model: dict[str, Any], data: Data, options: FitOptions
) -> tuple[dict[str, Any], tuple[Fit, Data] | None, bool]:
    """The model with the noise, and an alpha near the selected one, that suit unseen labels.

    In two rounds: what is found of the noise is used by the second round's fits. After Ctrl-C,
    whose flag comes last, it is that of the last whole round, if there was one.
    """
    channel = model["labels"]
    steps = _STEPS if settings.select_alpha else (1.0,)
    total = _ROUNDS * len(_STEPS) * settings.noise_folds
    noise: tuple[Fit, Data] | None = None
    try:
        with options.progress.bar("learning the noise", total) as bar:
            for _ in range(_ROUNDS):
                found = []
                for step in steps:
                    users = _users(model)
                    prior = replace(users.prior, concentration=step * users.prior.concentration)
                    tried = {**model, USERS: replace(users, prior=prior)}
                    # the same folds for every candidate
                    resp = cross_fitted_posterior(tried, data, options, settings.noise_folds, bar)
                    alone, about = noise_given_posterior(
                        {**tried, "labels": channel}, data, resp, options
                    )
                    score = float(data.weights @ alone.log_likelihood)
                    found.append(((not alone.confused, score), alone, about, tried))
                # a candidate whose classes are not identified is passed over
                _, alone, about, model = max(found, key=lambda one: one[0])
                fixed = fixed_at(alone.transitions["labels"])
                model, noise = {**model, "labels": fixed}, (alone, jax.tree.map(np.asarray, about))
    except KeyboardInterrupt:
        return model, noise, True
    return model, noise, False
