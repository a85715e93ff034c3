"""The result of fits to a graph that predict new items by their neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float
from scipy import sparse

from nbmodels.core.jax_settings import computing
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.neighbours import Graph, NeighbourVotes
from nbmodels.fitting.propagation import calibrated_logs, normalised
from nbmodels.fitting.split_users import NoiseByHalves
from nbmodels.fitting.stacking import Mixture


@dataclass(frozen=True)
class FittedGraph(FittedModel):
    """An average of neighbour models.

    ``fit`` is of the labels given predictions that have not seen them: noise, draws and checks come
    from it. Corrected labels come from predictions midway between these and those of all labels.

    Attributes:
        neighbours: the average; None where labels stay as they are.
        corrected: ``(N, K)`` P(true class | everything known).
        counts: ``(users, K)`` the users' edges to each class, by the corrected labels.
        wrong: expected share of the given labels that is wrong, over the posterior of the noise;
            None where labels stay as they are, or there are none but checked ones.
        by_halves: what a full noise matrix by two halves of the users follows from, which some
            posterior draws are of; None where all are of the fit and its alternatives.
    """

    neighbours: Mixture | None = None
    corrected: Float[np.ndarray, "n k"] = field(default_factory=lambda: np.zeros((0, 0)))
    counts: Float[np.ndarray, "users k"] = field(default_factory=lambda: np.zeros((0, 0)))
    wrong: float | None = None
    by_halves: NoiseByHalves | None = None

    @property
    def share_wrong(self) -> float | None:
        """Expected share of the given labels that is wrong, without caution about changes."""
        return self.wrong

    @property
    def label_posterior(self) -> Float[np.ndarray, "n k"]:
        """P(true class | everything known) of the training items."""
        return self.corrected

    def predict_new(self, edges: sparse.csr_array) -> Float[np.ndarray, "n k"]:
        """P(true class | users) of new items; the classes' shares where no user says anything.

        Args:
            edges: ``(n, users)`` numbers of edges to the users of the fit.
        """
        if self.neighbours is None:
            return NeighbourVotes(0.0).shares(Graph(edges), self.counts, None, self.class_shares)
        with computing(self.double):
            found = normalised(calibrated_logs(self.fit, self.neighbours.of_new(edges)))
        # biases are learned from items with evidence, and say nothing of those without
        return np.where(self.neighbours.has_neighbours(edges)[:, None], found, self.class_shares)
