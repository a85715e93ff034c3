"""Empirical Bayes: alternate fits and new priors for components made of many alike.

Annotators, users, and the columns of a noise matrix share a prior that can be learned from what a
fit finds of each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from inference import Status
from inference.arrays import floating, on_device
from inference.compilation import host_jit
from nbmodels.core.families import Rule
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import Data, Model
from nbmodels.fitting.em import Fit
from nbmodels.fitting.fit import with_arrays
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.progress import Report

#: Largest number of priors tried, and the relative change of their entries that ends the search.
_ROUNDS, _TOL = 30, 0.01

#: Tolerances of a fit that is to be followed by another one.
_ROUGHLY = 1000.0

#: Change from which on fits may end early.
_NEAR = 0.1

#: Parameters up to which a prior is learned in double precision, whatever that of the fit.
_DOUBLE = 10_000_000


def fit_with_learned_priors(
    model: Model,
    data: Data,
    learned: Sequence[str],
    options: FitOptions,
    *,
    start: Any = None,
    report: Report | None = None,
    roughly: bool = False,
) -> Fit:
    """A fit in which the priors of the named components are learned; a plain one without names.

    Each round climbs the evidence bound under ``"vb"``; under ``"map"`` the prior is learned from
    the counts that the fit assigns, and read as pseudo-counts.

    Args:
        model: components by name; the named ones have a ``pooled(q, rule)``.
        data: encoded data.
        learned: names of the components whose prior is learned; others are passed over.
        options: of the fit.
        start: parameters to begin from instead of the labels.
        report: called now and then with the iterations and the value they improve.
        roughly: end fits early until the prior has come to rest; another fit has the whole
            tolerance then. With many classes fits under priors that are replaced take most of the
            iterations. (With few, whose rates are hardly identified, priors took 15 rounds to come
            back from what an early end showed.)

    After Ctrl-C the result is the last fit, with the status ``INTERRUPTED``.

    Raises:
        ValueError: maximum likelihood, which has no prior to learn.
    """
    names = [name for name in learned if name in model]
    if names and options.rule == "ml":
        raise ValueError("rule: maximum likelihood has no prior to learn; take 'map' or 'vb'")
    rough = roughly and bool(names) and not options.n_restarts  # of which the best is taken
    loose = replace(options, tol=_ROUGHLY * options.tol)
    fitted = (loose if rough else options).fit(model, data, start=start, report=report)
    try:
        for _ in range(_ROUNDS if names else 0):
            new, change, params = _relearned(fitted, model, names, options)
            if not fitted.status.ok or (change <= _TOL and not rough):
                break
            model, rough = (new if change > _TOL else model), rough and change > _NEAR
            how = loose if rough else options.without_restarts()
            fitted = how.fit(model, data, start=params, report=report)
    except KeyboardInterrupt:
        return replace(fitted, status=Status.INTERRUPTED)
    return fitted


@partial(host_jit, static_argnames="rule")
def pooled(component: Any, q: Any, rule: Rule) -> Any:
    """A component with its prior learned from its posterior, by one program."""
    return component.pooled(q, component.read_by(rule))


def _pooled_precisely(component: Any, q: Any, rule: Rule) -> Any:
    """In double precision, where that takes little room.

    In single precision rounding decides on concentrations far above the counts: the digamma
    functions whose differences tell them agree to six digits.
    """
    many = sum(np.size(leaf) for leaf in jax.tree.leaves(q)) > _DOUBLE
    if many or floating() == np.float64:
        return pooled(component, q, rule)

    def cast(tree: Any, dtype: Any) -> Any:
        def number(leaf: Any) -> Any:
            host = np.asarray(leaf)
            return on_device(host.astype(dtype) if host.dtype.kind == "f" else host)

        return jax.tree.map(number, tree)

    with computing(double=True):
        learned = jax.tree.map(np.asarray, pooled(cast(component, float), cast(q, float), rule))
    return cast(learned, floating())


def _relearned(
    fitted: Fit, model: Model, names: Sequence[str], options: FitOptions
) -> tuple[Model, float, Any]:
    """The model with new priors, their largest relative change, and where to go on from."""
    params = jax.tree.map(on_device, fitted.params)
    new, change = dict(model), 0.0
    for name in names:
        component: Any = model[name]
        # the weight stays the bare number that it may be, or the next fit would be compiled anew
        learned = _pooled_precisely(with_arrays(component), params[name], options.rule)
        new[name] = replace(learned, weight=component.weight)
        before, after = (np.asarray(one.learned) for one in (component, learned))
        change = max(change, float(np.max(np.abs(after / before - 1), initial=0)))
    return new, change, params
