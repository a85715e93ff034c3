"""Stacking: predictions averaged by weights under which held-out labels are likeliest.

Where candidates tie, a choice of one hangs on the folds; the average hardly does (Wolpert 1992; Yao
et al. 2018, Bayesian Analysis 13).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy import sparse

from nbmodels.fitting.neighbours import read_repeats, scores_of_new
from nbmodels.fitting.propagation import Propagated, calibrated_logs

#: Steps of EM for the weights, few enough to leave tied candidates near equal weights.
_STEPS = 100

#: Weight that no candidate begins below.
_SMALLEST = 1e-6

#: Weight below which a candidate is left out.
_LEAST = 0.01


def stacking_weights(
    log_likelihoods: Float[np.ndarray, "c n"], weights: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " c"]:
    """Weights of candidates under whose average labels are likeliest; they sum to one.

    The steps begin at pseudo-BMA weights, by which a much worse candidate counts nothing.

    Args:
        log_likelihoods: log-probability of each label under each candidate that has not seen it.
        weights: row weights.
    """
    probs = np.exp(log_likelihoods - log_likelihoods.max(0))
    total = log_likelihoods @ weights
    share = np.maximum(np.exp(total - total.max()), _SMALLEST)
    share = share / share.sum()
    if not np.any(weights):
        return share
    for _ in range(_STEPS):
        parts = share[:, None] * probs
        share = (parts / parts.sum(0)) @ weights / weights.sum()
    share = np.where(share >= min(_LEAST, share.max()), share, 0.0)
    return share / share.sum()


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

    def heard(self, edges: sparse.csr_array) -> Bool[np.ndarray, " n"]:
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


def mixture(
    candidates: Sequence[Propagated],
    weights: Float[np.ndarray, " n"],
    shares: Float[np.ndarray, " k"],
) -> tuple[Mixture, Float[np.ndarray, " c"]]:
    """The average of candidates, and the weight of each.

    Args:
        candidates: those whose classes are not identified are left out, unless it is all of them.
        weights: row weights, 0 where there is no label.
        shares: of the given labels.
    """
    taken = [one.identified for one in candidates]
    allowed = np.array(taken if any(taken) else [True] * len(taken))
    tables = np.stack([np.asarray(one.fit.log_likelihood, float) for one in candidates])
    share = np.zeros(len(candidates))
    share[allowed] = stacking_weights(tables[allowed, : len(weights)], weights)
    parts = [one for one, w in zip(candidates, share, strict=True) if w > 0]
    return Mixture(parts, share[share > 0], shares), share
