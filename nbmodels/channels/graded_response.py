"""Graded response model: rates of the labels of an ordered scale, their slopes, and a mode.

An item has a score, and a class is an interval of scores between two thresholds. An annotator sees
the score less a severity of their own, with logistic errors of a scale of their own, and names the
class whose interval holds what is seen (Samejima 1969; Johnson 1996, of several raters). Their
thresholds lie about the middle one as the scale's do, times a range of their own: of annotators who
use the ends alone it is small, of those who keep to the middle large. Now and then they name any
label alike, a lapse. Scores are in grades: the mean logarithm of the intervals'
widths is 0. Within a class there are several scores, the same number in each, since items near a
threshold are named otherwise more often than those in the middle.

Parameters of annotators are rows of four: severity, logarithms of the scale and of the range, and
the logit of the lapses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from inference.triangular import solve_positive

#: Columns of the parameters.
SEVERITY, LOG_SCALE, LOG_RANGE, LAPSE = range(4)

#: Range of each parameter: likelihoods alone may rise without end.
_LOW, _HIGH = (-50.0, -8.0, -8.0, -15.0), (50.0, 8.0, 8.0, 8.0)

#: Most steps towards a mode, and their lengths, of which the best is taken.
_STEPS, _LENGTHS = 3, (2.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.001)


class Scale(NamedTuple):
    """An ordered scale.

    Attributes:
        thresholds: ``(L - 1,)`` scores between two classes.
        scores: ``(C,)`` scores of the items, as many within each class.
    """

    thresholds: Float[Array, " t"]
    scores: Float[Array, " c"]

    @classmethod
    def of(cls, log_widths: Float[Array, " l"], each: int) -> Scale:
        """From ``(L,)`` logarithms of the classes' widths, with ``each`` scores a class."""
        widths = jnp.exp(log_widths - jnp.mean(log_widths))
        upper = jnp.cumsum(widths)
        inside = (jnp.arange(each) + 0.5) / each
        scores = (upper - widths)[:, None] + widths[:, None] * inside
        return cls(upper[:-1], scores.ravel())


class _Seen(NamedTuple):
    """P(label or a lower one is seen) and its derivative, with the ends 0 and 1.

    Attributes:
        below: ``(W, L + 1, C)``.
        slope: ``(W, L + 1, C)`` by the threshold in units of the annotator's scale.
        distance: ``(W, L + 1, C)`` that threshold; 0 at the ends, where the slope is 0.
        part: ``(W, L + 1, 1)`` what the range adds to it.
    """

    below: Array
    slope: Array
    distance: Array
    part: Array


def _seen(theta: Float[Array, "w 4"], scale: Scale) -> _Seen:
    severity, log_scale, log_range, _ = theta.T[:, :, None, None]
    middle = jnp.mean(scale.thresholds)
    part = jnp.exp(log_range - log_scale) * (scale.thresholds - middle)[:, None]
    distance = part + (middle - scale.scores + severity) * jnp.exp(-log_scale)
    below, above = jax.nn.sigmoid(distance), jax.nn.sigmoid(-distance)
    ends = ((0, 0), (1, 1), (0, 0))
    slope = jnp.pad(below * above, ends)
    first = jnp.zeros_like(below[:, :1])
    below = jnp.concatenate([first, below, 1 + first], 1)
    return _Seen(below, slope, jnp.pad(distance, ends), jnp.pad(part, ends))


def rates(theta: Float[Array, "w 4"], scale: Scale) -> Float[Array, "w l c"]:
    """``(W, L, C)`` P(label | score) of each annotator; columns sum to one."""
    below = _seen(theta, scale).below
    lapse = jax.nn.sigmoid(theta[:, LAPSE, None, None])
    seen = jnp.diff(below, axis=1)
    return (1 - lapse) * seen + lapse / seen.shape[1]


