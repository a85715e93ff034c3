"""Neighbour models of a graph under each form of the noise matrix.

Candidates are users' evidence under several concentrations and shares of neighbours' votes under
several powers, from given labels and after some rounds of propagation
(:mod:`nbmodels.fitting.propagation`), each calibrated with the noise; and each under several
readings of repeated edges, where there are any: a user's hundredth visit to an item may say as much
as the first, or nothing, and under counts of long tails a few pairs outvote all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from inference.arrays import on_device
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.validation import pad_rows, padded_length
from nbmodels.fitting.collapsed_updates import given_shares
from nbmodels.fitting.errors_by_size import ERRORS, ErrorsBySize
from nbmodels.fitting.graph_forms import Form, forms_to_try, stacked
from nbmodels.fitting.label_sources import LabelSource, class_prior
from nbmodels.fitting.neighbours import Evidence, Graph, NeighbourVotes, UserEvidence
from nbmodels.fitting.options import FitOptions, is_auto
from nbmodels.fitting.propagation import LabelledGraph, Propagated, propagated
from nbmodels.fitting.scores import Candidate, label_responsibilities
from nbmodels.fitting.split_users import Halves

#: Concentrations of the users, and powers of the number of neighbours by which votes are divided.
CONCENTRATIONS = (0.2, 1.0, 5.0)
POWERS = (0.0, 0.5, 1.0)

_MOST_ROUNDS = 6


@dataclass(frozen=True)
class GraphSearch:
    """What neighbour models are fitted to, and which are tried.

    Attributes:
        settings: of the label channels and the class shares; ``noise`` may be ``"auto"``.
        sources: label sources, by channel.
        weights: ``(N,)`` row weights.
        n_classes: K.
        edges: ``(N, users)`` numbers of edges.
        readings: of repeated edges, of :data:`nbmodels.fitting.neighbours.READINGS`; (None,) where
            each counts as it stands.
        alpha: concentration of the users' proportions, or None for several.
        options: of the fits.
        errors: how often labels are wrong by the number of users; None for one rate.
    """

    settings: Mapping[str, Any]
    sources: Mapping[str, LabelSource]
    weights: Float[np.ndarray, " n"]
    n_classes: int
    edges: sparse.csr_array
    readings: Sequence[str | None]
    alpha: Any
    options: FitOptions
    errors: ErrorsBySize | None = None

    def with_errors(self, errors: ErrorsBySize) -> GraphSearch:
        """The same where labels are wrong the oftener by the number of users."""
        return replace(self, sources={**self.sources, ERRORS: errors.source()}, errors=errors)

    def labelled(self, form: Any) -> LabelledGraph:
        """The graph with its labels under a form of the noise."""
        data = padded(self.sources, self.weights)
        labels = label_candidate(self.settings, form, self.sources, data, self.n_classes)
        about = labelled_graph(self.settings, labels, Graph(self.edges), self.weights)
        return replace(about, errors=self.errors)

    @cached_property
    def simplest(self) -> LabelledGraph:
        """That under the form with fewest parameters."""
        noise = self.settings["noise"]
        return self.labelled("symmetric" if is_auto(noise) else noise)

    def forms(self, fold: Int[np.ndarray, " n"], halves: Halves | None) -> tuple[list[Form], bool]:
        """Averages of neighbour models under each form, and whether Ctrl-C ended the search.

        Args:
            fold: ``(N,)`` fold of each item.
            halves: labels and the votes of each half of the users; None where no noise is learned.
        """
        first = self.simplest
        rows = first.weights * first.resp.any(1)
        simplest, *larger = forms_to_try(self.settings["noise"], rows, self.n_classes)
        # a known matrix is a form, too, and is no key of a dict
        abouts = [(simplest, first), *((form, self.labelled(form)) for form in larger)]
        total = sum(_MOST_ROUNDS * (1 + about.has_many_rates()) + 1 for _, about in abouts)
        graphs = [Graph.read(self.edges, reading) for reading in self.readings]
        found: list[Form] = []
        bar = self.options.progress.bar("learning from neighbours", len(graphs) * total)
        with bar as shown:
            for form, about in abouts:
                candidates: list[Propagated] = []
                try:
                    for one in graphs:
                        read = replace(about, graph=one)
                        about_one = (read, self.kinds(), fold, self.options, _MOST_ROUNDS)
                        propagated(*about_one, candidates, shown)
                    found.append(stacked(form, about, candidates, fold, halves, self.options))
                except KeyboardInterrupt:
                    return found, True
        return found, False

    def kinds(self) -> list[Evidence]:
        """Kinds of neighbours' scores."""
        alphas = CONCENTRATIONS if self.alpha is None else (self.alpha,)
        users: list[Evidence] = [UserEvidence(one) for one in alphas]
        return [*users, *map(NeighbourVotes, POWERS)]


def padded(sources: Mapping[str, LabelSource], weights: np.ndarray) -> Data:
    """Encoded labels of items."""
    length = padded_length(len(weights))
    parts = {name: source.padded(length) for name, source in sources.items()}
    return Data(parts, on_device(pad_rows(weights, length)))


def label_candidate(
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


def labelled_graph(
    settings: Mapping[str, Any], labels: Candidate, graph: Graph, weights: np.ndarray
) -> LabelledGraph:
    """A graph and its labels, whose responsibilities hang on no form of the noise."""
    resp = np.asarray(label_responsibilities(labels.model, labels.data), float)[: len(weights)]
    alpha = max(settings["class_alpha"], 1e-3)
    shares = given_shares(labels.model, labels.data, alpha).prior
    return LabelledGraph(graph, labels, resp, weights, np.asarray(shares, float))
