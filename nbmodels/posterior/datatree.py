"""Posterior draws as an ArviZ ``DataTree`` with named dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import arviz_base
import numpy as np
import xarray

from nbmodels.core.component import Component
from nbmodels.core.model import PRIOR, Model
from nbmodels.errors import DataError
from nbmodels.posterior.draws import SMALL, PosteriorDraws

if TYPE_CHECKING:
    from xarray import DataArray, DataTree

#: Dimensions that all variables share; others are of one component.
_CLASSES = frozenset(("true_class", "observed_class"))

#: Name of the items' log-likelihoods where they are of several data variables.
_ITEMS = "items"


def named_variables(
    model: Model,
    values: Mapping[str, Mapping[str, np.ndarray]],
    transitions: Mapping[str, np.ndarray],
    *,
    keep_all: bool,
    units: Mapping[str, Any] | None,
) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """Variables and their dimensions: class shares, noise matrices, parameters of emissions.

    Args:
        model: components by name.
        values: parameters by component and name, ``(chains, draws, ...)``.
        transitions: ``(chains, draws, K, observed)`` of each channel.
        keep_all: leave no parameter out.
        units: by emission, a function from its values to the units of the data.

    Returns:
        variables, noise matrices as ``[observed, true]``; names of their dimensions.
    """
    out: dict[str, np.ndarray] = {}
    dims: dict[str, list[str]] = {}
    for name, component in model.items():
        here = dict(values.get(name, {}))
        if units and name in units and here:
            here = units[name](here)
        redundant = _in_noise_matrix(component) if name in transitions else frozenset()
        for part, draw in here.items():
            if name == PRIOR and part == "probs":
                out["class_prior"], dims["class_prior"] = draw, ["true_class"]
            elif part not in redundant and (keep_all or draw[0, 0].size <= SMALL):
                label = f"{name}_{part}"
                out[label] = draw
                dims[label] = [_qualified(d, name) for d in component.dims()[part]]
    for name, draw in transitions.items():
        label = "noise_matrix" if name == "labels" else f"{name}_noise_matrix"
        out[label] = np.swapaxes(draw, -1, -2)
        dims[label] = ["observed_class", "true_class"]
    return out, dims


def _n_observed(
    values: Mapping[str, Any], dims: Mapping[str, Sequence[str]], otherwise: int
) -> int:
    """Length of the axis of observed classes; another value where no variable has it."""
    for name, axes in dims.items():
        if "observed_class" in axes and name in values:
            return int(np.shape(values[name])[axes.index("observed_class") - len(axes)])
    return otherwise


def _in_noise_matrix(channel: Component) -> frozenset[str]:
    """Parameters of a channel that have no dimension beside the noise matrix's: it shows them."""
    return frozenset(part for part, dims in channel.dims().items() if set(dims) <= _CLASSES)


def _qualified(dim: str, name: str) -> str:
    return dim if dim in _CLASSES else f"{name}_{dim}"


def _coordinate(names: Any) -> np.ndarray:
    """Names as netCDF holds them: those of several types, or of any but numbers, as strings."""
    values = np.asarray(names)
    return values.astype(str) if values.dtype.kind == "O" else values


