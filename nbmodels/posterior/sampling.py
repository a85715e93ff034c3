"""Posterior draws of a fitted model, as an ArviZ ``DataTree`` with class names for coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import jax
import numpy as np
from jax import Array

from inference.gibbs import Stopping
from inference.svi import STEPS
from nbmodels.core.model import PRIOR, Data, Model, class_prior, with_role
from nbmodels.core.roles import Emission, LabelChannel
from nbmodels.errors import issue
from nbmodels.fitting.em import Fit
from nbmodels.fitting.fitted_model import Drawn
from nbmodels.fitting.progress import Progress
from nbmodels.posterior.alignment import aligned
from nbmodels.posterior.convergence import convergence_checks
from nbmodels.posterior.datatree import to_datatree
from nbmodels.posterior.draws import Keep, PosteriorDraws
from nbmodels.posterior.gibbs import WARMUP, gibbs_draws, stopping
from nbmodels.posterior.numpyro import nuts_draws, svi_draws
from nbmodels.posterior.opinion_pool import averaged
from nbmodels.posterior.options import (
    Method,
    check_choices,
    check_memory,
    check_options,
    check_sizes,
)
from nbmodels.posterior.predictive import prior_draws, replicated
from nbmodels.posterior.sandwich import open_faced_sandwich
from nbmodels.posterior.variational import check_variational, vb_draws

if TYPE_CHECKING:
    from xarray import DataTree

#: Draws of a chain by methods whose chains do not stop by themselves.
_DRAWS = 500

#: Effective draws of a form in units of its share, since draws of each are taken at random, and the
#: share that a form of little probability has at the least.
_MORE, _LEAST_SHARE = 1.5, 0.25

#: Number of draws from the prior.
_PRIOR_DRAWS = 1_000


def sample(
    fit: Fit,
    data: Data,
    key: Array,
    *,
    method: Method = "gibbs",
    draws: int | Literal["auto"] = "auto",
    warmup: int | None = None,
    chains: int = 4,
    thin: int = 1,
    keep: Keep = "small",
    sandwich: bool = False,
    names: Any = None,
    features: Mapping[str, Any] | None = None,
    units: Mapping[str, Any] | None = None,
    coords: Mapping[str, Mapping[str, Any]] | None = None,
    item_names: Any = None,
    alternatives: Sequence[Drawn] = (),
    named: bool = False,
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
        draws: kept draws of each chain, 1 or more. ``"auto"``: Gibbs chains stop once class shares
            and rates of right labels have R-hat of 1.01 or less and 400 effective draws, bulk and
            tail, and the worst cell of a noise matrix R-hat of 1.04 and 100 effective draws; after
            200 draws of each at the least, and 8,000 at the most (2,000 of a large model, whose
            sweeps take longer), of which 250 to 500 are kept, evenly spaced
            (:class:`inference.gibbs.Stopping`). Of several forms each needs half as many
            effective draws more than its share, a quarter at the least. Chains that reach the limit
            first are warned of by the same rule. 500 by the other methods.
        warmup: discarded sweeps or adaptation steps, 0 or more. None for 500 of NUTS; of Gibbs for
            200, or, where ``draws="auto"``, for as many as it takes until the chains agree, 500 at
            the most.
        chains: number of chains, 1 or more.
        thin: Gibbs sweeps to each kept draw, 1 or more.
        keep: ``"small"`` leaves out parameters of more than 5,000 numbers a draw, and the items'
            log-likelihoods where there are more than 20 million; ``"all"`` keeps them.
            ``"parameters"`` is for intervals alone: no log-likelihoods, and no draws of the prior
            and of replicated data. NUTS and SVI keep log-likelihoods all the same.
        sandwich: stretch class shares and noise matrices to the spread that repeated samples would
            have; see :func:`nbmodels.posterior.open_faced_sandwich`.
        names: ``(K,)`` names of the classes.
        features: names of the columns of each emission.
        units: by emission, a function from its values to the units of the data.
        coords: names along other dimensions, such as of annotators, by component and dimension.
        item_names: ``(n,)`` names of the items before padding; None for their positions.
        alternatives: other forms of the model, over which draws are averaged by their
            probabilities; ``fit`` has the rest. What is averaged is checked, and warned of, once.
        named: whether classes have their names even if the noise matrix's diagonal does not
            dominate, as where a label is never given to another class.
        progress: show a bar; None to show one after a few seconds.
        options: of the method: ``correct`` for ``"vb"`` (:mod:`nbmodels.posterior.variational`);
            ``batch``, ``steps``, ``guide``, ``rank``, ``particles``, ``optimiser`` for ``"svi"``
            (:func:`inference.svi.svi`); ``target_accept`` for ``"nuts"``.

    Returns:
        :class:`~xarray.DataTree` with groups

        - ``posterior``: ``class_prior`` (``true_class``), ``noise_matrix`` (``observed_class``,
          ``true_class``; P(observed | true)), and ``{emission}_{parameter}``. Where class
          probabilities follow the features, as in a cross-fitted model, there are the parameters of
          that (``class_prior_bias`` and others) in the place of ``class_prior``, and
          ``class_shares`` (``true_class``), the shares of the true classes among the items;
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
        - ``label_posterior``: ``p`` (``item``, ``true_class``), averaged over the draws; ``item``
          are names, of the items that have a weight.

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

    Examples:
        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import fit
        >>> from nbmodels.papers import zeng2022
        >>> from nbmodels.posterior import sample
        >>> truth = np.repeat([0, 1], 100)
        >>> x = (np.random.default_rng(0).random((200, 8)) < 0.1 + 0.8 * truth[:, None]).astype(int)
        >>> given = np.where(np.arange(200) < 20, 1, truth)  # a fifth of class 0 are labelled 1
        >>> model = zeng2022.to_model(K=2, d=8)
        >>> data = zeng2022.to_data(model, given, x)
        >>> fitted = fit(model, data, key=jax.random.key(0))
        >>> drawn = {"draws": 300, "chains": 2, "names": ["ant", "bee"]}
        >>> tree = sample(fitted, data, jax.random.key(1), **drawn)
        >>> flips = tree["posterior"]["noise_matrix"].sel(true_class="ant", observed_class="bee")
        >>> flips.shape, round(float(flips.mean()), 1), tree.attrs["warnings"]
        ((2, 300), 0.2, '')
    """
    check_choices(method=method, keep=keep, sandwich=sandwich, progress=progress)
    check_sizes(draws=draws, chains=chains, thin=thin, warmup=warmup)
    check_options(method, options)
    most = _DRAWS if isinstance(draws, str) else draws
    forms = [Drawn(fit, data, 1 - sum(one.probability for one in alternatives)), *alternatives]
    for one in forms:
        check_memory(one.fit.model, one.data, method=method, draws=most, chains=chains, keep=keep)
        if method == "vb":
            check_variational(one.fit, alone=len(forms) == 1)
    n_draws = None if isinstance(draws, str) else int(draws)
    size = _Size(n_draws, chains, warmup, thin)
    about: dict[str, Any] = {"names": names, "features": features, "units": units, "coords": coords}
    about["item_names"] = item_names
    trees, found = [], []
    for one in forms:
        first, second, third = jax.random.split(key, 3)
        drawn = _draw(one, first, method, size, keep, progress, options)
        drawn = aligned(one.fit.model, drawn, names, named=named)
        tree = _tree(one.fit.model, one.data, drawn, (second, third), keep, **about)
        tree.attrs.update({"method": method, **_kinds(one.fit.model, one.data), **drawn.attrs})
        trees.append(open_faced_sandwich(tree) if sandwich else tree)
        found.append(drawn)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    out = averaged(trees, [one.probability for one in forms], rng)
    mixed = None if found[0].mixed is None else all(drawn.mixed for drawn in found)
    own = [caution for drawn in found for caution in drawn.cautions]
    cautions = tuple(dict.fromkeys([*own, *convergence_checks(out, mixed=mixed, named=named)]))
    # one string: netCDF has no lists of strings among its attributes
    out.attrs["warnings"] = "\n".join(caution.message for caution in cautions)
    issue(cautions)
    return out


