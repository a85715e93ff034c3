"""Linear opinion pool of posteriors: each draw is of one of them, by their weights.

The weights are probabilities of models (Bayesian model averaging), such as of the forms of the
noise matrix on a graph, or how far a joint posterior counts beside a cut one
(:mod:`nbmodels.posterior.semi_modular`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray

if TYPE_CHECKING:
    from xarray import DataTree

#: Groups whose variables are pooled draw by draw.
DRAWN = ("posterior", "posterior_predictive", "log_likelihood")


def opinion_pool(
    trees: Sequence[DataTree],
    weights: Sequence[float],
    rng: np.random.Generator,
    drawn: Sequence[str] = DRAWN,
) -> DataTree:
    """Draws of several posteriors pooled, of what all of them have.

    Draws of different lengths are cut to the shortest.

    Args:
        trees: posteriors, from :func:`nbmodels.posterior.sample`.
        weights: of each, that sum to one.
        rng: NumPy generator.
        drawn: groups that are pooled draw by draw.

    Returns:
        a tree with ``component`` among ``sample_stats``, the position of the posterior that a draw
        is of; attributes are those of the first.

    Examples:
        >>> import numpy as np
        >>> import xarray
        >>> from nbmodels.posterior.opinion_pool import opinion_pool
        >>> def tree(rate):  # of a posterior whose 1,000 draws are all alike
        ...     drawn = xarray.Dataset({"rate": (("chain", "draw"), np.full((1, 1000), rate))})
        ...     items = xarray.Dataset({"p": ("item", np.array([rate]))})
        ...     groups = {"posterior": drawn, "label_posterior": items}
        ...     return xarray.DataTree.from_dict(groups)
        >>> pooled = opinion_pool([tree(0.1), tree(0.5)], [0.75, 0.25], np.random.default_rng(0))
        >>> print(float(pooled["posterior"]["rate"].mean().round(1)))
        0.2
        >>> print(pooled["label_posterior"]["p"].to_numpy())
        [0.2]
    """
    sizes = [min(tree["posterior"].sizes[dim] for tree in trees) for dim in ("chain", "draw")]
    upto = np.cumsum(weights)
    component = np.searchsorted(upto[:-1], rng.random(sizes), side="right")
    taken = xarray.DataArray(component, dims=("chain", "draw"))
    groups = {"sample_stats": xarray.Dataset({"component": taken})}
    for name in trees[0].children:
        if all(name in tree.children for tree in trees):
            parts = [tree[name].to_dataset() for tree in trees]
            if name in drawn and _shared(parts):
                groups[name] = _taken(parts, taken)
            elif name == "label_posterior":
                weighted = [w * part for w, part in zip(weights, parts, strict=True)]
                groups[name] = sum(weighted[1:], weighted[0])
            elif name == "prior":
                groups[name] = parts[0][_shared(parts)]
            elif name == "observed_data":
                groups[name] = parts[0]
    out = xarray.DataTree.from_dict(groups)
    out.attrs.update(trees[0].attrs)
    return out


def averaged(
    trees: Sequence[DataTree], weights: Sequence[float], rng: np.random.Generator
) -> DataTree:
    """Draws averaged over forms of a model (Bayesian model averaging); one form as it is.

    Args:
        trees, weights, rng: as of :func:`opinion_pool`; weights are the forms' probabilities.

    Returns:
        the tree, whose ``kind`` among its ``attrs`` says over how many forms it is.
    """
    if len(trees) == 1:
        return trees[0]
    out = opinion_pool(trees, weights, rng)
    shares = ", ".join(f"{w:.2g}" for w in weights)
    kind = f"{trees[0].attrs['kind']}, averaged over {len(trees)} forms of the model ({shares})"
    out.attrs["kind"] = kind
    return out


def _shared(parts: Sequence[xarray.Dataset]) -> list[str]:
    """The variables that all have, in the same dimensions."""
    first, *others = parts
    return [
        str(name)
        for name in first.data_vars
        if all(name in one and first[name].dims == one[name].dims for one in others)
    ]


def _taken(parts: Sequence[xarray.Dataset], taken: xarray.DataArray) -> xarray.Dataset:
    """Each draw of the part that it is taken from."""
    within = {dim: slice(size) for dim, size in taken.sizes.items()}
    names = _shared(parts)
    out = parts[0][names].isel(within)
    for i, part in enumerate(parts[1:], start=1):
        out = out.where(taken != i, part[names].isel(within))
    return out
