"""A graph as one source of several: evidence that has not seen an item's own label.

In a joint fit users learn what their items are taken for, and an item's wrong label comes back to
confirm itself through the items that it led astray. Beside other sources a graph is cross-fitted
instead: the average of neighbour models (:mod:`nbmodels.fitting.stacked_graph`) is fitted to
everything else that is known of the items, and the log-likelihoods that it gives to the classes of
an item come from what is known of other items alone: a calibrated posterior by its neighbours,
against the class shares. What other sources know need not hold for every item, and how often it
does is learned, too (:class:`nbmodels.fitting.beliefs.ContaminatedBeliefs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import sparse

from nbmodels.fitting.beliefs import Known, contaminated
from nbmodels.fitting.fitted_graph import FittedGraph
from nbmodels.fitting.propagation import calibrated_logs, log_class_shares
from nbmodels.fitting.stacked_graph import train_stacked


@dataclass(frozen=True)
class GraphEvidence:
    """Log-likelihoods of items' classes by their neighbours.

    Attributes:
        fitted: the average of neighbour models.
    """

    fitted: FittedGraph

    @property
    def informative(self) -> bool:
        """Whether the edges predict what is known of an item better than chance."""
        return self.fitted.neighbours is not None

    @property
    def noise(self) -> Any:
        """Form of the noise matrix under which held-out labels are likelier."""
        return self.fitted.settings["noise"]

    def of_items(self) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` of the items of the fit, each without what is known of itself."""
        found = self.fitted.neighbours
        if found is None:
            return np.zeros_like(self.fitted.corrected)
        return (self._logs - self._log_shares) * found.scored()[:, None]

    def of_new(self, edges: sparse.csr_array) -> Float[np.ndarray, "n k"]:
        """``(n, K)`` of new items.

        Args:
            edges: ``(n, users)`` numbers of edges.
        """
        found = self.fitted.neighbours
        if found is None:
            return np.zeros((edges.shape[0], len(self.fitted.names)))
        logs = calibrated_logs(self.fitted.fit, found.of_new(edges))
        return (logs - self._log_shares) * found.has_neighbours(edges)[:, None]

    @cached_property
    def _logs(self) -> Float[np.ndarray, "n k"]:
        """Log-probabilities of the items of the fit."""
        found = self.fitted.neighbours
        assert found is not None  # some edge is informative
        return calibrated_logs(self.fitted.fit, found.held_out())

    @cached_property
    def _log_shares(self) -> Float[np.ndarray, " k"]:
        """Of an item whose neighbours are not known.

        It is no item without neighbours: what their scores add whatever the class, the biases of
        the calibration take back, and these would be all that such an item has.
        """
        logs = self._logs
        return log_class_shares(logs, np.asarray(self.fitted.data.weights, float)[: len(logs)])


def graph_evidence(alpha: Any, graph: sparse.csr_array, known: Known) -> GraphEvidence:
    """Fit neighbour models to what is known of the items.

    Args:
        alpha: concentration of the users' proportions, or None for several.
        graph: ``(N, users)`` numbers of edges.
        known: what is known beside it.
    """
    # without noisy labels there is no form to choose
    noise = known.settings["noise"] if "labels" in known.sources else "symmetric"
    settings = {**known.settings, "noise": noise}
    about = (contaminated(known.sources), known.weights, known.names, known.options)
    fitted: Any = train_stacked(settings, alpha, graph, *about)
    return GraphEvidence(fitted)