def _tree(
    model: Model,
    data: Data,
    drawn: PosteriorDraws,
    keys: tuple[Array, Array],
    keep: Keep,
    **about: Any,
) -> DataTree:
    """Draws as a tree, with those of replicated data and of the prior where they are kept."""
    before: Any = None
    again: dict[str, Any] = {}
    observed: dict[str, Any] = {}
    if keep != "parameters":
        again, observed = replicated(model, data, drawn, keys[0])
        before = prior_draws(model, keys[1], _PRIOR_DRAWS, len(drawn.label_posterior))
    return to_datatree(
        model,
        drawn,
        items=np.asarray(data.weights) > 0,
        prior=before,
        replicated=again,
        observed=observed,
        keep_all=keep == "all",
        **about,
    )


def _kinds(model: Model, data: Data) -> dict[str, str]:
    """What kind of posterior it is, for the attributes of a tree."""
    rows = "all one" if np.isin(data.weights, (0, 1)).all() else "not all one"
    return {
        "kind": _kind(model, rows),
        "assumes": _assumption(model),
        "row_weights": rows,
    }


def _assumption(model: Model) -> str:
    """What the noise matrices assume of the errors."""
    features = with_role(model, Emission) or class_prior(model).conditioned_on
    channels = with_role(model, LabelChannel).values()
    votes = any("annotator" in axes for c in channels for axes in c.dims().values())
    of = "the features" if features else "each other" if votes else "anything else"
    also = "each other or " if features and votes else ""
    return f"errors that do not depend on {also}{of} given the true class"


