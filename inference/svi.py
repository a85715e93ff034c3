"""Stochastic variational inference on a NumPyro program, discrete sites marginalised out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.flatten_util
import numpy as np
from jax import Array
from jaxtyping import ArrayLike, Float, PRNGKeyArray, Shaped

#: Standard deviation of the guide at the start, in unconstrained coordinates.
_NARROW = 0.05

#: First step of the default optimiser.
_STEP = 0.02

#: Gradient steps by default, and between reports.
STEPS, _CHUNK = 3000, 50


class Guided(NamedTuple):
    """A fitted variational distribution (guide) and draws of it.

    Attributes:
        draws: by site, ``(draws, ...)``.
        log_ratio: ``(draws,)`` log importance ratios: log-density of the program less that of the
            guide.
        losses: negative ELBO, as estimated at each step.
        guide: name of the guide.
    """

    draws: dict[str, Shaped[np.ndarray, "draws ..."]]
    log_ratio: Float[np.ndarray, " draws"]
    losses: Float[np.ndarray, " steps"]
    guide: str


def svi(
    program: Callable[[], None],
    key: PRNGKeyArray,
    *,
    draws: int = 2000,
    steps: int = STEPS,
    guide: Literal["mean field", "low rank"] = "low rank",
    rank: int | None = None,
    optimiser: Any = None,
    particles: int = 1,
    batched: Callable[[], None] | None = None,
    start: Mapping[str, ArrayLike] | None = None,
    report: Callable[[int], None] | None = None,
) -> Guided:
    """Maximise the evidence lower bound (ELBO) of a guide by gradient steps, and draw from it.

    Args:
        program: a NumPyro model without arguments; sites marked
            ``infer={"enumerate": "parallel"}`` are summed out.
        key: JAX random key.
        draws: number of draws of the fitted guide.
        steps: number of gradient steps.
        guide: normal in unconstrained coordinates, independent or with a low-rank covariance.
        rank: of the low-rank part; by default the root of the number of coordinates.
        optimiser: from optax; Adam with a cosine-decayed step from 0.02 by default.
        particles: draws of the guide behind each gradient.
        batched: the same program with its items in minibatches, scaled up by a ``numpyro.plate``
            with ``subsample_size``; where given, gradients are of it.
        start: initial values of some sites.
        report: called with the number of steps since the last call.

    Raises:
        ValueError: an unknown guide.
    """
    import numpyro
    import optax
    from numpyro import distributions as dist
    from numpyro import handlers
    from numpyro.infer import SVI, Trace_ELBO, init_to_median, init_to_value
    from numpyro.infer.autoguide import AutoDiagonalNormal, AutoLowRankMultivariateNormal
    from numpyro.infer.util import initialize_model, potential_energy
    from numpyro.optim import optax_to_numpyro

    guides = {
        "mean field": AutoDiagonalNormal,
        "low rank": partial(AutoLowRankMultivariateNormal, rank=rank),
    }
    if guide not in guides:
        raise ValueError(f"guide: expected one of {list(guides)}, got {guide!r}")
    first, second, third = jax.random.split(key, 3)
    strategy = init_to_median() if start is None else init_to_value(values=dict(start))
    info = initialize_model(first, program, init_strategy=strategy)
    begin, unravel = jax.flatten_util.ravel_pytree(info.param_info.z)

    def potential(z: Array) -> Any:
        part = None if batched is None else handlers.seed(batched, numpyro.prng_key())
        with handlers.block():
            if part is None:
                return info.potential_fn(unravel(z))
            return potential_energy(part, (), {}, unravel(z))

    # one vector of unconstrained coordinates: what is summed out is no part of the guide
    def flat() -> None:
        z = numpyro.sample("z", dist.ImproperUniform(dist.constraints.real_vector, (), begin.shape))
        numpyro.factor("density", -potential(z))

    made = guides[guide](flat, init_loc_fn=init_to_value(values={"z": begin}), init_scale=_NARROW)
    if optimiser is None:
        optimiser = optax.adam(optax.cosine_decay_schedule(_STEP, steps, 0.01))
    fitter = SVI(flat, made, optax_to_numpyro(optimiser), Trace_ELBO(num_particles=particles))
    params, losses = _run(fitter, second, steps, report)
    at = made.get_posterior(params)
    drawn = at.sample(third, (draws,))

    @jax.jit
    def read(z: Array) -> tuple[Any, Array]:
        return info.postprocess_fn(unravel(z)), -info.potential_fn(unravel(z))

    sites, density = jax.lax.map(read, drawn)
    # a diagonal guide has one number a coordinate
    log_guide = at.log_prob(drawn).reshape(draws, -1).sum(1)
    return Guided(
        jax.tree.map(np.asarray, sites),
        np.asarray(density - log_guide),
        losses,
        guide,
    )


def _run(
    fitter: Any, key: PRNGKeyArray, steps: int, report: Callable[[int], None] | None
) -> tuple[Any, Float[np.ndarray, " steps"]]:
    """Gradient steps a few at a time, so that they can be counted; parameters and losses."""

    @partial(jax.jit, static_argnums=1)
    def some(state: Any, n: int) -> tuple[Any, Array]:
        return jax.lax.scan(lambda s, _: fitter.update(s), state, length=n)

    state, losses = fitter.init(key), []
    for at in range(0, steps, _CHUNK):
        n = min(_CHUNK, steps - at)
        state, loss = some(state, n)
        losses.append(np.asarray(loss))  # waits
        if report is not None:
            report(n)
    return fitter.get_params(state), np.concatenate(losses)
