"""Closed forms as fits, and EM begun from them (Denis et al. 2006)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

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


#: Two product distributions from ``(N, S)`` indicators of the attributes' values, ``(N, G)``
#: weights of the items in each group, and the number of each attribute's values.
ClosedForm = Callable[[Array, Array, tuple[int, ...]], pairwise.Mixture]


class Groups(NamedTuple):
    """Groups of items that a closed form goes by.

    Attributes:
        table: ``(N, G)`` weight of each item in each group.
        of_item: ``(N,)`` place of each item's P(positive) in ``Mixture.mix``, or 2: that of all
            items.
        positive: code of the class that is the closed form's class 1.
        least_attributes: number of attributes that the closed form needs.
    """

    table: Float[np.ndarray, "n g"]
    of_item: Int[np.ndarray, " n"]
    positive: int = 1
    least_attributes: int = 2


def of_noisy_labels(x: Array, groups: Array, sizes: tuple[int, ...]) -> pairwise.Mixture:
    """From items labelled 0, and those labelled 1."""
    return pairwise.class_conditional(pairwise.tables(x, groups, sizes))


def of_positive_items(x: Array, groups: Array, sizes: tuple[int, ...]) -> pairwise.Mixture:
    """From unlabelled items, and positive ones."""
    return pairwise.positive_unlabelled(pairwise.tables(x, groups, sizes))


def of_unlabelled_items(x: Array, groups: Array, sizes: tuple[int, ...]) -> pairwise.Mixture:
    """From one group of all items."""
    return pairwise.unlabelled(x, groups[:, 0], sizes)


def attribute_sizes(build: ModelBuilder, least: int) -> tuple[int, ...]:
    """The number of each attribute's values.

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
    return sizes


def fit_from_closed_form(
    build: ModelBuilder,
    names: np.ndarray,
    options: FitOptions,
    form: ClosedForm,
    groups: Groups,
    shares_name: str,
    estimator: str,
) -> FittedModel:
    """The closed form as a fit, or EM begun from it; a caution where it left its range.

    Args:
        build: of the model.
        names: ``(2,)`` names of the classes.
        options: of the fit.
        form: the closed form.
        groups: of the items.
        shares_name: name of the shares that ``Mixture.mix`` holds, for the caution.
        estimator: ``"em"`` or ``"moments"``.

    Raises:
        DataError: too few attributes.
    """
    sizes = attribute_sizes(build, groups.least_attributes)
    model, data, _ = build({})
    x = on_device(data.parts["features"].onehot.to_host().toarray())
    # an exact zero is admissible for the closed form, but no place for EM to begin
    least = 0.0 if estimator == "moments" else _LEAST
    table, of_item = on_device(groups.table, float), on_device(groups.of_item)
    about = form, options.rule, sizes, groups.positive
    start, found = _closed_form_params(*about, model, data, x, table, of_item, least)
    shares, probs = np.asarray(found)
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


@partial(host_jit, static_argnames=("form", "rule", "sizes", "positive"))
def _closed_form_params(
    form: ClosedForm,
    rule: Rule,
    sizes: tuple[int, ...],
    positive: int,
    model: Any,
    data: Data,
    x: Array,
    groups: Array,
    of_item: Array,
    least: float,
) -> tuple[Any, Array]:
    """Parameters of all components that reproduce a closed form, and its ``Mixture.outside``.

    Args:
        form: the closed form.
        rule: of the fit.
        sizes: number of each attribute's values.
        positive, of_item: see :class:`Groups`.
        model: components by name.
        data: encoded data.
        x: ``(N, S)`` indicators of the attributes' values.
        groups: ``(N, G)`` weight of each item in each group.
        least: what shares, and probabilities of zero, are raised to.
    """
    found = form(x, groups, sizes)
    share = jnp.clip(jnp.append(found.mix, found.share)[of_item], least, 1 - least)
    both = [1 - share, share] if positive else [share, 1 - share]
    resp = data.weights[:, None] * jnp.stack(both, 1)
    prior = model["features"].prior
    probs = found.probs if positive else found.probs[:, ::-1]
    raised = jnp.where(probs > 0, probs, _LEAST)
    counts = Dirichlet(raised, axis=0, sizes=prior.sizes).mean * jnp.sum(resp, 0)
    out = {}
    for name, component in model.items():
        stats = counts
        if name != "features":
            read = component.likelihood_params(component.prior, "vb")
            stats = component.stats(read, resp, data.parts[name])
        out[name] = component.update(stats, rule)
    return out, found.outside
