"""Standardised residuals of an emission: features in units of what a class expects of them.

If the emission is right, a residual under the item's true class has mean zero, and so have certain
functions of it: products of two columns that are independent given the class, the size of a column
less the size that a normal one has. By Fisher's identity their sums over the classes, weighed by
the responsibilities, have mean zero too, which :mod:`nbmodels.diagnostics.score_tests` tests.

Everything here runs on the host: nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import special

#: Mean size of a standard normal number.
NORMAL_SIZE = float(np.sqrt(2 / np.pi))

#: Normal residuals count as at most so many standard deviations in products.
_FAR = 3.0

#: Standard deviation that the rarest binary column is scaled by.
_LEAST_SD = 0.05


@dataclass(frozen=True)
class Excess:
    """How much more a whole item varies than it should, under a class.

    Attributes:
        seen: ``(n,)`` what has mean zero under the class.
        unit: ``(n,)`` what one unit of excess adds to it.
    """

    seen: Float[np.ndarray, " n"]
    unit: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class Residuals:
    """Some columns of some items, less what a class expects, in units of its standard deviation.

    Attributes:
        columns: ``(c,)`` column of the features that each residual is of. Two residuals of the same
            one depend on each other by nature.
        of_class: from a class to ``(n, c)`` residuals under it, NaN where a cell is missing.
        plain: ``(n, d)`` the items' features as they are, dense or sparse, for a classifier.
        size: mean size ``E |z|`` of a residual whose distribution is symmetric; None where it is
            not known.
        products: from a class to the ``(c, c)`` means of products of two ``bounded`` residuals;
            None where products are not looked at.
        bounded: what is multiplied, so that single items far off do not decide.
        excess: from a class to the variance of counts beyond that of independent words;
            None where there are no counts.
        length: mean number of words of an item, where there are counts.
    """

    columns: Int[np.ndarray, " c"]
    of_class: Callable[[int], Float[np.ndarray, "n c"]]
    plain: Any
    size: float | None = None
    products: Callable[[int], Any] | None = None
    bounded: Callable[[np.ndarray], np.ndarray] = field(default=lambda z: z)
    excess: Callable[[int], Excess] | None = None
    length: float = 1.0


def chosen(spread: Float[np.ndarray, " d"], most: int) -> Int[np.ndarray, " c"]:
    """The columns of largest spread, at most so many; among equals, by chance, always the same."""
    if len(spread) <= most:
        return np.arange(len(spread))
    ties = np.random.default_rng(len(spread)).random(len(spread))
    return np.sort(np.lexsort((ties, -np.round(spread, 6)))[:most])


def student_size(dof: float) -> float | None:
    """``E |t|`` of so many degrees of freedom; None where its spread is infinite."""
    if dof <= 2:
        return None
    logs = special.gammaln((dof - 1) / 2) - special.gammaln(dof / 2)
    return float(np.sqrt(dof / np.pi) * np.exp(logs))


def of_reals(
    x: Float[np.ndarray, "n d"],
    mean: Float[np.ndarray, "k d"],
    covariance: Float[np.ndarray, "k d"] | Float[np.ndarray, "k_or_1 d d"],
    most: int,
    dof: Any = None,
) -> Residuals:
    """Residuals of columns that are normal, or Student's t, given the class.

    Args:
        x: ``(n, d)``, NaN where missing.
        mean: ``(K, d)``.
        covariance: ``(K, d)`` variances, or ``(K or 1, d, d)``; of a t, its squared scales.
        most: largest number of columns.
        dof: degrees of freedom of a t.
    """
    columns = chosen(np.zeros(x.shape[1]), most)
    whole = covariance.ndim == 3
    variance = np.diagonal(covariance, axis1=1, axis2=2) if whole else covariance
    scale = np.sqrt(np.broadcast_to(variance, mean.shape)[:, columns])

    def of_class(k: int) -> np.ndarray:
        return (x[:, columns] - mean[k, columns]) / scale[k]

    def products(k: int) -> Any:
        if not whole:
            return 0.0
        part = covariance[k % len(covariance)][np.ix_(columns, columns)]
        correlation = part / scale[k] / scale[k][:, None]
        # of signs, where the distribution is elliptical
        clipped = np.clip(correlation, -1, 1)
        return clipped if dof is None else 2 / np.pi * np.arcsin(clipped)

    return Residuals(
        columns,
        of_class,
        np.nan_to_num(x),
        size=NORMAL_SIZE if dof is None else student_size(float(dof)),
        products=products,
        bounded=_clipped if dof is None else np.sign,
    )


def _clipped(z: np.ndarray) -> np.ndarray:
    return np.clip(z, -_FAR, _FAR)


def of_indicators(
    x: Any, probs: Float[np.ndarray, "k d"], missing: Any, of: Int[np.ndarray, " d"], most: int
) -> Residuals:
    """Residuals of columns of zeros and ones.

    Args:
        x: ``(n, d)``, dense or sparse.
        probs: ``(K, d)`` of a one.
        missing: ``(n, d)`` ones where a cell is missing, dense or sparse; or None.
        of: ``(d,)`` the feature that each column is of.
        most: largest number of columns.
    """
    share = np.asarray(x.mean(axis=0)).ravel()
    columns = chosen(share * (1 - share), most)
    dense = _dense(x[:, columns])
    if missing is not None:
        dense = np.where(_dense(missing[:, columns]) > 0, np.nan, dense)
    p = probs[:, columns]
    scale = np.maximum(np.sqrt(p * (1 - p)), _LEAST_SD)
    return Residuals(of[columns], lambda k: (dense - p[k]) / scale[k], x, products=lambda k: 0.0)


def of_counts(x: Any, probs: Float[np.ndarray, "k d"], most: int) -> Residuals:
    """Residuals of counts of words, in documents of given lengths.

    Args:
        x: ``(n, d)``, dense or sparse, none missing.
        probs: ``(K, d)`` of the words.
        most: largest number of columns.
    """
    length = np.asarray(x.sum(axis=1), float).ravel()
    columns = chosen(np.asarray(x.mean(axis=0)).ravel(), most)
    dense = _dense(x[:, columns])

    def of_class(k: int) -> np.ndarray:
        p = probs[k, columns]
        expected = length[:, None] * p
        return (dense - expected) / np.sqrt(np.maximum(expected * (1 - p), _LEAST_SD**2))

    cells = x.tocsr().data if hasattr(x, "tocsr") else np.asarray(x)
    counted = np.array_equal(cells, np.round(cells))
    return Residuals(
        columns,
        of_class,
        x,
        excess=_repeated(x, probs, length) if counted else None,
        length=float(length.mean()),
    )


def _repeated(x: Any, probs: np.ndarray, length: np.ndarray) -> Callable[[int], Excess]:
    """Pairs of equal words beyond those that independent words make (the Dirichlet-multinomial's).

    A pair of a rare word counts for more than one of a common word, up to that of a word of average
    frequency. The unit of excess is the correlation of two words of a document, ``1 / (1 + A)`` of
    a Dirichlet of total concentration A.
    """
    pairs = length * (length - 1)
    equal: Any = x * x - x  # entry by entry, of sparse arrays too

    def of_class(k: int) -> Excess:
        p = probs[k]
        worth = 1 / (p + 1 / len(p))
        return Excess(equal @ worth - pairs * (worth @ p**2), pairs * (worth @ (p * (1 - p))))

    return of_class


def _dense(x: Any) -> np.ndarray:
    return np.asarray(x.toarray() if hasattr(x, "toarray") else x, float)


def without_missing(x: Any, missing: Any, rows: np.ndarray) -> Float[np.ndarray, "rows d"]:
    """Rows of a dense matrix, NaN where a cell is missing.

    Args:
        x: one of the products' matrices.
        missing: another, ones where a cell is missing; or None.
        rows: which.
    """
    some = np.asarray(x.to_host(), float)[rows]
    return some if missing is None else np.where(missing.to_host()[rows] > 0, np.nan, some)