def about_mode(fit: Fit) -> Fit:
    """The fit with the priors of its draws, by ``component.for_draws``.

    Those of labels are centred at its mode. A variational fit has the mean of its draws already.
    """
    model, params = {**fit.model, PRIOR: class_prior(fit.model).for_draws()}, dict(fit.params)
    if fit.rule == "vb":
        return replace(fit, model=model)
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


class _Size(NamedTuple):
    """Arguments of :func:`sample`; ``draws`` is None for chains that stop by themselves."""

    draws: int | None
    chains: int
    warmup: int | None
    thin: int

    def sweeps(self, rule: Stopping) -> int:
        """Sweeps of all chains by Gibbs sampling, at the most."""
        draws = rule.most if self.draws is None else self.draws
        discarded = rule.warmup * self.thin if self.draws is None else WARMUP
        return self.chains * (
            (discarded if self.warmup is None else self.warmup) + draws * self.thin
        )


def _draw(
    form: Drawn,
    key: Array,
    method: Method,
    size: _Size,
    keep: Keep,
    progress: bool | None,
    options: dict[str, Any],
) -> PosteriorDraws:
    fit, data = form.fit, form.data
    draws = _DRAWS if size.draws is None else size.draws
    fixed: dict[str, Any] = {"draws": draws, "chains": size.chains, **options}
    if method == "nuts":
        steps = 500 if size.warmup is None else size.warmup
        with Progress(progress).bar("sampling", size.chains, "chain") as bar:
            return nuts_draws(fit, data, key, warmup=steps, report=bar.update, **fixed)
    if method == "svi":
        steps = options.get("steps", STEPS)
        with Progress(progress).bar("fitting the guide", steps) as bar:
            return svi_draws(fit, data, key, report=bar.update, **fixed)
    rule = stopping(fit.model, data)
    total = size.sweeps(rule) if method == "gibbs" else size.chains * draws
    label = "sampling, at most" if method == "gibbs" and size.draws is None else "sampling"
    with Progress(progress).bar(label, total, "sweep") as bar:
        if method == "vb":
            return vb_draws(fit, data, key, keep=keep, report=bar.update, **fixed)
        part = min(max(_MORE * form.probability, _LEAST_SHARE), 1.0)
        return gibbs_draws(
            fit, data, key, keep=keep, report=bar.update, share=part, **size._asdict()
        )
