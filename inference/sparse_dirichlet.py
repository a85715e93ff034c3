"""Coordinates in which a Hamiltonian sampler gets about in sparse Dirichlet distributions.

Under concentrations below one, entries are drawn down to 1e-10 and less. The logarithm of such an
entry, and every coordinate that NumPyro would take by itself, has a tail as long as the inverse of
its concentration: at a twelfth of a pseudo-label NUTS goes there and back in hundreds of steps, and
chains do not mix. Here the proportions are gamma variables over their sum, and the logarithm of
each is a hyperbola of its coordinate, whose slope is ``1 / concentration`` far down and one far up:
the tail then has length one. The sum is one coordinate more in each simplex, independent of the
proportions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammaln

#: Ends the names of the sites that are sampled in the place of the proportions.
SUFFIX = "_stretched"


def stretched(z: Any, concentration: Any) -> tuple[Array, Array]:
    """Logarithm of a gamma variable at its coordinate, and its derivative.

    Args:
        z: coordinates, any shape.
        concentration: of the same shape; at one or more the coordinate is the logarithm itself.
    """
    a, b = _hyperbola(concentration)
    root = jnp.sqrt(jnp.square(z) + 1)
    return a * z + b * root, a + b * z / root


def coordinate(logarithm: Any, concentration: Any) -> Array:
    """Inverse of :func:`stretched`."""
    a, b = _hyperbola(concentration)
    slope = a - b  # at minus infinity; a + b is one
    return (a * logarithm - b * jnp.sqrt(jnp.square(logarithm) + slope)) / slope


def _hyperbola(concentration: Any) -> tuple[Array, Array]:
    slope = 1 / jnp.minimum(concentration, 1.0)
    return (1 + slope) / 2, (1 - slope) / 2


def with_short_tails(
    program: Callable[[], None], start: Mapping[str, Any], key: Array
) -> tuple[Callable[[], None], dict[str, Any]]:
    """The same program with its sparse Dirichlet sites as functions of other ones.

    Args:
        program: a NumPyro model without arguments.
        start: values of sites to begin at; those of sparse Dirichlet sites must be positive. Sites
            without one stay as they are.
        key: JAX random key, for sites without a value.

    Returns:
        the program, in which such a site is deterministic and depends on one of its name with
        :data:`SUFFIX`; and the values to begin at, of those sites as well.
    """
    import numpyro
    from numpyro import distributions as dist
    from numpyro import handlers
    from numpyro.infer.reparam import Reparam

    class Stretched(Reparam):
        def __call__(self, name: str, fn: Any, obs: Any) -> tuple[None, Array]:
            anywhere = dist.ImproperUniform(dist.constraints.real, (), fn.shape())
            z = numpyro.sample(name + SUFFIX, anywhere)
            concentration = _concentration(fn)
            logs, slopes = stretched(z, concentration)
            gammas = concentration * logs - jnp.exp(logs) - gammaln(concentration)
            numpyro.factor(f"{name}_gammas", jnp.sum(gammas + jnp.log(slopes)))
            # what is too small to be written must not be zero, whose logarithm has no derivative
            return None, jnp.maximum(jax.nn.softmax(logs), jnp.finfo(logs.dtype).tiny)

    # before anything is compiled, when concentrations have values
    begun = handlers.substitute(handlers.seed(program, key), data=dict(start))
    config, values = {}, dict(start)
    for name, site in handlers.trace(begun).get_trace().items():
        concentration = _concentration(site["fn"]) if site["type"] == "sample" else None
        if name not in start or concentration is None or not np.any(np.asarray(concentration) < 1):
            continue
        # a sum as it is to be expected
        gammas = jnp.asarray(start[name], float) * jnp.sum(concentration, -1, keepdims=True)
        config[name] = Stretched()
        values[name + SUFFIX] = coordinate(jnp.log(gammas), concentration)
    return handlers.reparam(program, config=config), values


def _concentration(fn: Any) -> Any:
    """Of each entry of a batch of Dirichlet distributions; None of any other."""
    from numpyro.distributions import Dirichlet

    base = fn
    while hasattr(base, "base_dist"):
        base = base.base_dist
    return jnp.broadcast_to(base.concentration, fn.shape()) if isinstance(base, Dirichlet) else None
