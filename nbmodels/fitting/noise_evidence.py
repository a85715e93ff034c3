"""Bayes factor of label noise in a joint model of features and labels.

Held-out labels alone can hardly decide whether few labels are noisy: a classifier that is less sure
predicts noisy labels nearly as well as a noise model. Where a joint model's features pass their
checks they say more: an item that lies in another class than its label names is unlikely unless the
label is wrong. So the joint model is compared with itself when every given label is right. Its
noise matrix is integrated out given the expected labels of each class (Dirichlet-multinomial), so
that rates which nothing calls for count against it (MacKay 2003, *Information Theory, Inference,
and Learning Algorithms*, chapter 28).
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import digamma, expit, gammaln

from inference.arrays import on_device
from nbmodels.core.component import Given
from nbmodels.core.families import Dirichlet
from nbmodels.core.model import Data, Model
from nbmodels.fitting.fit import Fit
from nbmodels.fitting.options import FitOptions, finished

#: Name of the channel of one noisy label an item.
_LABELS = "labels"

#: Pseudo-labels by which a channel is held to right labels.
_CERTAIN = 1e6


def probability_of_noise_jointly(
    fitted: Fit,
    log_likelihood: Float[np.ndarray, " n"],
    data: Data,
    options: FitOptions,
) -> float:
    """Posterior probability that labels are noisy, at even odds beforehand.

    Args:
        fitted: a joint model of features and noisy labels.
        log_likelihood: ``(N,)`` of each item under it, in the units of the encoded data.
        data: that it was fitted to.
        options: of its fit. Maximum likelihood has no prior to integrate over: its labels are taken
            for noisy, as are those whose noise is known.

    Raises:
        KeyboardInterrupt: the fit without noise was interrupted.
    """
    if options.rule == "ml" or isinstance(fitted.model[_LABELS], Given):
        return 1.0
    n = len(log_likelihood)
    model = jax.tree.map(on_device, dict(fitted.model))
    right = finished(options.without_restarts().fit(without_noise(model), data))
    weights = np.asarray(data.weights, float)[:n]
    gain = float(weights @ (log_likelihood - right.log_likelihood[:n]))
    return float(expit(gain + occam_factor(fitted)))


def without_noise(model: Model) -> Model:
    """The same model with labels that are right, in a channel of the same kind.

    So the fit runs in a program that there is already.
    """
    channel: Any = model[_LABELS]
    return {**model, _LABELS: channel.without_errors(_CERTAIN)}


def occam_factor(fitted: Fit) -> float:
    """Log marginal likelihood of the expected labels, less their likelihood at the rates fitted.

    Never positive: what the freedom of the noise matrix costs. Under ``"vb"`` it is the divergence
    of the rates' posterior from their prior.
    """
    channel: Any = fitted.model[_LABELS]
    q: Dirichlet = fitted.params[_LABELS]
    # under a mode, a concentration is one more than pseudo-labels
    extra = 1.0 if fitted.rule == "map" else 0.0
    prior, after = (np.asarray(d.concentration, float) - extra for d in (channel.prior, q))
    prior, after = np.maximum(prior, 0), np.maximum(after, 0)
    read = digamma if fitted.rule == "vb" else np.log
    labels = np.maximum(after - prior, 0)
    at_rates = np.sum(labels * read(np.maximum(after, np.finfo(float).tiny)))
    at_rates -= np.sum(labels.sum(q.axis) * read(after.sum(q.axis)))
    return float(_log_beta(after, q.axis) - _log_beta(prior, q.axis) - at_rates)


def _log_beta(concentration: Float[np.ndarray, "*shape"], axis: int) -> float:
    """Sum of the logarithms of multivariate beta functions; entries of zero are left out."""
    inside = gammaln(np.where(concentration > 0, concentration, 1.0)).sum()
    return float(inside - gammaln(concentration.sum(axis)).sum())
