"""What is known of the items beside one source, from which that source learns.

Sources that are cross-fitted, a graph or a table, learn from the labels and from what all other
sources say of the items, which are log-likelihoods of the classes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int
from scipy.special import logsumexp

from inference.arrays import floating, on_device
from inference.compilation import host_jit
from inference.pytree import register_dataclass
from nbmodels.channels import ExternalEvidence
from nbmodels.core import model as models
from nbmodels.core.component import LogLikelihood, centred
from nbmodels.core.families import Dirichlet, DrawKey, Rule
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.core.roles import LabelChannel
from nbmodels.fitting.fit import Fit, log_likelihoods_of
from nbmodels.fitting.label_sources import LabelSource
from nbmodels.fitting.options import FitOptions

#: Name of the channel.
BELIEFS = "beliefs"

#: Settings of the labels and the class shares, which are those of all sources together.
_OF_LABELS = (
    "noise",
    "noise_alpha",
    "noise_diagonal",
    "class_prior",
    "class_alpha",
    "shares_held",
)

#: Weight of what a fit takes an item for, against its noisy label, in the first round of training:
#: that fit has read the label.
_DECIDES = 1e3

#: Pseudo-items of which it holds what other sources know.
_HOLDING = 3.0

#: Log-likelihoods are finite, as they may be multiplied by 0.
_LEAST = -1e6


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Beliefs(ExternalEvidence):
    """What other sources know of the items: log-likelihoods, and a fit's responsibilities."""

    def log_likelihood(self, likelihood_params: Array, data: Array) -> LogLikelihood:
        return super().log_likelihood(likelihood_params, data[:, 0])

    def initial_responsibilities(self, data: Array) -> Float[Array, "n k"]:
        return _DECIDES * data[:, 1]


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class ContaminatedBeliefs(LabelChannel):
    """:class:`Beliefs`, of which a share is void (contamination; Huber 1964).

    Annotators who copy make a fit of their votes too sure, and a source that took its
    log-likelihoods as they are would take their errors for its own. So with a probability that is
    learned beside the source's evidence, what is known of an item is void: as likely under every
    class.

    Attributes:
        prior: Dirichlet of the shares of items of which it holds, and of which it is void.
    """

    prior: Dirichlet

    def log_likelihood(self, likelihood_params: Array, data: Array) -> LogLikelihood:
        holds, void = likelihood_params
        return centred(jnp.logaddexp(holds + data[:, 0], void))

    def stats(
        self, likelihood_params: Array, resp: Array, data: Array, key: DrawKey = None
    ) -> Float[Array, " 2"]:
        holds, void = likelihood_params
        of_void = jnp.sum(resp * jax.nn.sigmoid(void - holds - data[:, 0]))
        return jnp.stack([jnp.sum(resp) - of_void, of_void])

    def initial_responsibilities(self, data: Array) -> Float[Array, "n k"]:
        return _DECIDES * data[:, 1]

    def relabel(self, q: Dirichlet, order: Int[Array, " k"]) -> Dirichlet:
        return q

    def values(self, likelihood_params: Array) -> dict[str, Array]:
        return {"share": jnp.exp(likelihood_params)}


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

    def with_sources(self, more: Mapping[str, LabelSource]) -> Known:
        """With label sources beside these."""
        return self._replace(sources={**self.sources, **more})

    @property
    def of_labels(self) -> dict[str, Any]:
        """Settings of the labels and the class shares."""
        return {name: self.settings[name] for name in _OF_LABELS if name in self.settings}


def beliefs(fitted: Fit, data: Data, n_rows: int, labels: Collection[str]) -> LabelSource:
    """What a fit knows of the items beside their labels, as a channel.

    Args:
        fitted: of other sources and the labels.
        data: what was fitted.
        n_rows: number of items.
        labels: names of the channels of labels.
    """
    others = {name: c for name, c in fitted.model.items() if name not in (PRIOR, *labels)}
    logs = _logs(fitted, data, others)[:n_rows]
    # relative to their mean over the class shares, 1 where nothing is known
    logs = logs - logsumexp(logs + np.asarray(fitted.point_of(PRIOR), float), axis=1, keepdims=True)
    resp = np.asarray(fitted.resp, float)[:n_rows]
    values = np.stack([logs, resp / resp.sum(1, keepdims=True)], 1)
    return LabelSource(_channel, values, 0.0, _pack)


def contaminated(sources: Mapping[str, LabelSource]) -> dict[str, LabelSource]:
    """Label sources, of which beliefs need not hold for every item."""
    found = dict(sources)
    if BELIEFS in found:
        found[BELIEFS] = replace(found[BELIEFS], channel=_contaminated)
    return found


def _channel(n_classes: int, settings: Mapping[str, Any]) -> ExternalEvidence:
    return Beliefs.of(n_classes)


def _contaminated(n_classes: int, settings: Mapping[str, Any]) -> ContaminatedBeliefs:
    return ContaminatedBeliefs(prior=Dirichlet(on_device(np.array([1 + _HOLDING, 1.0]))))


def _pack(values: np.ndarray) -> Array:
    return on_device(values, floating())


def _logs(fitted: Fit, data: Data, others: Model) -> Float[np.ndarray, "n k"]:
    """Log-likelihoods of the classes by some components, as the fit reads them."""
    if models.reported(fitted.rule) == fitted.rule:
        known = log_likelihoods_of(fitted, data)
        summed = np.sum([np.asarray(known[name].table, float) for name in others], 0)
        return np.maximum(np.broadcast_to(summed, fitted.resp.shape), _LEAST)
    params = {name: fitted.params[name] for name in others}
    own = models.with_parts(data, {name: data.parts[name] for name in others})
    return np.asarray(_table(others, params, own, fitted.rule), float)


@partial(host_jit, static_argnames="rule")
def _table(model: Model, params: Any, data: Data, rule: Rule) -> Array:
    read = models.likelihood_params(model, params, rule)
    return jnp.maximum(models.log_likelihood(model, read, data).table, _LEAST)
