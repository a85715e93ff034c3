"""Calibration of another model's scores: temperature and bias (Guo et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, Key

from inference.arrays import floating, on_device
from inference.blocks import MANY_CLASSES, rows_of_block
from inference.compilation import host_jit
from inference.pytree import register_dataclass
from nbmodels.class_priors.newton import NewtonPrior
from nbmodels.core.families import DrawKey, FullNormal
from nbmodels.core.lazy import dist, numpyro

#: Levenberg's share of an item, which keeps a Newton step defined where scores are uninformative.
_DAMPING = 1e-6

#: Rows, and rows a class, that show pairs of classes where there are more; their products take as
#: long as all other sums of a step together.
_PAIRED_ROWS, _PAIRED_PER_CLASS = 4_096, 16

#: Scores on the device from which on a program centres them, and not the host.
_LARGE = 1_000_000


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Calibration(NewtonPrior):
    """Class prior that depends on scores: ``P(y = k | scores) = softmax(exp(u) scores + b)_k``.

    The scores are log-probabilities, or log-likelihoods, of a model that has not seen the item's
    label. Naive Bayes counts dependent features as if each were news: a temperature ``exp(-u)``
    takes that back (Guo et al. 2017), and ``b`` shifts the shares of the classes. Only
    ``P(y | scores)`` is modelled, so that the features never see the responsibilities of the
    channel (modular inference, a cut: Plummer 2015).

    The slope has its prior on the scale of logarithms. Steep slopes have nearly the same
    likelihood: classes are certain, and whatever the features miss is noise. A prior that is flat
    in the slope puts most of its mass there, and flip rates come out too high
    (``benchmarks/records/posterior.md``).

    There is no conjugate family: ``q`` is normal, centred where Newton's steps lead, one step an
    iteration, and its precision is the curvature there (Laplace). All rules read the centre, but a
    draw. The curvature of a step is that of responsibilities and predictions mixed, which is larger
    where they disagree: steps are short far from the fixed point. Where one would overshoot all the
    same, as among classes that the scores separate, it is shortened until it climbs.

    Attributes:
        prior: normal of ``u``, then ``b``; shape ``(1 + K,)``.

    Examples:
        Scores that claim 98 per cent, and are right of 76 items in 100:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import TrustedLabels
        >>> from nbmodels.class_priors import Calibration
        >>> claimed = np.tile([0, 1], 50)  # ant, bee
        >>> y = np.where(np.arange(100) % 8 < 6, claimed, 1 - claimed)
        >>> scores = Calibration.pack(np.log(np.where(np.eye(2)[claimed], 0.98, 0.02)))
        >>> model = {"class_prior": Calibration.of(2), "labels": TrustedLabels.of(2)}
        >>> data = Data({"class_prior": scores, "labels": TrustedLabels.pack(y, 2)}, np.ones(100))
        >>> found = fit(model, data, key=jax.random.key(0))
        >>> at = found.params["class_prior"].mean
        >>> print(np.exp(model["class_prior"].log_probs(at, scores))[:2].round(1))
        [[0.8 0.2]
         [0.2 0.8]]
    """

    prior: FullNormal
    conditioned_on: ClassVar[str] = "the features' scores"

    @classmethod
    def of(
        cls,
        n_classes: int,
        log_slope: float = 0.0,
        log_slope_sd: float = 1.0,
        bias: Any = 0.0,
        bias_sd: float = 3.0,
    ) -> Calibration:
        """Prior ``u ~ N(log_slope, log_slope_sd^2)`` and ``b_k ~ N(bias_k, bias_sd^2)``."""
        mean = np.concatenate([[log_slope], np.broadcast_to(bias, n_classes)])
        sd = np.concatenate([[log_slope_sd], np.full(n_classes, bias_sd)])
        return cls(prior=FullNormal(on_device(mean), on_device(np.diag(sd**-2.0))))

    @staticmethod
    def pack(scores: Any) -> Float[Array, "n k"]:
        """Args: scores: ``(N, K)``, finite, up to a constant a row; zeros are uninformative."""
        traced = isinstance(scores, jax.core.Tracer)  # as where data are simulated
        if traced:
            return Calibration.centred(scores)
        if isinstance(scores, Array) and scores.size > _LARGE and scores.dtype == floating():
            return _centred(scores)
        return on_device(Calibration.centred(np.asarray(scores, floating())))

    @staticmethod
    def centred(scores: Any) -> Any:
        """Rows with a mean of zero: a constant of a row changes no probability."""
        return scores - scores.mean(1, keepdims=True)

    def log_probs(
        self, likelihood_params: Float[Array, " p"], data: Float[Array, "n k"] | None
    ) -> Float[Array, "n k"]:
        """``(N, K)``, or ``(1, K)`` of an item without scores."""
        scores = jnp.zeros((1, 1), likelihood_params.dtype) if data is None else data
        return jax.nn.log_softmax(jnp.exp(likelihood_params[0]) * scores + likelihood_params[1:])

    def stats(
        self,
        likelihood_params: Float[Array, " p"],
        resp: Float[Array, "n k"],
        data: Float[Array, "n k"],
        key: DrawKey = None,
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """Curvature ``H`` and ``H theta + gradient`` of the expected log-probabilities.

        With many classes and many rows for each of them, pairs of classes and how far a step goes
        are judged by every so many-th row; the gradient, and with it where the steps come to rest,
        and the diagonal of the curvature are those of all rows.
        """
        at, stride = likelihood_params, _stride(*resp.shape)
        sums = _summed(partial(_sums, at, pairs=stride == 1), resp, data)
        gradient = _gradient(sums)
        some, few, curvature = (resp, data), sums, _curvature(sums)
        if stride > 1:
            some = resp[::stride], data[::stride]
            few = _summed(partial(_sums, at, pairs=True), *some)
            curvature = _with_diagonal(_curvature(few), jnp.diag(curvature))
        share = sums.items / jnp.maximum(few.items, 1)

        def gain(step: Array) -> Array:
            # of all rows to first order; what bends is that of some of them
            found = _summed(partial(_gain, at, step), *some)
            if stride == 1:
                return found
            return gradient @ step + share * (found - _gradient(few) @ step)

        curvature = curvature + _DAMPING * sums.items * jnp.eye(len(at))
        uphill = (at, curvature, gradient)
        curvature = curvature * self.shortening(*uphill, gain, jnp.abs(sums.log_probs))
        return curvature, curvature @ at + gradient

    def relabel(self, q: FullNormal, order: Int[Array, " k"]) -> FullNormal:
        return q  # the scores name the classes

    def values(self, likelihood_params: Float[Array, " p"]) -> dict[str, Array]:
        return {"log_slope": likelihood_params[0], "bias": likelihood_params[1:]}

    def sites(self, name: str) -> dict[str, Any]:
        at, precision = self.prior.mean, self.prior.precision
        across, within = precision[0, 1:], precision[1:, 1:]
        # marginal of u, then b given u: the precision of a prior is diagonal, that of q is not
        own = precision[0, 0] - across @ jnp.linalg.solve(within, across)
        log_slope = numpyro.sample(f"{name}_log_slope", dist.Normal(at[0], 1 / jnp.sqrt(own)))
        mean = at[1:] - jnp.linalg.solve(within, across) * (log_slope - at[0])
        biases = dist.MultivariateNormal(mean, precision_matrix=within)
        return {"log_slope": log_slope, "bias": numpyro.sample(f"{name}_bias", biases)}

    def probs(self, values: dict[str, Any], data: Array | None) -> Float[Array, "*n k"]:
        scores = jnp.zeros((1, 1)) if data is None else data
        return jax.nn.softmax(jnp.exp(values["log_slope"]) * scores + values["bias"], -1)

    def log_class_probs(self, values: dict[str, Any], data: Array | None) -> Float[Array, "*n k"]:
        # steep slopes underflow probabilities, and the logarithm of zero has no gradient
        scores = jnp.zeros((1, 1)) if data is None else data
        return jax.nn.log_softmax(jnp.exp(values["log_slope"]) * scores + values["bias"], -1)

    def biased(self, scores: Any) -> Any:
        """``(N, K)`` scores as the slope multiplies them and the biases are added to them."""
        return scores

    def slope_terms(
        self, likelihood_params: Float[Array, " p"], data: Float[Array, "n k"] | None
    ) -> Float[np.ndarray, "n k"] | None:
        if data is None:
            return None
        slope = np.exp(float(likelihood_params[0]))
        return np.asarray(slope * np.asarray(self.biased(data), float))

    def of_scores(self, mean: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """``(1 + K,)`` log-slope and biases by which scores as they come are calibrated."""
        return np.asarray(mean, float)

    def from_scores(self, at: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """``(1 + K,)`` parameters by which scores as they come have log-slope and biases ``at``."""
        return np.asarray(at, float)

    def covariates(self, key: Key[Array, ""], n_items: int) -> Float[Array, "n k"]:
        """Scores to simulate classes from."""
        return self.centred(2 * jax.random.normal(key, (n_items, len(self.prior.mean) - 1)))

    def dims(self) -> dict[str, list[str]]:
        return {"log_slope": [], "bias": ["true_class"]}


_centred = host_jit(Calibration.centred)


class _Sums(NamedTuple):
    """Sums over items, of which a Newton step is made.

    The mixture is of responsibilities and predictions, half of each. The linear predictor's part
    from the scores is its derivative by ``u``.

    Attributes:
        items: weights.
        gap: ``(K,)`` responsibilities less predictions.
        along: that times the scores' part of the linear predictor.
        mixed: ``(K,)`` the mixture.
        slope: variance of the scores' part under the mixture.
        cross: ``(K,)`` its covariance with the classes.
        outer: ``(K, K)`` the mixture's outer products, each divided by the item's weight; zeros
            off the diagonal where pairs of classes are left out.
        log_probs: responsibilities times log-probabilities.
    """

    items: Array
    gap: Array
    along: Array
    mixed: Array
    slope: Array
    cross: Array
    outer: Array
    log_probs: Array


def _sums(
    at: Float[Array, " p"], resp: Float[Array, "n k"], data: Float[Array, "n k"], *, pairs: bool
) -> _Sums:
    items = jnp.sum(resp, 1, keepdims=True)
    inverse = jnp.where(items > 0, 1 / jnp.where(items > 0, items, 1), 0)
    steep = jnp.exp(at[0]) * data
    logs = jax.nn.log_softmax(steep + at[1:])
    mixed = (resp + items * jnp.exp(logs)) / 2
    gap = 2 * (resp - mixed)
    centred = steep - jnp.sum(mixed * steep, 1, keepdims=True) * inverse
    inside = mixed * inverse
    return _Sums(
        jnp.sum(items),
        jnp.sum(gap, 0),
        jnp.sum(gap * steep),
        jnp.sum(mixed, 0),
        jnp.sum(mixed * jnp.square(centred)),
        jnp.sum(mixed * centred, 0),
        mixed.T @ inside if pairs else jnp.diag(jnp.sum(mixed * inside, 0)),
        jnp.sum(resp * logs),
    )


def _gradient(sums: _Sums) -> Float[Array, " p"]:
    return jnp.concatenate([sums.along[None], sums.gap])


def _curvature(sums: _Sums) -> Float[Array, "p p"]:
    slope, cross, biases = sums.slope, sums.cross, jnp.diag(sums.mixed) - sums.outer
    return jnp.block([[slope[None, None], cross[None]], [cross[:, None], biases]])


def _with_diagonal(
    matrix: Float[Array, "p p"], diagonal: Float[Array, " p"]
) -> Float[Array, "p p"]:
    """A matrix without negative eigenvalues, rows and columns scaled to a given diagonal."""
    own = jnp.diag(matrix)
    scale = jnp.sqrt(jnp.where(own > 0, diagonal / jnp.where(own > 0, own, 1), 0))
    scaled = scale[:, None] * matrix * scale
    return scaled + jnp.diag(diagonal - jnp.diag(scaled))


def _stride(n_rows: int, n_classes: int) -> int:
    """Every how many-th row shows pairs of classes: a power of two; 1 with few classes or rows."""
    most = n_rows // max(_PAIRED_ROWS, _PAIRED_PER_CLASS * n_classes)
    return 1 if n_classes < MANY_CLASSES or most < 2 else 1 << (most.bit_length() - 1)


def _gain(
    at: Float[Array, " p"],
    step: Float[Array, " p"],
    resp: Float[Array, "n k"],
    data: Float[Array, "n k"],
) -> Array:
    """Sum over items of what a step adds to the expected log-probability.

    By the change alone: a difference of two sums would be lost in rounding.
    """
    slope = jnp.exp(at[0])
    before = jax.nn.log_softmax(slope * data + at[1:])
    change = slope * jnp.expm1(step[0]) * data + step[1:]
    after = jax.nn.logsumexp(before + change, 1)
    return jnp.sum(jnp.sum(resp * change, 1) - jnp.sum(resp, 1) * after)


def _summed(of: Callable[[Array, Array], Any], resp: Array, data: Array) -> Any:
    """Sums over blocks of rows, where there are many classes: a block stays in a core's cache."""
    n, k = resp.shape
    rows = rows_of_block(n, k)
    if rows == n:
        return of(resp, data)
    blocks = resp.reshape(-1, rows, k), data.reshape(-1, rows, k)

    def add(sums: Any, block: tuple[Array, Array]) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, sums, of(*block)), None

    # all blocks by one loop: the others than the first would be copied
    shapes = jax.eval_shape(of, *jax.tree.map(itemgetter(0), blocks))
    none = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    return lax.scan(add, none, blocks)[0]
