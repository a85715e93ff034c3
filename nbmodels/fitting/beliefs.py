"""What is known of the items beside one source, from which that source learns.

Sources that are cross-fitted, a graph or a table, learn from the labels and from what all other
sources say of the items, which are log-likelihoods of the classes.
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

from inference.arrays import floating, on_device
from inference.compilation import host_jit
from nbmodels.channels import ExternalEvidence
from nbmodels.core import model as models
from nbmodels.core.component import LogLikelihood
from nbmodels.core.families import Rule
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.fitting.em import Fit
from nbmodels.fitting.label_sources import LabelSource
from nbmodels.fitting.options import FitOptions

#: Weight of what a fit takes an item for, against its noisy label, in the first round of training:
#: that fit has read the label.
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
    """What is known of the items beside a source.

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


def beliefs(fitted: Fit, data: Data, n_rows: int) -> LabelSource:
    """What a fit knows of the items beside their noisy labels, as a channel.

    Args:
        fitted: of other sources and the labels.
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
