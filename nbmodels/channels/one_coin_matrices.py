"""Matrices of one accuracy each, and the accuracies and the strength that votes make likeliest.

The strength is that of a Dirichlet prior of each row, centred at the one-coin matrix; rows are
integrated out (Dirichlet-multinomial distribution).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.special import digamma, gammaln
from jaxtyping import Float

from nbmodels.channels.annotators import right_labels

#: Largest strength, in multiples of the least, and how many numbers between are compared.
_MOST_ALIKE, _COMPARED = 40.0, 13

#: Nats by which votes must be likelier for another strength than the least, or for errors that the
#: crowd shares.
SUPPORTED = 3.0

#: Pseudo-votes of each wrong label among the crowd's errors (Jeffreys' prior).
_PSEUDO_ERRORS = 0.5

#: Least distance of an accuracy from 0 and from 1, and halvings of the interval that holds it.
MARGIN, _HALVINGS = 1e-4, 26

#: Least probability of a label where prior densities are computed.
_LEAST_RATE = 1e-9


def even_errors(right: np.ndarray) -> Float[np.ndarray, "observed k"]:
    """Distribution of a wrong vote over all labels that are not ``right``, alike."""
    out: Float[np.ndarray, "observed k"] = ~right / max(len(right) - 1, 1)
    return out


def one_coin(accuracy: Any, right: np.ndarray, errors: Any = None) -> Any:
    """``(W, observed, K)`` matrices of one accuracy each; columns sum to one.

    Args:
        accuracy: ``(W,)``, an array of NumPy or of JAX, as the result is.
        right: ``(observed, K)`` where a label is right.
        errors: ``(observed, K)`` or ``(W, observed, K)`` distribution of a wrong vote; None for
            :func:`even_errors`.
    """
    at = accuracy[:, None, None]
    return at * right + (1 - at) * (even_errors(right) if errors is None else errors)


def crowd_errors(counts: Float[Array, "w observed k"], own: bool = True) -> Array:
    """``(observed, K)`` distribution of a wrong vote by the errors of all annotators.

    Args:
        counts: expected votes.
        own: whether an annotator's errors are among them; otherwise ``(W, observed, K)``, for each
            annotator by those of the others.
    """
    right = right_labels(*counts.shape[1:])
    each = jnp.where(right, 0, counts)
    whole = jnp.sum(each, 0)
    seen = jnp.where(right, 0, (whole if own else whole - each) + _PSEUDO_ERRORS)
    return seen / jnp.maximum(jnp.sum(seen, -2, keepdims=True), MARGIN)


def log_likelihood(counts: Array, centre: Array, strength: Any) -> Float[Array, " k"]:
    """``(K,)`` Dirichlet-multinomial log-likelihood of the votes on each class.

    Args:
        counts: ``(W, observed, K)`` expected votes.
        centre: ``(W, observed, K)`` matrices that rows are drawn to.
        strength: pseudo-votes of each row.
    """
    at = strength * jnp.maximum(centre, _LEAST_RATE)
    inside = jnp.sum(gammaln(counts + at) - gammaln(at), (0, 1))
    return inside + jnp.sum(gammaln(strength) - gammaln(strength + jnp.sum(counts, 1)), 0)


@jax.jit
def likeliest_strength(
    accuracy: Float[Array, " w"],
    counts: Float[Array, "w observed k"],
    least: Any,
    errors: Any = None,
) -> Float[Array, ""]:
    """Pseudo-votes of each row at the maximum of the Dirichlet-multinomial likelihood.

    Of many annotators with few votes each, rows of their own are mostly chance: without a prior
    that is as strong as they are alike, one who has voted on every item is taken for the truth.
    It is the least of the classes' own: a frequent class is bound to look like the accuracies,
    which are mostly its own, while a rare one may be harder. Classes whose votes are too few to
    show it of each are judged together, as one.

    Args:
        accuracy: ``(W,)``.
        counts: ``(W, observed, K)`` expected votes.
        least: the number that is taken where annotators differ more.
        errors: distribution of a wrong vote, as in :func:`one_coin`.
    """
    centre = one_coin(accuracy, right_labels(*counts.shape[1:]), errors)
    steps = jnp.linspace(0, np.log(_MOST_ALIKE), _COMPARED, dtype=counts.dtype)
    found = lax.map(
        lambda step: log_likelihood(counts, centre, least * jnp.exp(step)), steps
    )  # (compared, K)
    supported = jnp.max(found, 0) - found[0] > SUPPORTED
    together = jnp.sum(jnp.where(supported, 0, found), 1, keepdims=True)
    found = jnp.concatenate([jnp.where(supported, found, together), together], 1)
    best = jnp.argmax(found, 0)
    # the vertex of the parabola through it and its neighbours; the ends stay
    i = jnp.clip(best, 1, _COMPARED - 2)
    before, here, after = (jnp.take_along_axis(found, (i + j)[None], 0)[0] for j in (-1, 0, 1))
    bend = before - 2 * here + after
    shift = (before - after) / (2 * jnp.where(bend < 0, bend, -1))
    shift = jnp.where((best == i) & (bend < 0), shift, 0)
    each = jnp.where(jnp.max(found, 0) - found[0] > SUPPORTED, steps[best] + shift * steps[1], 0)
    return least * jnp.exp(jnp.min(each[:-1]))


def _slope(
    accuracy: Array, counts: Array, strength: Any, pseudo: Array, errors: Array
) -> Float[Array, " w"]:
    """Derivative of the log-density of the accuracies, the matrices integrated out."""
    right = right_labels(*counts.shape[1:])
    at = strength * one_coin(accuracy, right, errors)
    by_cell = digamma(counts + at) - digamma(at)
    gain = jnp.sum(jnp.where(right, by_cell, -by_cell * errors), (1, 2))
    return strength * gain + pseudo[0] / accuracy - pseudo[1] / (1 - accuracy)


@jax.jit
def likeliest_accuracy(
    counts: Float[Array, "w observed k"],
    strength: Any,
    pseudo: Float[Array, " 2"],
    errors: Any = None,
) -> Float[Array, " w"]:
    """``(W,)`` accuracies at the maximum of the Dirichlet-multinomial likelihood and their prior.

    Args:
        counts: ``(W, observed, K)`` expected votes.
        strength: pseudo-votes of each row.
        pseudo: ``(2,)`` right and wrong pseudo-votes of an accuracy.
        errors: ``(observed, K)`` distribution of a wrong vote, as in :func:`one_coin`.
    """
    if errors is None:
        errors = jnp.asarray(even_errors(right_labels(*counts.shape[1:])), counts.dtype)

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        up = _slope(middle, counts, strength, pseudo, errors) > 0
        return jnp.where(up, middle, low), jnp.where(up, high, middle)

    low = jnp.full(len(counts), MARGIN, counts.dtype)
    low, high = lax.fori_loop(0, _HALVINGS, halve, (low, 1 - low))
    return (low + high) / 2
