"""Sample sites of a model's NumPyro program, by the component that samples them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from numpyro import handlers
from numpyro.distributions import constraints

from nbmodels.core.component import Component
from nbmodels.core.model import Model
from nbmodels.errors import DataError

T = TypeVar("T")

#: Distance from the boundary of a probability at which gradient-based inference may begin.
_MARGIN = 1e-4


class Site(NamedTuple):
    """One sample site of a component's parameters.

    Attributes:
        component: name of the component.
        parameter: name of the parameter in ``component.values``.
        support: NumPyro's constraint of a single event, independence stripped.
    """

    component: str
    parameter: str
    support: Any


def parameter_sites(model: Model) -> dict[str, Site]:
    """Sample sites of all parameters, by name, from a trace of each component's ``sites``.

    Sites belong to the component whose trace holds them. Prefixes of names would not do: with
    components ``a`` and ``a_b``, the site ``a_b_probs`` begins with both names.

    Args:
        model: components by name.

    Raises:
        DataError: two components have a site of the same name.
    """
    out: dict[str, Site] = {}
    for name, component in model.items():
        for site, support in _supports(component, name).items():
            if site in out:
                raise DataError(
                    f"model: components {out[site].component!r} and {name!r} both have a NumPyro "
                    f"site {site!r}; rename one of them"
                )
            out[site] = Site(name, site.removeprefix(f"{name}_"), support)
    return out


def by_component(
    model: Model, sites: Mapping[str, Site], values: Mapping[str, T]
) -> dict[str, dict[str, T]]:
    """Values by component and parameter from values by site; other sites are left out.

    Args:
        model: components by name; one without sites gets an empty mapping.
        sites: from :func:`parameter_sites`.
        values: anything, by site.
    """
    out: dict[str, dict[str, T]] = {name: {} for name in model}
    for name, site in sites.items():
        if name in values:
            out[site.component][site.parameter] = values[name]
    return out


def interior(sites: Mapping[str, Site], values: Mapping[str, Array]) -> dict[str, Array]:
    """Initial values in the interior of the sites' supports.

    A mode may lie on the boundary of a simplex or of the unit interval, where the unconstrained
    coordinates of NUTS and SVI are infinite.

    Args:
        sites: from :func:`parameter_sites`.
        values: by site.
    """
    out = {}
    for name, value in values.items():
        support = sites[name].support
        if isinstance(support, type(constraints.simplex)):
            lifted = jnp.clip(value, _MARGIN, 1 - _MARGIN)
            out[name] = lifted / jnp.sum(lifted, -1, keepdims=True)
        elif isinstance(support, type(constraints.unit_interval)):
            out[name] = jnp.clip(value, _MARGIN, 1 - _MARGIN)
        else:
            out[name] = value
    return out


def _supports(component: Component, name: str) -> dict[str, Any]:
    """Support of each sample site of a component, from an abstract trace that draws nothing."""
    out: dict[str, Any] = {}

    def record(key: Array) -> None:
        with handlers.block(), handlers.trace() as trace:
            handlers.seed(component.sites, key)(name)
        for site, message in trace.items():
            if message["type"] == "sample":
                out[site] = _event(message["fn"].support)

    jax.eval_shape(record, jax.eval_shape(jax.random.key, 0))
    return out


def _event(support: Any) -> Any:
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    return support
