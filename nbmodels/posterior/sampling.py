"""Posterior draws of a fitted model, as an ArviZ ``DataTree`` with class names for coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import Array
from tqdm.auto import tqdm

from nbmodels.core.model import Data, Model, class_prior, with_role
from nbmodels.core.roles import LabelChannel
from nbmodels.errors import issue
from nbmodels.fitting.em import Fit
from nbmodels.posterior.alignment import aligned
from nbmodels.posterior.convergence import convergence_checks
from nbmodels.posterior.datatree import to_datatree
from nbmodels.posterior.draws import PosteriorDraws
from nbmodels.posterior.gibbs import gibbs_draws
from nbmodels.posterior.numpyro import nuts_draws, svi_draws
from nbmodels.posterior.options import (
    Keep,
    Method,
    check_choices,
    check_memory,
    check_options,
    check_sizes,
)
from nbmodels.posterior.predictive import prior_draws, replicated
from nbmodels.posterior.sandwich import open_faced_sandwich
from nbmodels.posterior.variational import vb_draws

if TYPE_CHECKING:
    from xarray import DataTree

#: Number of draws from the prior.
_PRIOR_DRAWS = 1_000


def sample(
    fit: Fit,
    data: Data,
    key: Array,
    *,
    method: Method = "gibbs",
    draws: int = 500,
    warmup: int | None = None,
    chains: int = 4,
    thin: int = 1,
    keep: Keep = "small",
    sandwich: bool = False,
    names: Any = None,
    features: Mapping[str, Any] | None = None,
    units: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> DataTree:
    """Posterior draws of a fitted model.

    Args:
        fit: from :func:`nbmodels.fitting.em.fit`; each chain starts at a draw of its own around it.
        data: what it was fitted to.
        key: JAX random key.
        method: ``"gibbs"`` on the fast core; ``"vb"``, independent draws of the CAVI posterior;
            ``"svi"``, of a guide fitted to the NumPyro program; ``"nuts"`` on that program (both
            for small data).
        draws: kept draws of each chain, 1 or more.
        warmup: discarded sweeps or adaptation steps, 0 or more; None for 200 of Gibbs, 500 of NUTS.
        chains: number of chains, 1 or more.
        thin: Gibbs sweeps to each kept draw, 1 or more.
        keep: ``"small"`` leaves out parameters of more than 5,000 numbers a draw, and the items'
            log-likelihoods where there are more than 20 million; ``"all"`` keeps them.
        sandwich: stretch class shares and noise matrices to the spread that repeated samples would
            have; see :func:`nbmodels.posterior.open_faced_sandwich`.
        names: ``(K,)`` names of the classes.
        features: names of the columns of each emission.
        units: by emission, a function from its values to the units of the data.
        progress: show a bar; None to show one after a few seconds.
        options: of the method: ``correct`` for ``"vb"`` (:mod:`nbmodels.posterior.variational`);
            ``batch``, ``steps``, ``guide``, ``rank``, ``particles``, ``optimiser`` for ``"svi"``
            (:func:`inference.svi.svi`); ``target_accept`` for ``"nuts"``.

    Returns:
        ``DataTree`` with groups

        - ``posterior``: ``class_prior`` (``true_class``), ``noise_matrix`` (``observed_class``,
          ``true_class``; P(observed | true)), and ``{emission}_{parameter}``;
        - ``prior``: the same from the prior, small parameters only;
        - ``log_likelihood``: one variable (``item``), the log-density of each item, its class
          summed out. It is named after the data variable where the model has one with one value an
          item, such as the labels of a cross-fitted model, and ``items`` otherwise;
        - ``posterior_predictive``, ``observed_data``: labels (codes of ``observed_class``, -1 where
          missing) and small features in the model's coding, replicated and as they are. With one
          data variable ``arviz_plots.plot_loo_pit`` takes the tree as it is, else
          :func:`nbmodels.posterior.for_loo_pit` selects a variable;
        - ``sample_stats``: ``lp``, the log-likelihood (Gibbs and VB) or the log-density in
          unconstrained coordinates (NUTS), with the statistics of NUTS;
        - ``label_posterior``: ``p`` (``item``, ``true_class``), averaged over the draws.

        Its ``attrs`` give the ``method``, what the noise matrix ``assumes``, the ``kind`` of
        posterior (that of the model; conditional on the features' scores where the fit is modular,
        so that errors of the features' model are not in it; a generalised one where components or
        rows are weighted), a ``correction`` of the intervals if there is one, ``pareto_k`` of an
        approximation, and ``warnings``, the messages
        of all warnings, a line each.

    Raises:
        DataError: an argument that is unknown or out of range, named by the message; draws that
            exceed a billion numbers; row weights that Gibbs sampling does not support.

    Warns:
        PosteriorWarning: R-hat above 1.05, few effective draws, divergences, a Pareto k above 0.7,
            several modes by exchanged classes, a noise matrix whose diagonal does not dominate, or
            an interruption (Ctrl-C), after which there are fewer draws than requested.
    """
    check_choices(method=method, keep=keep, sandwich=sandwich, progress=progress)
    check_sizes(draws=draws, chains=chains, thin=thin, warmup=warmup)
    check_options(method, options)
    check_memory(fit.model, data, method=method, draws=draws, chains=chains, keep_all=keep == "all")
    first, second, third = jax.random.split(key, 3)
    size = {"draws": draws, "chains": chains}
    drawn = _draw(fit, data, first, method, size, warmup, thin, keep == "all", progress, options)
    drawn = aligned(fit.model, drawn, names)
    items = np.asarray(data.weights) > 0
    again, observed = replicated(fit.model, data, drawn, second)
    out = to_datatree(
        fit.model,
        drawn,
        items=items,
        prior=prior_draws(fit.model, third, _PRIOR_DRAWS),
        replicated=again,
        observed=observed,
        keep_all=keep == "all",
        names=names,
        features=features,
        units=units,
    )
    rows = "all one" if np.isin(data.weights, (0, 1)).all() else "not all one"
    kind = {
        "method": method,
        "kind": _kind(fit.model, rows),
        "assumes": "errors that do not depend on the features given the true class",
        "row_weights": rows,
    }
    out.attrs.update({**kind, **drawn.attrs})
    if sandwich:
        out = open_faced_sandwich(out)
    cautions = (*drawn.cautions, *convergence_checks(out))
    # one string: netCDF has no lists of strings among its attributes
    out.attrs["warnings"] = "\n".join(caution.message for caution in cautions)
    issue(cautions)
    return out


def about_mode(fit: Fit) -> Fit:
    """The fit with priors whose draws are centred at its mode, by ``component.for_draws``.

    A variational fit has the mean of its draws already and is returned unchanged.
    """
    if fit.rule == "vb":
        return fit
    model, params = dict(fit.model), dict(fit.params)
    for name, channel in with_role(fit.model, LabelChannel).items():
        model[name], params[name] = channel.for_draws(params[name])
    return replace(fit, model=model, params=params)


def _kind(model: Model, rows: str) -> str:
    """Kind of posterior: conditional on other quantities, generalised by powers, or neither."""
    conditions = class_prior(model).conditioned_on
    name = f"posterior given {conditions}" if conditions else "posterior"
    weights = {n: float(c.weight) for n, c in model.items() if float(c.weight) != 1}
    powers = [f"{n} to the power {w:g}" for n, w in weights.items()]
    powers += ["rows by their weights"] if rows != "all one" else []
    return f"generalised {name}: {', '.join(powers)}" if powers else name


def _draw(
    fit: Fit,
    data: Data,
    key: Array,
    method: Method,
    size: dict[str, int],
    warmup: int | None,
    thin: int,
    keep_all: bool,
    progress: bool | None,
    options: dict[str, Any],
) -> PosteriorDraws:
    if method == "nuts":
        steps = 500 if warmup is None else warmup
        return nuts_draws(fit, data, key, warmup=steps, progress=bool(progress), **size, **options)
    if method == "svi":
        return svi_draws(fit, data, key, progress=bool(progress), **size, **options)
    discarded = 200 if warmup is None else warmup
    sweeps = {
        "gibbs": size["chains"] * (discarded + size["draws"] * thin),
        "vb": size["chains"] * size["draws"],
    }
    with tqdm(
        desc="sampling",
        unit="sweep",
        total=sweeps[method],
        delay=0.0 if progress else 3.0,
        disable=progress is False,
        leave=False,
    ) as bar:
        shared = {**size, "keep_all": keep_all, "report": bar.update, **options}
        if method == "vb":
            return vb_draws(fit, data, key, **shared)
        return gibbs_draws(fit, data, key, warmup=discarded, thin=thin, **shared)
