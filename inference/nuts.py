"""The No-U-Turn Sampler on a NumPyro program, with discrete sites marginalised by enumeration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import ArrayLike, PRNGKeyArray, Shaped

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
    progress: bool = False,
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
        progress: show NumPyro's progress bar.

    Returns:
        samples by site and statistics by ArviZ's names, each ``(chains, draws, ...)``.
    """
    from numpyro.infer import MCMC, NUTS, init_to_median, init_to_value

    strategy = init_to_median()
    if start is not None:
        program, values = with_short_tails(program, start, key)
        strategy = init_to_value(values=values)
    mcmc = MCMC(
        NUTS(program, init_strategy=strategy, target_accept_prob=target_accept),
        num_warmup=warmup,
        num_samples=draws,
        num_chains=chains,
        chain_method="sequential",
        progress_bar=progress,
    )
    mcmc.run(key, extra_fields=tuple(_STATISTICS))
    samples = {
        site: np.asarray(x)
        for site, x in mcmc.get_samples(group_by_chain=True).items()
        if not site.endswith(SUFFIX)
    }
    fields = mcmc.get_extra_fields(group_by_chain=True)
    statistics = {_STATISTICS[name]: np.asarray(v) for name, v in fields.items()}
    statistics["lp"] = -statistics["lp"]  # potential energy is minus the log-density
    return samples, statistics
