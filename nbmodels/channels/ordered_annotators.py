"""Annotators who grade on an ordered scale, each with a severity and a scale of their own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, Key
from scipy.special import expit
from scipy.stats import norm, qmc

from inference.arrays import on_device
from inference.products import Matrix
from inference.pytree import register_dataclass
from inference.triangular import factor, log_diagonal
from nbmodels.channels.annotators import Annotators
from nbmodels.channels.drawn_ordered import DrawnOrdered, OrderedVotes
from nbmodels.channels.graded_response import (
    LAPSE,
    LOG_SCALE,
    Scale,
    likelier_widths,
    likeliest,
    log_rates,
    log_slopes,
    mean_rates,
    rates,
)
from nbmodels.core.component import LogLikelihood, product_log_likelihood
from nbmodels.core.families import DrawKey, Family, Rule
from nbmodels.core.families.base import LOG_2PI
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.roles import LabelChannel

#: Scores within a class. Of one alone probabilities are 10 points surer on simulated grades, more
#: than three change nothing (benchmarks/records/crowds.md).
POINTS = 3

#: Means and standard deviations of the annotators' parameters before any vote, and number of
#: annotators that the learned ones are worth.
_MEAN, _SPREAD = (0.0, float(np.log(0.5)), 0.0, -3.0), (0.5, 0.5, 0.3, 1.0)
_ANNOTATORS = 2.0

#: Their names, in the order of :mod:`nbmodels.channels.graded_response`.
_NAMES = ("severity", "log_scale", "log_range", "lapse_logit")

#: Standard deviation of the logarithm of a class's width.
_WIDTHS = 0.4

#: Rounds by which the learned prior is brought nearer to where it stays.
_ROUNDS = 5

#: Pseudo-votes that stand for rates which an item's own votes hardly change.
_FIRM = 1_000.0

#: Points over which an unknown annotator is averaged.
_UNKNOWN = 256


@register_dataclass
@dataclass(frozen=True)
class AnnotatorNormals(Family):
    """Normal distributions of the annotators' parameters, by Laplace's approximation.

    ``"vb"`` reads the mode, as ``"map"`` does: a point, not a bound.

    Args:
        mean: ``(W, 4)``, see :mod:`nbmodels.channels.graded_response`.
        precision: ``(W, 4, 4)``.
        counts: ``(W, L, C)`` expected votes of which this is the posterior; zeros of a prior.
    """

    mean: Float[Array, "w 4"]
    precision: Float[Array, "w 4 4"]
    counts: Float[Array, "w l c"]

    def likelihood_params(self, rule: Rule, key: DrawKey = None) -> Float[Array, "w 4"]:
        if rule != "draw":
            return self.mean
        assert key is not None
        inverse = factor(self.precision)[1]
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + jnp.einsum("wij,wi->wj", inverse, noise)

    def negative_log_prior(self, prior: AnnotatorNormals) -> Float[Array, " w"]:
        gap = self.mean - prior.mean
        return 0.5 * jnp.einsum("wi,wij,wj->w", gap, prior.precision, gap)

    def divergence(self, prior: AnnotatorNormals) -> Float[Array, " w"]:
        return self.negative_log_prior(prior)

    def log_normaliser(self) -> Float[Array, " w"]:
        log_det = 2 * log_diagonal(factor(self.precision)[0])
        return 0.5 * (self.mean.shape[1] * LOG_2PI - log_det)

    def free(self, rule: Rule) -> Array:
        return self.mean

    def constrain(self, free: Array, rule: Rule) -> AnnotatorNormals:
        return replace(self, mean=free)


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class OrderedAnnotators(LabelChannel):
    """Votes on an ordered scale: a graded response model of each annotator (Samejima 1969).

    An item of score ``x`` gets the label ``l`` or a lower one of annotator ``w`` with probability
    ``(1 - lapse[w]) expit((m + range[w] (c[l] - m) - x + severity[w]) / scale[w])`` and ``(l + 1) /
    L`` times ``lapse[w]``, where ``c[l]`` is the upper threshold of class ``l`` and ``m`` the mean
    of all thresholds. The model's classes are ``C`` scores, ``C / L`` within each class of the
    scale, side by side in its order. Severities, logarithms of scales and of ranges and logits of
    lapses are normal over the annotators; the means of scales and lapses, all variances and the
    widths of the classes are learned (:meth:`pooled`).

    Attributes:
        prior: normals of the annotators' parameters.
        log_widths: ``(L,)`` logarithms of the classes' widths, as learned so far.

    Examples:
        Three annotators grade from 1 to 3; the third one is a grade too strict:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import OrderedAnnotators
        >>> from nbmodels.class_priors import Proportions
        >>> grades = np.repeat([0, 1, 2], 20)
        >>> cast = np.stack([grades, grades, np.maximum(grades - 1, 0)], 1)
        >>> votes = np.eye(3)[cast]  # (items, annotators, labels)
        >>> model = {"class_prior": Proportions.of(3), "votes": OrderedAnnotators.of(3, 3)}
        >>> parts = {"class_prior": None, "votes": OrderedAnnotators.pack(votes)}
        >>> found = fit(model, Data(parts, np.ones(60)), key=jax.random.key(0))
        >>> print((found.resp.argmax(1) == grades).mean())
        1.0
        >>> print((found.params["votes"].mean[:, 0] > 0.5).tolist())  # severities, in grades
        [False, False, True]
    """

    learns_prior: ClassVar[bool] = True
    repeated: ClassVar[float] = _FIRM
    pack = staticmethod(Annotators.pack)

    prior: AnnotatorNormals
    log_widths: Any = field(default=None)

    @classmethod
    def of(
        cls,
        n_annotators: int,
        n_classes: int,
        n_observed: int | None = None,
        alpha: float = 0.0,
        diagonal: float = 0.0,
    ) -> OrderedAnnotators:
        """Of so many annotators, scores and labels; pseudo-votes are not used."""
        n_observed = n_classes if n_observed is None else n_observed
        mean = np.tile(np.array(_MEAN), (n_annotators, 1))
        precision = np.tile(np.diag(np.array(_SPREAD) ** -2.0), (n_annotators, 1, 1))
        counts = np.zeros((n_annotators, n_observed, n_classes))
        parts = (on_device(part, float) for part in (mean, precision, counts))
        widths = on_device(np.zeros(n_observed), float)
        return cls(prior=AnnotatorNormals(*parts), log_widths=widths)

    @property
    def scale(self) -> Scale:
        """Thresholds and scores."""
        _, n_observed, n_classes = self.prior.counts.shape
        return Scale.of(self.log_widths, n_classes // n_observed)

    def log_likelihood(self, likelihood_params: Float[Array, "w 4"], data: Matrix) -> LogLikelihood:
        logs = log_rates(likelihood_params, self.scale)
        return product_log_likelihood(data, logs.reshape(-1, logs.shape[2]))

    def stats(
        self,
        likelihood_params: Float[Array, "w 4"],
        resp: Float[Array, "n c"],
        data: Matrix,
        key: DrawKey = None,
    ) -> tuple[Float[Array, "w l c"], Float[Array, "w 4"]]:
        """Expected votes, and their number times the parameters, from which steps go on."""
        counts = data.transpose_times(resp).reshape(self.prior.counts.shape)
        return counts, jnp.sum(counts, (1, 2))[:, None] * likelihood_params

    def update(
        self, stats: tuple[Float[Array, "w l c"], Float[Array, "w 4"]], rule: Rule
    ) -> AnnotatorNormals:
        """Laplace's approximation given expected votes."""
        counts, times = stats
        number, prior = jnp.sum(counts, (1, 2))[:, None], self.prior
        begin = jnp.where(number > 0, times / jnp.where(number > 0, number, 1), prior.mean)
        precision = jnp.zeros_like(prior.precision) if rule == "ml" else prior.precision
        mode = likeliest(begin, counts, prior.mean, precision, self.scale)
        return AnnotatorNormals(mode.mean, mode.precision, counts)

    def initial_responsibilities(self, data: Matrix) -> Float[Array, "n c"]:
        """Scores given the votes of annotators who are all as the prior's mean, shares even."""
        found = self.log_likelihood(self.prior.mean, data)
        voted = jnp.sum(jnp.abs(found.table), 1, keepdims=True) + jnp.abs(found.offset)[:, None]
        return jnp.where(voted > 0, jax.nn.softmax(found.table), 0)

    def transition(self, values: dict[str, Any]) -> Float[Array, "c l"]:
        """``(C, L)`` of an annotator taken at random."""
        return jnp.mean(self._transitions(values), 0)

    def _transitions(self, values: dict[str, Any]) -> Float[Array, "w c l"]:
        columns = jnp.stack([values[one] for one in _NAMES], 1)
        return jnp.swapaxes(rates(columns, self.scale), 1, 2)

    # Learned priors -----------------------------------------------------------------------------

    @property
    def learned(self) -> Float[Array, " p"]:
        """Spreads, means on their own scales and widths."""
        spread = jnp.diag(self.prior.precision[0]) ** -0.5
        mean = self.prior.mean[0]
        usual = jnp.stack([jnp.exp(mean[LOG_SCALE]), jax.nn.sigmoid(mean[LAPSE])])
        return jnp.concatenate([spread, usual, jnp.exp(self.log_widths)])

    def pooled(self, q: AnnotatorNormals, rule: Rule) -> OrderedAnnotators:
        """With means, variances and widths learned from ``q``, by EM about Laplace's modes."""
        n, dtype = len(q.mean), q.mean.dtype
        first = jnp.asarray(_MEAN, dtype), jnp.square(jnp.asarray(_SPREAD, dtype))
        index = jnp.arange(len(_MEAN))
        free = (index == LOG_SCALE) | (index == LAPSE)  # severity and range are the scale's own

        def once(_: Any, state: tuple[OrderedAnnotators, Array]) -> tuple[OrderedAnnotators, Array]:
            here, begin = state
            own = here.prior.mean, here.prior.precision, here.scale
            mode = likeliest(begin, q.counts, *own)
            inverse = factor(mode.precision)[1]
            open_ = jnp.sum(jnp.square(inverse), 1)  # the variances that votes leave
            mean = (_ANNOTATORS * first[0] + jnp.sum(mode.mean, 0)) / (_ANNOTATORS + n)
            mean = jnp.where(free, mean, first[0])
            squares = jnp.sum(jnp.square(mode.mean - mean) + open_, 0)
            variance = (_ANNOTATORS * first[1] + squares) / (_ANNOTATORS + n)
            widths = likelier_widths(here.log_widths, mode.mean, q.counts, _WIDTHS)
            prior = replace(
                here.prior,
                mean=jnp.broadcast_to(mean, here.prior.mean.shape),
                precision=jnp.broadcast_to(jnp.diag(1 / variance), here.prior.precision.shape),
            )
            return replace(here, prior=prior, log_widths=widths), mode.mean

        return lax.fori_loop(0, _ROUNDS, once, (self, q.mean))[0]

    # What a fit has learned ---------------------------------------------------------------------

    def pseudo_votes(self, q: AnnotatorNormals, rule: Rule) -> Float[np.ndarray, "w l c"]:
        """Rates as pseudo-votes, many more than an item's own votes, which hardly change them."""
        size = _FIRM + np.asarray(q.counts, float).sum((1, 2))[:, None, None]
        return size * np.asarray(rates(q.mean, self.scale), float)

    def deleted(
        self, q: AnnotatorNormals, worker: Any, label: Any, resp: Float[np.ndarray, "v c"]
    ) -> Float[np.ndarray, "v c"]:
        """``(V, C)`` log P(vote | score), the vote itself deleted to first order.

        Args:
            q: of a fit.
            worker: ``(V,)`` annotators.
            label: ``(V,)`` labels.
            resp: ``(V, C)`` responsibilities of the votes' items times what each vote counts for.
        """
        logs, slopes = log_slopes(q.mean, self.scale)
        logs, slopes = (np.asarray(one, float)[worker, label] for one in (logs, slopes))
        of_item = np.einsum("vc,vcp->vp", resp, slopes)
        covariance = np.linalg.inv(np.asarray(q.precision, float))[worker]
        moved = np.einsum("vcp,vpq,vq->vc", slopes, covariance, of_item)
        return np.minimum(logs - moved, 0)

    def of_unknown(self, rule: Rule) -> Float[np.ndarray, "l c"]:
        """``(L, C)`` of an annotator without votes."""
        points = norm.ppf(qmc.Sobol(len(_MEAN), rng=0).random(_UNKNOWN))
        each = self.prior.counts.shape[2] // self.prior.counts.shape[1]
        own = self.prior.mean[0], self.prior.precision[0], self.log_widths
        return np.asarray(mean_rates(*own, each, points), float)

    def traits(self, q: AnnotatorNormals) -> dict[str, Float[np.ndarray, " w"]]:
        """``(W,)`` severity, scale and range of each annotator, in grades, and share of lapses."""
        severity, log_scale, log_range, lapse = np.asarray(q.mean, float).T
        ways = {"scale": np.exp(log_scale), "range": np.exp(log_range), "lapse": expit(lapse)}
        return {"severity": severity, **ways}

    def for_draws(self, q: AnnotatorNormals) -> tuple[LabelChannel, Any]:
        """The channel of their parameters given the learned prior and widths."""
        root = jnp.swapaxes(factor(q.precision)[1], 1, 2)
        about = self.prior.mean[0], jnp.diag(self.prior.precision[0]) ** -0.5
        prior = OrderedVotes(jnp.zeros_like(q.counts), q.mean, root, *about, self.log_widths)
        return DrawnOrdered(prior=prior), replace(prior, counts=q.counts)

    def relabel(self, q: AnnotatorNormals, order: Int[Array, " c"]) -> AnnotatorNormals:
        return q  # the order of the scale names the classes

    # The second description ---------------------------------------------------------------------

    def values(self, likelihood_params: Float[Array, "w 4"]) -> dict[str, Array]:
        return dict(zip(_NAMES, likelihood_params.T, strict=True))

    def sites(self, name: str) -> dict[str, Any]:
        spread = jnp.diagonal(self.prior.precision, axis1=1, axis2=2) ** -0.5
        return {
            one: numpyro.sample(
                f"{name}_{one}", dist.Normal(self.prior.mean[:, i], spread[:, i]).to_event(1)
            )
            for i, one in enumerate(_NAMES)
        }

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Matrix) -> None:
        n_annotators, n_observed, _ = self.prior.counts.shape
        thresholds, scores = self.scale
        votes = data.to_dense().reshape(-1, n_annotators, n_observed)
        size, middle = jnp.exp(values["log_scale"]), jnp.mean(thresholds)
        seen = (scores[y][..., None] - values["severity"]) / size
        own = middle + jnp.exp(values["log_range"])[:, None] * (thresholds - middle)
        plain = dist.OrderedLogistic(seen, own / size[:, None]).probs
        lapse = jax.nn.sigmoid(values["lapse_logit"])[:, None]
        of_class = (1 - lapse) * plain + lapse / n_observed
        logs = jnp.where(votes > 0, jnp.log(jnp.where(votes > 0, of_class, 1)), 0)
        numpyro.factor(name, (votes * logs).sum((-2, -1)))

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Array:
        """One vote of every annotator on every item, as counts."""
        n_annotators, n_observed, n_classes = self.prior.counts.shape
        plain = Annotators.of(n_annotators, n_classes, n_observed)
        return plain.simulate(key, {"transitions": self._transitions(values)}, y)

    def dims(self) -> dict[str, list[str]]:
        return {name: ["annotator"] for name in _NAMES}
