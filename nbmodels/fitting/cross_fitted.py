"""Cross-fitting (modular, or cut, inference): features learn from the labels of other items only.

A joint fit refits the features' parameters with its own responsibilities, and where features depend
on each other it soon trusts them more than the labels. Here their parameters come from the given
labels of other items; how far their evidence counts is fitted together with the noise (Plummer
2015, Statistics and Computing 25; Jacob et al. 2017). Corrected labels flow back to the features
for as many self-training rounds as held-out labels reward, none included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from nbmodels.core.model import Model
from nbmodels.data.validation import drawn_length, pad_rows
from nbmodels.fitting.design_effect import padded_groups
from nbmodels.fitting.fitted_model import FittedModel, fitted_model
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.scores import (
    Candidate,
    EmissionScores,
    Settings,
    cautious,
    draw_folds,
    label_responsibilities,
)
from nbmodels.fitting.selection import select
from nbmodels.fitting.trials import Selection, anything_open

_N_FOLDS = 5


def cross_fitted(
    build: Callable[[Settings], Candidate],
    features: Sequence[str],
    names: np.ndarray,
    n_rows: int,
    options: FitOptions,
    *,
    grid: Mapping[str, Sequence[Any]],
    rounds: int | None,
    n_folds: int = _N_FOLDS,
    copies: Int[np.ndarray, " n"] | None = None,
    hold_out: bool = False,
    start: Any = None,
    priors: Model | None = None,
    warm: bool = False,
) -> FittedModel:
    """Fit emissions out of fold, and the noise given their scores.

    Args:
        build: model and data under given settings.
        features: names of the emissions.
        names: ``(K,)`` names of the classes.
        n_rows: number of rows before padding.
        options: of the fits.
        grid: values of each open setting, the cautious one first.
        rounds: self-training rounds; None for as many as held-out labels reward.
        n_folds: number of folds.
        copies: rows that stay in one fold, see :func:`nbmodels.fitting.scores.stratified_folds`.
        hold_out, start, priors, warm: see :func:`nbmodels.fitting.selection.select`.

    Returns:
        a fit whose class prior is a :class:`nbmodels.class_priors.Calibration` and whose data have
        scores in the place of the features; its objective is the log-likelihood of the labels given
        the features. The emissions are in it with parameters for new items, learned from all.

    Raises:
        DataError: there are no labels to learn the features from.
    """
    begin = cautious(grid)
    model, data, _ = build(begin)
    labels = {name: c for name, c in model.items() if name not in features}
    resp = label_responsibilities(labels, data)
    drawn = min(drawn_length(n_rows), len(resp))
    copies = padded_groups(copies, drawn)
    counted = np.asarray(resp)[:drawn] * (np.asarray(data.weights)[:drawn, None] > 0)
    fold = pad_rows(draw_folds(counted, n_folds, copies), len(resp))
    source = EmissionScores(build, features, fold, options.rule)
    more: dict[str, Any] = {"rounds": rounds, "hold_out": hold_out, "start": start, "warm": warm}
    more["priors"] = priors
    found = select(source, resp, fold, options=options, grid=grid, copies=copies, **more)
    if not anything_open(grid, rounds):
        found = replace(found, table=None)
    model, _, _ = build(found.settings)
    emissions = {name: model[name] for name in features}
    params = source.learned(found.settings, found.responsibilities)
    to_host = partial(jax.tree.map, np.asarray)
    whole = replace(
        found.fit,
        model={**found.fit.model, **to_host(emissions)},
        params={**found.fit.params, **to_host(params)},
    )
    return selected(replace(found, fit=whole), names, n_rows, scored=tuple(features))


def selected(
    found: Selection, names: np.ndarray, n_rows: int, *, scored: tuple[str, ...] = ()
) -> FittedModel:
    """The result of a selection as a :class:`FittedModel`."""
    return fitted_model(
        found.fit,
        found.data,
        names,
        n_rows,
        scored=scored,
        settings=found.settings,
        chosen={**found.settings, "rounds": found.rounds},
        choice=found.table,
        held_out_scores=found.scores[:n_rows],
        learned_from=np.asarray(found.responsibilities)[:n_rows],
        plain=found.plain,
        plain_scores=None if found.plain_scores is None else found.plain_scores[:n_rows],
        noisy=found.noisy,
        drawn=found.drawn,
        ranked=None if found.ranked is None else found.ranked[:n_rows],
        interrupted=found.interrupted,
        cautions=found.cautions,
    )