def to_datatree(
    model: Model,
    drawn: PosteriorDraws,
    *,
    items: np.ndarray,
    prior: tuple[Any, Any] | None,
    replicated: Mapping[str, np.ndarray],
    observed: Mapping[str, np.ndarray],
    keep_all: bool,
    names: Any,
    features: Mapping[str, Any] | None,
    units: Mapping[str, Any] | None,
    coords: Mapping[str, Mapping[str, Any]] | None = None,
    item_names: Any = None,
) -> DataTree:
    """All groups of a set of draws; empty groups are left out.

    Args:
        model: components by name.
        drawn: the draws.
        items: ``(N,)`` booleans, false for padding.
        prior: values and transitions drawn from the prior.
        replicated: ``(chains, draws, N, ...)`` by component.
        observed: ``(N, ...)`` by component.
        keep_all: leave no parameter out.
        names: ``(K,)`` names of the classes.
        features: names of the columns of each emission.
        units: by emission, a function from its values to the units of the data.
        coords: names along other dimensions, by component and dimension.
        item_names: ``(n,)`` names of the items before padding; None for their positions.
    """
    posterior, dims = named_variables(
        model, drawn.values, drawn.transitions, keep_all=keep_all, units=units
    )
    if drawn.class_shares is not None:
        posterior["class_shares"], dims["class_shares"] = drawn.class_shares, ["true_class"]
    groups: dict[str, Any] = {"posterior": posterior}
    if drawn.statistics:
        groups["sample_stats"] = drawn.statistics
    if drawn.log_likelihood is not None:
        # ArviZ's LOO-PIT looks for the observed variable's log-likelihood under its name
        one = [n for n, x in observed.items() if x.ndim == 1 and len(observed) == 1]
        name = one[0] if one else _ITEMS
        groups["log_likelihood"] = {name: drawn.log_likelihood[..., items]}
        dims[name] = ["item"]
    if prior is not None:
        before, _ = named_variables(model, *prior, keep_all=False, units=units)
        groups["prior"] = {name: x for name, x in before.items() if name in dims}
    for name, x in observed.items():
        dims[name] = ["item"] if x.ndim == 1 else ["item", f"{name}_feature"]
    if replicated:
        groups["posterior_predictive"] = dict(replicated)
    if observed:
        groups["observed_data"] = dict(observed)
    labels = np.arange(drawn.label_posterior.shape[-1]) if names is None else _coordinate(names)
    # sub-types of classes are more than the labels that are observed
    size = _n_observed(groups["posterior"], dims, len(labels))
    seen = labels if size == len(labels) else np.arange(size)
    rows = np.flatnonzero(items)
    item = rows if item_names is None else _coordinate(item_names)[rows]
    axes: dict[str, Any] = {"true_class": labels, "observed_class": seen, "item": item}
    for name, columns in (features or {}).items():
        axes[f"{name}_feature"] = axes[f"{name}_other_feature"] = np.asarray(columns, str)
    for name, of in (coords or {}).items():
        axes.update({_qualified(dim, name): _coordinate(values) for dim, values in of.items()})
    used = {d for label in dims.values() for d in label}
    out = arviz_base.from_dict(
        groups, coords={k: v for k, v in axes.items() if k in used}, dims=dims
    )
    p = drawn.label_posterior.mean(0)[items]
    of_items = {"item": item, "true_class": labels}
    out["label_posterior"] = xarray.DataTree(
        xarray.Dataset({"p": (("item", "true_class"), p)}, coords=of_items)
    )
    return out


def item_log_likelihood(tree: DataTree) -> DataArray:
    """Log-likelihood of each item at each draw, ``(chain, draw, item)``, under whatever name.

    Args:
        tree: with a group ``log_likelihood``.
    """
    variables = tree["log_likelihood"].data_vars
    return variables[next(iter(variables))]


def for_loo_pit(tree: DataTree, name: str = "labels") -> DataTree:
    """The tree with one data variable, for ``arviz_plots.plot_loo_pit``.

    ArviZ computes leave-one-out PIT values of every observed variable and needs a log-likelihood of
    the same name and dimensions. A fit with one data variable has that already. Of others this
    takes one variable, with the log-likelihood of the whole items: what is left out of a PIT value
    is the item, its labels and its features. Items whose value is missing (-1) are left out.

    Args:
        tree: posterior draws with observed, replicated data and log-likelihoods.
        name: of the data variable; it must have one value an item.

    Raises:
        DataError: the variable is not there, or has several values an item.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB
        >>> from nbmodels.posterior import for_loo_pit
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 6)) < np.where(y == "ant", 0.1, 0.9)[:, None]
        >>> y[:10] = "bee"  # a fifth of the ants are labelled as bees
        >>> tree = NoisyBernoulliNB.published().fit(x, y).posterior("vb", draws=200, chains=2)
        >>> list(tree["observed_data"].data_vars), list(tree["log_likelihood"].data_vars)
        (['features', 'labels'], ['items'])
        >>> one = for_loo_pit(tree, "labels")
        >>> list(one["observed_data"].data_vars), list(one["log_likelihood"].data_vars)
        (['labels'], ['labels'])
    """
    for group in ("observed_data", "posterior_predictive", "log_likelihood"):
        if group not in tree.children:
            raise DataError(f"tree: there is no group {group!r}, which LOO-PIT needs")
    observed = tree["observed_data"].data_vars
    if name not in observed or observed[name].dims != ("item",):
        raise DataError(f"name: {name!r} is no observed variable with one value an item")
    rows = np.flatnonzero(observed[name].to_numpy() >= 0)
    variables: dict[str, DataArray] = {
        "posterior_predictive": tree["posterior_predictive"].data_vars[name],
        "log_likelihood": item_log_likelihood(tree),
        "observed_data": observed[name],
    }
    parts = {g: x.isel(item=rows).to_dataset(name=name) for g, x in variables.items()}
    return xarray.DataTree.from_dict({"posterior": tree["posterior"].to_dataset(), **parts})
