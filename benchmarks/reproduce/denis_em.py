"""EM of NB-CCCN-EM, eqs. (20)-(23) of Denis et al. 2006, from several starts, all folds at once."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.special import logsumexp

from benchmarks.reproduce.denis_fits import CLOSED, LEAST, indicators
from benchmarks.reproduce.denis_sets import Prepared
from nbmodels.fitting import init_pairwise as pairwise

#: Steps after which EM is looked at, before it has converged.
STEPS = (1, 5, 20, 100)
#: Most steps, and the least change of a responsibility in a further one.
MOST, CHANGE = 400, 1e-4
#: Figures of a fold.
FIGURES = ("acc", "lk", "eta0", "eta1")
CLOSED_FIRST = "closed form, sums taken first"
CLOSED_PRINTED = "closed form, sums as printed"
TINY = 1e-12
#: Table of cells by the reading that has them in the range; the causes of missed cells look here.
EXPLAINED = "Cells by the first reading that has them in the range, each with the log-likelihood"
ONE_DRAW = "one draw, converged"
EARLY_ONE = "one draw, 20 steps"
LESS_NOISE = "less noise, ten draws, converged"
NONE = "none"


class Folds(NamedTuple):
    """Folds of one set.

    Attributes:
        weights: ``(F, N)`` ones for training rows, zeros for test rows.
        given: ``(F, N)`` given labels.
        true: ``(N,)`` true classes.
        codes: ``(N, attributes)`` of the set.
    """

    weights: Array
    given: Array
    true: Array
    codes: Array


class Parameters(NamedTuple):
    """Parameters of each class, axis 0, and fold, axis 1: logarithms and flip rates."""

    share: Array
    probs: Array
    flips: Array


def attributes(sizes: tuple[int, ...]) -> np.ndarray:
    """``(attributes, S)`` which values belong to an attribute."""
    return np.repeat(np.eye(len(sizes)), sizes, axis=1)


def maximised(resp: Array, folds: Folds, sizes: tuple[int, ...], alpha: Array) -> Parameters:
    """Parameters from ``(F, N)`` probabilities of class 1, ``alpha`` pseudo-items a value."""
    member = attributes(sizes)
    each = folds.weights * jnp.stack([1 - resp, resp])
    size = jnp.sum(each, -1, keepdims=True)
    counts = each @ indicators(folds.codes, sizes) + alpha
    probs = counts / jnp.maximum((counts @ member.T) @ member, TINY)
    wrong = jnp.stack([folds.given, 1 - folds.given])
    flips = jnp.sum(each * wrong, -1, keepdims=True) / jnp.maximum(size, TINY)
    share = size / jnp.sum(folds.weights, -1, keepdims=True)
    return Parameters(jnp.log(share + TINY), jnp.log(probs + TINY), flips)


def joints(at: Parameters, folds: Folds, sizes: tuple[int, ...]) -> tuple[Array, Array]:
    """``(2, F, N)`` log P(x, class), and the same with the given label."""
    alone = at.share + at.probs @ indicators(folds.codes, sizes).T
    wrong = jnp.stack([folds.given, 1 - folds.given])
    label = jnp.where(wrong == 1, at.flips, 1 - at.flips)
    return alone, alone + jnp.log(label + TINY)


def responsibilities(at: Parameters, folds: Folds, sizes: tuple[int, ...]) -> Array:
    """``(F, N)`` probability of class 1 given attributes and label, eq. (20)."""
    _, labelled = joints(at, folds, sizes)
    return jax.nn.sigmoid(labelled[1] - labelled[0])


def scored(at: Parameters, folds: Folds, sizes: tuple[int, ...]) -> Array:
    """``(F, 4)`` figures; classes are named so that the flip rates sum to one at most."""
    alone, labelled = joints(at, folds, sizes)
    eta0, eta1 = at.flips[..., 0]
    swapped = eta0 + eta1 > 1
    test = 1 - folds.weights
    right = ((alone[1] > alone[0]) != swapped[:, None]) == folds.true
    acc = jnp.sum(test * right, -1) / jnp.sum(test, -1)
    lk = jnp.sum(folds.weights * logsumexp(labelled, 0), -1)
    flips = [jnp.where(swapped, 1 - b, a) for a, b in ((eta0, eta1), (eta1, eta0))]
    return jnp.stack([acc, lk, *flips], 1)


@partial(jax.jit, static_argnames="sizes")
def em(resp: Array, folds: Folds, sizes: tuple[int, ...], alpha: Array) -> Array:
    """``(len(STEPS) + 1, F, 4)`` figures after each number of steps, and when EM has converged."""

    def further(_: int, resp: Array) -> Array:
        return responsibilities(maximised(resp, folds, sizes, alpha), folds, sizes)

    out, taken = [], 1
    for steps in STEPS:
        resp = lax.fori_loop(taken, steps, further, resp)
        taken = steps
        out.append(scored(maximised(resp, folds, sizes, alpha), folds, sizes))

    def going(state: tuple[Array, Array, Array]) -> Array:
        return (state[1] < MOST) & (state[2] > CHANGE)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        new = further(0, state[0])
        return new, state[1] + 1, jnp.max(jnp.abs(new - state[0]))

    resp, _, _ = lax.while_loop(going, step, (resp, jnp.array(taken), jnp.array(jnp.inf)))
    return jnp.stack([*out, scored(maximised(resp, folds, sizes, alpha), folds, sizes)])


@partial(jax.jit, static_argnames="sizes")
def determined(
    folds: Folds, rates: dict[str, Array], sizes: tuple[int, ...], alpha: Array
) -> dict[str, Array]:
    """``(F, N)`` responsibilities of each start that has no random part.

    Args:
        folds: of the set.
        rates: flip rates by name, at which shares are corrected.
        sizes: number of values of each attribute.
        alpha: pseudo-items a value and class.
    """
    onehot, member = indicators(folds.codes, sizes), attributes(sizes)

    def one(args: tuple[Array, Array]) -> dict[str, Array]:
        weights, given = args
        tables = pairwise.tables(onehot, jax.nn.one_hot(given, 2) * weights[:, None], sizes)

        def start(p: Array, probs: Array, flips: Array) -> Array:
            p = jnp.clip(p, LEAST, 1 - LEAST)
            share = jnp.stack([1 - p, p])
            counts = jnp.clip(probs, 0, 1) * share * jnp.sum(weights) + alpha
            joint = jnp.log(share) + onehot @ jnp.log(counts / (member.T @ (member @ counts)))
            label = jnp.where(given[:, None] == jnp.arange(2), 1 - flips, flips)
            return jax.nn.softmax(joint + jnp.log(jnp.clip(label, LEAST, 1)), 1)[:, 1]

        out = {}
        for name, key in ((CLOSED_FIRST, "NB-CCCN'"), (CLOSED_PRINTED, "NB-CCCN")):
            found = CLOSED[key](tables)
            flips = jnp.clip(found.flip_rates(tables.share), 0, 1)
            out[name] = start(found.share, found.probs, flips)
        for low, high in ((0.2, 0.5), (0.1, 0.1)):
            name = f"naive Bayes, flip rates {low:g}, {high:g}"
            out[name] = start(tables.share[1], tables.single, jnp.array([low, high]))
        for name, flips in rates.items():
            p, probs = corrected(tables, flips, member)
            out[f"shares corrected at {name}"] = start(p, probs, flips)
        return out

    return lax.map(one, (folds.weights, folds.given))


def corrected(tables: pairwise.Tables, flips: Array, member: np.ndarray) -> tuple[Array, Array]:
    """``P(y = 1)`` and ``(S, 2)`` shares of the classes, were the flip rates known."""
    p = jnp.clip((tables.share[1] - flips[0]) / (1 - flips[0] - flips[1]), 0.05, 0.95)
    rows = jnp.stack([jnp.stack([1 - flips[0], flips[0]]), jnp.stack([flips[1], 1 - flips[1]])])
    joint = jnp.maximum(tables.single * tables.share @ jnp.linalg.inv(rows), 0) + 1e-6
    return p, joint / (member.T @ (member @ joint))


def begun(
    found: Prepared, folds: Folds, rates: dict[str, tuple[float, float]], random: int
) -> dict[str, list[Array]]:
    """Starts by name, several where the likeliest of them counts."""
    arrays = {name: jnp.array(flips) for name, flips in rates.items()}
    known = determined(folds, arrays, found.sizes, jnp.array(1.0))
    starts = {name: [known[name]] for name in known}
    sure = jnp.where(folds.true == 1, 0.99, 0.01)
    starts["the true classes"] = [jnp.broadcast_to(sure, folds.weights.shape)]
    rng = np.random.default_rng(0)
    drawn = [jnp.asarray(rng.random(folds.weights.shape), float) for _ in range(random)]
    return {**starts, f"random, likeliest of {random}": drawn}


def fitted(found: Prepared, folds: Folds, starts: list[Array], alpha: float) -> np.ndarray:
    """``(len(STEPS) + 1, F, 4)`` figures of the start that ends likeliest, in each fold."""
    each = np.stack([em(start, folds, found.sizes, jnp.array(alpha)) for start in starts])
    best = each[:, -1, :, 1].argmax(0)
    return np.take_along_axis(each, best[None, None, :, None], 0)[0]
