"""Errors that are the oftener the nearer an item is to another class, by the shape of the classes.

Such errors make classes look as if they overlapped: labels alone do not tell the two apart. Where
items lie does. Labels of classes that overlap are drawn from the class probabilities; errors near
the borders draw them from these probabilities taken to a power below one
(:mod:`nbmodels.fitting.class_shapes`). Items say where classes lie, and labels whether they are as
sure as that. The power is integrated out, and compared with labels without errors.

Where classes are not of the shape that is assumed, right labels may seem wrong. The nonlinear
classifier of given labels sides with nearly all corrections, right or wrong. But classes that are
as clear as the shape has them are so among near rows of all features, too: so labels are corrected
only where the nearest rows, their own labels corrected alike, mostly have the label that is
suggested, and where their given labels do not contradict the corrections.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.special import expit, logsumexp

from nbmodels.core.model import PRIOR
from nbmodels.errors import Caution, VerdictWarning
from nbmodels.fitting.cautions import PLAIN
from nbmodels.fitting.class_shapes import fit_classes
from nbmodels.fitting.nearest import nearest_labels, shares_nearby
from nbmodels.fitting.reference import HARMFUL_BY_NEIGHBOURS, sides_of

if TYPE_CHECKING:
    from nbmodels.fitting.fitted_model import FittedModel
    from nbmodels.fitting.separable import Separable

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

#: Part of that share up to which changed labels are few. Where the fit changed no more, labels
#: under such errors were right in 12 points more of 52 fits of development, and in no fewer of any.
_STAYING = 1 / 3

#: Part of the changed labels from which on the nearest rows have the suggested one, and belief in
#: the changes by their given labels (:class:`nbmodels.fitting.reference.Sides`) from which on these
#: do not contradict. In the floor's worlds, seeds 20 to 35, one of 13 false corrections of clean
#: tables and 49 of 53 corrections of errors by the features had such support.
_SUPPORTED, _NOT_DOUBTED = 5 / 6, 0.5

#: Ratio of that share to the noise matrix's from which on the matrix is too clean.
_TIMES = 2.0

_SEEM = (
    "errors seem to be the oftener the nearer items are to another class, by the shape of the "
    "classes along linear scores: labels are corrected by that"
)
_STATED = Caution(VerdictWarning, _SEEM, "errors near borders")
_TOO_CLEAN = Caution(
    VerdictWarning,
    f"{_SEEM}. Noise that does not depend on the features cannot represent such errors: the noise "
    "matrix is too clean, and its intervals hold only if the classes overlap instead; check some "
    "rows by hand (audit_plan)",
)


class NearBorders(NamedTuple):
    """What the shape of the classes says of errors near their borders.

    Attributes:
        log_factor: logarithm of the Bayes factor of such errors against right labels.
        share_wrong: share of the given labels that is wrong at least; NaN where the shape does not
            tell.
        rows: ``(n,)`` the items looked at.
        probs: ``(n, K)`` P(true class | scores, given label) of these, averaged over the powers.
    """

    log_factor: float = 0.0
    share_wrong: float = np.nan
    rows: Int[np.ndarray, " n"] = np.arange(0)
    probs: Float[np.ndarray, "n k"] = np.zeros((0, 1))

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
    coarse = [len(np.unique(column)) <= _FEW_VALUES for column in dense.T]
    if 2 * sum(coarse) < len(coarse):
        return True
    return _effective_columns(dense, codes, n_classes) >= _MANY_COLUMNS


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
) -> NearBorders:
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
    found = [
        fit_classes(x, codes, weights, labels, lambda counts: counts, n_classes, freedom, power)
        for freedom in freedoms
        for power in _POWERS
    ]
    logs = np.array([one.log_likelihood for one in found])
    total = float(logsumexp(logs))
    if not np.isfinite(total):
        return NearBorders()
    probs = np.tensordot(np.exp(logs - total), np.stack([one.resp for one in found]), 1)
    counts = (weights[:, None] * probs).T @ labels
    # classes that are labelled as others oftener than not are not those of the labels
    if (np.diag(counts) <= counts.sum(1) / 2).any():
        return NearBorders()
    right = probs[np.arange(len(codes)), codes]
    share = 1 - float(np.average(right, weights=weights))
    return NearBorders(float(total - np.log(len(found)) - without), share, rows, probs)


def with_labels_by_shape(fitted: FittedModel, points: Any) -> FittedModel:
    """A cut fit whose labels would stay, corrected where errors near the borders are found.

    Held-out labels hardly show such errors: a plain classifier predicts labels near the borders as
    well as any noise model. The noise matrix stays the fit's own; where it is too clean, a warning
    says so.

    Args:
        fitted: a model of given labels with what their shape says. Where some are checked, there
            are other sources, features are not heard, the fit changes as many labels, the shape was
            not that of all items, or the nearest rows do not support the corrections, nothing is
            done.
        points: ``(N, d)`` items in the space of their features, dense or sparse; where they are
            None, or too few labels have a place in it, nearest rows are not asked.
    """
    near = fitted.separable
    about = {PRIOR, "labels", *fitted.scored}
    cut = fitted.data.parts.get(PRIOR) is not None
    if near is None or not cut or fitted.drawn is not None or fitted.interrupted:
        return fitted
    found = near.by_shape.near_borders
    if set(fitted.fit.model) - about or not found.found:
        return fitted
    n, k = fitted.fit.resp.shape
    codes = np.asarray(fitted.data.parts["labels"])[:n]
    labelled = np.flatnonzero((codes < k) & (np.asarray(fitted.data.weights)[:n] > 0))
    changed = np.mean(fitted.label_posterior.argmax(1)[labelled] != codes[labelled])
    if changed > _STAYING * found.share_wrong or not np.isin(labelled, found.rows).all():
        return fitted
    if not _supported(near, points, codes, fitted.copies):
        return fitted
    resp = np.asarray(fitted.fit.resp, float)
    probs = resp / resp.sum(1, keepdims=True)
    probs[found.rows] = found.probs
    rates: Any = fitted.noise_matrix
    in_matrix = 1 - float(found.probs.mean(0) @ np.diag(rates))
    said = _TOO_CLEAN if found.share_wrong > _TIMES * in_matrix else _STATED
    return replace(
        fitted,
        averaged=probs,
        noisy=float(expit(found.log_factor)),
        cautions=(*(one for one in fitted.cautions if one != PLAIN), said),
    )


def _supported(
    near: Separable,
    points: Any,
    codes: Int[np.ndarray, " n"],
    copies: Int[np.ndarray, " n"] | None,
) -> bool:
    """Whether the nearest rows support the corrections, by given and by corrected labels.

    Args:
        near: labels of the nearest rows, and the corrections.
        points: ``(n, d)`` items in the space of their features, dense or sparse, or None.
        codes: ``(n,)`` given labels.
        copies: rows that are no neighbours, see :func:`nbmodels.fitting.nearest.nearest_labels`.
    """
    found, votes = near.by_shape.near_borders, near.nearby.argmax(1)
    suggested = np.full(len(codes), -1)
    suggested[found.rows] = found.probs.argmax(1)
    about = votes, codes[near.rows], suggested[near.rows]
    if sides_of(*about, HARMFUL_BY_NEIGHBOURS).belief < _NOT_DOUBTED:
        return False
    corrected = nearest_labels(points, suggested, found.probs.shape[1], copies=copies)
    if corrected is None:
        return True
    rows = corrected.rows
    changed = suggested[rows] != codes[rows]
    same = shares_nearby(corrected).argmax(1) == suggested[rows]
    return bool(np.mean(same[changed]) >= _SUPPORTED) if changed.any() else True
