"""Training on a graph by an average of neighbour models, weighted by held-out noisy labels.

Candidates are neighbours' scores under several settings (:mod:`nbmodels.fitting.graph_search`).
Predictions are averaged by stacking weights (:mod:`nbmodels.fitting.stacking`), and the noise is
fitted once more to the average. Where labels of items of few users are wrong more often than
others, or less (:mod:`nbmodels.fitting.errors_by_size`), all of that is done once more under
rates of their own. Labels as they are, and what neighbours' votes say of new items, are the floor:
where the average does not predict labels better than chance they are the answer, and where it may
do harm labels are changed with caution (:mod:`nbmodels.fitting.cautious_labels`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import sparse

from inference.arrays import floating, on_device
from nbmodels.core.component import Given
from nbmodels.emissions import Users
from nbmodels.errors import Caution
from nbmodels.fitting.cautions import INTERRUPTED
from nbmodels.fitting.cautious_labels import (
    cautious,
    expected_wrong,
    hardly_surer,
    posterior_of_levels,
)
from nbmodels.fitting.coinciding_users import coinciding_users
from nbmodels.fitting.em import Fit
from nbmodels.fitting.errors_by_size import ErrorRates, rates_by_size
from nbmodels.fitting.fitted_graph import FittedGraph
from nbmodels.fitting.fitted_model import Drawn, FittedModel, fitted_model
from nbmodels.fitting.graph_draws import alternatives, by_halves
from nbmodels.fitting.graph_folds import graph_folds
from nbmodels.fitting.graph_forms import (
    Form,
    credible,
    errors_of_form,
    form_weights,
    preferred_form,
    undecided,
)
from nbmodels.fitting.graph_labels_as_given import (
    UNINFORMATIVE,
    as_given,
    noise_from_prior,
    without_changes,
)
from nbmodels.fitting.graph_search import (
    GraphSearch,
    label_candidate,
    labelled_graph,
    padded,
)
from nbmodels.fitting.holdout import compare_scores
from nbmodels.fitting.label_sources import LabelSource, noise_channel
from nbmodels.fitting.neighbours import LOG, Graph
from nbmodels.fitting.options import FitOptions, is_auto
from nbmodels.fitting.propagation import (
    LabelledGraph,
    calibrated_logs,
    calibration,
    normalised,
    own_labels,
)
from nbmodels.fitting.scores import Candidate
from nbmodels.fitting.split_users import Halves, votes_of_halves

_N_FOLDS = 10

#: Standard errors by which labels must be likelier than without the graph.
_INFORMATIVE = 2.0

#: Log Bayes factor by cross-validation that needs no standard errors: 100 to 1, decisive on the
#: scale of Jeffreys (1961). A few dozen items have standard errors that no graph would exceed.
_DECISIVE = float(np.log(100))


def train_stacked(
    settings: Mapping[str, Any],
    alpha: Any,
    graph: sparse.csr_array,
    sources: Mapping[str, LabelSource],
    weights: np.ndarray,
    names: np.ndarray,
    options: FitOptions,
    readings: Sequence[str | None] = (None,),
) -> FittedModel:
    """Fit an average of neighbour models.

    Args:
        settings: of the label channels and the class shares; ``noise`` may be ``"auto"``.
        alpha: concentration of the users' proportions, or None for several.
        graph: ``(N, users)`` numbers of edges.
        sources: label sources, by channel.
        weights: ``(N,)`` row weights.
        names: ``(K,)`` names of the classes.
        options: of the fits.
        readings: of repeated edges, of :data:`nbmodels.fitting.neighbours.READINGS`; (None,) where
            each counts as it stands.
    """
    search = GraphSearch(settings, sources, weights, len(names), graph, readings, alpha, options)
    first = search.simplest
    fold = graph_folds(graph, first.resp, weights, _N_FOLDS)
    halves = _halves(first, readings, len(names))
    found, interrupted = search.forms(fold, halves)
    cautions = (INTERRUPTED,) if interrupted else ()
    if not found:
        return _as_given(first, settings, names, options, cautions, interrupted)
    chosen = preferred_form(found)
    errors = None
    if halves is not None and not interrupted and credible(chosen):
        errors = errors_of_form(chosen, halves.codes)
    if errors is not None:
        search = search.with_errors(errors)
        again, interrupted = search.forms(fold, halves)
        found = again or found
        chosen = preferred_form(found)
        cautions = (INTERRUPTED,) if interrupted else ()
    rows = first.weights * first.resp.any(1)
    null = _without_graph(chosen.about, options)
    compared = [np.asarray(null.log_likelihood)[: len(weights)], chosen.held_out]
    gain = float(rows @ (compared[1] - compared[0]))
    surely = compare_scores(compared, [True, True], rows, _INFORMATIVE).best > 0
    informative = surely or gain >= _DECISIVE
    table = _table(found, chosen, null, rows)
    if not informative or not credible(chosen):
        cautions = cautions or (UNINFORMATIVE,)
        fitted = _as_given(chosen.about, settings, names, options, cautions, interrupted)
        evidence = calibrated_logs(chosen.fit, chosen.mixture.whole())
        ranked = without_changes(fitted.corrected, evidence)
        return replace(fitted, corrected=ranked, choice=table)
    shares = form_weights(chosen, found)
    others: tuple[Drawn, ...] = ()
    if is_auto(settings["noise"]) and len(names) > 1 and not interrupted:
        full = next((one.about for one in found if one.noise == "full"), None)
        try:
            about = full or search.labelled("full")
            others = alternatives(chosen, about, full is not None, settings, options)
        except KeyboardInterrupt:
            interrupted, cautions = True, (INTERRUPTED,)
    cautions = (*cautions, *undecided(chosen, found, shares))
    fitted = _informative(
        chosen, found, shares, halves, settings, names, options, cautions, interrupted
    )
    noise = by_halves(others, halves, settings)
    return replace(fitted, choice=table, alternatives=others, by_halves=noise)


def _without_graph(about: LabelledGraph, options: FitOptions) -> Fit:
    (fit,) = about.calibrated([np.zeros_like(about.resp)], options)
    return fit


def _informative(
    chosen: Form,
    found: Sequence[Form],
    shares: Sequence[float],
    halves: Halves | None,
    settings: Mapping[str, Any],
    names: np.ndarray,
    options: FitOptions,
    cautions: tuple[Caution, ...],
    interrupted: bool,
) -> FittedGraph:
    about, fit = chosen.about, chosen.fit
    n_rows = len(about.weights)
    held_out = chosen.mixture.held_out()
    own = own_labels(fit, about.labels)[:n_rows]
    wrong, errors = None, about.errors
    rates: ErrorRates | None = None
    degree = np.diff(about.graph.edges.indptr)
    if halves is not None:
        codes = halves.codes
        groups = [] if errors is None else np.eye(errors.group.max() + 1)[errors.group].T
        of_groups = np.zeros(len(groups))
        prior = (float(settings["noise_alpha"]), float(settings["noise_diagonal"]))
        corrected, wrong = np.zeros((n_rows, len(names))), 0.0
        apart: tuple[Caution, ...] = ()
        for one, share in zip(found, shares, strict=True):
            if share > 0 and one.levels is not None:
                scores = one.mixture.held_out(), _midway(one)
                weighed = posterior_of_levels(one.about, one.levels, *scores, prior, options)
                corrected += share * cautious(weighed.both, codes, about.weights)
                wrong += share * expected_wrong(weighed.both, codes, about.weights)
                of_groups += share * np.array(
                    [expected_wrong(weighed.both, codes, about.weights * own) for own in groups]
                )
                if one is chosen:
                    apart = weighed.cautions()
        surer = () if apart else hardly_surer(corrected, codes, about.weights, wrong)
        cautions = (*cautions, *apart, *surer)
        if errors is not None:
            rates = rates_by_size(errors, degree, about.weights, of_groups, "items", "users")
            cautions = (*cautions, rates.finding())
    else:
        corrected = normalised(calibrated_logs(fit, _midway(chosen)) + own)
    cautions = (*cautions, *coinciding_users(about.graph.edges, corrected, about.weights))
    counts = about.graph.counts(corrected * about.weights[:, None])
    best = chosen.mixture.parts[int(np.argmax(chosen.mixture.weights))]
    alphas = [one.kind.describe()["alpha"] for one in chosen.mixture.parts]
    concentration = float(np.nanmean(alphas)) if np.isfinite(alphas).any() else 1.0
    # in host memory, where an addition is no program
    users = jax.tree.map(np.asarray, Users.of(counts.shape[0], len(names), concentration))
    params = users.update(counts.astype(floating()), fit.rule)
    whole_fit = replace(
        fit,
        # at the point, at which checks take the labels out again
        resp=normalised(calibrated_logs(fit, held_out) + own),
        model={**fit.model, "users": users},
        params={**fit.params, "users": jax.tree.map(np.asarray, params)},
    )
    data = about.scored(held_out).data
    plain = fitted_model(
        whole_fit,
        data,
        names,
        n_rows,
        scored=("users",),
        settings={
            "alpha": concentration,
            "weight": float(np.exp(calibration(fit)[0])),
            "noise": chosen.noise,
        },
        chosen={"noise": chosen.noise, **best.describe()},
        held_out_scores=chosen.held_out,
        interrupted=interrupted,
        cautions=cautions,
    )
    plain = replace(plain, error_rates=rates)
    return FittedGraph(
        **_attributes(plain),
        neighbours=chosen.mixture,
        corrected=corrected,
        counts=counts,
        wrong=wrong,
    )


def _halves(about: LabelledGraph, readings: Sequence[str | None], n_classes: int) -> Halves | None:
    """Labels and the votes of two halves of the users; None where no noise is learned.

    Where repeated edges may count in several ways, they count as their logarithms do, the same for
    all forms of the noise, which are compared by this.
    """
    channel = about.labels.model.get("labels")
    if channel is None or isinstance(channel, Given):
        return None
    n_rows = len(about.weights)
    codes = np.asarray(about.labels.data.parts["labels"])[:n_rows]
    read = Graph.read(about.graph.edges, LOG if len(readings) > 1 else readings[0])
    votes = votes_of_halves(read, about.resp, about.weights, about.shares)
    return Halves(votes, np.where(codes < n_classes, codes, -1), about.weights)


def _midway(one: Form) -> Float[np.ndarray, "n k"]:
    """Predictions from all labels know more, but an item's own label has come back to them."""
    return (one.mixture.held_out() + one.mixture.whole()) / 2


