"""A table as one source of several: evidence that has not seen an item's own label.

In a joint fit features that depend on each other, are skewed or have heavy tails outweigh labels
and votes, and the classes drift to whatever the columns show. A cross-fitted table
(:mod:`nbmodels.fitting.cross_fitted`) learns from what is known of other items, and how far its
evidence counts is learned, too: what it says of an item's class is a calibrated posterior by its
features, whose ratio to the class shares is their likelihood ratio.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Float

from inference.arrays import on_device
from nbmodels.core.model import PRIOR
from nbmodels.data.features import Block
from nbmodels.fitting.builder import encode, item_sizes, powers_of
from nbmodels.fitting.discriminative import predict_scored, predicted_instead
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.label_sources import LabelSource
from nbmodels.fitting.propagation import calibrated, log_class_shares
from nbmodels.fitting.reference_scores import calibration_of_reference

_TINY = np.finfo(float).tiny


def class_probabilities(
    fitted: FittedModel, block: Block, known: Mapping[str, LabelSource]
) -> Float[np.ndarray, "n k"]:
    """``(n, K)`` P(true class | features, and what else is known) of new rows.

    Args:
        fitted: to a table.
        block: columns of the new rows, as those of the fit were read.
        known: label sources of the new rows, by channel.
    """
    if fitted.predictor is not None:
        return predicted_instead(fitted, block.x, block.missing, known)
    if fitted.regression is not None:
        return predict_scored(fitted, fitted.regression.scores(block), known)
    n_rows = block.x.shape[0]
    model = jax.tree.map(on_device, fitted.fit.model)
    data = encode(model, fitted.coded, block, np.ones(n_rows), known)
    sizes = item_sizes(model, data) if fitted.mean_sizes else {}
    powers = powers_of(sizes, fitted.mean_sizes, fitted.settings.get("size_power"))
    return fitted.predict(replace(data, powers=powers))[:n_rows]


@dataclass(frozen=True)
class TableEvidence:
    """Log-likelihoods of items' classes by their features.

    Attributes:
        fitted: the cross-fitted table, with its coded columns.
    """

    fitted: FittedModel

    @property
    def informative(self) -> bool:
        """Whether the features predict what is known of an item better than chance.

        By their own model or by a nonlinear classifier.
        """
        fitted = self.fitted
        instead = fitted.predictor is not None or "scores" in fitted.chosen
        return fitted.informative or instead

    def of_items(self) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` of the items of the fit, each without what is known of itself."""
        return self._logs - self._log_shares if self.informative else np.zeros_like(self._logs)

    def of_new(self, probs: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
        """``(n, K)`` of new items.

        Args:
            probs: P(true class | features) of each.
        """
        return self.informative * (np.log(np.maximum(probs, _TINY)) - self._log_shares)

    @cached_property
    def _logs(self) -> Float[np.ndarray, "n k"]:
        fitted, instead = self.fitted, self.fitted.predictor
        if instead is not None:
            return instead.of_items
        scores = np.asarray(fitted.data.parts[PRIOR])[: len(fitted.fit.resp)]
        if "scores" in fitted.chosen:
            return calibrated(scores, calibration_of_reference(fitted))
        return calibrated(scores, fitted.calibration)

    @cached_property
    def _log_shares(self) -> Float[np.ndarray, " k"]:
        """Of an item whose features are not known."""
        logs = self._logs
        weights = np.asarray(self.fitted.data.weights, float)[: len(logs)]
        return log_class_shares(logs, weights)
