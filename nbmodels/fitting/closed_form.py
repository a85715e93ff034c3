"""Closed forms as fits, and EM begun from them (Denis et al. 2006)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from inference.arrays import on_device
from inference.compilation import host_jit
from nbmodels.core.families import Dirichlet, Rule
from nbmodels.core.model import Data
from nbmodels.errors import Caution, ClippedWarning, DataError, IdentifiabilityWarning
from nbmodels.fitting import init_pairwise as pairwise
from nbmodels.fitting.builder import ModelBuilder
from nbmodels.fitting.em import evaluate
from nbmodels.fitting.fitted_model import FittedModel, fitted_model
from nbmodels.fitting.joint import joint
from nbmodels.fitting.options import FitOptions

#: EM never leaves a probability of zero, so it does not begin at one.
_LEAST = 1e-3


def attribute_indicators(build: ModelBuilder, least: int) -> tuple[Array, tuple[int, ...]]:
    """``(N, S)`` indicators of the values and the number of each attribute's values.

    Raises:
        DataError: less than ``least`` attributes.
    """
    (columns,) = build.columns({})
    sizes = tuple(len(c) for c in columns.encoder.categories)
    if len(sizes) < least:
        raise DataError(
            f"X: {least} attributes or more are needed to distinguish the classes, "
            f"got n_features = {len(sizes)}"
        )
    return on_device(build({}).data.parts["features"].onehot.to_host().toarray()), sizes


def fit_from_closed_form(
    build: ModelBuilder,
    names: np.ndarray,
    options: FitOptions,
    found: pairwise.Mixture,
    positive: Any,
    shares_name: str,
    estimator: str,
) -> FittedModel:
    """The closed form as a fit, or EM begun from it; a caution where it left its range.

    Args:
        build: of the model.
        names: ``(2,)`` names of the classes.
        options: of the fit.
        found: the closed form's mixture.
        positive: ``(N,)`` or ``(1,)`` P(y = 1 | label) of each item.
        shares_name: name of the shares that ``found.mix`` holds, for the caution.
        estimator: ``"em"`` or ``"moments"``.
    """
    model, data, _ = build({})
    shares, probs = np.asarray(found.outside)
    outside = [shares_name] * bool(shares)
    outside += ["probabilities of the attributes' values"] * bool(probs)
    cautions: tuple[Caution, ...] = ()
    if outside:
        then = "" if estimator == "moments" else "; EM continues from there"
        message = (
            f"the closed form gave inadmissible {' and '.join(outside)}, which were moved to the "
            f"nearest admissible ones{then}"
        )
        cautions = (Caution(ClippedWarning, message),)
    # an exact zero is admissible for the closed form, but no place for EM to begin
    least = 0.0 if estimator == "moments" else _LEAST
    start = _closed_form_params(model, data, found.probs, on_device(positive), least, options.rule)
    return fit_from_start(build, names, options, start, estimator, cautions)


def fit_from_start(
    build: ModelBuilder,
    names: np.ndarray,
    options: FitOptions,
    start: Any,
    estimator: str,
    cautions: tuple[Caution, ...],
) -> FittedModel:
    """Given parameters as a fit, or EM begun from them.

    Args:
        build: of the model.
        names: ``(K,)`` names of the classes.
        options: of the fit.
        start: parameters of all components.
        estimator: ``"em"`` or ``"moments"``.
        cautions: of the closed form.
    """
    candidate, n_rows = build({}), build.n_rows
    jacobian = build.log_jacobian({})
    if estimator == "moments":
        fit = evaluate(candidate.model, start, candidate.data, rule=options.rule)
        fitted = fitted_model(fit, candidate.data, names, n_rows, log_jacobian=jacobian)
    else:
        fitted = joint(candidate, names, n_rows, options, start=start, log_jacobian=jacobian)
    # for two classes it is enough that eta0 + eta1 < 1 (section 3)
    own = tuple(c for c in fitted.cautions if c.category is not IdentifiabilityWarning)
    return replace(fitted, cautions=(*cautions, *own))


@partial(host_jit, static_argnames="rule")
def _closed_form_params(
    model: Any, data: Data, probs: Array, positive: Array, least: float, rule: Rule
) -> Any:
    """Parameters of all components that reproduce a closed form.

    Args:
        model: components by name.
        data: encoded data.
        probs: ``(S, 2)`` P(value | class).
        positive: ``(N,)`` or ``(1,)`` P(y = 1 | label) of each item.
        least: what shares, and probabilities of zero, are raised to.
        rule: of the fit.
    """
    positive = jnp.broadcast_to(jnp.clip(positive, least, 1 - least), data.weights.shape)
    resp = data.weights[:, None] * jnp.stack([1 - positive, positive], 1)
    prior = model["features"].prior
    raised = jnp.where(probs > 0, probs, _LEAST)
    counts = Dirichlet(raised, axis=0, sizes=prior.sizes).mean * jnp.sum(resp, 0)
    out = {}
    for name, component in model.items():
        stats = counts
        if name != "features":
            read = component.likelihood_params(component.prior, "vb")
            stats = component.stats(read, resp, data.parts[name])
        out[name] = component.update(stats, rule)
    return out