def labels_as_given(
    settings: Mapping[str, Any],
    graph: sparse.csr_array,
    sources: Mapping[str, LabelSource],
    weights: np.ndarray,
    names: np.ndarray,
    options: FitOptions,
    cautions: tuple[Caution, ...],
    interrupted: bool,
) -> FittedGraph:
    """Labels as they are, for other training on a graph whose edges predict no labels.

    Args:
        settings, graph, sources, weights, names, options: as of :func:`train_stacked`.
        cautions: warnings.
        interrupted: whether Ctrl-C ended the selection.
    """
    data = padded(sources, weights)
    labels = label_candidate(settings, settings["noise"], sources, data, len(names))
    about = labelled_graph(settings, labels, Graph(graph), weights)
    return _as_given(about, settings, names, options, cautions, interrupted)


def _as_given(
    about: LabelledGraph,
    settings: Mapping[str, Any],
    names: np.ndarray,
    options: FitOptions,
    cautions: tuple[Caution, ...],
    interrupted: bool,
) -> FittedGraph:
    """Labels as they are, plain neighbours' votes for new items, the noise of its prior."""
    n_rows, k = len(about.weights), len(names)
    fit = as_given(about.labels, about.shares, options)
    counts = about.graph.counts(about.resp * about.weights[:, None])
    users = Users.of(counts.shape[0], len(names))
    params = users.update(on_device(counts, floating()), fit.rule)
    whole = replace(
        fit,
        model={**fit.model, "users": jax.tree.map(np.asarray, replace(users, weight=0.0))},
        params={**fit.params, "users": jax.tree.map(np.asarray, params)},
    )
    plain = fitted_model(
        whole,
        about.labels.data,
        names,
        n_rows,
        scored=("users",),
        settings={"alpha": 1.0, "weight": 0.0, "noise": settings["noise"]},
        chosen={"rounds": 0},
        drawn=noise_from_prior(_with_open_form(about.labels, settings, k), about.shares, fit),
        interrupted=interrupted,
        cautions=cautions,
    )
    found = FittedGraph(**_attributes(plain), counts=counts)
    # items without a label are new items
    labelled = np.reshape(about.resp.any(1), (-1, 1))
    votes = found.predict_new(about.graph.edges)
    return replace(found, corrected=np.where(labelled, plain.label_posterior, votes))


