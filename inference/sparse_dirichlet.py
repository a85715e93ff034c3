"""Reparametrisation of sparse Dirichlet distributions for Hamiltonian Monte Carlo.

With concentrations below one, entries reach 1e-10 and less. The logarithm of such an entry, like
NumPyro's own unconstrained coordinates, has a tail as long as the inverse of its concentration: at
a twelfth of a pseudo-label NUTS needs hundreds of steps to cross it, and chains do not mix. Here
the proportions are gamma variables over their sum, and the logarithm of each is a hyperbola of its
coordinate, of slope ``1 / concentration`` in the lower tail and one in the upper: the tail then has
length one. The sum adds one coordinate to each simplex, independent of the proportions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammaln
from jaxtyping import ArrayLike, Float, PRNGKeyArray

#: Suffix of the sites that are sampled in place of the proportions.
SUFFIX = "_stretched"


def stretched(
    z: Float[ArrayLike, "*shape"], concentration: Float[ArrayLike, "*shape"]
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Log of a gamma variable as a function of its unconstrained coordinate, and the derivative.

    Args:
        z: coordinates, any shape.
        concentration: of the same shape; at one or more the coordinate is the logarithm itself.
    """
    a, b = _hyperbola(concentration)
    root = jnp.sqrt(jnp.square(z) + 1)
    return a * z + b * root, a + b * z / root


def coordinate(
    logarithm: Float[ArrayLike, "*shape"], concentration: Float[ArrayLike, "*shape"]
) -> Float[Array, "*shape"]:
    """Inverse of :func:`stretched`."""
    a, b = _hyperbola(concentration)
    slope = a - b  # at minus infinity; a + b is one
    return (a * logarithm - b * jnp.sqrt(jnp.square(logarithm) + slope)) / slope


def _hyperbola(concentration: ArrayLike) -> tuple[Array, Array]:
    slope = 1 / jnp.minimum(concentration, 1.0)
    return (1 + slope) / 2, (1 - slope) / 2


def with_short_tails(
    program: Callable[[], None], start: Mapping[str, ArrayLike], key: PRNGKeyArray
) -> tuple[Callable[[], None], dict[str, Any]]:
    """Reparametrise the sparse Dirichlet sites of a program by :func:`stretched` coordinates.

    Args:
        program: a NumPyro model without arguments.
        start: initial values of sites; those of sparse Dirichlet sites must be positive. Sites
            without one are left unchanged.
        key: JAX random key, for sites without an initial value.

    Returns:
        the program, in which such a site is a deterministic function of one whose name ends in
        :data:`SUFFIX`; and the initial values, those of the new sites included.
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
            # an underflow to zero would have no derivative of its logarithm
            return None, jnp.maximum(jax.nn.softmax(logs), jnp.finfo(logs.dtype).tiny)

    @jax.jit
    def begun(key: PRNGKeyArray, start: dict[str, Any]) -> dict[str, tuple[Array, Array]]:
        """Concentrations of Dirichlet sites with an initial value, and their coordinates there."""
        held = handlers.substitute(handlers.seed(program, key), data=start)
        out = {}
        for name, site in handlers.trace(held).get_trace().items():
            concentration = _concentration(site["fn"]) if site["type"] == "sample" else None
            if name in start and concentration is not None:
                # the sum at its expectation
                gammas = start[name] * jnp.sum(concentration, -1, keepdims=True)
                out[name] = concentration, coordinate(jnp.log(gammas), concentration)
        return out

    config, values = {}, dict(start)
    found = begun(key, {name: jnp.asarray(value, float) for name, value in start.items()})
    for name, (concentration, at) in found.items():
        if np.any(np.asarray(concentration) < 1):
            config[name], values[name + SUFFIX] = Stretched(), at
    return handlers.reparam(program, config=config), values


def _concentration(fn: Any) -> Any:
    """Concentrations of a batch of Dirichlet distributions; None for any other distribution."""
    from numpyro.distributions import Dirichlet

    base = fn
    while hasattr(base, "base_dist"):
        base = base.base_dist
    return jnp.broadcast_to(base.concentration, fn.shape()) if isinstance(base, Dirichlet) else None
