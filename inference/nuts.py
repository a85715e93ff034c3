"""The No-U-Turn Sampler on a NumPyro program, with discrete sites marginalised by enumeration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import ArrayLike, PRNGKeyArray, Shaped

from inference.compilation import loop_jit
from inference.sparse_dirichlet import SUFFIX, with_short_tails

#: Sampler statistics, by their ArviZ names.
_STATISTICS = {
    "diverging": "diverging",
    "accept_prob": "acceptance_rate",
    "num_steps": "n_steps",
    "energy": "energy",
    "potential_energy": "lp",
}


def nuts(
    program: Callable[[], None],
    key: PRNGKeyArray,
    *,
    draws: int = 500,
    warmup: int = 500,
    chains: int = 4,
    start: Mapping[str, ArrayLike] | None = None,
    target_accept: float = 0.9,
    report: Callable[[int], None] | None = None,
) -> tuple[
    dict[str, Shaped[np.ndarray, "chains draws ..."]],
    dict[str, Shaped[np.ndarray, "chains draws ..."]],
]:
    """Posterior draws of a program's continuous sites by NUTS.

    Args:
        program: a NumPyro model without arguments; sites marked
            ``infer={"enumerate": "parallel"}`` are summed out.
        key: JAX random key.
        draws: kept draws of each chain.
        warmup: adaptation steps of each chain.
        chains: number of chains, run one after the other.
        start: initial values of some sites. Sparse Dirichlet sites among them are sampled in
            coordinates with short tails (:mod:`inference.sparse_dirichlet`).
        target_accept: acceptance rate that the step size is adapted to.
        report: called with the number of chains since the last call.

    Returns:
        samples by site and statistics by ArviZ's names, each ``(chains, draws, ...)``.
    """
    from numpyro.infer import NUTS, init_to_median, init_to_value

    strategy = init_to_median()
    if start is not None:
        program, values = with_short_tails(program, start, key)
        # a program indexes its sites by a traced label, which arrays of NumPy refuse
        strategy = init_to_value(values=jax.tree.map(jnp.asarray, values))
    kernel = NUTS(program, init_strategy=strategy, target_accept_prob=target_accept)

    # one program of all: begun outside, NumPyro compiles some 400 small ones
    @loop_jit
    def chain(key: PRNGKeyArray) -> tuple[Any, Any]:
        state = kernel.init(key, warmup, None, (), {})
        constrain = kernel.postprocess_fn((), {})

        def kept(state: Any) -> tuple[Any, Any]:
            return constrain(state.z), {n: getattr(state, n) for n in _STATISTICS}

        # one loop for warm-up and draws, since the step is what takes long to compile; steps of
        # the warm-up are overwritten in the first place
        def body(i: Array, carried: tuple[Any, Any]) -> tuple[Any, Any]:
            state, found = carried
            state = kernel.sample(state, (), {})
            place = jnp.maximum(i - warmup, 0)
            return state, jax.tree.map(lambda x, one: x.at[place].set(one), found, kept(state))

        empty = jax.tree.map(
            lambda s: jnp.zeros((draws, *s.shape), s.dtype), jax.eval_shape(kept, state)
        )
        return lax.fori_loop(0, warmup + draws, body, (state, empty))[1]

    found = []
    for one in jax.random.split(key, chains):
        found.append(jax.tree.map(np.asarray, chain(one)))
        if report is not None:
            report(1)
    sites, fields = jax.tree.map(lambda *x: np.stack(x), *found)
    samples = {site: x for site, x in sites.items() if not site.endswith(SUFFIX)}
    statistics = {_STATISTICS[name]: x for name, x in fields.items()}
    statistics["lp"] = -statistics["lp"]  # potential energy is minus the log-density
    return samples, statistics