def log_rates(theta: Float[Array, "w 4"], scale: Scale) -> Float[Array, "w l c"]:
    """Logarithms of :func:`rates`, finite."""
    found = rates(theta, scale)
    return jnp.log(jnp.maximum(found, jnp.finfo(found.dtype).tiny))


def _slopes(theta: Float[Array, "w 4"], scale: Scale) -> Float[Array, "w l c 4"]:
    """Derivatives of :func:`rates` by the parameters."""
    below, slope, distance, part = _seen(theta, scale)
    lapse = jax.nn.sigmoid(theta[:, LAPSE, None, None])
    size = jnp.exp(theta[:, LOG_SCALE, None, None])
    seen = jnp.diff(below, axis=1)
    by_severity = (1 - lapse) * jnp.diff(slope, axis=1) / size
    by_scale = -(1 - lapse) * jnp.diff(slope * distance, axis=1)
    by_range = (1 - lapse) * jnp.diff(slope * part, axis=1)
    by_lapse = lapse * (1 - lapse) * (1 / seen.shape[1] - seen)
    return jnp.stack([by_severity, by_scale, by_range, by_lapse], -1)


def log_slopes(
    theta: Float[Array, "w 4"], scale: Scale
) -> tuple[Float[Array, "w l c"], Float[Array, "w l c 4"]]:
    """:func:`log_rates` and their derivatives by the parameters."""
    logs = log_rates(theta, scale)
    return logs, _slopes(theta, scale) / jnp.exp(logs)[..., None]


def log_likelihood(
    theta: Float[Array, "w 4"], counts: Float[Array, "w l c"], scale: Scale
) -> Float[Array, " w"]:
    """``(W,)`` log-likelihood of each annotator's labels of items of known scores."""
    return jnp.sum(counts * log_rates(theta, scale), (1, 2))


class Mode(NamedTuple):
    """Laplace's approximation of the annotators' parameters.

    Attributes:
        mean: ``(W, 4)`` mode.
        precision: ``(W, 4, 4)`` expected information there, the prior's included.
    """

    mean: Float[Array, "w 4"]
    precision: Float[Array, "w 4 4"]


@jax.jit
def likeliest(
    begin: Float[Array, "w 4"],
    counts: Float[Array, "w l c"],
    mean: Float[Array, "w 4"],
    precision: Float[Array, "w 4 4"],
    scale: Scale,
) -> Mode:
    """Mode of each annotator's parameters, by steps of Newton or of Fisher scoring that never fall.

    Args:
        begin: parameters from which the search goes on.
        counts: expected numbers of labels by score.
        mean: of the normal prior.
        precision: of the normal prior, zeros for none.
        scale: of the classes.
    """
    sizes = jnp.sum(counts, 1, keepdims=True)
    low, high = (jnp.asarray(ends, mean.dtype) for ends in (_LOW, _HIGH))
    tiny = jnp.finfo(mean.dtype).tiny
    enough = jnp.sqrt(jnp.finfo(mean.dtype).eps) / 10
    lengths = jnp.concatenate([jnp.asarray(_LENGTHS, mean.dtype), jnp.zeros(1, mean.dtype)])

    def value(theta: Array) -> Array:
        gap = theta - mean
        prior = 0.5 * jnp.einsum("wi,wij,wj->w", gap, precision, gap)
        return log_likelihood(theta, counts, scale) - prior

    def slope_and_information(theta: Array) -> tuple[Array, Array]:
        found, slopes = jnp.maximum(rates(theta, scale), tiny), _slopes(theta, scale)
        gradient = jnp.einsum("wlc,wlcp->wp", counts / found, slopes)
        information = jnp.einsum("wlc,wlcp,wlcq->wpq", sizes / found, slopes, slopes)
        gap = jnp.einsum("wij,wj->wi", precision, theta - mean)
        return gradient - gap, information + precision

    def of_one(row: Array, cast: Array) -> Array:
        return log_likelihood(row[None], cast[None], scale)[0]

    curvature = jax.vmap(jax.hessian(of_one))
    solve = jax.vmap(solve_positive)
    ridge = jnp.sqrt(tiny) * jnp.eye(mean.shape[1], dtype=mean.dtype)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        theta, _, i = state
        gradient, information = slope_and_information(theta)
        scoring = solve(information + ridge, gradient)
        # NaN where it is not positive definite, and no better point
        newton = solve(precision - curvature(theta, counts), gradient)
        ways = jnp.stack([newton, scoring])
        tried = theta + lengths[:, None, None, None] * jnp.where(jnp.isnan(ways), 0, ways)
        tried = jnp.clip(tried, low, high).reshape(-1, *theta.shape)
        best = jnp.argmax(jax.vmap(value)(tried), 0)
        to = jnp.take_along_axis(tried, best[None, :, None], 0)[0]
        return to, jnp.max(jnp.abs(to - theta)), i + 1

    def goes_on(state: tuple[Array, Array, Array]) -> Array:
        return (state[1] > enough) & (state[2] < _STEPS)

    first = jnp.clip(begin, low, high), jnp.asarray(1.0, mean.dtype), jnp.asarray(0)
    theta = lax.while_loop(goes_on, step, first)[0]
    return Mode(theta, slope_and_information(theta)[1])


