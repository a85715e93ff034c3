"""Draws of two forms of the noise matrix, hierarchical and full, where labels are few.

The rows of a hierarchical matrix are drawn to one error rate as strongly as they seem to be alike.
Few labels do not show that, and the strength is sampled, but a matrix whose rates are zero for most
pairs of classes is hardly under its prior: of 100 labels of three classes that move to the next
class only, 90 % intervals held 72 % of the other cells. Under a full matrix they are held, and a
common error rate is found more slowly. Neither is surely right, so half of the draws are of each
(Bayesian model averaging), as on graphs (:mod:`nbmodels.fitting.graph_draws`) and under
discriminative classifiers (:mod:`nbmodels.fitting.discriminative`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nbmodels.channels import PooledTransition
from nbmodels.fitting.em import Fit
from nbmodels.fitting.fitted_model import Drawn, FittedModel, without

#: Probability of the full matrix, labels a cell of the rarest class from which on both give one
#: interval, and classes from which on draws of a full matrix take too long: of ten classes a
#: hierarchical one alone held 84 to 99 % of the other cells.
_FULL, _MANY, _CLASSES = 0.5, 100, 6


def with_full_form(fitted: FittedModel) -> FittedModel:
    """A fit half of whose draws are of a full matrix, where its labels are few.

    Args:
        fitted: any fit; one of many classes, without labels, whose draws are of a prior or of a
            variational posterior, or whose matrix is not hierarchical stays as it is.
    """
    forms = [one.fit for one in fitted.alternatives] + [fitted.fit]
    channels: list[Any] = [one.model.get("labels") for one in forms]
    if fitted.drawn is not None or fitted.fit.rule == "vb":
        return fitted
    if any(type(one) is not PooledTransition for one in channels) or not _few(fitted):
        return fitted
    own = without(fitted.fit, fitted.scored)
    share = 1 - sum(one.probability for one in fitted.alternatives)
    others = [
        part
        for one in fitted.alternatives
        for part in (one._replace(probability=(1 - _FULL) * one.probability), _full(one))
    ]
    return replace(fitted, alternatives=(_full(Drawn(own, fitted.data, share)), *others))


def _few(fitted: FittedModel) -> bool:
    channel: Any = fitted.fit.model["labels"]
    cells = channel.prior.concentration
    n = len(fitted.fit.resp)
    codes = np.asarray(fitted.data.parts["labels"])[:n]
    weights = np.where(codes < cells.shape[1], np.asarray(fitted.data.weights)[:n], 0)
    # a rare class shows no more of its own row than few labels of all classes would
    rarest = float((weights @ np.asarray(fitted.fit.resp)).min())
    return len(cells) < _CLASSES and rarest < _MANY * cells.shape[1]


def _full(one: Drawn) -> Drawn:
    """The part of the draws that is of a full matrix."""
    fit: Fit = one.fit
    channel: Any = fit.model["labels"]
    model = {**fit.model, "labels": channel.full}
    return Drawn(replace(fit, model=model), one.data, _FULL * one.probability)
