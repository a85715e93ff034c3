"""Annotators whose noise matrices are drawn around matrices of one error rate, each their own.

The "one-coin" matrix of an annotator has one accuracy for all classes. It is learned from the
annotator's own votes, and each row of the full matrix has a Dirichlet prior centred at it. A class
on which an annotator has hardly voted is read as their other classes are. Which wrong label a vote
names is drawn from all of them alike, or from the errors of the crowd, where these predict each
annotator's own: of many classes a few are similar, and votes are too few to show it of everybody.

Some items may be guessed: all votes on them are drawn from all labels alike, whatever the class.
Without that, a rare class becomes the one of disputed items, since a row of even votes explains
them better than any class does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key

from inference.arrays import on_device
from inference.products import Matrix
from inference.pytree import register_dataclass
from nbmodels.channels.annotators import Annotators, right_labels
from nbmodels.channels.drawn_annotators import DrawnAnnotators
from nbmodels.channels.one_coin_matrices import (
    MARGIN,
    SUPPORTED,
    crowd_errors,
    even_errors,
    likeliest_accuracy,
    likeliest_strength,
    log_likelihood,
    one_coin,
)
from nbmodels.channels.one_coin_votes import SPREAD, OneCoinVotes
from nbmodels.core.component import LogLikelihood, centred
from nbmodels.core.families import Dirichlet, Rule
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.roles import LabelChannel

#: Least number of pseudo-votes by which each row is drawn to the annotator's own one-coin matrix.
STRENGTH = 5.0

#: Difference of the logarithm from which on another strength is taken: nearer ones are as likely.
_NEARLY = 0.1

#: Probability that the votes on an item are guesses, where it is not learned or learning begins.
GUESSED = 0.05

#: Range of that probability, and pseudo-votes of its prior: guessed, and all.
_LEAST_GUESSED, _MOST_GUESSED, _PSEUDO_GUESSED = 1e-3, 0.5, (1.0, 20.0)

#: Multiple of the least strength that fits begin with at most, where votes are few, and votes of a
#: cell of the matrices that are many.
_MOST_AT_FIRST, _OF_A_CELL = 8.0, 60.0

#: Number of votes from which an accuracy has as many pseudo-votes as given, and how many times as
#: many it has at most, of fewer votes.
_MANY_VOTES, _MOST_AROUND = 6000.0, 5.0


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class OneCoinAnnotators(Annotators):
    """Annotators whose prior is centred at their own one-coin matrix (empirical Bayes).

    ``accuracy[w] ~ Beta`` around the crowd's mean accuracy, and row ``k`` of annotator ``w``'s
    matrix is Dirichlet with concentrations ``strength * accuracy[w]`` at the right label and the
    rest of ``strength`` shared by the others, evenly or, where votes are fewer than cells of the
    matrices, by the crowd's ``errors`` if each annotator's are likelier given those of the others.
    The Beta prior has ``sum(pseudo)`` pseudo-votes, and up to five times as many in crowds of less
    than 6,000 votes. Fits take the accuracies and the strength at their maximum, the matrices
    integrated out; draws sample the accuracies and the distribution that the crowd's are from,
    given its errors and the strength, see :class:`HierarchicalOneCoin`.

    Attributes:
        prior: Dirichlet of shape ``(annotators, observed, K)``, as learned so far.
        strength: pseudo-votes of each row, as learned so far.
        least_strength: the least that is learned.
        pseudo: ``(2,)`` right and wrong pseudo-votes of an accuracy.
        guessed: probability that all votes on an item are guesses.
        n_votes: number of all votes, to learn ``guessed`` from; 0 to leave it as it is.
        errors: ``(observed, K)`` distribution of a wrong vote, as learned so far; None for all
            wrong labels alike.

    Examples:
        Two annotators have voted on ants only: one is right in nine votes of ten, one in six. Their
        rows of bees are drawn to the same accuracies:

        >>> import numpy as np
        >>> from nbmodels.channels import OneCoinAnnotators
        >>> ants = np.array([[90.0, 10.0], [60.0, 40.0]])  # votes for ant and for bee
        >>> counts = np.stack([ants, 0 * ants], 2)  # (annotators, observed, true)
        >>> channel = OneCoinAnnotators.of(2, 2, strength=50.0)
        >>> learned = channel.pooled(channel.update(counts, "map"), "map")
        >>> matrices = np.asarray(learned.update(counts, "map").mode)
        >>> print(np.diagonal(matrices, axis1=1, axis2=2).round(1))  # right on ants, and on bees
        [[0.9 0.9]
         [0.6 0.6]]
    """

    learns_prior: ClassVar[bool] = True

    strength: Any = field(default=STRENGTH)
    least_strength: Any = field(default=STRENGTH)
    pseudo: Any = field(default=(2.0, 1.0))
    guessed: Any = field(default=GUESSED)
    n_votes: Any = field(default=0.0)
    errors: Any = field(default=None)

    @property
    def repeated(self) -> Any:
        """Pseudo-votes of each row beyond the least, which stem from the annotator's others."""
        return self.strength - self.least_strength

    def _odds(self, likelihood_params: Array, data: Matrix) -> tuple[Array, Array]:
        """``(N, K)`` log-likelihood of votes that follow the class, and ``(N, 1)`` of guesses."""
        plain = super().log_likelihood(likelihood_params, data)
        sizes = data.times(jnp.ones((data.shape[1], 1), likelihood_params.dtype))
        guesses = jnp.log(self.guessed) - sizes * np.log(likelihood_params.shape[1])
        return jnp.log1p(-self.guessed) + plain.table + plain.offset[:, None], guesses

    def log_likelihood(self, likelihood_params: Array, data: Matrix) -> LogLikelihood:
        return centred(jnp.logaddexp(*self._odds(likelihood_params, data)))

    def stats(
        self,
        likelihood_params: Any,
        resp: Float[Array, "n k"],
        data: Matrix,
        key: Key[Array, ""] | None = None,
    ) -> Array:
        following, guesses = self._odds(likelihood_params, data)
        follows = jax.nn.sigmoid(following - guesses)
        if key is not None:
            drawn = jax.random.uniform(key, follows.shape, follows.dtype)
            follows = (drawn < follows).astype(resp.dtype)
        return super().stats(None, resp * follows, data)

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Matrix) -> None:
        n_annotators, n_observed, _ = self.prior.concentration.shape
        votes = data.to_dense().reshape(-1, n_annotators, n_observed)
        of_class = jnp.swapaxes(values["transitions"], 0, 1)[y]
        logs = jnp.where(votes > 0, jnp.log(jnp.where(votes > 0, of_class, 1)), 0)
        following = (votes * logs).sum((-2, -1))
        guesses = -votes.sum((-2, -1)) * np.log(n_observed)
        both = jnp.log1p(-self.guessed) + following, jnp.log(self.guessed) + guesses
        numpyro.factor(name, jnp.logaddexp(*both))

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Array:
        """One vote of every annotator on every item, as counts."""
        first, second, third = jax.random.split(key, 3)
        votes = super().simulate(first, values, y)
        chance = jax.random.bernoulli(second, self.guessed, y.shape)
        labels = jax.random.randint(third, votes.shape[:2], 0, votes.shape[2])
        guesses = jax.nn.one_hot(labels, votes.shape[2], dtype=votes.dtype)
        return jnp.where(chance[:, None, None], guesses, votes)

    @classmethod
    def of(
        cls,
        n_annotators: int,
        n_classes: int,
        n_observed: int | None = None,
        alpha: float = 1.0,
        diagonal: float = 2.0,
        strength: float = STRENGTH,
    ) -> OneCoinAnnotators:
        """Prior by pseudo-votes of each accuracy: ``alpha`` wrong and ``diagonal`` right."""
        n_observed = n_classes if n_observed is None else n_observed
        # a distribution of accuracies needs more than nothing of both kinds
        pseudo = np.maximum([diagonal, alpha], MARGIN)
        accuracy = np.full(n_annotators, pseudo[0] / pseudo.sum())
        right = right_labels(n_observed, n_classes)
        around = 1 + strength * one_coin(accuracy, right)
        return cls(
            prior=Dirichlet(on_device(around, float), axis=1),
            strength=on_device(strength, float),
            least_strength=on_device(strength, float),
            pseudo=on_device(pseudo, float),
            errors=on_device(even_errors(right), float),
        )

    def learning_from(self, n_votes: float) -> Self:
        """With the number of all votes, and a strength to begin with.

        Where votes are few, or fewer than cells of the matrices, rows of their own would confirm
        the first guess of each item, and votes would never seem to be those of annotators who are
        right of all classes alike.

        Args:
            n_votes: number of all votes.
        """
        cells = np.prod(self.prior.concentration.shape)
        few = max(float(cells), min(_OF_A_CELL * float(cells), _MANY_VOTES))
        times = float(np.clip(few / max(n_votes, 1), 1, _MOST_AT_FIRST))
        around = 1 + times * (np.asarray(self.prior.concentration) - 1)
        prior = replace(self.prior, concentration=on_device(around, float))
        strength = on_device(times * np.asarray(self.strength), float)
        return replace(self, prior=prior, strength=strength, n_votes=float(n_votes))

    def _centred_at(self, accuracy: Array, extra: float) -> OneCoinAnnotators:
        """With the prior of given accuracies; ``extra`` is added to every concentration."""
        shape = self.prior.concentration.shape
        around = self.strength * one_coin(accuracy, right_labels(*shape[1:]), self.errors)
        return self._with_prior(replace(self.prior, concentration=extra + around))

    def pooled(self, q: Dirichlet, rule: Rule) -> OneCoinAnnotators:
        """With accuracies learned from ``q``; under ``"map"`` the mode is the posterior mean."""
        counts = jnp.maximum(q.concentration - self.prior.concentration, 0)
        # one after the other: both stay where the priors that are learned no longer change
        pseudo = self._around_the_crowd(counts)
        accuracy = likeliest_accuracy(counts, self.strength, pseudo, self.errors)
        strength, errors = self._learned_rows(accuracy, counts)
        alike = replace(self, strength=strength, errors=errors)
        centred_at = alike._centred_at(accuracy, 1.0 if rule == "map" else 0.0)
        return replace(centred_at, guessed=self._learned_guessed(jnp.sum(counts)))

    def _learned_rows(self, accuracy: Array, counts: Array) -> tuple[Array, Any]:
        """Strength and errors of the prior of rows, shared by few votes where surely likelier."""
        right = right_labels(*counts.shape[1:])
        strength = likeliest_strength(accuracy, counts, self.least_strength)
        if self.errors is None or len(right) < 3:
            return self._kept(strength), self.errors
        even = jnp.asarray(even_errors(right), counts.dtype)
        others = crowd_errors(counts, own=False)
        of_crowd = likeliest_strength(accuracy, counts, self.least_strength, others)
        likelier = jnp.sum(
            log_likelihood(counts, one_coin(accuracy, right, others), of_crowd)
            - log_likelihood(counts, one_coin(accuracy, right), strength)
        )
        # of few classes each annotator shows their own, and errors alike may be copies
        each = jnp.sum(counts, (1, 2))  # none of annotators that padding added
        cells = jnp.count_nonzero(each) * right.size
        shared = (likelier > SUPPORTED) & (cells > jnp.sum(each))
        errors = jnp.where(shared, crowd_errors(counts), even)
        return self._kept(jnp.where(shared, of_crowd, strength)), errors

    def _kept(self, strength: Array) -> Array:
        """The strength as it was, where the likeliest one is nearly that.

        A class that is now judged alone and now with others would have the rounds of learning never
        come to rest.
        """
        now = jnp.asarray(self.strength, strength.dtype)
        return jnp.where(jnp.abs(jnp.log(strength / now)) < _NEARLY, now, strength)

    def _learned_guessed(self, following: Array) -> Array:
        """Share of guessed votes, from the expected number of those that follow the class."""
        some, all_ = _PSEUDO_GUESSED
        share = (some + self.n_votes - following) / (all_ + self.n_votes)
        inside = jnp.clip(share, _LEAST_GUESSED, _MOST_GUESSED)
        return jnp.where(jnp.asarray(self.n_votes) > 0, inside, self.guessed)

    def _around_the_crowd(self, counts: Array) -> Float[Array, " 2"]:
        """``(2,)`` pseudo-votes of an accuracy at the crowd's own accuracy.

        Of few votes they are more: one annotator who is taken for the truth early in the iteration
        makes the others look worse, and may stay it.
        """
        right = jnp.sum(jnp.where(right_labels(*counts.shape[1:]), counts, 0))
        pseudo, n_votes = jnp.asarray(self.pseudo), jnp.sum(counts)
        mean = (pseudo[0] + right) / (jnp.sum(pseudo) + n_votes)
        times = jnp.clip(_MANY_VOTES / jnp.maximum(n_votes, 1), 1, _MOST_AROUND)
        return times * jnp.sum(pseudo) * jnp.stack([mean, 1 - mean])

    def for_draws(self, q: Dirichlet) -> tuple[LabelChannel, Any]:
        """The hierarchical channel, whose chains begin at the accuracies learned."""
        counts = jnp.maximum(q.concentration - self.prior.concentration, 0)
        around = self._around_the_crowd(counts)
        here = likeliest_accuracy(counts, self.strength, around, self.errors)
        crowd = jnp.stack([jnp.log(around[0]) - jnp.log(around[1]), jnp.log(jnp.sum(around))])
        prior = OneCoinVotes(
            jnp.zeros_like(counts),
            jnp.log(here) - jnp.log1p(-here),
            crowd,
            jnp.asarray(self.strength),
            jnp.asarray(self.pseudo),
            self.errors,
        )
        channel = HierarchicalOneCoin(prior=prior, guessed=self.guessed)
        return channel, replace(prior, counts=counts)


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class HierarchicalOneCoin(DrawnAnnotators):
    """Annotators around their own one-coin matrices, with the accuracies as parameters, for draws.

    Accuracies are from a Beta distribution of unknown mean ``crowd_accuracy`` and size
    ``crowd_pseudo_votes``, with a Beta and a log-normal prior, which no tree of draws keeps. Fits
    hold accuracies nearer to the crowd's, lest one annotator be taken for the truth; intervals
    about these would seldom hold an annotator who is much better than the others
    (``benchmarks/records/crowds.md``).

    Attributes:
        prior: the prior, its counts zero.
        guessed: probability that all votes on an item are guesses.

    Examples:
        Draws of the accuracies of two annotators, one right in nine votes of ten and one in six:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels.channels import OneCoinAnnotators
        >>> right = np.array([90.0, 60.0])[:, None, None]
        >>> counts = np.where(np.eye(2), right, 100 - right)  # (annotators, observed, true)
        >>> plain = OneCoinAnnotators.of(2, 2, strength=50.0)
        >>> channel, q = plain.for_draws(plain.update(counts, "map"))
        >>> print(type(channel).__name__)
        HierarchicalOneCoin
        >>> draw = jax.jit(jax.vmap(lambda key: channel.values(q.likelihood_params("draw", key))))
        >>> drawn = draw(jax.random.split(jax.random.key(0), 200))
        >>> print(drawn["transitions"].shape, drawn["accuracy"].shape)
        (200, 2, 2, 2) (200, 2)
        >>> print(np.asarray(drawn["accuracy"]).mean(0).round(1))
        [0.9 0.6]
    """

    prior: OneCoinVotes
    guessed: Any = field(default=GUESSED)

    @property
    def _annotators(self) -> Annotators:
        return OneCoinAnnotators(prior=Dirichlet(self.prior.counts, axis=1), guessed=self.guessed)

    def log_likelihood(self, likelihood_params: dict[str, Array], data: Matrix) -> LogLikelihood:
        return self._annotators.log_likelihood(likelihood_params["logs"], data)

    def stats(
        self,
        likelihood_params: dict[str, Array],
        resp: Float[Array, "n k"],
        data: Matrix,
        key: Key[Array, ""] | None = None,
    ) -> tuple[Array, Array, Array]:
        # accuracies and crowd are the chain's state, and no statistics that the weight multiplies
        here = (likelihood_params[one] / self.weight for one in ("logit", "crowd"))
        return self._annotators.stats(likelihood_params["logs"], resp, data, key), *here

    def relabel(self, q: OneCoinVotes, order: Int[Array, " k"]) -> OneCoinVotes:
        return replace(q, counts=q.counts[..., order])

    def values(self, likelihood_params: dict[str, Array]) -> dict[str, Array]:
        own = self._annotators.values(likelihood_params["logs"])
        mean, size = likelihood_params["crowd"]
        return {
            **own,
            "accuracy": jax.nn.sigmoid(likelihood_params["logit"]),
            "crowd_accuracy": jax.nn.sigmoid(mean),
            "crowd_pseudo_votes": jnp.exp(size),
        }

    def sites(self, name: str) -> dict[str, Any]:
        annotators, observed, k = self.prior.counts.shape
        pseudo = jnp.asarray(self.prior.pseudo)
        mean = numpyro.sample(f"{name}_crowd_accuracy", dist.Beta(*pseudo))
        sizes = dist.LogNormal(jnp.log(jnp.sum(pseudo)), SPREAD)
        size = numpyro.sample(f"{name}_crowd_pseudo_votes", sizes)
        each = dist.Beta(size * mean, size * (1 - mean)).expand([annotators]).to_event(1)
        accuracy = numpyro.sample(f"{name}_accuracy", each)
        inside = jnp.clip(accuracy, MARGIN, 1 - MARGIN)
        around = self.prior.strength * one_coin(
            inside, right_labels(observed, k), self.prior.errors
        )
        rows = dist.Dirichlet(jnp.swapaxes(around, 1, 2)).to_event(2)
        return {
            "transitions": numpyro.sample(f"{name}_transitions", rows),
            "accuracy": accuracy,
            "crowd_accuracy": mean,
            "crowd_pseudo_votes": size,
        }

    def dims(self) -> dict[str, list[str]]:
        crowd: dict[str, list[str]] = {"crowd_accuracy": [], "crowd_pseudo_votes": []}
        return {**self._annotators.dims(), "accuracy": ["annotator"], **crowd}