def likelier_widths(
    log_widths: Float[Array, " l"],
    theta: Float[Array, "w 4"],
    counts: Float[Array, "w l c"],
    spread: float,
) -> Float[Array, " l"]:
    """Logarithms of the classes' widths after a step of Fisher scoring, none if it would fall.

    Args:
        log_widths: ``(L,)`` before it.
        theta: parameters of the annotators.
        counts: expected numbers of labels by score.
        spread: standard deviation of the normal prior of each, whose mean is 0.
    """
    each = counts.shape[2] // counts.shape[1]
    tiny = jnp.finfo(theta.dtype).tiny

    def value(at: Array) -> Array:
        inside = log_likelihood(theta, counts, Scale.of(at, each))
        return jnp.sum(inside) - 0.5 * jnp.sum(jnp.square(at / spread))

    def of_one(one: tuple[Array, Array]) -> tuple[Array, Array]:
        row, cast = one

        def own(at: Array) -> Array:
            return rates(row[None], Scale.of(at, each))[0]

        found, slopes = jnp.maximum(own(log_widths), tiny), jax.jacfwd(own)(log_widths)
        size = jnp.sum(cast, 0, keepdims=True)
        gradient = jnp.einsum("lc,lcp->p", cast / found, slopes)
        return gradient, jnp.einsum("lc,lcp,lcq->pq", size / found, slopes, slopes)

    gradient, information = jax.tree.map(lambda x: jnp.sum(x, 0), lax.map(of_one, (theta, counts)))
    own = jnp.eye(len(log_widths), dtype=theta.dtype) / spread**2
    step = solve_positive(information + own, gradient - log_widths / spread**2)
    now = value(log_widths)
    for size in (0.25, 1.0):  # the longest that climbs
        to = log_widths + size * step
        log_widths = jnp.where(value(to) > now, to, log_widths)
    return log_widths - jnp.mean(log_widths)


def mean_rates(
    mean: Float[Any, " 4"], precision: Float[Any, "4 4"], log_widths: Any, each: int, points: Any
) -> Float[Array, "l c"]:
    """``(L, C)`` P(label | score) of an annotator of whom the prior alone is known.

    Args:
        mean: of the normal prior.
        precision: of the normal prior, a diagonal matrix.
        log_widths: ``(L,)`` of the classes.
        each: number of scores a class.
        points: ``(S, 4)`` standard normal points, over which is averaged.
    """
    theta = mean + points / jnp.sqrt(jnp.diag(precision))
    return jnp.mean(rates(theta, Scale.of(log_widths, each)), 0)
