"""Errors that are the oftener the nearer an item is to another class, by the shape of the classes.

Such errors make classes look as if they overlapped: labels alone do not tell the two apart. Where
items lie does. Labels of classes that overlap are drawn from the class probabilities; errors near
the borders draw them from these probabilities taken to a power below one
(:mod:`nbmodels.fitting.class_shapes`). Items say where classes lie, and labels whether they are as
sure as that. The power is integrated out, and compared with labels without errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.special import logsumexp

from nbmodels.fitting.class_shapes import fit_classes
from nbmodels.fitting.found_classes import FoundClasses

#: Powers of the class probabilities from which labels are drawn, as likely as each other.
_POWERS = (0.85, 0.7, 0.55, 0.4, 0.25)

#: Logarithm of a Bayes factor that is strong evidence (Kass and Raftery 1995), and share of wrong
#: labels from which on it is believed. Where classes are not quite of the shape that is assumed,
#: too, labels are less sure than it has them: of 300 clean tables of 300 and 600 rows nine had
#: strong evidence, of shares up to 0.07; of 300 with such errors 134, 126 of them beyond 0.08.
_STRONG, _LEAST = 3.0, 0.08

#: Distinct values up to which a column is one of few values, and effective number of such columns
#: from which on their sum is taken for normal: the score of ten binary columns has clusters that
#: are values of columns and no classes, with copies of each, too. In clean tables of 15 columns
#: twice, 10 and 12 thrice and 16 once, strong evidence of many errors was found in 29 of 160, of
#: 20 to 28 once and 20 twice in 3 of 160; where errors follow the features in 58 and 94.
_FEW_VALUES, _MANY_COLUMNS = 10, 18.0

#: Columns beyond which there are many, whatever their copies.
_WIDE = 300


class ErrorsByShape(NamedTuple):
    """What the shape of the classes says of errors of one kind.

    Attributes:
        log_factor: logarithm of the Bayes factor of such errors against right labels.
        share_wrong: share of the given labels that is wrong at least; NaN where the shape does not
            tell.
        rows: ``(n,)`` the items looked at.
        probs: ``(n, K)`` P(true class | scores, given label) of these, averaged over the fits.
        classes: the likeliest fit; None where the shape does not tell.
    """

    log_factor: float = 0.0
    share_wrong: float = np.nan
    rows: Int[np.ndarray, " n"] = np.arange(0)
    probs: Float[np.ndarray, "n k"] = np.zeros((0, 1))
    classes: FoundClasses | None = None

    @property
    def likelier(self) -> bool:
        """Whether there is strong evidence of such errors, few or many."""
        return bool(self.log_factor > _STRONG)

    @property
    def found(self) -> bool:
        """Whether there is strong evidence of many such errors."""
        return bool(self.likelier and self.share_wrong >= _LEAST)


def normal_sums(points: Any, codes: Int[np.ndarray, " n"], n_classes: int) -> bool:
    """Whether sums of the columns may be normal within a class: not those of few coarse columns.

    Args:
        points: ``(n, d)`` items in the space of their features, dense or sparse.
        codes: ``(n,)`` given labels.
        n_classes: K.
    """
    if points.shape[1] > _WIDE:
        return True
    dense = points.toarray() if sparse.issparse(points) else np.asarray(points, float)
    if not mostly_coarse(dense):
        return True
    return _effective_columns(dense, codes, n_classes) >= _MANY_COLUMNS


def mostly_coarse(x: Float[np.ndarray, "n d"]) -> bool:
    """Whether half of the columns and more have few values."""
    coarse = [len(np.unique(column)) <= _FEW_VALUES for column in x.T]
    return 2 * sum(coarse) >= len(coarse)


def _effective_columns(
    x: Float[np.ndarray, "n d"], codes: Int[np.ndarray, " n"], n_classes: int
) -> float:
    """Number of independent columns whose correlations within classes are as large in all.

    The participation ratio of the eigenvalues of the correlation matrix, less what chance adds to
    the squared correlations.
    """
    labels = np.eye(n_classes)[codes]
    within = x - labels @ (labels.T @ x / np.maximum(labels.sum(0), 1)[:, None])
    size = np.sqrt(np.square(within).sum(0))
    within = within[:, size > 0] / size[size > 0]
    d, freedom = within.shape[1], max(len(x) - n_classes, 1)
    shared = np.square(within.T @ within).sum() - d - d * (d - 1) / freedom
    return float(d**2 / (d + max(shared, 0.0))) if d else 0.0


def errors_near_borders(
    x: Float[np.ndarray, "n d"],
    codes: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    n_classes: int,
    freedoms: Sequence[float],
    without: float,
    rows: Int[np.ndarray, " n"],
) -> ErrorsByShape:
    """Evidence of errors near the borders, and the classes that items have under them.

    Args:
        x: ``(n, d)`` linear scores.
        codes: ``(n,)`` given labels.
        weights: ``(n,)`` row weights of mean one.
        n_classes: K.
        freedoms: degrees of freedom of the classes, as likely as each other.
        without: log-evidence of right labels.
        rows: ``(n,)`` the items' own rows.
    """
    labels = np.eye(n_classes)[codes]
    forms = list(product(freedoms, _POWERS))
    found = [
        fit_classes(x, codes, weights, labels, lambda counts: counts, n_classes, *form)
        for form in forms
    ]
    logs = np.array([one.log_likelihood for one in found])
    total = float(logsumexp(logs))
    if not np.isfinite(total):
        return ErrorsByShape()
    probs = np.tensordot(np.exp(logs - total), np.stack([one.resp for one in found]), 1)
    counts = (weights[:, None] * probs).T @ labels
    # classes that are labelled as others oftener than not are not those of the labels
    if (np.diag(counts) <= counts.sum(1) / 2).any():
        return ErrorsByShape()
    right = probs[np.arange(len(codes)), codes]
    share = 1 - float(np.average(right, weights=weights))
    log_factor, best = float(total - np.log(len(found)) - without), int(np.argmax(logs))
    classes = FoundClasses(rows, codes, x, weights, found[best], forms[best][1])
    return ErrorsByShape(log_factor, share, rows, probs, classes)
