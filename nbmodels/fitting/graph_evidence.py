"""A graph as one source of several: evidence that has not seen an item's own label.

In a joint fit users learn what their items are taken for, and an item's wrong label comes back to
confirm itself through the items that it led astray. Beside other sources a graph is cross-fitted
instead: the average of neighbour models (:mod:`nbmodels.fitting.stacked_graph`) is fitted to
everything else that is known of the items, and the log-likelihoods that it gives to the classes of
an item come from what is known of other items alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from scipy import sparse

from inference.arrays import floating, on_device
from inference.compilation import host_jit
from nbmodels.channels import ExternalEvidence
from nbmodels.core import model as models
from nbmodels.core.component import LogLikelihood
from nbmodels.core.families import Rule
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.fitting.em import Fit
from nbmodels.fitting.fitted_graph import FittedGraph
from nbmodels.fitting.label_sources import LabelSource
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.propagation import calibrated_logs
from nbmodels.fitting.stacked_graph import train_stacked

#: Weight of what a fit takes an item for, against its noisy label, before the first neighbours are
#: heard: that fit has heard the label.
_DECIDES = 1e3

#: Log-likelihoods are finite, as they may be multiplied by 0.
_LEAST = -1e6


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Beliefs(ExternalEvidence):
    """What other sources know of the items: log-likelihoods, and a fit's responsibilities."""

    def log_likelihood(self, likelihood_params: Array, data: Array) -> LogLikelihood:
        return super().log_likelihood(likelihood_params, data[:, 0])

    def initial_responsibilities(self, data: Array) -> Float[Array, "n k"]:
        return _DECIDES * data[:, 1]


class Known(NamedTuple):
    """What is known of the items beside a graph.

    Attributes:
        sources: label sources, by channel.
        settings: of the channels and the class shares.
        weights: ``(N,)`` row weights.
        names: ``(K,)`` names of the classes.
        options: of the fits.
    """

    sources: Mapping[str, LabelSource]
    settings: Mapping[str, Any]
    weights: Float[np.ndarray, " n"]
    names: np.ndarray
    options: FitOptions


@dataclass(frozen=True)
class GraphEvidence:
    """Log-likelihoods of items' classes by their neighbours.

    Attributes:
        fitted: the average of neighbour models.
    """

    fitted: FittedGraph

    @property
    def heard(self) -> bool:
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
        return self._relative(found.held_out())

    def of_new(self, edges: sparse.csr_array) -> Float[np.ndarray, "n k"]:
        """``(n, K)`` of new items.

        Args:
            edges: ``(n, users)`` numbers of edges.
        """
        found = self.fitted.neighbours
        if found is None:
            return np.zeros((edges.shape[0], len(self.fitted.names)))
        return self._relative(found.of_new(edges))

    def _relative(self, logs: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
        """Less what is said of an item without neighbours, which is the class shares."""
        found, fit = self.fitted.neighbours, self.fitted.fit
        assert found is not None  # somebody is heard
        nobody = sparse.csr_array((1, self.fitted.counts.shape[0]))
        return calibrated_logs(fit, logs) - calibrated_logs(fit, found.of_new(nobody))


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
    about = (known.sources, known.weights, known.names, known.options)
    fitted: Any = train_stacked(settings, alpha, graph, *about)
    return GraphEvidence(fitted)


def beliefs(fitted: Fit, data: Data, n_rows: int) -> LabelSource:
    """What a fit knows of the items beside their noisy labels, as a channel.

    Args:
        fitted: of all sources but graphs.
        data: what was fitted.
        n_rows: number of items.
    """
    others = {name: c for name, c in fitted.model.items() if name not in (PRIOR, "labels")}
    params = {name: fitted.params[name] for name in others}
    own = models.with_parts(data, {name: data.parts[name] for name in others})
    logs = np.asarray(_table(others, params, own, fitted.rule), float)[:n_rows]
    resp = np.asarray(fitted.resp, float)[:n_rows]
    values = np.stack([logs, resp / resp.sum(1, keepdims=True)], 1)
    return LabelSource(_channel, values, 0.0, _pack)


def _channel(n_classes: int, settings: Mapping[str, Any]) -> ExternalEvidence:
    return Beliefs.of(n_classes)


def _pack(values: np.ndarray) -> Array:
    return on_device(values, floating())


@partial(host_jit, static_argnames="rule")
def _table(model: Model, params: Any, data: Data, rule: Rule) -> Array:
    read = models.likelihood_params(model, params, rule)
    return jnp.maximum(models.log_likelihood(model, read, data).table, _LEAST)
