"""Fits where the edges do not predict labels: labels as they are, the noise of its prior."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from inference.arrays import on_device
from nbmodels.channels.fixed import fixed_at
from nbmodels.class_priors import FixedProportions
from nbmodels.core.component import Given
from nbmodels.core.model import PRIOR, Data
from nbmodels.errors import Caution, IdentifiabilityWarning
from nbmodels.fitting.em import Fit, evaluate
from nbmodels.fitting.fit import noise_at_prior
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.scores import Candidate

UNINFORMATIVE = Caution(
    IdentifiabilityWarning,
    "the edges do not predict held-out labels better than chance: no label is corrected, and the "
    "noise matrix is that of the prior",
)

#: Of a joint model of the graph, where other models may predict them.
JOINT_UNINFORMATIVE = Caution(
    IdentifiabilityWarning,
    "the joint model of the graph does not predict held-out labels better than chance: no label is "
    "corrected, and the noise matrix is that of the prior; the average of neighbour models may "
    "predict them, the default, with training, alpha and weight at 'auto'",
)


def as_given(labels: Candidate, shares: Float[np.ndarray, " k"], options: FitOptions) -> Fit:
    """Labels as they are: noise at its prior mean, and no class before another.

    Args:
        labels: class prior and channels.
        shares: ``(K,)`` shares of the given labels, which are reported as those of the classes.
        options: of the fit.
    """
    model, data, _ = labels
    even = FixedProportions(prior=on_device(np.full(len(shares), 1 / len(shares))))
    held: dict[str, Any] = {**model, PRIOR: even}
    channel: Any = model.get("labels")
    if channel is not None and not isinstance(channel, Given):
        held["labels"] = fixed_at(noise_at_prior(_of_pseudo_labels(channel), "mean"))
    own = Data({PRIOR: None, **data.parts}, data.weights)
    params = {name: component.prior for name, component in held.items()}
    # with the shares of the classes a frequent class would take the labels of a rare one
    resp = evaluate(held, params, own, rule=options.rule).resp
    held = {**held, PRIOR: FixedProportions(prior=on_device(shares))}
    params = {name: component.prior for name, component in held.items()}
    return replace(evaluate(held, params, own, rule=options.rule), resp=resp)


def noise_from_prior(
    labels: Candidate, shares: Float[np.ndarray, " k"], fitted: Fit
) -> tuple[Fit, Data] | None:
    """What draws are of: the labels' model without the labels, so that the noise has its prior.

    Args:
        labels: class prior and channels.
        shares: as for :func:`as_given`.
        fitted: from there.
    """
    model, data, _ = labels
    channel: Any = model.get("labels")
    if channel is None or isinstance(channel, Given):
        return None
    k = len(shares)
    # draws of other rules are centred when they are taken
    channel = _of_pseudo_labels(channel) if fitted.rule == "vb" else channel
    alone = {PRIOR: FixedProportions(prior=on_device(shares)), "labels": channel}
    missing = on_device(np.full(np.shape(data.parts["labels"]), k), jnp.int32)
    about = Data({PRIOR: None, "labels": missing}, data.weights)
    params = {name: component.prior for name, component in alone.items()}
    prior = evaluate(alone, params, about, rule=fitted.rule)
    return prior, jax.tree.map(np.asarray, about)


def _of_pseudo_labels(channel: Any) -> Any:
    """The channel with its pseudo-labels for prior, and no more.

    One more in every cell puts a fit's mode at the pseudo-labels. Where nothing else is known that
    would be a claim: of ten classes, that most labels are wrong.
    """
    return channel.for_draws(channel.prior)[0]


def without_changes(
    probs: Float[np.ndarray, "n k"], evidence: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, "n k"]:
    """Evidence that is not surely informative ranks labels by doubt, but changes none.

    Args:
        probs: ``(N, K)`` P(true class) without the evidence.
        evidence: ``(N, K)`` log-probabilities; they enter with the largest power, 1 at most, under
            which no likeliest class changes.
    """
    logs = np.log(np.maximum(probs, np.finfo(float).tiny))
    rows, best = np.arange(len(logs)), logs.argmax(1)
    lead = logs[rows, best][:, None] - logs
    against = evidence - evidence[rows, best][:, None]
    opposed = (against > 0) & (lead > 0)
    if (against[lead == 0] > 0).sum() > 0:  # ties would be broken
        return probs
    power = min(1.0, 0.9 * float(np.min(lead[opposed] / against[opposed], initial=np.inf)))
    out = np.exp(logs + power * evidence)
    return out / out.sum(1, keepdims=True)
