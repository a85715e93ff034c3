"""Neighbour models averaged by :mod:`nbmodels.fitting.stacking_weights`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy import sparse

from nbmodels.fitting.neighbours import read_repeats, scores_of_new
from nbmodels.fitting.propagation import Propagated, calibrated_logs
from nbmodels.fitting.stacking_weights import stacking_weights


@dataclass(frozen=True)
class Mixture:
    """Candidates with their weights.

    Attributes:
        parts: candidates of weight above 0.
        weights: theirs; they sum to one.
        shares: ``(K,)`` shares of the given labels, which the candidates' scores are relative to.
    """

    parts: Sequence[Propagated]
    weights: Float[np.ndarray, " c"]
    shares: Float[np.ndarray, " k"]

    def held_out(self) -> Float[np.ndarray, "n k"]:
        """Log-probabilities of the classes that have not seen the item's own label."""
        return self._mixed([calibrated_logs(one.fit, one.held_out) for one in self.parts])

    def whole(self) -> Float[np.ndarray, "n k"]:
        """Those from the labels of all other items."""
        return self._mixed([calibrated_logs(one.fit, one.whole) for one in self.parts])

    def of_new(self, edges: sparse.csr_array) -> Float[np.ndarray, "n k"]:
        """Those of new items.

        Args:
            edges: ``(n, users)`` numbers of edges.
        """
        tables = [
            scores_of_new(one.kind, read_repeats(edges, one.reading), one.counts, self.shares)
            for one in self.parts
        ]
        return self._mixed(
            [calibrated_logs(one.fit, table) for one, table in zip(self.parts, tables, strict=True)]
        )

    def scored(self) -> Bool[np.ndarray, " n"]:
        """Whether items have scores that have not seen the item's own label."""
        return np.any([np.ptp(one.held_out, axis=1) > 0 for one in self.parts], axis=0)

    def has_neighbours(self, edges: sparse.csr_array) -> Bool[np.ndarray, " n"]:
        """Whether some of an item's users are known to touch labelled items.

        Args:
            edges: ``(n, users)`` numbers of edges.
        """
        known = np.any([one.counts.sum(1) > 0 for one in self.parts], axis=0)
        return np.asarray(edges @ known.astype(float)) > 0

    def _mixed(self, logs: Sequence[Float[np.ndarray, "n k"]]) -> Float[np.ndarray, "n k"]:
        probs = sum(
            weight * np.exp(table) for weight, table in zip(self.weights, logs, strict=True)
        )
        return np.log(np.maximum(probs, 1e-12))


def mixtures(
    candidates: Sequence[Propagated],
    weights: Float[np.ndarray, "f n"],
    shares: Float[np.ndarray, " k"],
) -> list[tuple[Mixture, Float[np.ndarray, " c"]]]:
    """Averages of candidates, and the weight of each, one for each set of row weights.

    Args:
        candidates: those whose classes are not identified are left out, unless it is all of them.
        weights: row weights, 0 where there is no label.
        shares: of the given labels.
    """
    taken = [one.identified for one in candidates]
    allowed = np.array(taken if any(taken) else [True] * len(taken))
    n_rows = weights.shape[1]
    tables = np.stack([np.asarray(one.fit.log_likelihood, float)[:n_rows] for one in candidates])
    found = np.zeros((len(weights), len(candidates)))
    found[:, allowed] = stacking_weights(tables[allowed], weights)
    out = []
    for share in found:
        parts = [one for one, w in zip(candidates, share, strict=True) if w > 0]
        out.append((Mixture(parts, share[share > 0], shares), share))
    return out