def _with_open_form(labels: Candidate, settings: Mapping[str, Any], k: int) -> Candidate:
    """Where the form of the noise was to be found out, a matrix of any form."""
    channel = labels.model.get("labels")
    if not is_auto(settings["noise"]) or channel is None or isinstance(channel, Given):
        return labels
    full = noise_channel(k, {**settings, "noise": "full"})
    return labels._replace(model={**labels.model, "labels": full})


def _attributes(plain: FittedModel) -> dict[str, Any]:
    return {name: getattr(plain, name) for name in FittedModel.__dataclass_fields__}


def _table(
    found: Sequence[Form], chosen: Form, null: Fit, weights: Float[np.ndarray, " n"]
) -> pd.DataFrame:
    """All that was compared, with the weights in the average."""
    n_rows = len(weights)
    rows: list[dict[str, Any]] = [
        {"noise": chosen.noise, "evidence": "none", "start": "none", "rounds": 0}
    ]
    fits, known, share = [null], [True], [0.0]
    for one in found:
        for candidate, weight in zip(one.candidates, one.weights, strict=True):
            rows.append({"noise": one.noise, **candidate.describe()})
            fits.append(candidate.fit)
            known.append(candidate.identified)
            share.append(weight if one is chosen else 0.0)
    tables = [np.asarray(fit.log_likelihood)[:n_rows] for fit in fits]
    compared = compare_scores(tables, known, weights)
    return pd.DataFrame(rows).assign(
        weight=share,
        log_likelihood=compared.log_likelihood,
        gain=compared.gain,
        standard_error=compared.standard_error,
        identified=compared.identified,
        chosen=np.asarray(share) > 0,
    )
