"""Posterior draws of a fitted model, as an ArviZ ``DataTree`` with class names for coordinates."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import jax
import numpy as np
from jax import Array
from tqdm.auto import tqdm

from nbmodels.core.model import Data, Model, class_prior, with_role
from nbmodels.core.roles import LabelChannel
from nbmodels.errors import DataError, PosteriorWarning
from nbmodels.fitting.em import Fit
from nbmodels.posterior.alignment import aligned
from nbmodels.posterior.datatree import complaints, tree
from nbmodels.posterior.draws import Drawn
from nbmodels.posterior.gibbs import gibbs_draws
from nbmodels.posterior.numpyro import nuts_draws, svi_draws
from nbmodels.posterior.predictive import prior_draws, replicated
from nbmodels.posterior.sandwich import open_faced_sandwich
from nbmodels.posterior.variational import vb_draws

if TYPE_CHECKING:
    from xarray import DataTree

Method = Literal["gibbs", "vb", "svi", "nuts"]

#: Draws from the prior.
_BEFORE = 1_000


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
    keep: Literal["small", "all"] = "small",
    sandwich: bool = False,
    names: Any = None,
    features: Mapping[str, Any] | None = None,
    units: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> DataTree:
    """Posterior draws of a fitted model.

    Args:
        fit: from :func:`nbmodels.fitting.em.fit`; each chain begins at a draw of its own around it.
        data: what it was fitted to.
        key: JAX random key.
        method: ``"gibbs"`` on the fast core; ``"vb"``, independent draws of the CAVI posterior;
            ``"svi"``, of a guide fitted to the NumPyro program; ``"nuts"`` on that program (both
            for small data).
        draws: kept draws of each chain.
        warmup: sweeps or adaptation steps thrown away; 200 for Gibbs, 500 for NUTS.
        chains: number of chains.
        thin: Gibbs sweeps to each kept draw.
        keep: ``"small"`` leaves out parameters of more than 5,000 numbers a draw, and the items'
            log-likelihoods where there are more than 20 million; ``"all"`` keeps them.
        sandwich: stretch class shares and noise matrices to the spread that repeated samples would
            have; see :func:`nbmodels.posterior.open_faced_sandwich`.
        names: ``(K,)`` names of the classes.
        features: names of the columns of each emission.
        units: by emission, a function from its values to the units of the data.
        progress: show a bar; None to show one after a few seconds.
        options: of the method: ``correct`` for ``"vb"`` (:mod:`nbmodels.posterior.variational`);
            ``batch``, ``steps``, ``guide``, ``rank``, ``optimiser`` for ``"svi"``
            (:func:`inference.svi.svi`); ``target_accept`` for ``"nuts"``.

    Returns:
        ``DataTree`` with groups

        - ``posterior``: ``class_prior`` (``true_class``), ``noise_matrix`` (``observed_class``,
          ``true_class``; P(observed | true)), and ``{emission}_{parameter}``;
        - ``prior``: the same from the prior, small parameters only;
        - ``log_likelihood``: ``items``, log-density of each item, its class summed out;
        - ``posterior_predictive``, ``observed_data``: labels (codes of ``observed_class``, -1 where
          missing) and small features in the model's coding, replicated and as they are;
        - ``sample_stats``: ``lp``, the log-likelihood (Gibbs and VB) or the log-density in
          unconstrained coordinates (NUTS), with what NUTS says of itself;
        - ``label_posterior``: ``p`` (``item``, ``true_class``), averaged over the draws.

        Its ``attrs`` say the ``method``, the ``kind`` of posterior (that of the model; one given
        the features' scores where the feedback to them is cut: what their model gets wrong is not
        in it; a generalised one where components or rows are weighted), a ``correction`` of the
        intervals if there is one, and ``pareto_k`` of an approximation.

    Raises:
        DataError: an unknown method; row weights that Gibbs cannot honour.

    Warns:
        PosteriorWarning: R-hat above 1.05, few effective draws, divergences, a Pareto k above 0.7,
            classes that trade names, or a noise matrix whose diagonal does not dominate.
    """
    if method not in get_args(Method):
        expected = ", ".join(map(repr, get_args(Method)))
        raise DataError(f"method: expected one of {expected}; got {method!r}")
    first, second, third = jax.random.split(key, 3)
    size = {"draws": draws, "chains": chains}
    drawn = _draw(fit, data, first, method, size, warmup, thin, keep == "all", progress, options)
    drawn = aligned(fit.model, drawn, names)
    items = np.asarray(data.weights) > 0
    again, seen = replicated(fit.model, data, drawn, second)
    out = tree(
        fit.model,
        drawn,
        items=items,
        prior=prior_draws(fit.model, third, _BEFORE),
        replicated=again,
        observed=seen,
        everything=keep == "all",
        names=names,
        features=features,
        units=units,
    )
    rows = "all one" if np.isin(data.weights, (0, 1)).all() else "not all one"
    known = {"method": method, "kind": _kind(fit.model, rows), "row_weights": rows}
    out.attrs.update({**known, **drawn.attrs})
    if sandwich:
        out = open_faced_sandwich(out)
    for sentence in (*drawn.doubts, *complaints(out)):
        warnings.warn(sentence, PosteriorWarning, stacklevel=2)
    return out


def about_mode(fit: Fit) -> Fit:
    """The fit with priors whose draws are centred at its mode, as ``component.for_draws`` says.

    A variational fit is centred where its draws are, and stays as it is.
    """
    if fit.rule == "vb":
        return fit
    channels = with_role(fit.model, LabelChannel)
    return replace(fit, model={**fit.model, **{n: c.for_draws() for n, c in channels.items()}})


def _kind(model: Model, rows: str) -> str:
    """Which posterior this is."""
    known = class_prior(model).conditions_on
    name = f"posterior given {known}" if known else "posterior"
    powers = {n: float(c.weight) for n, c in model.items() if float(c.weight) != 1}
    told = [f"{n} to the power {w:g}" for n, w in powers.items()]
    told += ["rows by their weights"] if rows != "all one" else []
    return f"generalised {name}: {', '.join(told)}" if told else name


def _draw(
    fit: Fit,
    data: Data,
    key: Array,
    method: Method,
    size: dict[str, int],
    warmup: int | None,
    thin: int,
    everything: bool,
    progress: bool | None,
    options: dict[str, Any],
) -> Drawn:
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
        shared = {**size, "everything": everything, "report": bar.update, **options}
        if method == "vb":
            return vb_draws(fit, data, key, **shared)
        return gibbs_draws(fit, data, key, warmup=discarded, thin=thin, **shared)
