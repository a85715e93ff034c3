"""Score (Lagrange multiplier) tests of a latent-class model's assumptions.

At the truth the complete-data score, averaged over the classes by the responsibilities, has mean
zero (Fisher's identity). So has ``sum over k of r_ik f_k(x_i)`` for every ``f_k`` of mean zero
under class k: each ``f`` is a Lagrange multiplier test of the parameter that the model lacks (a
correlation, a tail; Rao 1948). The variance is the empirical one of the items' scores. Where the
parameters were fitted to the same items it is too large, not too small: the tests are cautious.

Of many tests of a kind the result is the largest, its p-value Bonferroni's. Few rows seldom show
one deviation surely; many small ones together they do (an omnibus test, by the sum of squares).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse, stats

from nbmodels.core.residuals import Residuals

#: Family-wise level of each kind of test.
LEVEL = 0.001

#: Classes with fewer items are not looked at.
_ITEMS = 30


@dataclass(frozen=True)
class Scores:
    """Sums of scores over the items.

    Attributes:
        total: sums.
        square: sums of squares, an estimate of the variance or a bound of it.
        unit: what a sum is divided by to be an effect.
    """

    total: Float[np.ndarray, "*tests"]
    square: Float[np.ndarray, "*tests"]
    unit: Float[np.ndarray, "*tests"]

    @property
    def effect(self) -> Float[np.ndarray, "*tests"]:
        """Sums in units of an effect."""
        return _ratio(self.total, self.unit)

    @property
    def z(self) -> Float[np.ndarray, "*tests"]:
        """Sums in units of their standard deviation."""
        return _ratio(self.total, np.sqrt(self.square))


@dataclass(frozen=True)
class Largest:
    """The test with the largest deviation from the model.

    Attributes:
        z: its statistic, normal where the model is right.
        p_value: of so large a one among all.
        effect: how far the model is off.
        at: its index among the tests.
    """

    z: float
    p_value: float
    effect: float
    at: tuple[int, ...]

    def beyond(self, floor: float) -> bool:
        """Significant, and large enough to matter."""
        return self.p_value < LEVEL and abs(self.effect) >= floor


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=np.asarray(b) > 0)


def largest(scores: Scores, side: int = 0) -> Largest:
    """The largest effect among the significant tests; the least p-value where there are none.

    Args:
        scores: of a kind.
        side: 1 or -1 where only positive or negative scores contradict the model.
    """
    z, effect = np.atleast_1d(scores.z), np.atleast_1d(scores.effect)
    tests = max(int(np.count_nonzero(np.atleast_1d(scores.square) > 0)), 1)
    if side:
        p = stats.norm.sf(side * z)
        far = side * z
    else:
        p, far = 2 * stats.norm.sf(np.abs(z)), np.abs(z)
    p = np.minimum(tests * p, 1)
    sure = p < LEVEL
    rank = np.where(sure, np.abs(effect), -np.inf) if sure.any() else far
    at = np.unravel_index(int(np.argmax(rank)), rank.shape)
    return Largest(float(z[at]), float(p[at]), float(effect[at]), tuple(int(i) for i in at))


def omnibus(parts: Sequence[Scores]) -> float:
    """p-value of all tests together: the sum of their squares, as of independent normal scores.

    Args:
        parts: of one kind; 1 where there is none.
    """
    found = [np.ravel(one.z)[np.ravel(one.square) > 0] for one in parts]
    count = sum(map(len, found))
    return float(stats.chi2.sf(sum(z @ z for z in found), count)) if count else 1.0


def summed(item: Float[np.ndarray, "n ..."], weights: Float[np.ndarray, " n"]) -> Scores:
    """Sums of scores ``(n,)`` or ``(n, tests)`` of items; the effect is their mean."""
    return Scores(weights @ item, weights**2 @ item**2, np.full(item.shape[1:], weights.sum()))


def jointly(
    item: Float[np.ndarray, "n tests"],
    nuisance: Float[np.ndarray, "n others"],
    precision: Float[np.ndarray, " others"],
    weights: Float[np.ndarray, " n"],
) -> tuple[Float[np.ndarray, " tests"], Float[np.ndarray, "tests tests"]]:
    """Sums of scores, and their covariance matrix where other parameters were estimated.

    Both are of as many rows as the weighted ones are worth (Kish 1965).

    What is estimated beside them takes up part of a deviation: the sums vary by less than the
    items' scores would (Rao's score test with nuisance parameters, in the form of outer products of
    scores; Davidson and MacKinnon 1984). A prior of those parameters lets them take up less.

    Args:
        item: scores of items.
        nuisance: scores of the same items by the parameters that were estimated; without columns
            where there are none.
        precision: of those parameters' priors.
        weights: row weights.
    """
    # in units of a row, whatever the scale of the weights
    each = (weights * weights.sum() / np.square(weights).sum())[:, None]
    own, others = each * item, each * nuisance
    across = others.T @ own
    information = others.T @ others + np.diag(precision)
    # of rates of zero and one, as of maximum likelihood, there is none
    taken_up = np.linalg.pinv(information, rcond=1e-10, hermitian=True) @ across
    return own.sum(0), own.T @ own - across.T @ taken_up


def added(parts: Sequence[Scores]) -> Scores:
    """Sums of all classes together."""
    total, square, unit = (
        np.sum([getattr(part, name) for part in parts], 0) for name in ("total", "square", "unit")
    )
    return Scores(total, square, unit)


def pooled(parts: Sequence[Scores]) -> Scores:
    """Tests of each class, on a first axis, and last those of all classes together.

    A class of few items has none, and no part in the last.
    """
    total, square, unit = (
        np.stack([getattr(part, name) for part in parts]) for name in ("total", "square", "unit")
    )
    # the prior still affects the parameters of few items
    kept = [np.where(unit < _ITEMS, 0, part) for part in (total, square, unit)]
    return Scores(*(np.concatenate([part, part.sum(0, keepdims=True)]) for part in kept))


@dataclass(frozen=True)
class OfColumns:
    """Scores of an emission's columns, by class; the last on the first axis is of all together.

    Attributes:
        products: ``(K + 1, c, c)`` of pairs, zeros on and below the diagonal; or None.
        size: ``(K + 1, c)`` of the residuals' size, effects of which are relative; or None.
        sign: ``(K + 1, c)`` of their sign; or None.
        labels: ``(K + 1, c)`` of the product with what each wrong label leaves over, and last the
            right one; or None.
        repeated: ``()`` of pairs of equal words; or None.
    """

    products: Scores | None
    size: Scores | None
    sign: Scores | None
    labels: Scores | None
    repeated: Scores | None


def of_columns(
    found: Residuals,
    resp: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " n"],
    codes: Int[np.ndarray, " n"] | None = None,
    transition: Float[np.ndarray, "k observed"] | None = None,
) -> OfColumns:
    """All scores of an emission's columns, in one pass over the classes.

    Args:
        found: residuals of ``n`` items.
        resp: ``(n, K)`` responsibilities.
        weights: ``(n,)`` row weights.
        codes: ``(n,)`` given labels, negative where missing; None where there are none.
        transition: ``(K, observed)`` P(observed | true).
    """
    products, size, sign, labels, repeated = [], [], [], [], []
    for k in range(resp.shape[1]):
        # by Jensen's inequality r f^2 bounds (r f)^2, and its sum that of a sum over classes
        mass, square = weights * resp[:, k], weights**2 * resp[:, k]
        z = found.of_class(k)
        seen = ~np.isnan(z)
        z = np.where(seen, z, 0)
        if found.products is not None:
            products.append(_products(found, found.bounded(z), seen, mass, square, k))
        if found.size is not None:
            count = mass @ seen
            gap = np.where(seen, np.abs(z) / found.size - 1, 0)
            size.append(Scores(mass @ gap, square @ gap**2, count))
            sign.append(Scores(mass @ np.sign(z), square @ np.sign(z) ** 2, count))
        if codes is not None and transition is not None:
            labels.append(_labels(z, seen, codes, transition[k], k, mass, square))
        if found.excess is not None:
            excess = found.excess(k)
            repeated.append(resp[:, k] * np.stack([excess.seen, excess.unit]))
    return OfColumns(
        pooled(products) if products else None,
        pooled(size) if size else None,
        pooled(sign) if sign else None,
        added(labels) if labels else None,
        _repeated(np.sum(repeated, 0), weights) if repeated else None,
    )


def _repeated(item: np.ndarray, weights: np.ndarray) -> Scores:
    seen, unit = item
    return Scores(weights @ seen, weights**2 @ seen**2, weights @ unit)


def _products(
    found: Residuals,
    z: np.ndarray,
    seen: np.ndarray,
    mass: np.ndarray,
    square: np.ndarray,
    k: int,
) -> Scores:
    """Of ``z_j z_l`` less its mean under the class, by matrix products over the items."""
    assert found.products is not None
    mean = found.products(k)
    first = z.T @ (mass[:, None] * z)
    count = seen.T @ (mass[:, None] * seen)
    second = (z**2).T @ (square[:, None] * z**2)
    if np.any(mean):
        cross = z.T @ (square[:, None] * z)
        second = second - 2 * mean * cross + mean**2 * (seen.T @ (square[:, None] * seen))
    apart = np.triu(found.columns[:, None] != found.columns, 1)
    gap = first - mean * count
    return Scores(np.where(apart, gap, 0), np.where(apart, np.maximum(second, 0), 0), count)


def _labels(
    z: np.ndarray,
    seen: np.ndarray,
    codes: np.ndarray,
    rates: np.ndarray,
    k: int,
    mass: np.ndarray,
    square: np.ndarray,
) -> Scores:
    """Of (label is j, less its rate) times the residual: a label that depends on the features.

    The first rows are those of wrong labels, the last one is that of the right one. Residuals are
    centred: a prior leaves their mean off zero, and a label that no item has would tell only that.
    """
    count = mass @ seen
    z = np.where(seen, z - np.divide(mass @ z, count, out=np.zeros(len(count)), where=count > 0), 0)
    # the scale of a correlation: standard deviations of the indicator and of the residual
    spread = mass @ z**2
    rows = np.flatnonzero(codes >= 0)
    z, mass, square = z[rows], mass[rows, None], square[rows, None]
    where = codes[rows], np.arange(len(rows))
    labels = sparse.csr_array((np.ones(len(rows)), where), (len(rates), len(rows)))
    rates = rates[:, None]

    def squares(item: np.ndarray) -> np.ndarray:
        own = labels @ item
        others = np.maximum(item.sum(0) - own, 0)
        return (1 - rates) ** 2 * own + rates**2 * others

    products = mass * z
    found = labels @ products - rates * products.sum(0), squares(square * z**2), squares(mass)
    total, second, unit = (np.concatenate([one, one[[k]]]) for one in found)
    for one in (total, second, unit):
        one[k] = 0
    return Scores(total, second, np.sqrt(unit * spread))
