"""Labelling functions: annotators whose abstentions count, too (weak supervision).

A function that only ever names one class says something by naming it, and by abstaining. Given that
it votes its vote is certain, so that an abstention has to be an outcome of its own (Ratner et al.
2016, *Data programming*). Evidence and statistics of abstentions are those of all items less those
of the votes: time and memory grow with the votes, not with items times functions.

Functions that vote seldom hardly identify two rates for each label, and a fit that is free to
choose them makes a class of the items that are often voted on. So the rates have a prior centred at
one weight of evidence a function (Good 1950): by so much a vote for any label is likelier on items
of that class than on others. It says the same of a function that names one class and of one that
names all, whatever the shares of the classes are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int, Key

from inference.arrays import on_device
from inference.products import Matrix
from inference.pytree import register_dataclass
from nbmodels.channels.annotators import Annotators, right_labels, shares_of_votes
from nbmodels.channels.one_coin_annotators import OneCoinAnnotators
from nbmodels.core.component import LogLikelihood, product_log_likelihood
from nbmodels.core.families import Dirichlet, Rule
from nbmodels.core.lazy import numpyro
from nbmodels.core.roles import LabelChannel

#: Prior of a weight of evidence, normal: mean, as if three votes in four were right of two classes
#: alike and more than that of others, and standard deviation; its range, and halvings of that.
_MEAN, _SD, _RANGE, _HALVINGS = np.log(4.0), 1.0, (-4.0, 8.0), 40

#: Pseudo-votes by which the rates of a function are drawn to those of its weight of evidence.
STRENGTH = 20.0

#: Most that the rates of a function's votes sum to, and the least rate.
_MOST, _LEAST = 0.98, 1e-6

#: Pseudo-items of each class, most steps of the first estimate, and the change that ends it.
_ITEMS, _STEPS, _TOL = 4.0, 500, 1e-4


def evidence_rates(
    counts: Float[Array, "w outcomes k"],
) -> Float[Array, "w outcomes k"]:
    """P(outcome | class) by one weight of evidence a function, at its posterior mode.

    With the share ``t`` of items on which a function votes for label ``v``, the share ``pi`` of
    class ``v`` and the function's weight ``log(l)``, a vote for ``v`` has the rate
    ``l t / (l pi + 1 - pi)`` on items of class ``v``, and ``t / (l pi + 1 - pi)`` on others: ``t``
    on average.

    Args:
        counts: ``(W, K + 1, K)`` expected number of items by outcome and class, abstentions last.
    """
    voted = counts[:, :-1]
    n_labels, k = voted.shape[1:]
    right = jnp.asarray(right_labels(n_labels, k))
    by_class = jnp.sum(counts, (0, 1)) / len(counts)
    share = (right @ by_class) / jnp.sum(by_class)
    by_label = jnp.sum(voted, 2)
    hits = jnp.sum(voted * right, 2)

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        odds = jnp.exp(middle)[:, None] * share
        slope = jnp.sum(hits - by_label * odds / (odds + 1 - share), 1)
        up = slope > (middle - _MEAN) / _SD**2
        return jnp.where(up, middle, low), jnp.where(up, high, middle)

    ends = tuple(jnp.full(len(counts), end, counts.dtype) for end in _RANGE)
    low, high = lax.fori_loop(0, _HALVINGS, halve, ends)
    ratio = jnp.exp((low + high) / 2)[:, None]
    missed = (by_label / jnp.sum(by_class) + _LEAST) / (ratio * share + 1 - share)
    rates = jnp.where(right, (ratio * missed)[:, :, None], missed[:, :, None])
    total = jnp.sum(rates, 1, keepdims=True)
    rates = rates * jnp.minimum(1, _MOST / total)
    return jnp.concatenate([rates, 1 - jnp.sum(rates, 1, keepdims=True)], 1)


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class LabellingFunctions(OneCoinAnnotators):
    """Annotators with "abstains" as their last label.

    Each row of a function's matrix has a prior centred at the rates of one weight of evidence, as
    strong as ``strength`` votes of the function (:func:`evidence_rates`).

    Attributes:
        prior: Dirichlet of shape ``(functions, observed + 1, K)``, abstention last.
        strength: pseudo-votes of each row.
        power: of each function's likelihood, ``(functions,)``, or one of all; below 1 for functions
            that copy from each other.

    Examples:
        The first function knows ants only, the second bees only, the third votes on all and errs on
        one item in five. Columns are votes for "ant" and "bee"; who abstains has a row of zeros:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import LabellingFunctions
        >>> from nbmodels.class_priors import Proportions
        >>> y = np.repeat([0, 1], 50)
        >>> votes = np.zeros((100, 3, 2))
        >>> votes[:40, 0, 0] = votes[60:, 1, 1] = 1
        >>> votes[np.arange(100), 2, np.where(np.arange(100) % 5 == 0, 1 - y, y)] = 1
        >>> model = {"class_prior": Proportions.of(2), "votes": LabellingFunctions.of(3, 2)}
        >>> parts = {"class_prior": None, "votes": LabellingFunctions.pack(votes)}
        >>> found = fit(model, Data(parts, np.ones(100)), key=jax.random.key(0))
        >>> print(np.asarray(found.params["votes"].mode)[:2, 2].argmin(1))  # abstains least on
        [0 1]
        >>> print((votes[:, 2].argmax(1) == y).sum(), (found.resp.argmax(1) == y).sum())
        80 96
    """

    power: Any = field(default=1.0)

    @classmethod
    def of(
        cls,
        n_annotators: int,
        n_classes: int,
        n_observed: int | None = None,
        alpha: float = 1.0,
        diagonal: float = 2.0,
        strength: float = STRENGTH,
    ) -> LabellingFunctions:
        """Prior by pseudo-votes of each accuracy, half of the outcomes abstentions."""
        observed = n_classes if n_observed is None else n_observed
        plain = OneCoinAnnotators.of(n_annotators, n_classes, observed, alpha, diagonal, strength)
        votes = np.asarray(plain.prior.concentration) - 1
        both = 1 + np.concatenate([votes, votes.sum(1, keepdims=True)], 1)
        prior = Dirichlet(on_device(both, float), axis=1)
        return cls(prior=prior, strength=plain.strength, pseudo=plain.pseudo)

    def learning_from(self, n_votes: float) -> LabellingFunctions:
        """As it is: its strength and the share of guesses are not learned."""
        return replace(self, n_votes=float(n_votes))

    @property
    def _shape(self) -> tuple[int, int, int]:
        """Numbers of functions, of labels and of classes."""
        functions, outcomes, classes = self.prior.concentration.shape
        return functions, outcomes - 1, classes

    @property
    def _powers(self) -> Float[Array, "w 1 1"]:
        return jnp.broadcast_to(jnp.asarray(self.power), self._shape[:1])[:, None, None]

    def log_likelihood(self, likelihood_params: Array, data: Matrix) -> LogLikelihood:
        powered = likelihood_params * self._powers
        voted, abstained = powered[:, :-1], powered[:, -1:]
        table = (voted - abstained).reshape(-1, voted.shape[2])
        return product_log_likelihood(data, table, jnp.sum(abstained, (0, 1)))

    def stats(
        self,
        likelihood_params: Any,
        resp: Float[Array, "n k"],
        data: Matrix,
        key: Key[Array, ""] | None = None,
    ) -> Array:
        voted = data.transpose_times(resp).reshape(self._shape)
        abstained = jnp.sum(resp, 0) - jnp.sum(voted, 1, keepdims=True)
        return self._powers * jnp.concatenate([voted, jnp.maximum(abstained, 0)], 1)

    def transition(self, values: dict[str, Any]) -> Float[Array, "k observed"]:
        """``(K, observed)`` of a vote of a function taken at random."""
        voted = jnp.mean(values["transitions"], 0)[:, :-1]
        return voted / jnp.sum(voted, 1, keepdims=True)

    def initial_responsibilities(self, data: Any) -> Float[Array, "n k"]:
        return shares_of_votes(data, *self._shape)

    def pooled(self, q: Dirichlet, rule: Rule) -> LabellingFunctions:
        """With weights of evidence learned from ``q``."""
        counts = jnp.maximum(q.concentration - self.prior.concentration, 0)
        return self._centred_at_rates(
            evidence_rates(counts / self._powers), 1.0 if rule == "map" else 0.0
        )

    def _centred_at_rates(
        self, rates: Float[Array, "w outcomes k"], extra: float
    ) -> LabellingFunctions:
        """With the prior of given rates; ``extra`` is added to every concentration."""
        voted = jnp.mean(1 - rates[:, -1:], 2, keepdims=True)
        around = self.strength / jnp.maximum(voted, _LEAST) * rates
        return replace(self, prior=replace(self.prior, concentration=extra + around))

    def first_estimate(
        self,
        resp: Float[Array, "n k"],
        held: Bool[Array, " n"],
        data: Matrix,
        class_prior: Float[Array, " k"] | None,
        rule: Rule,
    ) -> tuple[LabellingFunctions, Float[Array, "n k"]]:
        """Weights of evidence and classes by EM, from which a fit of all rates begins.

        Args:
            resp: ``(N, K)`` responsibilities to begin from; zeros of an item that does not exist.
            held: ``(N,)`` whether an item's responsibilities stay as they are.
            data: the votes.
            class_prior: ``(K,)`` known shares of the classes; None to learn them.
            rule: of the fit.

        Returns:
            the channel with the prior of these weights, and ``(N, K)`` responsibilities.
        """
        k = resp.shape[1]

        def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            i, now, _ = state
            rates = evidence_rates(self.stats(None, now, data) / self._powers)
            shares = (jnp.sum(now, 0) + _ITEMS) / (jnp.sum(now) + k * _ITEMS)
            shares = shares if class_prior is None else class_prior
            table = self.log_likelihood(jnp.log(rates), data).table + jnp.log(shares)
            new = jnp.where(held[:, None], resp, jax.nn.softmax(table, 1))
            return i + 1, new, jnp.max(jnp.abs(new - now))

        def going(state: tuple[Array, Array, Array]) -> Array:
            return (state[0] < _STEPS) & (state[2] > _TOL)

        begin = (jnp.zeros((), int), resp, jnp.ones((), resp.dtype))
        found = lax.while_loop(going, step, begin)[1]
        rates = evidence_rates(self.stats(None, found, data) / self._powers)
        return self._centred_at_rates(rates, 1.0 if rule == "map" else 0.0), found

    def for_draws(self, q: Dirichlet) -> tuple[LabelChannel, Any]:
        """With the prior learned, as known."""
        return replace(self, prior=self.prior.centred), q

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Matrix) -> None:
        functions, observed, _ = self._shape
        votes = data.to_dense().reshape(-1, functions, observed)
        votes = jnp.concatenate([votes, 1 - jnp.sum(votes, 2, keepdims=True)], 2)
        of_class = jnp.swapaxes(values["transitions"], 0, 1)[y]
        logs = jnp.where(votes > 0, jnp.log(jnp.where(votes > 0, of_class, 1)), 0)
        numpyro.factor(name, (votes * logs * self._powers[:, 0]).sum((-2, -1)))

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Array:
        """Votes of all functions on all items, as counts; none where one abstains."""
        return Annotators.simulate(self, key, values, y)[..., :-1]

    def dims(self) -> dict[str, list[str]]:
        return {"transitions": ["annotator", "true_class", "outcome"]}
