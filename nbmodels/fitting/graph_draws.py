"""What posterior draws of a graph's noise are of, where the form of its matrix is chosen.

Half of the draws are of a full matrix and half of a hierarchical one, both on the scores of the
preferred form. A full matrix does not draw its rows to each other, and gives pairs of classes rates
of their own; the hierarchical one has one error rate and a full matrix as its ends, and finds each
more slowly than where it is known. Held-out labels prefer one error rate wherever edges are weak,
since it has less to learn, not since rates are equal: its draws are then too narrow, and so draws
do not follow these odds. Under weak edges they do hang on the prior of a full matrix: pseudo-labels
that are its mode, as in a variational fit, take more labels for wrong, and pseudo-labels that are
its mean fewer, so that there are draws of both. Where there are too few labels for a full matrix
the preferred form takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from nbmodels.channels import PooledTransition
from nbmodels.core.component import Given
from nbmodels.fitting.em import Fit
from nbmodels.fitting.empirical_bayes import pooled
from nbmodels.fitting.fit import with_arrays
from nbmodels.fitting.fitted_model import Drawn
from nbmodels.fitting.graph_forms import Form
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.propagation import LabelledGraph

#: Probability of the hierarchical matrix; a full one, or the preferred form, has the rest.
_HIERARCHICAL = 0.5


def alternatives(
    chosen: Form,
    full: LabelledGraph,
    enough: bool,
    settings: Mapping[str, Any],
    options: FitOptions,
) -> tuple[Drawn, ...]:
    """What draws are of instead of the preferred form, or beside it, with probabilities.

    Args:
        chosen: the preferred form.
        full: the labels under a full matrix, from which the hierarchical one is made.
        enough: whether there are labels enough for draws of a full matrix.
        settings: of the label channels.
        options: of the fits.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    channel = full.labels.model.get("labels")
    if channel is None or isinstance(channel, Given) or options.rule == "ml":
        return ()
    fit = chosen.fit
    if chosen.about is not full:
        (fit,) = full.predictions().calibrated([chosen.mixture.held_out()], options)
    data = jax.tree.map(np.asarray, full.scored(chosen.mixture.held_out()).data)
    hierarchical = Drawn(_pooled(fit, settings), data, _HIERARCHICAL)
    if not enough:
        return (hierarchical,)
    # draws of other rules have pseudo-labels for their mean already
    wholes = [fit, _of_mean(fit)] if fit.rule == "vb" else [fit]
    share = (1 - _HIERARCHICAL) / len(wholes)
    return (*(Drawn(one, data, share) for one in wholes), hierarchical)


def _of_mean(fit: Fit) -> Fit:
    """A fit whose draws have pseudo-labels for the mean of their prior."""
    channel: Any = fit.model["labels"]
    return _with_labels(fit, *channel.for_draws(fit.params["labels"]))


def _pooled(fit: Fit, settings: Mapping[str, Any]) -> Fit:
    """A fit of a full matrix with the channel whose draws are hierarchical."""
    own: Any = fit.params["labels"]
    k = len(np.asarray(own.concentration))
    prior = float(settings["noise_alpha"]), float(settings["noise_diagonal"])
    channel = with_arrays(PooledTransition.of(k, None, *prior))
    return _with_labels(fit, *pooled(channel, own, "map").for_draws(own))


def _with_labels(fit: Fit, channel: Any, q: Any) -> Fit:
    model, params = {**fit.model, "labels": channel}, {**fit.params, "labels": q}
    return replace(fit, model=model, params=params)
