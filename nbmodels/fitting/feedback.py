"""Cut and joint fits of one model to one table: without feedback from labels to features, and with.

In the joint model the labels' channel and the features share their responsibilities (full
feedback). In the cross-fitted one, the cut, features learn from given labels of other items, and
what is found of the labels does not update them. Where ``training="auto"`` fits both, they are held
beside each other; else the other one is made when it is asked for, from the features that the joint
model, or a cross-fitted one of a small table, holds.
"""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp

from nbmodels.core.model import with_role
from nbmodels.core.roles import Emission
from nbmodels.errors import DataError
from nbmodels.fitting.cross_fitted import cross_fitted
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.joint import joint
from nbmodels.fitting.label_sources import learned_priors
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.scores import Candidate

Side = Literal["cut", "joint"]


def side_of(fitted: FittedModel) -> Side:
    """Which of the two a fit is."""
    return "cut" if fitted.scored else "joint"


def with_feedback(fitted: FittedModel, side: Side, options: FitOptions) -> FittedModel:
    """The cut or the joint fit: this one, the one beside it, or one that is made now.

    Args:
        fitted: a fit of emissions and labels, under ``fitted.settings``.
        side: which is wanted.
        options: of a fit that is made now.

    Raises:
        DataError: the joint fit of a large table's cross-fitted model, which does not hold the
            features.
        KeyboardInterrupt: the fit was interrupted.
    """
    if side_of(fitted) == side:
        return fitted
    if fitted.counterpart is not None:
        return fitted.counterpart
    made = _cut(fitted, options) if side == "cut" else _joint(fitted, options)
    if made.interrupted:
        raise KeyboardInterrupt
    return made


def _joint(cut: FittedModel, options: FitOptions) -> FittedModel:
    """The joint form of a cross-fitted model, under the same settings."""
    if cut.candidate is None:
        raise DataError(
            "feedback: this cross-fitted model does not hold the features of its table, which is "
            'large, for a joint fit; training="joint" gives both'
        )
    model, data, learned = cut.candidate
    to_device: Any = jax.tree.map(jnp.asarray, (model, data))
    candidate = Candidate(to_device[0], to_device[1], learned)
    return joint(candidate, cut.names, len(cut.fit.resp), options, settings=cut.settings)


def _cut(whole: FittedModel, options: FitOptions) -> FittedModel:
    """The cross-fitted form of a joint fit, under the same settings, without self-training."""
    to_device: Any = jax.tree.map(jnp.asarray, (dict(whole.fit.model), whole.data))
    model, data = to_device
    candidate = Candidate(model, data, learned_priors(model))
    features = tuple(with_role(model, Emission))
    n_rows = len(whole.fit.resp)
    return cross_fitted(
        lambda _: candidate, features, whole.names, n_rows, options, grid={}, rounds=0
    )
