"""Draws as an ArviZ ``DataTree`` with named axes, and what speaks against trusting them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from nbmodels.core.model import PRIOR, Model
from nbmodels.fitting.identifiability import confused_classes
from nbmodels.posterior.draws import SMALL, Drawn

if TYPE_CHECKING:
    from xarray import DataTree

#: Parameters that are shown as noise matrices instead.
_READ_OUT = ("transition", "epsilon")

#: Largest R-hat, and smallest effective number of draws a chain, that are passed over in silence
#: (Vehtari et al. 2021, section 4).
_RHAT = 1.05
_ESS = 100

#: A parameter whose draws spread less is a known one.
_CONSTANT = 1e-12


def named(
    model: Model,
    values: Mapping[str, Mapping[str, np.ndarray]],
    transitions: Mapping[str, np.ndarray],
    *,
    everything: bool,
    units: Mapping[str, Any] | None,
) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """Variables and their axes: class shares, noise matrices ``[observed, true]``, the features'.

    Args:
        model: components by name.
        values: parameters by component and name, ``(chains, draws, ...)``.
        transitions: ``(chains, draws, K, observed)`` of each channel.
        everything: leave no parameter out.
        units: by emission, a function from its values to the units of the data.
    """
    out: dict[str, np.ndarray] = {}
    dims: dict[str, list[str]] = {}
    for name, component in model.items():
        here = dict(values.get(name, {}))
        if units and name in units and here:
            here = units[name](here)
        for part, draw in here.items():
            if name == PRIOR and part == "probs":
                out["class_prior"], dims["class_prior"] = draw, ["true_class"]
            elif part not in _READ_OUT and (everything or draw[0, 0].size <= SMALL):
                label = f"{name}_{part}"
                out[label] = draw
                dims[label] = [_qualified(d, name) for d in component.dims()[part]]
    for name, draw in transitions.items():
        label = "noise_matrix" if name == "labels" else f"{name}_noise_matrix"
        out[label] = np.swapaxes(draw, -1, -2)
        dims[label] = ["observed_class", "true_class"]
    return out, dims


def _qualified(dim: str, name: str) -> str:
    return dim if dim in ("true_class", "observed_class") else f"{name}_{dim}"


def tree(
    model: Model,
    drawn: Drawn,
    *,
    items: np.ndarray,
    prior: tuple[Any, Any] | None,
    replicated: Mapping[str, np.ndarray],
    observed: Mapping[str, np.ndarray],
    everything: bool,
    names: Any,
    features: Mapping[str, Any] | None,
    units: Mapping[str, Any] | None,
) -> DataTree:
    """All groups of a set of draws; those with nothing in them are left out.

    Args:
        model: components by name.
        drawn: the draws.
        items: ``(N,)`` booleans, false for padding.
        prior: values and transitions drawn from the prior.
        replicated: ``(chains, draws, N, ...)`` by component.
        observed: ``(N, ...)`` by component.
        everything: leave no parameter out.
        names: ``(K,)`` names of the classes.
        features: names of the columns of each emission.
        units: by emission, a function from its values to the units of the data.
    """
    import arviz_base
    import xarray

    posterior, dims = named(
        model, drawn.values, drawn.transitions, everything=everything, units=units
    )
    groups: dict[str, Any] = {"posterior": posterior}
    if drawn.statistics:
        groups["sample_stats"] = drawn.statistics
    if drawn.log_likelihood is not None:
        groups["log_likelihood"] = {"items": drawn.log_likelihood[..., items]}
        dims["items"] = ["item"]
    if prior is not None:
        before, _ = named(model, *prior, everything=False, units=units)
        groups["prior"] = {name: x for name, x in before.items() if name in dims}
    for name, x in observed.items():
        axes = ["item"] if x.ndim == 1 else ["item", f"{name}_feature"]
        dims[name] = axes
    if replicated:
        groups["posterior_predictive"] = dict(replicated)
    if observed:
        groups["observed_data"] = dict(observed)
    labels = np.arange(drawn.label_posterior.shape[-1]) if names is None else np.asarray(names)
    if labels.dtype.kind == "O":
        labels = labels.astype(str)
    coords: dict[str, Any] = {"true_class": labels, "observed_class": labels}
    for name, columns in (features or {}).items():
        coords[f"{name}_feature"] = coords[f"{name}_other_feature"] = np.asarray(columns, str)
    used = {d for label in dims.values() for d in label}
    out = arviz_base.from_dict(
        groups, coords={k: v for k, v in coords.items() if k in used}, dims=dims
    )
    p = drawn.label_posterior.mean(0)[items]
    out["label_posterior"] = xarray.DataTree(
        xarray.Dataset({"p": (("item", "true_class"), p)}, coords={"true_class": labels})
    )
    return out


def complaints(tree: DataTree) -> list[str]:
    """What speaks against trusting the draws, in words; empty if nothing does."""
    import arviz_stats

    out = []
    draws = tree["posterior"]
    # what is known does not vary, and has nothing to mix
    small = [
        name
        for name in ("class_prior", "noise_matrix")
        if name in draws and float(draws[name].std(("chain", "draw")).max()) > _CONSTANT
    ]
    chains = draws.sizes["chain"]
    if chains > 1 and draws.sizes["draw"] > 3 and small:
        with np.errstate(invalid="ignore", divide="ignore"):  # single cells may be known
            rhat = arviz_stats.rhat(tree, var_names=small)
            ess = arviz_stats.ess(tree, var_names=small)
        worst = max(float(np.nanmax(rhat[name].values)) for name in small)
        least = min(float(np.nanmin(ess[name].values)) for name in small)
        if worst > _RHAT:
            out.append(
                f"the chains have not mixed: R-hat of {' and '.join(small)} reaches {worst:.2f} "
                f"(at most {_RHAT} is usual); take more draws and warm-up"
            )
        elif least < min(_ESS, draws.sizes["draw"] / 4) * chains:
            out.append(
                f"the draws depend on each other: of {' and '.join(small)} there are as few as "
                f"{least:.0f} effective ones (at least {_ESS} a chain are usual for intervals); "
                "take more draws, or thin"
            )
    if "sample_stats" in tree.children and "diverging" in tree["sample_stats"]:
        count = int(tree["sample_stats"]["diverging"].sum())
        if count:
            out.append(f"{count} draws diverged; their region of the posterior is not explored")
    if "noise_matrix" in tree["posterior"]:
        mean = tree["posterior"]["noise_matrix"].mean(("chain", "draw")).to_numpy()
        confused = confused_classes(mean.T) if mean.shape[0] == mean.shape[1] else ()
        if confused:
            names = tree["posterior"]["true_class"].to_numpy()
            pairs = ", ".join(f"{names[k]} as {names[j]}" for k, j in confused[:10])
            out.append(f"the posterior noise matrix is not diagonally dominant: {pairs}")
    return out
