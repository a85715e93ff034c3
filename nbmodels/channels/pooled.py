"""Hierarchical noise matrix: its rows share a Dirichlet prior, whose concentration is unknown.

One concentration for right labels and one for each wrong one. Their sum is the strength with which
every row is drawn to the matrix of one error rate: a full matrix and a single rate are the two ends
of one model, so that nothing has to be selected between them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, Key

from inference.arrays import on_device
from inference.gamma import loggamma
from inference.pytree import register_dataclass
from inference.special import gammaln
from nbmodels.channels.transition import (
    Transition,
    count_labels,
    draw_labels,
    observe,
    pack_labels,
    read_labels,
)
from nbmodels.core.component import LogLikelihood
from nbmodels.core.dirichlet_multinomial import learned
from nbmodels.core.families import Dirichlet, Family, Rule
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.roles import LabelChannel

#: Shapes of the gamma priors of the concentrations, in multiples of the pseudo-labels of a row:
#: their shares have half the weight of those, and their sum is nearly flat in its logarithm.
_SHAPE = 0.5

#: Rate of the gamma priors.
_RATE = 0.02

#: Least number of pseudo-labels that a shape is made from.
_LEAST = 0.01

#: Metropolis steps of the concentrations to each draw of the matrix, and the range of their sizes.
_STEPS, _SIZES = 20, (0.05, 3.0)


def _right(table: Array) -> np.ndarray:
    """Where the right labels stand in a ``(K, observed)`` table."""
    return np.arange(table.shape[0])[:, None] == np.arange(table.shape[1])


def _diagonal_first(n_classes: int, n_observed: int) -> tuple[np.ndarray, np.ndarray]:
    """Index arrays by which a row's right label comes first."""
    rows, columns = np.arange(n_classes)[:, None], np.arange(n_observed)
    return rows, (rows + columns) % n_observed


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class PooledTransition(Transition):
    """A noise matrix whose prior is learned from its own rows (empirical Bayes).

    Fits take the concentrations at their maximum; draws sample them, see
    :class:`HierarchicalTransition`.

    Attributes:
        prior: Dirichlet of shape ``(K, observed)``, as learned so far.
        shapes: ``(2,)`` of the gamma priors of the concentrations: right, and all wrong together.

    Examples:
        Of 200 ants and bees 16 have a wrong label, and both of two cows do. A plain row of cows
        follows these two; the learned prior draws it to the rows of the others:

        >>> import numpy as np
        >>> from nbmodels.channels import PooledTransition
        >>> counts = np.array([[92.0, 4, 4], [4, 92, 4], [1, 1, 0]])  # [true, observed]
        >>> channel = PooledTransition.of(3)
        >>> plain = channel.update(counts, "map")
        >>> learned = channel.pooled(plain, "map")
        >>> for q in (plain, learned.update(counts, "map")):
        ...     print(np.asarray(q.mode)[2].round(1))  # labels of cows
        [0.3 0.3 0.4]
        [0.1 0.1 0.9]
    """

    learns_prior: ClassVar[bool] = True

    shapes: Array

    @classmethod
    def of(
        cls,
        n_classes: int,
        n_observed: int | None = None,
        alpha: float = 1.0,
        diagonal: float = 2.0,
    ) -> PooledTransition:
        """Prior by pseudo-labels of each class: the common error rate has half of them."""
        one = Transition.of(n_classes, n_observed, alpha, diagonal)
        shapes = _SHAPE * np.maximum([diagonal, alpha], _LEAST)
        return cls(prior=one.prior, shapes=on_device(shapes))

    def pooled(self, q: Dirichlet, rule: Rule) -> PooledTransition:
        """With the concentrations at their maximum given ``q``, the rows integrated out."""
        n_classes, n_observed = self.prior.concentration.shape
        rows, turn = _diagonal_first(n_classes, n_observed)
        prior, found = (Dirichlet(d.concentration[rows, turn]) for d in (self.prior, q))
        each = np.arange(n_observed) > 0
        shape = jnp.where(each, self.shapes[1] / max(n_observed - 1, 1), self.shapes[0])
        shared = learned(prior, found, rule, shape, _RATE, axis=0, tied="others").concentration[0]
        right = _right(self.prior.concentration)
        concentration = jnp.where(right, shared[0], shared[1])
        return replace(self, prior=replace(self.prior, concentration=concentration))

    @property
    def full(self) -> Transition:
        """A channel of the same pseudo-labels, whose rows are not drawn to each other."""
        right, wrong = (float(shape) / _SHAPE for shape in np.asarray(self.shapes))
        n_classes, n_observed = self.prior.concentration.shape
        one = Transition.of(n_classes, n_observed, wrong, right)
        prior = jax.tree.map(lambda x: on_device(x, self.prior.concentration.dtype), one.prior)
        return Transition(prior=prior, weight=self.weight)

    def at_fixed_prior(self) -> Transition:
        return Transition(prior=self.prior, weight=self.weight)

    def for_draws(self, q: Dirichlet) -> tuple[LabelChannel, Any]:
        """The hierarchical channel, whose chains begin at the concentrations learned."""
        found, prior = (np.asarray(d.concentration) for d in (q, self.prior))
        counts = on_device(np.maximum(found - prior, 0))
        at = on_device(np.log(np.asarray(self.prior.centred.concentration)[0, :2]))
        shared = PooledDirichlet(on_device(np.zeros(counts.shape, counts.dtype)), at, self.shapes)
        return HierarchicalTransition(prior=shared), replace(shared, counts=counts)


