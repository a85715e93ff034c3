"""Hierarchical annotators: noise matrices with a shared prior of unknown concentration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.special import gammaln
from jaxtyping import Float, Int, Key

from inference.gamma import loggamma
from inference.products import Matrix
from inference.pytree import register_dataclass
from nbmodels.channels.annotators import Annotators
from nbmodels.channels.drawn_annotators import DrawnAnnotators
from nbmodels.core.component import LogLikelihood
from nbmodels.core.dirichlet_multinomial import learned
from nbmodels.core.families import Dirichlet, Family, Rule
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.roles import LabelChannel

#: Shape and rate of the gamma prior of each concentration, in pseudo-votes.
_SHAPE, _RATE = 0.5, 0.05

#: Rounds of Metropolis steps to each draw, and the range of the steps' sizes.
_ROUNDS, _SIZES = 2, (0.05, 2.0)


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class PooledAnnotators(Annotators):
    """Annotators whose prior is learned from their own matrices (empirical Bayes).

    Fits take the prior at its maximum; draws sample it, see :class:`HierarchicalAnnotators`.

    Examples:
        Three annotators are right on nine items in ten, and a fourth has voted twice. The learned
        prior reads the fourth as the others:

        >>> import numpy as np
        >>> from nbmodels.channels import PooledAnnotators
        >>> often, twice = np.array([[45.0, 5], [5, 45]]), np.array([[1.0, 1], [0, 0]])
        >>> counts = np.stack([often, often, often, twice])  # (annotators, observed, true)
        >>> channel = PooledAnnotators.of(4, 2)
        >>> plain = channel.update(counts, "map")
        >>> learned = channel.pooled(plain, "map")
        >>> for q in (plain, learned.update(counts, "map")):
        ...     print(np.diagonal(np.asarray(q.mode)[3]).round(2))  # right on ants, and on bees
        [0.75 0.5 ]
        [0.9  0.89]
    """

    learns_prior: ClassVar[bool] = True

    def pooled(self, q: Dirichlet, rule: Rule) -> PooledAnnotators:
        """With one prior for all annotators, learned from ``q``."""
        return self._with_prior(learned(self.prior, q, rule, axis=0))

    def for_draws(self, q: Dirichlet) -> tuple[LabelChannel, Any]:
        """The hierarchical channel, whose chains begin at the concentrations learned."""
        counts = jnp.maximum(q.concentration - self.prior.concentration, 0)
        at = jnp.log(self.prior.centred.concentration[0])
        prior = PooledVotes(jnp.zeros_like(counts), at)
        return HierarchicalAnnotators(prior=prior), replace(prior, counts=counts)


@register_dataclass
@dataclass(frozen=True)
class PooledVotes(Family):
    """Noise matrices of annotators with a shared Dirichlet prior of unknown concentration.

    A draw moves the concentrations by Metropolis steps given the counts, the matrices integrated
    out (Dirichlet-multinomial), and then draws the matrices.

    Args:
        counts: ``(annotators, observed, K)`` votes.
        log_pseudo: ``(observed, K)`` logarithms of the concentrations.
    """

    counts: Array
    log_pseudo: Array

    def posterior(self, stats: tuple[Array, Array], rule: Rule) -> PooledVotes:
        return replace(self, counts=stats[0], log_pseudo=stats[1])

    def likelihood_params(self, rule: Rule, key: Key[Array, ""] | None = None) -> dict[str, Array]:
        at, how = self.log_pseudo, None
        if rule == "draw":
            assert key is not None
            first, how = jax.random.split(key)
            at = self._moved(first)
        whole = Dirichlet(jnp.exp(at) + self.counts, axis=1)
        logs = whole.likelihood_params("draw" if rule == "draw" else "mean", how)
        return {"logs": logs, "log_pseudo": at}

    def _log_density(self, log_pseudo: Array, which: Array) -> Float[Array, " k"]:
        """Of each class's concentrations given the counts, as far as the chosen labels change it.

        Args:
            log_pseudo: ``(observed, K)``.
            which: ``(observed,)`` whether a label's concentration is to change.
        """
        at = jnp.exp(log_pseudo)
        whole = jnp.sum(at, 0)
        inside = gammaln(self.counts + at) - gammaln(at)
        sums = gammaln(jnp.sum(self.counts, 1) + whole) - gammaln(whole)
        prior = _SHAPE * log_pseudo - _RATE * at
        changed = jnp.where(which[:, None], jnp.sum(inside, 0) + prior, 0)
        return jnp.sum(changed, 0) - jnp.sum(sums, 0)

    def _moved(self, key: Key[Array, ""]) -> Array:
        """Concentrations of one label after the other, and of all together, for all classes."""
        observed, k = self.log_pseudo.shape
        dtype = self.log_pseudo.dtype
        first, other = jax.random.split(key)
        gammas = loggamma(first, jnp.full((observed, k), _SHAPE, dtype))
        # without votes an independent draw from the prior
        begin = jnp.where(jnp.any(self.counts > 0), self.log_pseudo, gammas - np.log(_RATE))

        def step(i: Array, at: Array) -> Array:
            keys = jax.random.split(jax.random.fold_in(other, i), 3)
            j = i % (observed + 1)
            which = (jnp.arange(observed) == j) | (j == observed)
            size = jnp.exp(jax.random.uniform(keys[0], (k,), dtype, *np.log(_SIZES)))
            to = at + which[:, None] * size * jax.random.normal(keys[1], (k,), dtype)
            gain = self._log_density(to, which) - self._log_density(at, which)
            return jnp.where(jnp.log(jax.random.uniform(keys[2], (k,), dtype)) < gain, to, at)

        return lax.fori_loop(0, _ROUNDS * (observed + 1), step, begin)


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class HierarchicalAnnotators(DrawnAnnotators):
    """Annotators with the concentrations of their prior as parameters, for draws.

    ``pseudo_votes[k, j] ~ Gamma(1/2, 0.05)``, and row ``k`` of each annotator's matrix is Dirichlet
    with the concentrations ``pseudo_votes[k]``.

    Attributes:
        prior: the prior, its counts zero.

    Examples:
        Draws of the matrices of three annotators, and of the prior that they share:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels.channels import PooledAnnotators
        >>> counts = np.tile([[45.0, 5.0], [5.0, 45.0]], (3, 1, 1))  # (annotators, observed, true)
        >>> pooled = PooledAnnotators.of(3, 2)
        >>> channel, q = pooled.for_draws(pooled.update(counts, "map"))
        >>> print(type(channel).__name__)
        HierarchicalAnnotators
        >>> draw = jax.jit(jax.vmap(lambda key: channel.values(q.likelihood_params("draw", key))))
        >>> drawn = draw(jax.random.split(jax.random.key(0), 200))
        >>> print(drawn["transitions"].shape, drawn["pseudo_votes"].shape)
        (200, 3, 2, 2) (200, 2, 2)
        >>> print(np.asarray(drawn["transitions"]).mean((0, 1)).round(1))  # [true, observed]
        [[0.9 0.1]
         [0.1 0.9]]
    """

    prior: PooledVotes

    @property
    def _annotators(self) -> Annotators:
        return Annotators(prior=Dirichlet(self.prior.counts, axis=1))

    def log_likelihood(self, likelihood_params: dict[str, Array], data: Matrix) -> LogLikelihood:
        return self._annotators.log_likelihood(likelihood_params["logs"], data)

    def stats(
        self,
        likelihood_params: dict[str, Array],
        resp: Float[Array, "n k"],
        data: Matrix,
        key: Key[Array, ""] | None = None,
    ) -> tuple[Array, Array]:
        # the concentrations are the chain's state, and no statistic that the weight multiplies
        here = likelihood_params["log_pseudo"] / self.weight
        return self._annotators.stats(None, resp, data), here

    def relabel(self, q: PooledVotes, order: Int[Array, " k"]) -> PooledVotes:
        return replace(q, counts=q.counts[..., order], log_pseudo=q.log_pseudo[:, order])

    def values(self, likelihood_params: dict[str, Array]) -> dict[str, Array]:
        own = self._annotators.values(likelihood_params["logs"])
        return {**own, "pseudo_votes": jnp.exp(likelihood_params["log_pseudo"]).T}

    def sites(self, name: str) -> dict[str, Any]:
        annotators, observed, k = self.prior.counts.shape
        each = dist.Gamma(_SHAPE, _RATE).expand([k, observed]).to_event(2)
        pseudo = numpyro.sample(f"{name}_pseudo_votes", each)
        rows = dist.Dirichlet(jnp.broadcast_to(pseudo, (annotators, k, observed))).to_event(2)
        return {
            "transitions": numpyro.sample(f"{name}_transitions", rows),
            "pseudo_votes": pseudo,
        }

    def dims(self) -> dict[str, list[str]]:
        return {**self._annotators.dims(), "pseudo_votes": ["true_class", "observed_class"]}
