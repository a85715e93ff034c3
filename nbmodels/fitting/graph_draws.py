"""What posterior draws of a graph's noise are of: an average over forms of its noise matrix.

Where the form is chosen, two kinds of draws count alike: those of the forms that were compared, by
their probabilities, and those of a hierarchical matrix on the scores of the preferred one. A single
rate is drawn too narrowly where rates differ a little, and full rows are not drawn to each other;
the hierarchical prior has both as its ends, but finds each more slowly than where it is known.
Held-out labels can hardly tell it from either, so that their odds stay what they were: even. A form
counts only where most labels of every class are right; the hierarchical matrix is not held to that,
so that draws show where the edges cannot tell two classes apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from nbmodels.channels import PooledTransition
from nbmodels.core.component import Given
from nbmodels.fitting.em import Fit
from nbmodels.fitting.fitted_model import Drawn
from nbmodels.fitting.graph_forms import Form
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.propagation import LabelledGraph

#: Probability of the hierarchical matrix, where it is one of the forms.
_HIERARCHICAL = 0.5


def alternatives(
    chosen: Form,
    found: Sequence[Form],
    shares: Sequence[float],
    full: LabelledGraph | None,
    settings: Mapping[str, Any],
    options: FitOptions,
) -> tuple[Drawn, ...]:
    """What draws are of beside the chosen form, with probabilities.

    Args:
        chosen: the preferred form.
        found: all that were compared, it among them.
        shares: of each, their probabilities.
        full: the labels under a full matrix, from which the hierarchical one is made; None where
            the form was not to be chosen.
        settings: of the label channels.
        options: of the fits.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    one = None if full is None else _hierarchical(chosen, full, settings, options)
    left = 1 - (one.probability if one else 0.0)
    others = tuple(
        Drawn(other.fit, _drawn_data(other), left * share)
        for other, share in zip(found, shares, strict=True)
        if other is not chosen and share > 0
    )
    return others if one is None else (*others, one)


def _drawn_data(one: Form) -> Any:
    """What a form's fit is of, on the host."""
    return jax.tree.map(np.asarray, one.about.scored(one.mixture.held_out()).data)


def _hierarchical(
    chosen: Form, full: LabelledGraph, settings: Mapping[str, Any], options: FitOptions
) -> Drawn | None:
    """The hierarchical matrix on the scores of a form; None where no matrix has a prior."""
    channel = full.labels.model.get("labels")
    if channel is None or isinstance(channel, Given) or options.rule == "ml":
        return None
    fit = chosen.fit
    if chosen.about is not full:
        (fit,) = full.predictions().calibrated([chosen.mixture.held_out()], options)
    return Drawn(_pooled(fit, settings), _drawn_data(chosen._replace(about=full)), _HIERARCHICAL)


def _pooled(fit: Fit, settings: Mapping[str, Any]) -> Fit:
    """A fit of a full matrix with the channel whose draws are hierarchical."""
    own: Any = fit.params["labels"]
    k = len(np.asarray(own.concentration))
    prior = float(settings["noise_alpha"]), float(settings["noise_diagonal"])
    channel, q = PooledTransition.of(k, None, *prior).pooled(own, "map").for_draws(own)
    model, params = {**fit.model, "labels": channel}, {**fit.params, "labels": q}
    return replace(fit, model=model, params=params)
