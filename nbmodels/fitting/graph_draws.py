"""What posterior draws of a graph's noise are of, where the form of its matrix is chosen.

Draws on the scores of the preferred form are half of a full matrix and half of a hierarchical one.
A full matrix does not draw its rows to each other, and gives pairs of classes rates of their own;
the hierarchical one has one error rate and a full matrix as its ends, and finds each more slowly
than where it is known. Held-out labels prefer one error rate wherever edges are weak, since it has
less to learn, not since rates are equal: its draws are then too narrow, and so draws do not follow
these odds. Pseudo-labels of the full matrix are the mean of its prior: as its mode, as in a
variational fit, they take more labels for wrong than there are. Where there are too few labels for
a full matrix the preferred form takes its place.

Draws on scores take the calibration for right, and are too narrow by what is wrong with it. So some
draws of the noise matrix are those that the votes of two halves of the users identify without any
(:mod:`nbmodels.posterior.noise_by_halves`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from nbmodels.channels import PooledTransition, Transition
from nbmodels.core.component import Given
from nbmodels.fitting.em import Fit
from nbmodels.fitting.empirical_bayes import pooled
from nbmodels.fitting.fit import with_arrays
from nbmodels.fitting.fitted_model import Drawn
from nbmodels.fitting.graph_forms import Form
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.propagation import LabelledGraph
from nbmodels.fitting.split_users import Halves, NoiseByHalves

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
    whole = _of_mean(fit) if fit.rule == "vb" else fit
    return (Drawn(whole, data, 1 - _HIERARCHICAL), hierarchical)


def by_halves(
    found: Sequence[Drawn], halves: Halves | None, settings: Mapping[str, Any]
) -> NoiseByHalves | None:
    """The full matrix by halves of the users, beside draws of a full one on scores.

    Args:
        found: of :func:`alternatives`.
        halves: labels and the votes of each half of the users; None where no noise is learned.
        settings: of the label channels.
    """
    if len(found) < 2 or halves is None:
        return None
    whole: Any = found[0].fit.model["labels"]
    k = len(whole.prior.concentration)
    prior = float(settings["noise_alpha"]), float(settings["noise_diagonal"])
    centred = Transition.of(k, None, *prior).prior.centred
    return NoiseByHalves(halves, np.asarray(centred.concentration, float))


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