@register_dataclass
@dataclass(frozen=True)
class PooledDirichlet(Family):
    """Rows of a matrix with a shared Dirichlet prior of unknown concentration.

    A draw moves the concentrations by Metropolis steps given the counts, the rows integrated out
    (Dirichlet-multinomial), and then draws the rows: a sweep that leaves their joint posterior as
    it is. Without counts the steps begin at an independent draw from the prior.

    Args:
        counts: ``(K, observed)`` labels.
        log_pseudo: ``(2,)`` logarithms of the concentrations, right and each wrong.
        shapes: ``(2,)`` of the gamma priors: right, and all wrong together.
    """

    counts: Array
    log_pseudo: Array
    shapes: Array

    def posterior(self, stats: tuple[Array, Array], rule: Rule) -> PooledDirichlet:
        return replace(self, counts=stats[0], log_pseudo=stats[1])

    def likelihood_params(self, rule: Rule, key: Key[Array, ""] | None = None) -> dict[str, Array]:
        if rule != "draw":
            rows = Dirichlet(self._concentration(self.log_pseudo) + self.counts)
            return {"rows": rows.likelihood_params("mean"), "log_pseudo": self.log_pseudo}
        assert key is not None
        first, second = jax.random.split(key)
        at = self._moved(first)
        rows = Dirichlet(self._concentration(at) + self.counts)
        return {"rows": rows.likelihood_params("draw", second), "log_pseudo": at}

    def _concentration(self, log_pseudo: Array) -> Array:
        return jnp.where(_right(self.counts), jnp.exp(log_pseudo[0]), jnp.exp(log_pseudo[1]))

    def _log_density(self, log_pseudo: Array) -> Array:
        """Of the logarithms of the concentrations, given the counts."""
        n_classes, n_observed = self.counts.shape
        pseudo, n_right = jnp.exp(log_pseudo), int(np.sum(_right(self.counts)))
        times = jnp.asarray([n_right, n_classes * n_observed - n_right], log_pseudo.dtype)
        whole = jnp.sum(self._concentration(log_pseudo), 1)
        inside = jnp.sum(gammaln(self.counts + self._concentration(log_pseudo)))
        inside = inside - jnp.sum(times * gammaln(pseudo))
        inside = inside - jnp.sum(gammaln(jnp.sum(self.counts, 1) + whole) - gammaln(whole))
        return inside + jnp.sum(self.shapes * log_pseudo - self._rates * jnp.exp(log_pseudo))

    @property
    def _rates(self) -> np.ndarray:
        """Rates of right and one wrong; the rate of all wrong together is that of right."""
        return _RATE * np.array([1, max(self.counts.shape[1] - 1, 1)])

    def _moved(self, key: Key[Array, ""]) -> Array:
        dtype = self.log_pseudo.dtype
        keys = jax.random.split(key, 4)
        from_prior = loggamma(keys[0], self.shapes.astype(dtype)) - np.log(self._rates)
        start = jnp.where(jnp.any(self.counts > 0), self.log_pseudo, from_prior)
        # all random numbers at once: one by one they would be most of the time
        size = jnp.exp(jax.random.uniform(keys[1], (_STEPS,), dtype, *np.log(_SIZES)))
        directions = jnp.tile(jnp.asarray([[1.0, 1.0], [0.0, 1.0]], dtype), (_STEPS // 2, 1))
        moves = (size * jax.random.normal(keys[2], (_STEPS,), dtype))[:, None] * directions
        level = jnp.log(jax.random.uniform(keys[3], (_STEPS,), dtype))
        # the first step stays, and is accepted: it evaluates the density at the start
        moves = jnp.concatenate([jnp.zeros((1, 2), dtype), moves])
        level = jnp.concatenate([jnp.full(1, -jnp.inf, dtype), level])

        def step(
            state: tuple[Array, Array], drawn: tuple[Array, Array]
        ) -> tuple[tuple[Array, Array], None]:
            (at, density), (move, limit) = state, drawn
            there = self._log_density(at + move)
            accepted = (limit < there - density) | (limit == -jnp.inf)
            return (jnp.where(accepted, at + move, at), jnp.where(accepted, there, density)), None

        begin = (start, jnp.zeros((), dtype))
        return lax.scan(step, begin, (moves, level))[0][0]


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class HierarchicalTransition(LabelChannel):
    """A noise matrix with the concentrations of its rows' prior as parameters, for draws.

    ``right ~ Gamma(shapes[0], r)``, ``others ~ Gamma(shapes[1], r)``, so that their shares are Beta
    and independent of their sum. Row ``k`` of the matrix is Dirichlet with concentration ``right``
    at ``k`` and ``others / (observed - 1)`` elsewhere.

    Attributes:
        prior: the prior, its counts zero.

    Examples:
        Draws of a noise matrix and of its concentrations, where 15 of 20 ants and of 20 bees have
        the right label:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels.channels import PooledTransition
        >>> pooled = PooledTransition.of(2)
        >>> counts = np.array([[15.0, 5.0], [5.0, 15.0]])  # [true, observed]
        >>> channel, q = pooled.for_draws(pooled.update(counts, "map"))
        >>> print(type(channel).__name__)
        HierarchicalTransition
        >>> draw = jax.jit(jax.vmap(lambda key: channel.values(q.likelihood_params("draw", key))))
        >>> drawn = draw(jax.random.split(jax.random.key(0), 500))
        >>> for name, part in sorted(drawn.items()):
        ...     print(name, part.shape)
        others (500,)
        right (500,)
        transition (500, 2, 2)
        >>> print(np.asarray(drawn["transition"]).mean(0).round(1))  # [true, observed]
        [[0.7 0.3]
         [0.3 0.7]]
    """

    prior: PooledDirichlet

    pack = staticmethod(pack_labels)

    def log_likelihood(self, likelihood_params: dict[str, Array], data: Array) -> LogLikelihood:
        return read_labels(likelihood_params["rows"], data)

    def stats(
        self,
        likelihood_params: dict[str, Array],
        resp: Float[Array, "n k"],
        data: Array,
        key: Key[Array, ""] | None = None,
    ) -> tuple[Array, Array]:
        # the concentrations are the chain's state, and no statistic that the weight multiplies
        here = likelihood_params["log_pseudo"] / self.weight
        return count_labels(resp, data, self.prior.counts.shape[1]), here

    def transition(self, values: dict[str, Any]) -> Float[Array, "k observed"]:
        return values["transition"]

    def initial_responsibilities(self, data: Array) -> Float[Array, "n k"]:
        n_classes, n_observed = self.prior.counts.shape
        return jax.nn.one_hot(data, n_observed)[:, :n_classes]

    def relabel(self, q: PooledDirichlet, order: Int[Array, " k"]) -> PooledDirichlet:
        return replace(q, counts=q.counts[order])

    def values(self, likelihood_params: dict[str, Array]) -> dict[str, Array]:
        right, wrong = jnp.exp(likelihood_params["log_pseudo"])
        others = wrong * max(self.prior.counts.shape[1] - 1, 1)
        return {"transition": jnp.exp(likelihood_params["rows"]), "right": right, "others": others}

    def sites(self, name: str) -> dict[str, Any]:
        right, others = (
            numpyro.sample(f"{name}_{which}", dist.Gamma(shape, _RATE))
            for which, shape in zip(("right", "others"), self.prior.shapes, strict=True)
        )
        wrong = others / max(self.prior.counts.shape[1] - 1, 1)
        here = jnp.where(_right(self.prior.counts), right, wrong)
        rows = numpyro.sample(f"{name}_transition", dist.Dirichlet(here).to_event(1))
        return {"transition": rows, "right": right, "others": others}

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Any) -> None:
        observe(name, values["transition"], y, data)

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Array:
        return draw_labels(key, values["transition"], y)

    def dims(self) -> dict[str, list[str]]:
        return {"transition": ["true_class", "observed_class"], "right": [], "others": []}
