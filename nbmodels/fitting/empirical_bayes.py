"""Fitting where some priors are learned from the data (empirical Bayes)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nbmodels.core.model import Data, Model
from nbmodels.fitting.em import Fit, fit


def fit_pooled(
    model: Model,
    data: Data,
    pooled: Sequence[str],
    *,
    run: Callable[..., Fit] = fit,
    rounds: int = 30,
    rounds_tol: float = 0.01,
    **options: Any,
) -> Fit:
    """Alternate fits and new priors for the named components until the priors stand still.

    Each round climbs the evidence bound under ``rule="vb"``; under ``"map"`` the prior is learned
    from the counts that the fit assigns, and read as pseudo-counts.

    Args:
        model: components by name; the named ones have a ``pooled(q, rule)``.
        data: encoded data.
        pooled: names of the components whose prior is learned; those not in the model are passed
            over.
        run: fits a model to data, as :func:`nbmodels.fitting.em.fit` does.
        rounds: largest number of priors tried.
        rounds_tol: relative change of a prior's entries below which it stands still.
        options: of ``run``; ``rule`` may not be ``"ml"``, which has no prior.

    Warns:
        as :func:`nbmodels.fitting.em.fit`, of the last fit only.
    """
    pooled = [name for name in pooled if name in model]
    if not pooled:
        return run(model, data, **options)
    rule = options.get("rule", "map")
    if rule == "ml":
        raise ValueError("rule: maximum likelihood has no prior to learn; take 'map' or 'vb'")
    for left in range(rounds, -1, -1):
        with warnings.catch_warnings(record=True, action="always") as caught:
            fitted = run(model, data, **options)
        params = jax.tree.map(jnp.asarray, fitted.params)
        new = dict(model)
        change = 0.0
        for name in pooled:
            one: Any = model[name]
            new[name] = one.pooled(params[name], rule)
            before, after = (np.asarray(m[name].prior.concentration) for m in (model, new))
            change = max(change, float(np.max(np.abs(after / before - 1), initial=0)))
        if change <= rounds_tol or not left or not fitted.status.ok:
            break
        model = new
        options |= {"start": params}
        if "n_restarts" in options:
            options["n_restarts"] = 0
    for one in caught:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return fitted
