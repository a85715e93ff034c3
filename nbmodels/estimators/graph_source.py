"""A graph as one source of several: how its edges are packed, and what it learns beside others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from nbmodels.channels import ExternalEvidence
from nbmodels.data.labels import Classes
from nbmodels.data.user_item_graph import edges_to_known
from nbmodels.emissions import Users
from nbmodels.estimators.sources import LearnedSource, Part
from nbmodels.fitting.beliefs import Known
from nbmodels.fitting.graph_evidence import GraphEvidence, graph_evidence
from nbmodels.fitting.graph_training import USERS


@dataclass(frozen=True)
class EdgesOf:
    """Packs edges of new items to the users of a fit."""

    users: np.ndarray
    duplicates: str

    def edges(self, values: Any, items: np.ndarray) -> sparse.csr_array:
        """``(n, users)`` numbers of edges."""
        return edges_to_known(self.users, values, items, duplicates=self.duplicates)

    def __call__(self, values: Any, items: np.ndarray, classes: Classes) -> dict[str, Any]:
        return {USERS: Users.pack(self.edges(values, items))}


@dataclass(frozen=True)
class _EvidenceOf(EdgesOf):
    """Packs the log-likelihoods of new items by the users of a fit."""

    evidence: GraphEvidence

    def __call__(self, values: Any, items: np.ndarray, classes: Classes) -> dict[str, Any]:
        return {USERS: ExternalEvidence.pack(self.evidence.of_new(self.edges(values, items)))}


@dataclass(frozen=True)
class CrossFittedGraph:
    """A graph beside other sources, which learns from what is known of its items.

    Attributes:
        graph: ``(N, users)`` numbers of edges.
        users: ids of the users.
        duplicates: what becomes of pairs that occur more than once.
        alpha: concentration of the users' proportions, or None for several.
    """

    graph: sparse.csr_array
    users: np.ndarray
    duplicates: str
    alpha: Any

    def without_weight(self, n_classes: int) -> LearnedSource:
        """Before it has learned."""
        nothing = np.zeros((self.graph.shape[0], n_classes))
        part = Part(_evidence(n_classes, 0.0), ExternalEvidence.pack(nothing))
        return LearnedSource({USERS: part}, EdgesOf(self.users, self.duplicates), learn_beside=self)

    def __call__(self, known: Known) -> LearnedSource:
        found = graph_evidence(self.alpha, self.graph, known)
        component = _evidence(len(known.names), float(found.informative))
        part = Part(component, ExternalEvidence.pack(found.of_items()))
        encode = _EvidenceOf(self.users, self.duplicates, found)
        return LearnedSource({USERS: part}, encode, graph=found)


def _evidence(n_classes: int, weight: float) -> ExternalEvidence:
    return replace(ExternalEvidence.of(n_classes), weight=weight)
