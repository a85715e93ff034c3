"""Training on a graph by an average of neighbour models, weighted by held-out noisy labels.

Candidates are users' evidence under several concentrations and shares of neighbours' votes under
several powers, from given labels and after some rounds of propagation
(:mod:`nbmodels.fitting.propagation`), each calibrated with the noise; and each under several
readings of repeated edges, where there are any: a user's hundredth visit to an item may say as much
as the first, or nothing, and under counts of long tails a few pairs outvote all others. Predictions
are averaged by stacking weights (:mod:`nbmodels.fitting.stacking`), and the noise is fitted once
more to the average. Labels as they are, and what neighbours' votes say of new items, are the floor:
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
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.validation import pad_rows, padded_length
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
from nbmodels.fitting.collapsed_updates import given_shares
from nbmodels.fitting.em import Fit
from nbmodels.fitting.fitted_graph import FittedGraph
from nbmodels.fitting.fitted_model import Drawn, FittedModel, fitted_model
from nbmodels.fitting.graph_draws import alternatives, by_halves
from nbmodels.fitting.graph_folds import graph_folds
from nbmodels.fitting.graph_forms import (
    Form,
    credible,
    form_weights,
    forms_to_try,
    preferred_form,
    stacked,
    undecided,
)
from nbmodels.fitting.graph_labels_as_given import (
    UNINFORMATIVE,
    as_given,
    noise_from_prior,
    without_changes,
)
from nbmodels.fitting.holdout import compare_scores
from nbmodels.fitting.label_sources import LabelSource, class_prior, noise_channel
from nbmodels.fitting.neighbours import LOG, Evidence, Graph, NeighbourVotes, UserEvidence
from nbmodels.fitting.options import FitOptions, is_auto
from nbmodels.fitting.propagation import (
    LabelledGraph,
    Propagated,
    calibrated_logs,
    calibration,
    normalised,
    own_labels,
    propagated,
)
from nbmodels.fitting.scores import Candidate, label_responsibilities
from nbmodels.fitting.split_users import Halves, votes_of_halves

#: Concentrations of the users, and powers of the number of neighbours by which votes are divided.
CONCENTRATIONS = (0.2, 1.0, 5.0)
POWERS = (0.0, 0.5, 1.0)

_N_FOLDS, _MOST_ROUNDS = 10, 6

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
    data = _padded(sources, weights)
    kinds = _kinds(alpha)

    def candidate(form: Any) -> Candidate:
        return _candidate(settings, form, sources, data, len(names))

    # a known matrix is a form, too, and is no key of a dict
    form = "symmetric" if is_auto(settings["noise"]) else settings["noise"]
    first = _labelled(settings, candidate(form), Graph(graph), weights)
    rows = first.weights * first.resp.any(1)
    simplest, *larger = forms_to_try(settings["noise"], rows, len(names))
    abouts = [
        (simplest, first),
        *((form, replace(first, labels=candidate(form))) for form in larger),
    ]
    fold = graph_folds(graph, first.resp, weights, _N_FOLDS)
    halves = _halves(first, readings, len(names))
    found: list[Form] = []
    interrupted = False
    total = sum(_MOST_ROUNDS * (1 + about.has_many_rates()) + 1 for _, about in abouts)
    graphs = [Graph.read(graph, reading) for reading in readings]
    with options.progress.bar("learning from neighbours", len(graphs) * total) as bar:
        for form, about in abouts:
            candidates: list[Propagated] = []
            try:
                for one in graphs:
                    read = replace(about, graph=one)
                    propagated(read, kinds, fold, options, _MOST_ROUNDS, candidates, bar)
                found.append(stacked(form, about, candidates, fold, halves, options))
            except KeyboardInterrupt:
                interrupted = True
                break
    cautions = (INTERRUPTED,) if interrupted else ()
    if not found:
        return _as_given(first, settings, names, options, cautions, interrupted)
    chosen = preferred_form(found)
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
        full = dict(abouts).get("full")
        try:
            about = full or replace(first, labels=candidate("full"))
            others = alternatives(chosen, about, full is not None, settings, options)
        except KeyboardInterrupt:
            interrupted, cautions = True, (INTERRUPTED,)
    cautions = (*cautions, *undecided(chosen, found, shares))
    fitted = _informative(
        chosen, found, shares, halves, settings, names, options, cautions, interrupted
    )
    noise = by_halves(others, halves, settings)
    return replace(fitted, choice=table, alternatives=others, by_halves=noise)


def _padded(sources: Mapping[str, LabelSource], weights: np.ndarray) -> Data:
    length = padded_length(len(weights))
    parts = {name: source.padded(length) for name, source in sources.items()}
    return Data(parts, on_device(pad_rows(weights, length)))


def _kinds(alpha: Any) -> list[Evidence]:
    alphas = CONCENTRATIONS if alpha is None else (alpha,)
    users: list[Evidence] = [UserEvidence(one) for one in alphas]
    return [*users, *map(NeighbourVotes, POWERS)]


def _candidate(
    settings: Mapping[str, Any],
    form: Any,
    sources: Mapping[str, LabelSource],
    data: Data,
    k: int,
) -> Candidate:
    """Label channels with noise of one form."""
    own = {**settings, "noise": form}
    channels = {name: source.channel(k, own) for name, source in sources.items()}
    return Candidate({PRIOR: class_prior(k, own), **channels}, data)


def _labelled(
    settings: Mapping[str, Any], labels: Candidate, graph: Graph, weights: np.ndarray
) -> LabelledGraph:
    """A graph and its labels, whose responsibilities hang on no form of the noise."""
    resp = np.asarray(label_responsibilities(labels.model, labels.data), float)[: len(weights)]
    alpha = max(settings["class_alpha"], 1e-3)
    shares = given_shares(labels.model, labels.data, alpha).prior
    return LabelledGraph(graph, labels, resp, weights, np.asarray(shares, float))


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
    wrong = None
    if halves is not None:
        codes = halves.codes
        prior = (float(settings["noise_alpha"]), float(settings["noise_diagonal"]))
        corrected, wrong = np.zeros((n_rows, len(names))), 0.0
        apart: tuple[Caution, ...] = ()
        for one, share in zip(found, shares, strict=True):
            if share > 0 and one.levels is not None:
                scores = one.mixture.held_out(), _midway(one)
                weighed = posterior_of_levels(one.about, one.levels, *scores, prior, options)
                corrected += share * cautious(weighed.both, codes, about.weights)
                wrong += share * expected_wrong(weighed.both, codes, about.weights)
                if one is chosen:
                    apart = weighed.cautions()
        surer = () if apart else hardly_surer(corrected, codes, about.weights, wrong)
        cautions = (*cautions, *apart, *surer)
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
    data = _padded(sources, weights)
    labels = _candidate(settings, settings["noise"], sources, data, len(names))
    about = _labelled(settings, labels, Graph(graph), weights)
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
